"""When somebody should look at a subagent, and that nothing is ever done for it."""

from __future__ import annotations

from typing import Any

import pytest

from actors.mail import AgentProgress, AnswerQuestion, ContactParent, Tick
from actors.probe import Probe
from actors.task.child_message import Contact
from actors.task.state import Launch, Task
from actors.task.subagent.vigil import Vigil
from protocol import tasks as t
from tests.actors.task.subagent.test_subagent import Bench, says

MINUTE = 60_000


def test_it_is_silent_a_minute_after_it_was_last_heard_of_and_looked_at_no_more_until_it_is_again() -> None:
    vigil = Vigil(0)
    vigil.heard(59_000)
    assert (vigil.look(MINUTE), vigil.is_quiet) == (59_000, False)
    assert (vigil.look(119_000), vigil.is_quiet) == (None, True)
    assert (vigil.heard(200_000), vigil.is_quiet) == (True, False)
    assert (vigil.look(260_000), vigil.is_quiet) == (None, True)
    vigil = Vigil(0)
    assert (vigil.look(MINUTE), vigil.is_quiet) == (None, True)
    vigil.heard(61_000)
    assert not vigil.heard(62_000)
    assert vigil.look(121_000) == 1_000


@pytest.mark.parametrize(
    ("quiet", "long", "failures", "state"),
    [
        (False, False, 2, None),
        (False, False, 3, "needs_attention"),
        (True, False, 0, "needs_attention"),
        (False, True, 0, "active_long_running"),
        (True, True, 0, "needs_attention"),
    ],
)
def test_silence_failures_and_a_long_time_are_told_apart(quiet: bool, long: bool, failures: int, state: Any) -> None:
    vigil = Vigil(0)
    vigil.is_quiet, vigil.is_long = quiet, long
    assert vigil.state(failures) == state


class Watched(Bench):
    """A subagent that runs, with a clock that rings by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.run()

    def ring(self, *keys: str) -> list[AgentProgress]:
        for key in ("progress", *keys):
            self.agent.receive(Tick(key))
        return [mail for mail in self.desk.drain() if isinstance(mail, AgentProgress)]

    def hear(self, kind: str = "turn_start", **fields: Any) -> list[AgentProgress]:
        self.agent.receive(Tick("progress"))
        self.agent.receive(says({"type": kind, **fields}))
        return [mail for mail in self.desk.drain() if isinstance(mail, AgentProgress)]

    def armed(self) -> list[tuple[str, int]]:
        return [(mail.key, mail.delay_ms) for mail in self.clock.drain() if mail.key != "progress"]


def test_a_silent_one_shows_it_once_and_no_more_when_it_is_heard_of_again() -> None:
    bench = Watched()
    assert bench.armed() == [("look", MINUTE), ("long", 4 * MINUTE)]
    bench.ring()
    (silent,) = bench.ring("look")
    assert (silent.activity, silent.is_quiet) == ("needs_attention", True)
    assert bench.armed() == []
    (heard,) = bench.hear()
    assert (heard.activity, heard.is_quiet) == (None, False)
    assert bench.armed() == [("look", MINUTE)]
    bench.hear()
    assert bench.ring("look") == []
    assert [key for key, _ in bench.armed()] == ["look"]


def test_one_that_waits_for_an_answer_is_not_silent() -> None:
    bench, call = Watched(), Probe[Any]()
    bench.tell(ContactParent(Contact("need_decision", "?"), call))
    assert not [each for each in bench.ring("long", "look") if each.is_quiet or each.activity]
    bench.tell(AnswerQuestion("ask-t-1", "yes"))
    assert not [each for each in bench.hear() if each.is_quiet]


def test_changes_that_fail_in_a_row_are_shown_until_one_does_not() -> None:
    bench = Watched()
    seen = []
    for place, (tool, failed) in enumerate(
        [("edit", True), ("write", True), ("bash", False), ("edit", True), ("edit", False), ("write", True)]
    ):
        (report,) = bench.hear("tool_execution_end", toolCallId=str(place), toolName=tool, isError=failed, result={})
        seen.append(report.activity)
    assert seen == [None, None, None, "needs_attention", None, None]


def test_a_long_run_is_shown_as_one() -> None:
    bench = Watched()
    bench.ring()
    (report,) = bench.ring("long")
    assert (report.activity, report.is_quiet) == ("active_long_running", False)


def test_a_question_shows_before_silence_and_the_end_before_both() -> None:
    task = Task(t.TaskRef("o", "t", "a", "g"), Launch("op", "agent", "x"), 0, float)
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
