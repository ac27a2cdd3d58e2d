"""Which session is current: opens, hands over and retires.

A replacement is a hand-over. The new session stands before the old one lets go; if it cannot stand, the old one stays.
There is one live session per file: going back to a session that still retires finds that one. A session that dies of
an exception is opened again from its file; a second death within a minute ends the program.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Literal, assert_never

from msgspec import Struct

from actors.base import Actor, Address, Child, Down
from actors.catalog_view import CatalogView, Defaults, Inherited
from actors.mail import (
    UNTIL_ADOPTED,
    BashAdopted,
    BecomeCurrent,
    CatalogChanged,
    CloseDoor,
    CloseSessions,
    DescribeFork,
    DoorClosed,
    DoorMail,
    ForkReady,
    ForkRefused,
    HomeMoved,
    IntakeMail,
    NoMoreCommands,
    OpenFirst,
    PassOn,
    Record,
    Reload,
    Replace,
    Retire,
    Retired,
    RootMail,
    SessionCurrent,
    SessionDeskMail,
    SessionGone,
    SessionLeft,
    SessionMail,
    SessionReloaded,
    SessionsClosed,
    ShellDeskMail,
    ShowSession,
    TargetFailed,
    TargetOpened,
    TasksBegun,
    Ticket,
    UseCatalog,
    Write,
    WriterMail,
)
from actors.session.file import OpenedSession
from actors.session.services import Modes
from actors.session.surroundings import Surroundings
from protocol import commands as c
from protocol.codec import encode

CLOSING = "atomic is shutting down"
LEFT = "the session has ended"
DOOR = "door"
"""What the door is called in its `Down`; sessions are numbered."""
TWICE_WITHIN_MS = 60_000


class Target(Struct, frozen=True):
    """What to open. `new`: an empty session; `file`: the one at `path`; `import`: a copy of the one at `path`, put at
    `destination`; `fork`: one that begins with `lines`."""

    kind: Literal["new", "file", "import", "fork"]
    beside: OpenedSession
    path: str = ""
    destination: str = ""
    cwd: str | None = None
    parent_session: str | None = None
    lines: tuple[bytes, ...] = ()


OpenTarget = Callable[[int, Target, Address[SessionDeskMail]], None]
"""Opens in a pump; the desk is told `TargetOpened` or `TargetFailed` with the serial."""

StartSession = Callable[[int, OpenedSession, Modes, Inherited, Address[SessionDeskMail]], Child[SessionMail]]

StartDoor = Callable[[Address[SessionDeskMail]], Child[DoorMail]]
"""Lets inspectors in from now on."""


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


class Replacement(Struct):
    """The one that is under way."""

    ticket: Ticket
    successor: int | None = None
    data: bytes = b'{"cancelled":false}'


class SessionDesk(Actor[SessionDeskMail]):
    """`first` is the session of the start. `now` is in milliseconds. Without `start_door` no inspector can come."""

    def __init__(
        self,
        first: OpenedSession,
        modes: Modes,
        writer: Address[WriterMail],
        root: Address[RootMail],
        start_session: StartSession,
        open_target: OpenTarget,
        now: Callable[[], int],
        complain: Callable[[str], None],
        start_door: StartDoor | None = None,
    ) -> None:
        self._first = first
        self._modes = modes
        self._catalog: CatalogView | None = None
        self._defaults: Defaults | None = None
        self._writer = writer
        self._root = root
        self._start_session = start_session
        self._open_target = open_target
        self._now = now
        self._complain = complain
        self._start_door = start_door
        self._door: Child[DoorMail] | None = None
        self._door_closing = False
        self._slots: dict[int, Slot] = {}
        self._current = 0
        self._last_key = 0
        self._replacement: Replacement | None = None
        self._passed_on: Record | None = None
        self._deaths: dict[str, int] = {}
        self._dead: dict[int, tuple[Slot, str]] = {}
        self._closing = False
        self._closed = False

    def connect(self, intake: Address[IntakeMail], shells: Address[ShellDeskMail]) -> None:
        """Called by the wiring before the first mail."""
        self._intake = intake
        self._shells = shells

    def receive(self, mail: SessionDeskMail) -> None:
        match mail:
            case Replace(ticket, command):
                self._replace(ticket, command)
            case OpenFirst():
                self._make_current(self._start(self._first, None))
            case TargetOpened(serial, opened, surroundings):
                self._opened(serial, opened, surroundings)
            case TargetFailed(serial, error):
                self._failed(serial, error)
            case ForkReady():
                self._fork(mail)
            case ForkRefused(ticket, error):
                self._refuse_this(ticket.serial, error)
            case Retired(key, modes, defaults):
                self._retired(key, modes, defaults)
            case CatalogChanged(view):
                self._change_catalog(view)
            case SessionGone(key, heard):
                self._forget(key, heard)
            case SessionReloaded(ticket, error):
                self._reloaded(ticket.serial, error)
            case TasksBegun():
                self._open_door()
            case DoorClosed():
                self._door = None
            case CloseSessions():
                self._close()
            case Down(key, error) if key == DOOR:
                self._door = None
                self._complain(f"inspectors can no longer connect: {error}")
            case Down(key, error):
                self._bury(key, error)
            case _:
                assert_never(mail)
        self._tell_closed()

    # -- replacing

    def _replace(self, ticket: Ticket, command: c.Command) -> None:
        self._replacement, self._passed_on = Replacement(ticket), None
        slot = self._slots.get(self._current)
        if self._closing or slot is None:
            self._refuse(CLOSING if self._closing else "the session is being opened again")
            return
        wrong = _wrong_path(command)
        if wrong is not None:
            self._refuse(wrong)
            return
        match command:
            case c.NewSession(parent_session=parent):
                self._open(Target("new", slot.opened, parent_session=parent or None))
            case c.SwitchSession(session_path=path):
                self._switch(slot, path)
            case c.ImportSession(input_path=path, cwd_override=cwd):
                self._import(slot, path, cwd)
            case c.Fork(entry_id=entry_id):
                slot.address.tell(DescribeFork(ticket, entry_id))
            case c.Clone():
                slot.address.tell(DescribeFork(ticket, None))
            case _:
                self._refuse(f"{ticket.command} replaces no session")

    def _switch(self, slot: Slot, path: str) -> None:
        live = self._live_at(path)
        if live is None:
            self._open(Target("file", slot.opened, path=path))
        elif live.key == self._current:
            assert self._replacement is not None
            live.address.tell(Reload(self._replacement.ticket))
        else:
            self._hand_over(live.key)

    def _import(self, slot: Slot, path: str, cwd: str | None) -> None:
        directory = _directory_of(slot.opened)
        destination = os.path.join(directory, os.path.basename(path)) if directory else ""
        live = self._live_at(destination) if destination else None
        if live is not None and _same_file(path, destination):
            self._switch(slot, destination)
        elif live is not None:
            self._refuse(f"import_session: the session at {destination} is open here, so it cannot be overwritten")
        else:
            self._open(Target("import", slot.opened, path=path, destination=destination, cwd=cwd))

    def _fork(self, mail: ForkReady) -> None:
        from protocol.responses import Forked

        slot = self._slots.get(self._current)
        if self._replacement is None or not self._is_open(mail.ticket.serial) or slot is None:
            return
        if mail.text is not None:
            self._replacement.data = encode(Forked(False, mail.text))
        self._open(Target("fork", slot.opened, parent_session=mail.parent_session, lines=mail.lines))

    def _open(self, target: Target) -> None:
        assert self._replacement is not None
        self._open_target(self._replacement.ticket.serial, target, self.me)

    def _opened(self, serial: int, opened: OpenedSession, surroundings: Surroundings | None) -> None:
        for note in opened.notes:
            self._complain(note)
        if serial < 0:
            self._reopened(-serial, opened, surroundings)
        elif self._is_open(serial):
            self._hand_over(self._start(opened, surroundings))
        else:  # it was answered meanwhile
            opened.journal.close()

    def _failed(self, serial: int, error: str) -> None:
        if serial < 0:
            del self._dead[-serial]
            self._root.tell(Down("session", f"it cannot be opened again: {error}"))
        else:
            self._refuse_this(serial, error)

    def _hand_over(self, successor: int) -> None:
        assert self._replacement is not None
        self._replacement.successor = successor
        slot = self._slots.get(self._current)
        if slot is None:  # it died meanwhile
            self._promote(successor)
        else:
            slot.tell(Retire())

    def _retired(self, key: int, modes: Modes, defaults: Defaults | None) -> None:
        if key != self._current:
            return
        self._modes, self._defaults = modes, defaults
        if self._replacement is not None and self._replacement.successor is not None:
            self._promote(self._replacement.successor)
        elif not self._closing:  # its successor died: it stays
            self._slots[key].tell(BecomeCurrent(modes, defaults))

    def _promote(self, successor: int) -> None:
        assert self._replacement is not None
        self._slots[successor].tell(BecomeCurrent(self._modes, self._defaults))
        self._make_current(successor)
        self._answer(self._replacement.ticket.ok(self._replacement.data))

    def _reloaded(self, serial: int, error: str | None) -> None:
        from protocol.responses import Cancelled

        if error is not None:
            self._refuse_this(serial, error)
        elif self._replacement is not None and self._is_open(serial):
            self._answer(self._replacement.ticket.ok(encode(Cancelled(False))))

    def _is_open(self, serial: int) -> bool:
        """Whether the replacement under way is this one: what an earlier one asked for may come late."""
        return self._replacement is not None and self._replacement.ticket.serial == serial

    def _refuse_this(self, serial: int, error: str) -> None:
        if self._is_open(serial):
            self._refuse(error)

    def _refuse(self, error: str) -> None:
        """The session that is current stays. It passes the refusal on, behind its answers to what came before."""
        if self._replacement is None:
            return
        refusal = self._replacement.ticket.failed(error)
        slot = self._slots.get(self._current)
        if slot is None or self._closing:
            self._answer(refusal)
            return
        self._replacement, self._passed_on = None, refusal
        slot.address.tell(PassOn(refusal))

    def _answer(self, response: Record) -> None:
        self._replacement = None
        self._writer.tell(Write((response,)))

    # -- the live sessions

    def _start(self, opened: OpenedSession, surroundings: Surroundings | None) -> int:
        for warning in surroundings.warnings if surroundings else ():
            self._complain(warning)
        self._last_key += 1
        inherited = Inherited(self._catalog, self._defaults, surroundings)
        address = self._start_session(self._last_key, opened, self._modes, inherited, self.me)
        self._slots[self._last_key] = Slot(self._last_key, opened, address)
        return self._last_key

    def _make_current(self, key: int) -> None:
        self._current = key
        self._intake.tell(SessionCurrent(self._slots[key].address))
        self._tell_door(ShowSession(self._slots[key].address))

    def _change_catalog(self, view: CatalogView) -> None:
        self._catalog = view
        for slot in self._slots.values():
            slot.address.tell(UseCatalog(view))

    def _live_at(self, path: str) -> Slot | None:
        for slot in self._slots.values():
            live = slot.opened.journal.path
            if live is not None and _same_file(live, path):
                return slot
        return None

    def _forget(self, key: int, heard: int) -> None:
        """A session that is called back, or about to be, lives on."""
        slot = self._slots.get(key)
        called_back = self._replacement is not None and self._replacement.successor == key
        if slot is None or slot.told != heard or called_back:
            return
        del self._slots[key]
        slot.opened.journal.close()
        slot.address.stop()
        self._tell_door(SessionLeft(slot.address, LEFT))

    def _bury(self, key: int, error: str) -> None:
        """Opens the file of a session that died again, so that its shell requests find their home and a client that
        goes on finds its session."""
        slot = self._slots.pop(key, None)
        if slot is None:  # it had nothing left to do
            return
        self._tell_door(SessionLeft(slot.address, f"the session failed: {error}"))
        if key == self._current and self._passed_on is not None:
            self._writer.tell(Write((self._passed_on,)))  # the Writer lets it through only once
        self._complain(f"the session died and is opened again: {error}")
        name = slot.opened.journal.path or slot.opened.header.id
        died, self._deaths[name] = self._deaths.get(name), self._now()
        path = slot.opened.journal.path if slot.opened.journal.exists_on_disk else None
        slot.opened.journal.close()
        if died is not None and self._now() - died < TWICE_WITHIN_MS:
            self._root.tell(Down("session", error))
            return
        self._dead[key] = (slot, error)
        successor = self._replacement.successor if self._replacement is not None else None
        if key == self._current and successor is not None:
            self._promote(successor)
        elif key in (self._current, successor):
            self._refuse(f"the session failed: {error}")
        again = Target("new", slot.opened) if path is None else Target("file", slot.opened, path=path)
        self._open_target(-key, again, self.me)

    def _reopened(self, key: int, opened: OpenedSession, surroundings: Surroundings | None) -> None:
        slot, error = self._dead.pop(key)
        successor = self._start(opened, surroundings)
        reborn = self._slots[successor]
        address = reborn.address
        address.tell(BashAdopted(frozenset((UNTIL_ADOPTED,))))
        if key == self._current:
            if not self._closing:
                reborn.tell(BecomeCurrent(self._modes, self._defaults))
            self._make_current(successor)
        else:
            reborn.tell(Retire())
            address.tell(NoMoreCommands())
        self._shells.tell(HomeMoved(slot.address, address, f"the session failed: {error}"))
        if self._closing:
            self._retire_all()

    # -- inspectors

    def _open_door(self) -> None:
        """With the first task of the process; it stays open for the sessions that follow."""
        if self._start_door is None or self._closing:
            return
        start_door, self._start_door = self._start_door, None
        self._door = start_door(self.me)
        if self._current in self._slots:
            self._tell_door(ShowSession(self._slots[self._current].address))

    def _tell_door(self, mail: ShowSession | SessionLeft | CloseDoor) -> None:
        if self._door is not None:
            self._door.tell(mail)

    # -- the end

    def _close(self) -> None:
        self._refuse(CLOSING)
        self._closing = True
        self._retire_all()

    def _retire_all(self) -> None:
        for slot in self._slots.values():
            slot.tell(Retire())
            slot.address.tell(NoMoreCommands())

    def _tell_closed(self) -> None:
        """Inspectors hear the end of the tasks, and then leave."""
        if not self._closing or self._closed or self._slots or self._dead:
            return
        if self._door is None:
            self._closed = True
            self._root.tell(SessionsClosed())
        elif not self._door_closing:
            self._door_closing = True
            self._tell_door(CloseDoor())


def _wrong_path(command: c.Command) -> str | None:
    """Why no path of `command` can be one: the system takes neither NUL nor half of a surrogate pair."""
    match command:
        case c.SwitchSession(session_path=path):
            paths = {"sessionPath": path}
        case c.ImportSession(input_path=path, cwd_override=cwd):
            paths = {"inputPath": path, "cwdOverride": cwd or ""}
        case _:
            return None
    for field, path in paths.items():
        shown = ascii(path if len(path) <= 80 else path[:79] + "\u2026")
        if "\0" in path:
            return f"Invalid {field} {shown}: it must not contain a NUL character"
        if any("\ud800" <= letter <= "\udfff" for letter in path):
            return f"Invalid {field} {shown}: it must not contain a lone surrogate"
    return None


def _directory_of(opened: OpenedSession) -> str | None:
    path = opened.journal.path
    return None if path is None else os.path.dirname(path)


def _same_file(one: str, other: str) -> bool:
    """Also by another name; a file that is not there yet is known by its path alone."""
    try:
        return os.path.samefile(one, other)
    except OSError:
        pass
    try:
        return os.path.realpath(one) == os.path.realpath(other)
    except OSError:  # a relative path, and the folder that it starts from is gone
        return False
