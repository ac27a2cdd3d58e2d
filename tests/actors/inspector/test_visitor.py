"""A visitor between its connection, its door and the sessions: one answer for each command, whichever of them goes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from actors.inspector.visitor import CLOSING, LINE_BYTES, MOST_OPEN, UNREAD_BYTES, Visitor
from actors.mail import (
    EndVisit,
    FaceSession,
    LoseSession,
    SeeOut,
    SessionDescribed,
    Tick,
    Ticket,
    Visit,
    VisitorAnswered,
    VisitorBytes,
    VisitorCommand,
    VisitorEnded,
    VisitorGone,
    VisitorRead,
    VisitorTold,
)
from actors.probe import Probe
from actors.pump import Window
from protocol.inspector import InspectorSession

LIST = b'{"id":1,"type":"get_tasks"}\n'


class Wire:
    """A connection whose other side reads as much as the test says."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.size = 0
        self.is_read = self.is_closed = False

    def read(self, to: Any) -> None:
        self.is_read = True

    def send(self, data: bytes, to: Any) -> None:
        assert not self.is_closed
        self.sent.append(data)
        self.size += len(data)

    def dismiss(self, line: bytes) -> None: ...

    def close(self) -> None:
        self.is_closed = True

    def records(self) -> list[dict[str, Any]]:
        """What was sent since the last look."""
        lines = b"".join(self.sent).splitlines()
        self.sent.clear()
        return [json.loads(line) for line in lines]


class Bench:
    def __init__(self) -> None:
        self.wire = Wire()
        self.door: Probe[Any] = Probe()
        self.clock: Probe[Any] = Probe()
        self.session: Probe[Any] = Probe()
        self.visitor = Visitor(3, self.wire, self.door, self.clock, 4711)
        self.visitor.me = Probe()

    def tell(self, *mails: Any) -> list[dict[str, Any]]:
        """What the inspector is sent for these."""
        for mail in mails:
            self.visitor.receive(mail)
        self.visitor.idle()
        return self.wire.records()

    def greet(self) -> list[dict[str, Any]]:
        return self.tell(FaceSession(self.session), self.described())

    def described(self, session: Any = None, name: str = "s1") -> SessionDescribed:
        return SessionDescribed(session or self.session, InspectorSession(session_id=name, cwd="/work"))

    def ask(self, line: bytes = LIST) -> Ticket:
        """The ticket under which the session got it."""
        self.tell(VisitorBytes(line))
        ticket: Ticket = self.session.of(VisitorCommand).ticket
        return ticket


def test_the_greeting_comes_first_and_nothing_is_read_before_it() -> None:
    bench = Bench()
    assert bench.tell(FaceSession(bench.session)) == []
    assert bench.session.drain() == [Visit(3, bench.visitor.me, False)]
    assert not bench.wire.is_read
    hello = {"type": "inspector_hello", "version": 1, "pid": 4711, "sessionId": "s1", "cwd": "/work"}
    assert bench.tell(bench.described()) == [hello]
    assert bench.wire.is_read
    assert bench.tell(bench.described(name="s2")) == [{"type": "inspector_session", "sessionId": "s2", "cwd": "/work"}]


def test_a_command_is_known_by_the_visitor_and_its_own_serial_and_answered_once() -> None:
    bench = Bench()
    bench.greet()
    ticket = bench.ask()
    assert (ticket.visitor, ticket.serial, ticket.id, ticket.command) == (3, 1, b"1", "get_tasks")
    assert bench.ask().serial == 2
    answer = VisitorAnswered(ticket.ok())
    assert [record["id"] for record in bench.tell(answer)] == [1]
    assert bench.tell(answer, VisitorAnswered(ticket.failed("late"))) == []
    assert bench.tell(VisitorAnswered(Ticket(99, b"", "get_tasks", 3).ok())) == []


def test_a_session_that_is_lost_leaves_no_command_open_and_its_late_answer_is_dropped() -> None:
    bench = Bench()
    bench.greet()
    asked, successor = [bench.ask(), bench.ask()], Probe[Any]()
    bench.tell(FaceSession(successor))
    assert bench.session.drain() == [EndVisit(3)]
    bench.tell(VisitorBytes(LIST))
    kept = successor.of(VisitorCommand).ticket
    lost = bench.tell(LoseSession(bench.session, "gone"))
    assert [record["error"] for record in lost] == ["gone", "gone"]
    assert bench.tell(*(VisitorAnswered(ticket.ok()) for ticket in asked)) == []
    assert [record["success"] for record in bench.tell(VisitorAnswered(kept.ok()))] == [True]


