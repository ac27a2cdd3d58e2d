"""The end of the process: every trigger, the order of the parts, and what happens when one hangs or dies."""

from __future__ import annotations

from typing import Any

import pytest

from actors.base import Down
from actors.mail import (
    AnswerOpen,
    Arm,
    CloseIntake,
    CloseSessions,
    CloseShells,
    CloseWriter,
    InputEnded,
    InputEnding,
    SessionsClosed,
    ShellsClosed,
    SignalReceived,
    StdoutClosed,
    Tick,
    WriterClosed,
)
from actors.probe import Probe
from runtime.root import DEADLINE_MS, Root


class Bench:
    def __init__(self) -> None:
        self.complaints: list[str] = []
        self.written = 0
        self.sweeps = 0
        self.intake, self.desk, self.shells, self.writer, self.clock = (Probe[Any]() for _ in range(5))
        self.root = Root(self.complaints.append, lambda: self.written, self._sweep)
        self.root.me = Probe()
        self.root.connect(self.intake, self.desk, self.shells, self.writer, self.clock)

    def _sweep(self) -> None:
        self.sweeps += 1

    def tell(self, *mails: Any) -> None:
        for mail in mails:
            self.root.receive(mail)

    @property
    def state(self) -> tuple[str, int]:
        return self.root.phase, self.root.exit_code


@pytest.fixture
def bench() -> Bench:
    return Bench()


PARTS = (SessionsClosed(), ShellsClosed())
ANSWERED = InputEnded(answered=True)
CLOSED = (*PARTS, ANSWERED)


def test_the_end_of_input_closes_sessions_and_shells_then_the_writer_and_exits_with_0(bench: Bench) -> None:
    bench.tell(InputEnded())
    assert bench.desk.drain() == [CloseSessions()]
    assert bench.shells.drain() == [CloseShells()]
    bench.tell(SessionsClosed())
    assert bench.shells.drain() == [CloseShells(last=True)]
    assert bench.writer.drain() == []
    bench.tell(ShellsClosed())
    assert bench.writer.drain() == []
    assert bench.intake.drain() == [AnswerOpen("atomic ended before it could answer", last=True)]
    bench.tell(ANSWERED)
    assert bench.writer.drain() == [CloseWriter()]
    assert bench.state == ("flushing", 0)
    bench.tell(WriterClosed())
    assert bench.state == ("over", 0)
    assert bench.sweeps == 1
    assert bench.complaints == []


@pytest.mark.parametrize(
    ("trigger", "code"),
    [(SignalReceived(15), 143), (SignalReceived(1), 129), (SignalReceived(2), 130), (StdoutClosed(), 1)],
)
def test_a_signal_or_a_broken_pipe_closes_the_input_first(bench: Bench, trigger: Any, code: int) -> None:
    bench.tell(trigger)
    assert bench.intake.drain() == [CloseIntake()]
    assert bench.desk.drain() == bench.shells.drain() == []
    bench.tell(InputEnded())
    assert bench.desk.drain() == [CloseSessions()]
    bench.tell(*CLOSED, WriterClosed())
    assert bench.state == ("over", code)


def test_the_time_runs_from_the_end_of_stdin_also_while_the_last_commands_wait(bench: Bench) -> None:
    bench.tell(InputEnding())
    assert bench.clock.drain() == [Arm("deadline", DEADLINE_MS, bench.root.me)]
    assert bench.state == ("closing input", 0)
    assert bench.desk.drain() == bench.intake.drain() == []
    bench.written += 1  # the client reads: what the lane waits for may still come
    bench.tell(Tick("deadline"))
    assert bench.complaints == []
    bench.tell(Tick("deadline"))
    assert bench.complaints == ["gave up after 5 s; still there: closing input"]
    assert bench.intake.drain() == [AnswerOpen("atomic ended before it could answer", last=True)]


def test_what_waited_at_the_end_of_stdin_is_worked_off_and_the_house_closes_in_order(bench: Bench) -> None:
    bench.tell(InputEnding(), InputEnded())
    assert len(bench.clock.drain()) == 1
    assert bench.desk.drain() == [CloseSessions()]
    bench.tell(*CLOSED, WriterClosed())
    assert bench.state == ("over", 0)


def test_a_signal_after_the_end_of_stdin_ends_at_once(bench: Bench) -> None:
    bench.tell(InputEnding(), SignalReceived(15))
    assert bench.state == ("over", 143)


def test_the_deadline_is_armed_once_by_the_first_trigger(bench: Bench) -> None:
    bench.tell(SignalReceived(15), InputEnded(), *CLOSED)
    assert bench.clock.drain() == [Arm("deadline", DEADLINE_MS, bench.root.me)]


@pytest.mark.parametrize("before", [(), (InputEnded(),), (InputEnded(), *CLOSED)])
def test_a_second_signal_ends_at_once_with_its_own_code(bench: Bench, before: tuple[Any, ...]) -> None:
    bench.tell(SignalReceived(15), *before, SignalReceived(2))
    assert bench.state == ("over", 130)
    assert bench.sweeps == 1


def test_a_signal_after_the_end_of_input_ends_at_once(bench: Bench) -> None:
    bench.tell(InputEnded(), SignalReceived(15))
    assert bench.state == ("over", 143)


@pytest.mark.parametrize(
    ("trigger", "code"), [(InputEnded(), 1), (InputEnded(exit_code=1), 1), (SignalReceived(15), 143)]
)
@pytest.mark.parametrize("before", [0, 3], ids=["while draining", "while flushing"])
def test_what_cannot_be_written_during_the_end_does_not_cut_it_short_and_is_no_success(
    bench: Bench, trigger: Any, code: int, before: int
) -> None:
    bench.tell(trigger, InputEnded(), *CLOSED[:before], StdoutClosed())
    assert bench.root.phase != "over"
    bench.tell(*CLOSED[before:], WriterClosed())
    assert bench.state == ("over", code)


