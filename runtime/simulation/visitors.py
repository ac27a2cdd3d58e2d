"""Inspectors in the simulated world: the way in, the connections, and those who sit at their other ends.

The door and its visitors are the real actors. A connection keeps what `PumpedConnection` promises: one pump reads,
another writes, the reader waits at its window, and the writer waits for a peer that does not read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from actors.base import Address
from actors.inspector.visitor import Visitor
from actors.mail import DoorMail, DoorRefused, VisitorBytes, VisitorCame, VisitorEnded, VisitorMail, VisitorRead
from runtime.simulation.chances import Chances
from runtime.simulation.course import Onlooker
from runtime.simulation.pumps import CountedWindow, Once, Pump
from runtime.simulation.script import UNTIL_QUIET, resolved

READ_BYTES = 256
WINDOW = (512, 2)
LITTLE = 2000
"""Bytes that a visitor may leave unread where the seed says so: the real bound is never met."""

AddPump = Callable[[Pump, str], None]
Referents = Callable[[], dict[str, Callable[[int], str]]]


class SimulatedConnection:
    """See `actors.mail.Connection`. `said` is what the inspector wrote, `sent` what its visitor sent, `heard` what the
    inspector has read of that. `most_waiting` is the most that was unread when more was sent; `was_dropped` tells
    that the visitor left since it counted more than `most_unread`."""

    def __init__(self, add_pump: AddPump, most_unread: int) -> None:
        self.number = 0
        self.visitor: Visitor | None = None
        self.most_unread = most_unread
        self.was_dropped = False
        self.said = b""
        self.sent: list[bytes] = []
        self.heard: list[bytes] = []
        self.dismissed = b""
        self.window = CountedWindow(*WINDOW)
        self.is_closed = self.is_gone = self.says_no_more = self.is_unread = False
        self.most_waiting = 0
        self.on_heard: Callable[[], None] = lambda: None
        self._add_pump = add_pump
        self._taken = 0
        self._is_writing = False

    @property
    def waiting(self) -> int:
        """How many of the bytes that were sent are unread."""
        return sum(map(len, self.sent)) - sum(map(len, self.heard))

    def read(self, to: Address[VisitorMail]) -> None:
        self._add_pump(_Reading(self, to), "visitor-read")

    def send(self, data: bytes, to: Address[VisitorMail]) -> None:
        self.most_waiting = max(self.most_waiting, self.waiting)
        self.sent.append(data)
        if not self._is_writing:
            self._is_writing = True
            self._add_pump(_Writing(self, to), "visitor-write")

    def dismiss(self, line: bytes) -> None:
        self.dismissed = line
        self.close()

    def close(self) -> None:
        self.is_closed = True
        self.was_dropped = self.visitor is not None and self.visitor.unread > self.most_unread
        self.window.close()

    def take(self) -> bytes:
        """What comes next, up to the size of a read."""
        data = self.said[self._taken : self._taken + READ_BYTES]
        self._taken += len(data)
        return data

    @property
    def has_come(self) -> bool:
        return self._taken < len(self.said)


class _Reading(Pump):
    def __init__(self, connection: SimulatedConnection, to: Address[VisitorMail]) -> None:
        super().__init__()
        self._connection = connection
        self._to = to

    def _run(self) -> Iterator[bool]:
        end = self._connection
        while not (end.is_closed or end.is_gone):
            if end.has_come and end.window.has_room(READ_BYTES):
                data = end.take()
                ack = end.window.admit(len(data))
                if ack is None:
                    return
                self._to.tell(VisitorBytes(data, ack))
                yield True
            elif end.says_no_more and not end.has_come:
                break
            else:
                yield False
        self._to.tell(VisitorEnded(is_gone=end.is_closed or end.is_gone))


class _Writing(Pump):
    def __init__(self, connection: SimulatedConnection, to: Address[VisitorMail]) -> None:
        super().__init__()
        self._connection = connection
        self._to = to

    def _run(self) -> Iterator[bool]:
        end = self._connection
        while not end.is_closed:
            if end.is_gone:
                self._to.tell(VisitorEnded(is_gone=True))
                return
            if end.is_unread or len(end.heard) == len(end.sent):
                yield False
                continue
            data = end.sent[len(end.heard)]
            end.heard.append(data)
            end.on_heard()
            self._to.tell(VisitorRead(len(data)))
            yield True


class Inspector(Pump):
    """Connects, says its lines, and reads or not."""

    def __init__(self, plan: Onlooker, connection: SimulatedConnection, referents: Referents) -> None:
        super().__init__()
        self.connection = connection
        self.lines: list[bytes] = []
        self._plan = plan
        self._referents = referents
        self._pauses = list(plan.reader.pauses)
        self._resting = False
        self._has_stopped = False
        connection.on_heard = self._look
        self._look()

    def wake(self) -> bool:
        """Nothing else can move: whether it had paused, and now goes on."""
        end = self.connection
        pauses = end.is_unread and not self._has_stopped
        was_waiting = (self._resting or pauses) and not end.is_closed
        self._resting = False
        end.is_unread = self._has_stopped
        return was_waiting

    def _look(self) -> None:
        """Whether it still reads after what it has heard so far."""
        reader, end = self._plan.reader, self.connection
        bursts = len(end.heard)
        end.is_gone = end.is_gone or (reader.closes is not None and bursts >= reader.closes)
        self._has_stopped = reader.stops is not None and bursts >= reader.stops
        pauses = bool(self._pauses) and self._pauses[0] <= bursts
        if pauses:
            self._pauses.pop(0)
        end.is_unread = pauses or self._has_stopped

    def _run(self) -> Iterator[bool]:
        pending, end = b"", self.connection
        for line in self._plan.lines:
            text = resolved(line.text, self._referents())
            self.lines.append(text)
            pending += text + b"\n"
            if line.joined:
                continue
            cut = int(len(pending) * line.cut)
            end.said += pending[:cut]
            pending = pending[cut:]
            for _ in range(line.pause):
                yield True
            self._resting = line.pause == UNTIL_QUIET
            while self._resting and not end.is_closed:
                yield False
        end.said += pending
        yield True
        end.says_no_more = self._plan.farewell != "stays"
        end.is_gone = end.is_gone or self._plan.farewell == "goes"


class SimulatedWayIn:
    """See `actors.inspector.door.WayIn`. `inspectors` are those who have connected."""

    def __init__(
        self, onlookers: tuple[Onlooker, ...], chances: Chances, add_pump: AddPump, referents: Referents
    ) -> None:
        dice = chances.dice("door")
        self.inspectors: list[Inspector] = []
        self.most_unread = LITTLE if dice.strikes("door: little may be left unread", 0.4) else 1 << 20
        self._is_late = dice.strikes("door: somebody comes while it closes", 0.3)
        self._is_refused = dice.strikes("door: no socket can be made", 0.05)
        self._onlookers = onlookers
        self._add_pump = add_pump
        self._referents = referents
        self._is_closed = False
        self._to: Address[DoorMail] | None = None

    def open(self, to: Address[DoorMail]) -> None:
        if self._is_refused:
            self._add_pump(Once(lambda: to.tell(DoorRefused("simulated: no such folder"))), "door-pump")
            return
        self._to = to
        for onlooker in self._onlookers:
            self._add_pump(_Arrival(onlooker.after, lambda one=onlooker: self._arrive(one, to)), "door-pump")  # type: ignore[misc]

    def close(self) -> None:
        """Who was accepted just before is told of just after."""
        self._is_closed = True
        to = self._to
        if to is not None and self._is_late:
            self._add_pump(Once(lambda: self._let_in(self._onlookers[0], to)), "door-pump")

    def wake(self) -> bool:
        """All of them: whether one had paused."""
        return any([inspector.wake() for inspector in self.inspectors])

    def _arrive(self, onlooker: Onlooker, to: Address[DoorMail]) -> None:
        if not self._is_closed:
            self._let_in(onlooker, to)

    def _let_in(self, onlooker: Onlooker, to: Address[DoorMail]) -> None:
        inspector = Inspector(onlooker, SimulatedConnection(self._add_pump, self.most_unread), self._referents)
        self.inspectors.append(inspector)
        self._add_pump(inspector, "inspector")
        to.tell(VisitorCame(inspector.connection))


class _Arrival(Pump):
    """Some steps later it does one thing."""

    def __init__(self, after: int, work: Callable[[], Any]) -> None:
        super().__init__()
        self._after = after
        self._once = work

    def _run(self) -> Iterator[bool]:
        for _ in range(self._after):
            yield True
        self._once()
        yield True