def test_without_a_session_commands_are_refused_and_the_next_one_is_visited() -> None:
    bench = Bench()
    bench.greet()
    bench.tell(LoseSession(bench.session, "gone"))
    (refused,) = bench.tell(VisitorBytes(LIST))
    assert refused["error"] == "no session is open right now"
    successor: Probe[Any] = Probe()
    bench.tell(FaceSession(successor))
    assert successor.drain() == [Visit(3, bench.visitor.me, False)]


def test_a_subscription_goes_along_and_the_session_before_is_not_heard_any_more() -> None:
    bench = Bench()
    bench.greet()
    told, successor = VisitorTold(bench.session, b'{"type":"task_update"}\n'), Probe[Any]()
    asked = bench.ask(b'{"type":"set_task_subscription","enabled":true}\n')
    assert len(bench.tell(VisitorAnswered(asked.ok(), True), told)) == 2
    assert bench.tell(FaceSession(successor), told, bench.described()) == []
    assert successor.drain() == [Visit(3, bench.visitor.me, True)]
    assert len(bench.tell(VisitorTold(successor, b"{}\n"), bench.described(successor, "s2"))) == 2


def test_a_subscription_that_was_answered_by_a_session_just_left_is_told_to_the_next() -> None:
    bench = Bench()
    bench.greet()
    asked, successor = bench.ask(b'{"type":"set_task_subscription","enabled":true}\n'), Probe[Any]()
    bench.tell(FaceSession(successor), VisitorAnswered(asked.ok(), True))
    assert [mail.updates for mail in successor.drain()] == [False, True]


@pytest.mark.parametrize("first", [True, False])
def test_of_two_subscriptions_the_last_that_was_asked_for_counts_whichever_session_answers_first(first: bool) -> None:
    bench = Bench()
    bench.greet()
    lines = [json.dumps({"type": "set_task_subscription", "enabled": on}).encode() + b"\n" for on in (first, not first)]
    before, successor = bench.ask(lines[0]), Probe[Any]()
    bench.tell(FaceSession(successor), VisitorBytes(lines[1]))
    after = successor.of(VisitorCommand).ticket
    assert len(bench.tell(VisitorAnswered(after.ok(), not first), VisitorAnswered(before.ok(), first))) == 2
    assert [mail for mail in successor.drain() if isinstance(mail, Visit)][1:] == []
    third: Probe[Any] = Probe()
    bench.tell(FaceSession(third))
    assert third.drain() == [Visit(3, bench.visitor.me, not first)]


def test_a_subscription_that_was_refused_changes_nothing() -> None:
    bench = Bench()
    bench.greet()
    asked, successor = bench.ask(b'{"type":"set_task_subscription","enabled":true,"transcript":"x"}\n'), Probe[Any]()
    bench.tell(VisitorAnswered(asked.failed("UnknownTask: UnknownTask")), FaceSession(successor))
    assert successor.drain() == [Visit(3, bench.visitor.me, False)]


def test_every_way_of_cutting_lines_gives_the_same_commands() -> None:
    bench = Bench()
    bench.greet()
    data = LIST * 3
    for cut in range(len(data)):
        bench.tell(VisitorBytes(data[:cut]), VisitorBytes(data[cut:]))
        assert [mail.ticket.command for mail in bench.session.drain()[-3:]] == ["get_tasks"] * 3


def test_its_reads_are_acknowledged_whatever_becomes_of_them() -> None:
    bench = Bench()
    bench.greet()
    window = Window(10, 2)
    for data in (b"{}\n", b"{", b"\n\n"):
        bench.tell(VisitorBytes(data, window.admit(len(data))))
    bench.tell(VisitorEnded())
    bench.tell(VisitorBytes(b"{}\n", window.admit(3)))
    assert window.admit(10) is not None  # there is room for all of it