@pytest.mark.parametrize(("error", "said"), [("", []), ("Disk", ["stdout cannot be written: Disk"])])
@pytest.mark.parametrize("before", [(), (InputEnded(),)])
def test_only_a_client_that_went_away_is_no_news(
    bench: Bench, before: tuple[Any, ...], error: str, said: list[str]
) -> None:
    bench.tell(*before, StdoutClosed(error))
    assert bench.complaints == said


def test_a_second_end_of_input_changes_nothing(bench: Bench) -> None:
    bench.tell(InputEnded(), InputEnded(), SessionsClosed(), InputEnded())
    assert bench.desk.drain() == [CloseSessions()]
    bench.tell(ShellsClosed(), ANSWERED)
    assert bench.state == ("flushing", 0)


def test_an_intake_that_dies_when_it_is_asked_for_the_rest_is_not_waited_for(bench: Bench) -> None:
    bench.tell(InputEnded(), *PARTS, Down("intake", "E"))
    assert bench.state == ("flushing", 1)


@pytest.mark.parametrize(
    ("mails", "what"),
    [
        ((SignalReceived(15),), "closing input"),
        ((InputEnded(),), "sessions, shell requests"),
        ((InputEnded(), SessionsClosed()), "shell requests"),
        ((InputEnded(), *CLOSED), "unread output"),
    ],
)
def test_the_deadline_names_what_still_lives_and_ends_the_process(
    bench: Bench, mails: tuple[Any, ...], what: str
) -> None:
    bench.tell(*mails, Tick("deadline"))
    assert bench.complaints == [f"gave up after 5 s; still there: {what}"]
    if what != "unread output":
        assert bench.intake.drain()[-1] == AnswerOpen("atomic ended before it could answer", last=True)
        bench.tell(Tick("deadline"))
    assert bench.state[0] == "over"
    assert bench.sweeps == 1 and len(bench.complaints) == 1


def test_what_is_open_at_the_deadline_is_answered_and_flushed(bench: Bench) -> None:
    bench.tell(InputEnded(), Tick("deadline"), ANSWERED)
    assert bench.writer.drain() == [CloseWriter()]
    bench.tell(WriterClosed())
    assert bench.state == ("over", 0)


def test_a_client_that_still_reads_gets_more_time(bench: Bench) -> None:
    bench.tell(InputEnded(), *CLOSED)
    bench.written = 100
    bench.tell(Tick("deadline"))
    assert bench.state[0] == "flushing"
    assert len(bench.clock.drain()) == 2
    bench.tell(Tick("deadline"))
    assert bench.state[0] == "over"


def test_progress_of_the_client_does_not_excuse_a_part_that_hangs(bench: Bench) -> None:
    bench.tell(InputEnded())
    bench.written = 100
    bench.tell(Tick("deadline"))
    assert len(bench.complaints) == 1
    bench.tell(Tick("deadline"))
    assert bench.state[0] == "over"


@pytest.mark.parametrize("key", ["clock", "preferences", "mutation desk", "session"])
def test_the_death_of_a_part_answers_what_is_open_and_ends_with_1(bench: Bench, key: str) -> None:
    bench.tell(Down(key, "ValueError in x.py:3"))
    assert bench.complaints == [f"{key} failed: ValueError in x.py:3"]
    assert bench.intake.drain() == [AnswerOpen(f"atomic failed: {key}: ValueError in x.py:3")]
    bench.tell(*PARTS)
    assert bench.writer.drain() == []
    assert bench.intake.drain() == [AnswerOpen("atomic ended before it could answer", last=True)]
    bench.tell(ANSWERED)
    assert bench.writer.drain() == [CloseWriter()]
    bench.tell(WriterClosed())
    assert bench.state == ("over", 1)


def test_nobody_waits_for_the_answers_of_an_intake_that_is_dead(bench: Bench) -> None:
    bench.tell(Down("intake", "E"), *PARTS)
    assert bench.state == ("flushing", 1)


@pytest.mark.parametrize(
    ("key", "other"),
    [("session desk", ShellsClosed()), ("shell desk", SessionsClosed())],
)
def test_nobody_waits_for_a_desk_that_is_dead(bench: Bench, key: str, other: Any) -> None:
    bench.tell(Down(key, "E"))
    assert bench.state == ("draining", 1)
    bench.tell(other, ANSWERED)
    assert bench.state == ("flushing", 1)


def test_a_desk_that_dies_during_the_end_is_not_waited_for_either(bench: Bench) -> None:
    bench.tell(InputEnded(), ShellsClosed(), Down("session desk", "E"), ANSWERED)
    assert bench.state == ("flushing", 1)


def test_without_a_writer_there_is_nothing_to_wait_for(bench: Bench) -> None:
    bench.tell(Down("writer", "E"))
    assert bench.state == ("over", 1)
    assert bench.sweeps == 1


def test_a_one_shot_run_ends_with_the_exit_code_of_its_answer(bench: Bench) -> None:
    bench.tell(InputEnded(exit_code=1), *CLOSED, WriterClosed())
    assert bench.state == ("over", 1)


def test_the_answer_of_a_one_shot_run_does_not_hide_a_signal(bench: Bench) -> None:
    bench.tell(SignalReceived(15), InputEnded(exit_code=1), *CLOSED, WriterClosed())
    assert bench.state == ("over", 143)


def test_without_the_printer_nothing_can_be_said_so_it_all_ends_at_once(bench: Bench) -> None:
    bench.tell(Down("printer", "ValueError"))
    assert bench.state == ("over", 1)
