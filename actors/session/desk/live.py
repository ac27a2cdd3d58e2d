"""The sessions that live: the current one, the one that will be, and those that retire.

Part of the session desk. What one leaves to the next (modes, what commands saved as defaults, the catalogue) goes along
here.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from actors.base import Address, Child
from actors.catalog_view import CatalogView, Defaults, Inherited
from actors.mail import (
    BecomeCurrent,
    IntakeMail,
    NoMoreCommands,
    Retire,
    SessionCurrent,
    SessionDeskMail,
    SessionMail,
    UseCatalog,
)
from actors.session.desk.door_side import DoorSide
from actors.session.file import OpenedSession
from actors.session.services import Modes
from actors.session.surroundings import Surroundings

StartSession = Callable[[int, OpenedSession, Modes, Inherited, Address[SessionDeskMail]], Child[SessionMail]]


class Slot(Struct):
    """A live session."""

    key: int
    opened: OpenedSession
    address: Child[SessionMail]
    told: int = 0

    def tell(self, mail: Retire | BecomeCurrent) -> None:
        """Counted, so that a `SessionGone` which crossed it on the way is known as out of date."""
        self.told += 1
        self.address.tell(mail)


class LiveSessions:
    """`current_key` is also that of a current session which has died and is being opened again; with `is_closing` the
    program ends, and none of them is called back."""

    def __init__(
        self,
        modes: Modes,
        start_session: StartSession,
        intake: Address[IntakeMail],
        door: DoorSide,
        complain: Callable[[str], None],
        me: Address[SessionDeskMail],
    ) -> None:
        self.current_key = 0
        self.is_closing = False
        self._modes = modes
        self._defaults: Defaults | None = None
        self._catalog: CatalogView | None = None
        self._start_session = start_session
        self._intake = intake
        self._door = door
        self._complain = complain
        self._me = me
        self._slots: dict[int, Slot] = {}
        self._last_key = 0

    @property
    def is_empty(self) -> bool:
        return not self._slots

    @property
    def current(self) -> Slot | None:
        """None while it is being opened again."""
        return self._slots.get(self.current_key)

    def get(self, key: int) -> Slot | None:
        return self._slots.get(key)

    def at(self, path: str) -> int | None:
        """The key of the one whose file this is."""
        from actors.session.target import same_file

        for slot in self._slots.values():
            its_path = slot.opened.journal.path
            if its_path is not None and same_file(its_path, path):
                return slot.key
        return None

    def start(self, opened: OpenedSession, surroundings: Surroundings | None) -> Slot:
        for warning in surroundings.warnings if surroundings else ():
            self._complain(warning)
        self._last_key += 1
        inherited = Inherited(self._catalog, self._defaults, surroundings)
        address = self._start_session(self._last_key, opened, self._modes, inherited, self._me)
        slot = self._slots[self._last_key] = Slot(self._last_key, opened, address)
        return slot

    def inherit(self, modes: Modes, defaults: Defaults | None) -> None:
        """What the current one leaves to the next."""
        self._modes, self._defaults = modes, defaults

    def call(self, slot: Slot) -> None:
        """It is, or is again, the one that works for the client."""
        slot.tell(BecomeCurrent(self._modes, self._defaults))

    def make_current(self, slot: Slot) -> None:
        self.current_key = slot.key
        self._intake.tell(SessionCurrent(slot.address))
        self._door.show(slot.address)

    def change_catalog(self, view: CatalogView) -> None:
        self._catalog = view
        for slot in self._slots.values():
            slot.address.tell(UseCatalog(view))

    def remove(self, key: int, why: str) -> Slot | None:
        """It lives no longer; its file is still open."""
        slot = self._slots.pop(key, None)
        if slot is not None:
            self._door.leave(slot.address, why)
        return slot

    def close(self) -> None:
        self.is_closing = True
        self.retire_all()

    def retire_all(self) -> None:
        for slot in self._slots.values():
            slot.tell(Retire())
            slot.address.tell(NoMoreCommands())
