"""The door for inspectors: who of them is here, and which session they look at.

It owns the listening socket (on Windows a pipe), which is opened with the first task of the process, and a `Visitor`
for each connection. Visitors look at the current session, whichever that is: the desk of the sessions tells the door,
and the door tells them. Nobody waits for a visitor but the end of the program, and that not for long.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, assert_never

from actors.base import Actor, Address, Child, Down
from actors.mail import (
    CloseDoor,
    Connection,
    DoorClosed,
    DoorMail,
    DoorRefused,
    FaceSession,
    LoseSession,
    SeeOut,
    SessionDeskMail,
    SessionLeft,
    SessionMail,
    ShowSession,
    VisitorCame,
    VisitorGone,
    VisitorMail,
)
from protocol.codec import encode
from protocol.inspector import InspectorRefused

MOST_VISITORS = 16
"""At once. Each costs three threads."""
FULL = f"{MOST_VISITORS} inspectors are connected, and no more may be"
CLOSING = "atomic is shutting down"


class WayIn(Protocol):
    """The listening socket or pipe. `open` begins to listen, and tells of those who come as `VisitorCame`, or
    `DoorRefused`; after `close` nobody comes any more. Neither waits."""

    def open(self, to: Address[DoorMail]) -> None: ...
    def close(self) -> None: ...


StartVisitor = Callable[[int, Connection, Address[DoorMail]], Child[VisitorMail]]


class Door(Actor[DoorMail]):
    """`complain` takes one line for stderr."""

    def __init__(
        self,
        desk: Address[SessionDeskMail],
        way_in: WayIn,
        start_visitor: StartVisitor,
        complain: Callable[[str], None],
    ) -> None:
        self._desk = desk
        self._way_in = way_in
        self._start_visitor = start_visitor
        self._complain = complain
        self._session: Address[SessionMail] | None = None
        self._visitors: dict[int, tuple[Child[VisitorMail], Connection]] = {}
        self._last = 0
        self._is_closing = self._is_closed = False

    def begin(self) -> None:
        self._way_in.open(self.me)

    def receive(self, mail: DoorMail) -> None:
        match mail:
            case VisitorCame(connection):
                self._let_in(connection)
            case VisitorGone(number):
                self._forget(number)
            case ShowSession(session):
                self._session = session
                for visitor, _ in self._visitors.values():
                    visitor.tell(FaceSession(session))
            case SessionLeft(session, error):
                self._leave(session, error)
            case DoorRefused(error):
                self._complain(f"no inspector can connect: {error}")
            case CloseDoor():
                self._close()
            case Down(number, _):
                self._bury(number)
            case _:
                assert_never(mail)
        self._tell_closed()

    def last_words(self, unread: list[DoorMail]) -> None:
        """Nobody would show the visitors another session: their connections end."""
        self._way_in.close()
        coming = [mail.connection for mail in unread if isinstance(mail, VisitorCame)]
        for connection in [*coming, *(connection for _, connection in self._visitors.values())]:
            connection.close()

    def _let_in(self, connection: Connection) -> None:
        if self._is_closing or len(self._visitors) >= MOST_VISITORS:
            why = CLOSING if self._is_closing else FULL
            connection.dismiss(encode(InspectorRefused(why)) + b"\n")
            return
        self._last += 1
        visitor = self._start_visitor(self._last, connection, self.me)
        self._visitors[self._last] = (visitor, connection)
        if self._session is not None:
            visitor.tell(FaceSession(self._session))

    def _leave(self, session: Address[SessionMail], error: str) -> None:
        if session is self._session:
            self._session = None
        for visitor, _ in self._visitors.values():
            visitor.tell(LoseSession(session, error))

    def _forget(self, number: int) -> None:
        if number in self._visitors:
            self._visitors.pop(number)[0].stop()

    def _bury(self, number: int) -> None:
        """A visitor died; its connection ends, and the others stay."""
        if number in self._visitors:
            self._visitors.pop(number)[1].close()

    def _close(self) -> None:
        self._is_closing = True
        self._way_in.close()
        for visitor, _ in self._visitors.values():
            visitor.tell(SeeOut())

    def _tell_closed(self) -> None:
        if self._is_closing and not self._visitors and not self._is_closed:
            self._is_closed = True
            self._desk.tell(DoorClosed())
