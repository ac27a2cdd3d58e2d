"""The door: who is let in, what they are shown, and that nobody stays behind it."""

from __future__ import annotations

from typing import Any

from actors.base import Down
from actors.inspector.door import MOST_VISITORS, Door
from actors.mail import (
    CloseDoor,
    DoorClosed,
    DoorRefused,
    FaceSession,
    LoseSession,
    SeeOut,
    SessionLeft,
    ShowSession,
    VisitorCame,
    VisitorGone,
)
from actors.probe import Probe


class Wire:
    is_closed = False
    told = b""

    def read(self, to: Any) -> None: ...

    def send(self, data: bytes, to: Any) -> None: ...

    def dismiss(self, line: bytes) -> None:
        self.told = line
        self.close()

    def close(self) -> None:
        self.is_closed = True


class Way:
    is_open = False

    def open(self, to: Any) -> None:
        self.is_open = True

    def close(self) -> None:
        self.is_open = False


class Bench:
    def __init__(self) -> None:
        self.desk: Probe[Any] = Probe()
        self.way = Way()
        self.visitors: dict[int, Probe[Any]] = {}
        self.complaints: list[str] = []
        self.door = Door(self.desk, self.way, self._start, self.complaints.append)
        self.door.me = Probe()
        self.door.begin()

    def _start(self, number: int, *_: Any) -> Probe[Any]:
        self.visitors[number] = Probe()
        return self.visitors[number]

    def tell(self, *mails: Any) -> None:
        for mail in mails:
            self.door.receive(mail)

    def come(self) -> Wire:
        wire = Wire()
        self.tell(VisitorCame(wire))
        return wire


def test_it_listens_as_soon_as_it_is_there() -> None:
    assert Bench().way.is_open


def test_each_visitor_is_shown_the_session_that_is_current_and_every_later_one() -> None:
    bench = Bench()
    first, second = Probe[Any](), Probe[Any]()
    bench.come()
    bench.tell(ShowSession(first))
    bench.come()
    bench.tell(ShowSession(second), SessionLeft(first, "over"))
    lost = LoseSession(first, "over")
    assert bench.visitors[1].drain() == [FaceSession(first), FaceSession(second), lost]
    assert bench.visitors[2].drain() == [FaceSession(first), FaceSession(second), lost]


def test_one_that_comes_while_there_is_no_session_waits_for_the_next() -> None:
    bench = Bench()
    first, second = Probe[Any](), Probe[Any]()
    bench.tell(ShowSession(first), SessionLeft(first, "died"))
    bench.come()
    assert bench.visitors[1].drain() == []
    bench.tell(ShowSession(second))
    assert bench.visitors[1].drain() == [FaceSession(second)]


def test_a_place_is_free_again_once_somebody_has_gone_or_died() -> None:
    bench = Bench()
    wires = [bench.come() for _ in range(MOST_VISITORS + 1)]
    assert [wire.is_closed for wire in wires] == [False] * MOST_VISITORS + [True]
    refused = b'{"type":"inspector_refused","error":"16 inspectors are connected, and no more may be"}\n'
    assert [wire.told for wire in wires] == [b""] * MOST_VISITORS + [refused]
    bench.tell(VisitorGone(2), VisitorGone(2))
    assert bench.visitors[2].stopped
    bench.tell(Down(3, "KeyError"))
    assert wires[2].is_closed
    assert not bench.come().is_closed
    assert not bench.come().is_closed
    assert bench.come().is_closed


def test_it_has_closed_when_the_last_visitor_has_gone() -> None:
    bench = Bench()
    bench.come()
    bench.come()
    bench.tell(CloseDoor())
    assert not bench.way.is_open
    assert [visitor.drain() for visitor in bench.visitors.values()] == [[SeeOut()], [SeeOut()]]
    late = bench.come()
    assert (late.is_closed, b"atomic is shutting down" in late.told) == (True, True)
    bench.tell(VisitorGone(1))
    assert bench.desk.drain() == []
    bench.tell(Down(2, "KeyError"), CloseDoor())
    assert bench.desk.drain() == [DoorClosed()]


def test_with_nobody_there_it_closes_at_once() -> None:
    bench = Bench()
    bench.tell(CloseDoor())
    assert bench.desk.drain() == [DoorClosed()]


def test_a_socket_that_cannot_be_is_one_line() -> None:
    bench = Bench()
    bench.tell(DoorRefused("/tmp/atomic-0: not our own"))
    assert bench.complaints == ["no inspector can connect: /tmp/atomic-0: not our own"]


def test_its_last_words_end_every_connection_also_of_those_who_were_coming() -> None:
    bench = Bench()
    here, coming = bench.come(), Wire()
    bench.door.last_words([VisitorCame(coming), CloseDoor()])
    assert (here.is_closed, coming.is_closed, bench.way.is_open) == (True, True, False)
