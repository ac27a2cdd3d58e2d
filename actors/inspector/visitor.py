"""One inspector at its connection: it sends commands about tasks, and is told of them.

It owns the partial line, which commands are open, and what has not left yet. Its commands go to the session that it
looks at, with its own address: the answer comes back here and never to stdout. Each gets one response, also if the
session that was asked is gone. An inspector that does not read is dropped, so that it costs nobody else anything.
"""

from __future__ import annotations

from typing import assert_never

from msgspec import structs

from actors.base import Actor, Address
from actors.mail import (
    Arm,
    ClockMail,
    Connection,
    DoorMail,
    EndVisit,
    FaceSession,
    LoseSession,
    SeeOut,
    SessionDescribed,
    SessionMail,
    Tick,
    Ticket,
    Visit,
    VisitorAnswered,
    VisitorBytes,
    VisitorCommand,
    VisitorEnded,
    VisitorGone,
    VisitorMail,
    VisitorRead,
    VisitorTold,
)
from protocol.codec import Rejected, encode, read_command
from protocol.commands import Command, ExtensionUiResponse, command_name
from protocol.inspector import INSPECTOR_COMMANDS, VERSION, InspectorHello, InspectorSession
from protocol.lines import LineSplitter

UNREAD_BYTES = 1 << 20
"""Whoever leaves more than this unread is dropped."""
BURST_BYTES = 256 * 1024
LINE_BYTES = 1 << 20
MOST_OPEN = 256
FAREWELL_MS = 250
CLOSING = "atomic is shutting down"
NO_SESSION = "no session is open right now"
LOST = "the connection of the inspector failed"
NOT_HERE = "{} is not available here; an inspector may send " + ", ".join(INSPECTOR_COMMANDS)


