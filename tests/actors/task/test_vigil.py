"""When somebody should look at a subagent, and that nothing is ever done for it."""

from __future__ import annotations

import pytest

from actors.mail import AgentProgress, AnswerQuestion, Arm, ContactParent, Tick
from actors.probe import Probe
from actors.task.child_message import Contact
from actors.task.state import Launch, Task
from actors.task.vigil import Vigil
from protocol import tasks as t
from tests.actors.task.test_subagent import Bench, says

MINUTE = 60_000


@pytest.mark.parametrize(
    ("silent", "worked", "failures", "state", "look"),
    [
        (0, 0, 0, None, MINUTE),
        (MINUTE - 1, MINUTE - 1, 2, None, 1),
        (MINUTE, MINUTE, 0, "needs_attention", None),
        (0, MINUTE, 3, "needs_attention", MINUTE),
        (0, 4 * MINUTE - 1, 0, None, 1),
        (0, 4 * MINUTE, 0, "active_long_running", MINUTE),
        (10_000, 4 * MINUTE, 0, "active_long_running", 50_000),
        (MINUTE, 9 * MINUTE, 0, "needs_attention", None),
    ],
)
def test_silence_failures_and_a_long_time_are_told_apart(
    silent: int, worked: int, failures: int, state: str | None, look: int | None
) -> None:
    vigil, now = Vigil(5.0), 5.0 + worked
    vigil.heard(now - silent)
    assert vigil.state(now, failures) == state
    assert vigil.next_look_ms(now) == look


class Watched(Bench):
    """A subagent that runs, with a clock that is set by hand."""

    seconds = 0.0

    def __init__(self) -> None:
        super().__init__()
        self.agent._now = lambda: self.seconds
        self.run()
        self.hear()

    def at(self, seconds: float) -> list[AgentProgress]:
        """What is told when the clock looks at this moment."""
        self.seconds = seconds
        for mail in self.clock.drain():
            assert isinstance(mail, Arm)
        self.agent.receive(Tick("progress"))
        self.agent.receive(Tick("vigil"))
        return self.reports()

    def hear(self, kind: str = "turn_start", **fields: object) -> list[AgentProgress]:
        self.agent.receive(says({"type": kind, **fields}))
        return self.reports()

    def reports(self) -> list[AgentProgress]:
        return [mail for mail in self.desk.drain() if isinstance(mail, AgentProgress)]


def test_a_silent_one_shows_it_once_and_no_more_when_it_is_heard_of_again() -> None:
    bench = Watched()
    (silent,) = bench.at(61)
    assert (silent.activity, silent.is_quiet) == ("needs_attention", True)
    assert not [mail for mail in bench.clock.drain() if mail.key == "vigil"]  # none looks until it is heard of
    bench.agent.receive(Tick("progress"))
    (heard,) = bench.hear()
    assert (heard.activity, heard.is_quiet) == (None, False)
    assert [mail.delay_ms for mail in bench.clock.drain() if mail.key == "vigil"] == [MINUTE]


def test_one_that_waits_for_an_answer_is_not_silent() -> None:
    bench, call = Watched(), Probe[object]()
    bench.tell(ContactParent(Contact("need_decision", "?"), call))
    assert not [each for each in bench.at(300) if each.is_quiet or each.activity]
    bench.tell(AnswerQuestion("ask-t-1", "yes"))
    bench.agent.receive(Tick("progress"))
    assert not [each for each in bench.hear() if each.is_quiet]


def test_changes_that_fail_in_a_row_are_shown_until_one_does_not() -> None:
    bench = Watched()
    seen = []
    for place, (tool, failed) in enumerate(
        [("edit", True), ("write", True), ("bash", False), ("edit", True), ("edit", False), ("write", True)]
    ):
        bench.agent.receive(Tick("progress"))
        (report,) = bench.hear("tool_execution_end", toolCallId=str(place), toolName=tool, isError=failed, result={})
        seen.append(report.activity)
    assert seen == [None, None, None, "needs_attention", None, None]


def test_a_long_run_is_shown_as_one() -> None:
    bench = Watched()
    bench.seconds = 239
    bench.hear()
    (report,) = bench.at(240)
    assert (report.activity, report.is_quiet) == ("active_long_running", False)


def test_a_question_shows_before_silence_and_the_end_before_both() -> None:
    task = Task(t.TaskRef("o", "t", "a", "g"), Launch("op", "agent", "x"), 0)
    task.start()
    task.seems("needs_attention", is_quiet=True)
    assert (task.record().attention.kind, task.record().state) == ("no-recent-activity", "running")
    task.inquire("q")
    task.seems(None, is_quiet=True)
    assert task.record().attention == t.Attention("input-needed", ("q",))
    task.answered("q")
    task.seems("needs_attention", is_quiet=True)
    task.end(t.TaskCompleted())
    record = task.record()
    assert (record.attention, bool(record.activity_state)) == (t.Attention(), False)
