"""Sessions that died of an exception: each is opened again from its file.

Part of the session desk. Its shell requests find their home again, and a client that goes on finds its session. A
second death of the same session within a minute ends the program.
"""

from __future__ import annotations

from collections.abc import Callable

from actors.base import Address, Down
from actors.mail import (
    UNTIL_ADOPTED,
    BashAdopted,
    HomeMoved,
    NoMoreCommands,
    Retire,
    RootMail,
    SessionDeskMail,
    ShellDeskMail,
)
from actors.session.desk.live import LiveSessions, Slot
from actors.session.desk.replacing import OpenTarget, Replacing
from actors.session.file import OpenedSession
from actors.session.surroundings import Surroundings

TWICE_WITHIN_MS = 60_000


class Deaths:
    """`now` is in milliseconds. What is opened again is asked for with the key of the dead, as a negative number."""

    def __init__(
        self,
        live: LiveSessions,
        replacing: Replacing,
        root: Address[RootMail],
        shells: Address[ShellDeskMail],
        open_target: OpenTarget,
        now: Callable[[], int],
        complain: Callable[[str], None],
        me: Address[SessionDeskMail],
    ) -> None:
        self._live = live
        self._replacing = replacing
        self._root = root
        self._shells = shells
        self._open_target = open_target
        self._now = now
        self._complain = complain
        self._me = me
        self._times: dict[str, int] = {}
        self._opening: dict[int, tuple[Slot, str]] = {}

    @property
    def is_opening(self) -> bool:
        """Whether one that died has yet to come back."""
        return bool(self._opening)

    def bury(self, key: int, error: str) -> None:
        slot = self._live.remove(key, f"the session failed: {error}")
        if slot is None:  # it had nothing left to do
            return
        if key == self._live.current_key:
            self._replacing.repeat_refusal()
        self._complain(f"the session died and is opened again: {error}")
        journal = slot.opened.journal
        path = journal.path if journal.exists_on_disk else None
        journal.close()
        if self._is_second(journal.path or slot.opened.header.id):
            self._root.tell(Down("session", error))
            return
        self._opening[key] = (slot, error)
        self._replacing.died(key, error)
        self._open_again(slot, path)

    def _is_second(self, name: str) -> bool:
        """Within a minute."""
        before, self._times[name] = self._times.get(name), self._now()
        return before is not None and self._now() - before < TWICE_WITHIN_MS

    def _open_again(self, slot: Slot, path: str | None) -> None:
        from actors.session.target import Target

        target = Target("new", slot.opened) if path is None else Target("file", slot.opened, path=path)
        self._open_target(-slot.key, target, self._me)

    def reopened(self, key: int, opened: OpenedSession, surroundings: Surroundings | None) -> None:
        slot, error = self._opening.pop(key)
        reborn = self._live.start(opened, surroundings)
        reborn.address.tell(BashAdopted(frozenset((UNTIL_ADOPTED,))))
        if key == self._live.current_key:
            if not self._live.is_closing:
                self._live.call(reborn)
            self._live.make_current(reborn)
        else:
            reborn.tell(Retire())
            reborn.address.tell(NoMoreCommands())
        self._shells.tell(HomeMoved(slot.address, reborn.address, f"the session failed: {error}"))
        if self._live.is_closing:
            self._live.retire_all()

    def failed(self, key: int, error: str) -> None:
        del self._opening[key]
        self._root.tell(Down("session", f"it cannot be opened again: {error}"))