def test_one_that_does_not_read_is_dropped_but_one_large_answer_is_no_reason() -> None:
    bench = Bench()
    bench.greet()
    large = VisitorTold(bench.session, b"x" * (UNREAD_BYTES + 1) + b"\n")
    bench.visitor.receive(large)
    bench.visitor.idle()
    assert not bench.wire.is_closed
    bench.visitor.receive(large)
    bench.visitor.idle()
    assert bench.wire.is_closed
    assert bench.door.drain() == [VisitorGone(3)]


def test_one_that_reads_may_be_sent_any_amount() -> None:
    bench = Bench()
    bench.greet()
    for _ in range(10):
        bench.visitor.receive(VisitorTold(bench.session, b"x" * (UNREAD_BYTES // 2)))
        bench.visitor.idle()
        bench.visitor.receive(VisitorRead(UNREAD_BYTES // 2))
    assert not bench.wire.is_closed


def test_too_many_open_commands_are_refused() -> None:
    bench = Bench()
    bench.greet()
    assert bench.tell(VisitorBytes(LIST * MOST_OPEN)) == []
    (refused,) = bench.tell(VisitorBytes(LIST))
    assert refused["error"] == f"more than {MOST_OPEN} commands are open"


def test_a_line_that_does_not_end_is_refused_and_no_more_is_read() -> None:
    bench = Bench()
    bench.greet()
    piece = VisitorBytes(b"x" * (LINE_BYTES // 4))
    assert bench.tell(*[piece] * 4) == []
    (refused,) = bench.tell(piece)
    assert refused["error"] == f"Failed to parse command: a line is longer than {LINE_BYTES} bytes"
    assert bench.tell(VisitorBytes(b"\n" + LIST)) == []


def test_after_the_end_of_file_it_stays_until_all_is_answered_and_has_left() -> None:
    bench = Bench()
    bench.greet()
    ticket = bench.ask()
    bench.tell(VisitorEnded())
    assert EndVisit(3) in bench.session.drain()
    bench.visitor.receive(VisitorAnswered(ticket.ok()))
    bench.visitor.idle()
    assert not bench.wire.is_closed
    bench.tell(VisitorRead(bench.wire.size))
    assert bench.door.drain() == [VisitorGone(3)]


def test_one_that_is_gone_leaves_at_once() -> None:
    bench = Bench()
    bench.greet()
    bench.ask()
    bench.tell(VisitorEnded(is_gone=True), VisitorEnded(is_gone=True), Tick("farewell"))
    assert (bench.wire.is_closed, bench.door.drain()) == (True, [VisitorGone(3)])


def test_at_the_end_of_the_program_what_is_open_is_answered_and_has_a_moment_to_leave() -> None:
    bench = Bench()
    bench.greet()
    bench.ask()
    (answer,) = bench.tell(SeeOut())
    assert answer["error"] == CLOSING
    assert not bench.wire.is_closed
    assert bench.clock.next().key == "farewell"
    bench.tell(Tick("farewell"))
    assert (bench.wire.is_closed, bench.door.drain()) == (True, [VisitorGone(3)])


def test_one_that_has_read_all_is_let_go_at_once() -> None:
    bench = Bench()
    bench.greet()
    bench.tell(VisitorRead(bench.wire.size), SeeOut())
    assert bench.door.drain() == [VisitorGone(3)]


def test_its_last_words_answer_what_is_open_and_free_the_pump() -> None:
    bench = Bench()
    bench.greet()
    bench.ask()
    window = Window(10, 1)
    bench.visitor.last_words([VisitorBytes(b"x", window.admit(1)), SeeOut()])
    assert [record["error"] for record in bench.wire.records()] == ["the connection of the inspector failed"]
    assert window.admit(10) is not None
    assert EndVisit(3) in bench.session.drain()


def test_its_last_words_come_behind_what_it_had_said_and_one_that_is_gone_has_none() -> None:
    bench = Bench()
    bench.greet()
    asked = [bench.ask(), bench.ask()]
    bench.visitor.receive(VisitorAnswered(asked[0].ok()))
    bench.visitor.last_words([])
    assert [record["success"] for record in bench.wire.records()] == [True, False]
    bench.tell(VisitorEnded(is_gone=True))
    bench.visitor.last_words([])
    assert bench.wire.records() == []
