"""Which session is current: opens, hands over and retires.

A replacement is a hand-over. The new session stands before the old one lets go; if it cannot stand, the old one stays.
There is one live session per file: going back to a session that still retires finds that one. A session that dies of
an exception is opened again from its file; a second death within a minute ends the program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from actors.base import Actor, Address, Down
from actors.mail import (
    CatalogChanged,
    CloseSessions,
    DoorClosed,
    ForkReady,
    ForkRefused,
    IntakeMail,
    OpenFirst,
    Replace,
    Retired,
    RootMail,
    SessionDeskMail,
    SessionGone,
    SessionReloaded,
    SessionsClosed,
    ShellDeskMail,
    TargetFailed,
    TargetOpened,
    TasksBegun,
    WriterMail,
)
from actors.session.desk.deaths import Deaths
from actors.session.desk.door_side import DOOR, DoorSide, StartDoor
from actors.session.desk.live import LiveSessions, StartSession
from actors.session.desk.replacing import CLOSING, OpenTarget, Replacing
from actors.session.file import OpenedSession
from actors.session.services import Modes

LEFT = "the session has ended"


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
        self._writer = writer
        self._root = root
        self._start_session = start_session
        self._open_target = open_target
        self._now = now
        self._complain = complain
        self._start_door = start_door
        self._closed = False

    def connect(self, intake: Address[IntakeMail], shells: Address[ShellDeskMail]) -> None:
        """Called by the wiring before the first mail."""
        open_target, complain, me = self._open_target, self._complain, self.me
        self._door = DoorSide(self._start_door, complain, me)
        self._live = LiveSessions(self._modes, self._start_session, intake, self._door, complain, me)
        self._replacing = Replacing(self._live, self._writer, open_target, me)
        self._deaths = Deaths(self._live, self._replacing, self._root, shells, open_target, self._now, complain, me)

    def receive(self, mail: SessionDeskMail) -> None:
        match mail:
            case Replace(ticket, command):
                self._replacing.begin(ticket, command)
            case OpenFirst():
                self._live.make_current(self._live.start(self._first, None))
            case TargetOpened():
                self._opened(mail)
            case TargetFailed(serial, error) if serial < 0:
                self._deaths.failed(-serial, error)
            case TargetFailed(serial, error):
                self._replacing.refuse_this(serial, error)
            case ForkReady():
                self._replacing.fork(mail)
            case ForkRefused(ticket, error):
                self._replacing.refuse_this(ticket.serial, error)
            case Retired(key, modes, defaults):
                self._replacing.retired(key, modes, defaults)
            case CatalogChanged(view):
                self._live.change_catalog(view)
            case SessionGone(key, heard):
                self._forget(key, heard)
            case SessionReloaded(ticket, error):
                self._replacing.reloaded(ticket.serial, error)
            case TasksBegun():
                self._open_door()
            case DoorClosed():
                self._door.gone()
            case CloseSessions():
                self._close()
            case Down(key, error) if key == DOOR:
                self._door.gone()
                self._complain(f"inspectors can no longer connect: {error}")
            case Down(key, error):
                self._deaths.bury(key, error)
            case _:
                assert_never(mail)
        self._tell_closed()

    def _opened(self, mail: TargetOpened) -> None:
        for note in mail.opened.notes:
            self._complain(note)
        if mail.serial < 0:
            self._deaths.reopened(-mail.serial, mail.opened, mail.surroundings)
        else:
            self._replacing.opened(mail.serial, mail.opened, mail.surroundings)

    def _forget(self, key: int, heard: int) -> None:
        """A session that is called back, or about to be, lives on."""
        slot = self._live.get(key)
        if slot is None or slot.told != heard or self._replacing.successor == key:
            return
        self._live.remove(key, LEFT)
        slot.opened.journal.close()
        slot.address.stop()

    def _open_door(self) -> None:
        current = self._live.current
        if not self._live.is_closing:
            self._door.open(current.address if current is not None else None)

    def _close(self) -> None:
        self._replacing.refuse(CLOSING)
        self._live.close()

    def _tell_closed(self) -> None:
        """Inspectors hear the end of the tasks, and then leave."""
        if not self._live.is_closing or self._closed or not self._live.is_empty or self._deaths.is_opening:
            return
        if self._door.shut():
            self._closed = True
            self._root.tell(SessionsClosed())