class Visitor(Actor[VisitorMail]):
    """`number` is what the door calls it; `pid` is told to the inspector. `unread` and `most_unread` are in bytes: what
    has been sent and has not left yet, and how much of that may be when more is sent."""

    def __init__(
        self,
        number: int,
        connection: Connection,
        door: Address[DoorMail],
        clock: Address[ClockMail],
        pid: int,
        most_unread: int = UNREAD_BYTES,
    ) -> None:
        self._number = number
        self._connection = connection
        self._door = door
        self._clock = clock
        self._pid = pid
        self._most_unread = most_unread
        self._session: Address[SessionMail] | None = None
        self._splitter = LineSplitter()
        self._partial = 0
        self._last_serial = 0
        self._open: dict[int, tuple[Ticket, Address[SessionMail]]] = {}
        self._updates = False
        self._updates_asked = 0
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self.unread = 0
        self._is_greeted = self._is_over = self._is_leaving = self._is_gone = False

    def receive(self, mail: VisitorMail) -> None:
        match mail:
            case VisitorTold(session, lines):
                if session is self._session and not self._is_over:
                    self._say(lines)
            case VisitorBytes(data, ack):
                self._take(data)
                if ack is not None:
                    ack.settle()
            case VisitorAnswered():
                self._answer(mail)
            case VisitorRead(size):
                self.unread -= size
            case SessionDescribed(session, facts):
                if session is self._session:
                    self._describe(facts)
            case FaceSession(session):
                self._face(session)
            case LoseSession(session, error):
                self._lose(session, error)
            case VisitorEnded(is_gone):
                self._end(is_gone)
            case SeeOut():
                self._see_out()
            case Tick():
                self._leave()
            case _:
                assert_never(mail)

    def idle(self) -> None:
        self._send()
        if self._is_over and not self._open and not self.unread:
            self._leave()

    def last_words(self, unread: list[VisitorMail]) -> None:
        """What is open is answered, behind what was said and has not left, as far as the connection still takes it; the
        door closes it."""
        for mail in unread:
            if isinstance(mail, VisitorBytes) and mail.ack is not None:
                mail.ack.settle()
        answers = [ticket.failed(LOST).line for ticket, _ in self._open.values()]
        if (self._pending or answers) and not self._is_gone and self.unread <= self._most_unread:
            self._connection.send(b"".join([*self._pending, *answers]), self.me)
        if self._session is not None:
            self._session.tell(EndVisit(self._number))

    # -- commands

    def _take(self, data: bytes) -> None:
        for line in self._splitter.feed(data):
            if not self._is_over:
                self._read(line)
        end = data.rfind(b"\n")
        self._partial = self._partial + len(data) if end < 0 else len(data) - end - 1
        if self._partial > LINE_BYTES and not self._is_over:
            self._refuse(self._ticket(b"", None), f"Failed to parse command: a line is longer than {LINE_BYTES} bytes")
            self._end()

    def _read(self, line: bytes) -> None:
        command = read_command(line)
        if isinstance(command, Rejected):
            self._refuse(self._ticket(command.id, command.command), command.error)
            return
        name = command_name(command)
        ticket = self._ticket(b"" if isinstance(command, ExtensionUiResponse) else bytes(command.id), name)
        if name not in INSPECTOR_COMMANDS:
            self._refuse(ticket, NOT_HERE.format(name))
        elif self._session is None:
            self._refuse(ticket, NO_SESSION)
        elif len(self._open) >= MOST_OPEN:
            self._refuse(ticket, f"more than {MOST_OPEN} commands are open")
        else:
            self._pass_on(ticket, command, self._session)

    def _pass_on(self, ticket: Ticket, command: Command, session: Address[SessionMail]) -> None:
        self._open[ticket.serial] = (ticket, session)
        session.tell(VisitorCommand(ticket, command, self.me))

    def _answer(self, mail: VisitorAnswered) -> None:
        """The first one counts. A subscription goes along to the sessions that follow: the last that was asked for
        counts, whichever session answers first."""
        if mail.response.serial not in self._open:
            return
        _, asked = self._open.pop(mail.response.serial)
        self._say(mail.response.line)
        if mail.updates is not None and mail.response.serial > self._updates_asked:
            self._updates, self._updates_asked = mail.updates, mail.response.serial
            if self._session is not None and asked is not self._session and not self._is_over:
                self._session.tell(Visit(self._number, self.me, self._updates))

    def _ticket(self, id: bytes, name: str | None) -> Ticket:
        self._last_serial += 1
        return Ticket(self._last_serial, id, name, self._number)

    def _refuse(self, ticket: Ticket, error: str) -> None:
        self._say(ticket.failed(error).line)

    # -- the session

    def _face(self, session: Address[SessionMail]) -> None:
        if self._session is not None:
            self._session.tell(EndVisit(self._number))
        self._session = session
        if not self._is_over:
            session.tell(Visit(self._number, self.me, self._updates))

    def _lose(self, session: Address[SessionMail], error: str) -> None:
        if session is self._session:
            self._session = None
        for serial, (ticket, asked) in list(self._open.items()):
            if asked is session:
                del self._open[serial]
                self._refuse(ticket, error)

    def _describe(self, facts: InspectorSession) -> None:
        """Nothing is read before the greeting has been said."""
        if self._is_greeted:
            self._say(encode(facts) + b"\n")
            return
        self._is_greeted = True
        self._say(encode(InspectorHello(version=VERSION, pid=self._pid, **structs.asdict(facts))) + b"\n")
        self._connection.read(self.me)

    # -- the connection

    def _say(self, lines: bytes) -> None:
        self._pending.append(lines)
        self._pending_bytes += len(lines)
        if self._pending_bytes >= BURST_BYTES:
            self._send()

    def _send(self) -> None:
        """All of a burst at once. What one answer holds is never too much, whatever its size."""
        data = b"".join(self._pending)
        self._pending.clear()
        self._pending_bytes = 0
        if not data or self._is_gone:
            return
        if self.unread > self._most_unread:
            self._leave()
            return
        self.unread += len(data)
        self._connection.send(data, self.me)

    def _end(self, is_gone: bool = False) -> None:
        """It sends no more: what is open is still answered, unless nobody is there to read it."""
        self._is_over = True
        if self._session is not None:
            self._session.tell(EndVisit(self._number))
        if is_gone:
            self._leave()

    def _see_out(self) -> None:
        """The sessions have closed: who has no answer by now gets this one, and a moment to read it."""
        self._is_over = True
        for ticket, _ in self._open.values():
            self._refuse(ticket, CLOSING)
        self._open.clear()
        self._clock.tell(Arm("farewell", FAREWELL_MS, self.me))

    def _leave(self) -> None:
        if not self._is_gone:
            self._is_gone = True
            self._connection.close()
            self._door.tell(VisitorGone(self._number))
