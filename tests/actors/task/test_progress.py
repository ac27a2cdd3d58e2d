"""What a desk shows while a launch is waited for: at once, at most once in 100 ms, never less than the last change; and
that its session is told of a task only what is new."""

from __future__ import annotations

import itertools
from typing import Any

from actors.mail import (
    AgentProgress,
    AgentsAnswer,
    Arm,
    LaunchAgents,
    TaskChanged,
    TaskEnded,
    TaskReaped,
    TaskSpawned,
    Tick,
    ToolUpdated,
)
from actors.probe import Probe
from actors.task.agent_view import AgentView
from actors.task.desk import TaskDesk
from actors.task.effects import Budgets, WaitPolicy
from actors.task.tool_side import PROGRESS_MS
from protocol.tasks import TaskCompleted
from tests.actors.task.agents import plan


class Bench:
    """A desk whose agents are this test, and one launch for each call."""

    def __init__(self) -> None:
        self.session: Probe[Any] = Probe()
        self.clock: Probe[Any] = Probe()
        self.ids: list[str] = []
        self.desk = TaskDesk(
            "0", Budgets(), self.session, self.clock, self._no_shell, self._start, now=lambda: 0.0, read_history=None
        )
        self.desk.me = Probe()
        self.desk.begin()

    def _no_shell(self, *_: Any) -> Any:
        raise AssertionError

    def _start(self, ref: Any, *_: Any) -> Any:
        self.ids.append(ref.task_id)
        return Probe[Any]()

    def launch(self, agents: int) -> Probe[Any]:
        call: Probe[Any] = Probe()
        plans = tuple(plan(index=number) for number in range(agents))
        self.desk.receive(LaunchAgents(f"run{len(self.ids)}", plans, WaitPolicy("foreground"), None, call))
        for task_id in self.ids[-agents:]:
            self.desk.receive(TaskSpawned(task_id))
        return call

    def change(self, task_id: str, tools: int) -> None:
        self.desk.receive(AgentProgress(task_id, "a/own", "high", None, tools, 0))

    def rests(self) -> list[str]:
        """The keys of the rests that have begun since the last look."""
        armed = [mail for mail in self.clock.drain() if isinstance(mail, Arm) and mail.key.startswith("progress-")]
        assert all(mail.delay_ms == PROGRESS_MS for mail in armed)
        return [mail.key for mail in armed]

    def finish(self, task_id: str) -> None:
        self.desk.receive(TaskEnded(task_id, TaskCompleted(), AgentView("done", "done")))
        self.desk.receive(TaskReaped(task_id, AgentView("done", "done")))


def shown(call: Probe[Any]) -> list[list[int]]:
    """The tools that each agent has used, of each progress since the last look."""
    found = [mail.partial.details["taskRecords"] for mail in call.drain() if isinstance(mail, ToolUpdated)]
    return [[record.get("metrics", {}).get("toolCount", 0) for record in records] for records in found]


def test_the_first_change_is_shown_at_once_and_those_in_the_rest_after_it_together() -> None:
    bench = Bench()
    call = bench.launch(3)
    first, second, third = bench.ids
    bench.change(first, 1)
    assert shown(call) == [[1, 0, 0]]
    [rest] = bench.rests()
    for tools in (2, 3):
        bench.change(first, tools)
        bench.change(second, tools)
    assert (shown(call), bench.rests()) == ([], [])
    bench.desk.receive(Tick(rest))
    assert shown(call) == [[3, 3, 0]]
    assert bench.rests() == [rest], "what is shown is followed by a rest, each time"
    bench.desk.receive(Tick(rest))
    assert (shown(call), bench.rests()) == ([], [])
    bench.change(third, 5)
    assert shown(call) == [[3, 3, 5]]


def test_each_launch_has_its_own_rest() -> None:
    bench = Bench()
    one, other = bench.launch(1), bench.launch(1)
    mine, its = bench.ids
    bench.change(mine, 1)
    bench.change(its, 1)
    assert (shown(one), shown(other)) == ([[1]], [[1]])
    first, second = bench.rests()
    bench.change(mine, 2)
    bench.change(its, 2)
    bench.desk.receive(Tick(second))
    assert (shown(one), shown(other)) == ([], [[2]])
    bench.desk.receive(Tick(first))
    assert shown(one) == [[2]]


def test_a_rest_that_ends_after_the_answer_shows_nothing() -> None:
    bench = Bench()
    call = bench.launch(1)
    [task_id] = bench.ids
    bench.change(task_id, 1)
    bench.change(task_id, 2)
    bench.finish(task_id)
    assert isinstance(call.of(AgentsAnswer), AgentsAnswer)
    for rest in bench.rests():
        bench.desk.receive(Tick(rest))
    assert shown(call) == []


def test_the_session_is_told_of_each_look_of_a_task_once() -> None:
    bench = Bench()
    bench.launch(2)
    bench.change(bench.ids[0], 0)
    bench.change(bench.ids[0], 0)
    bench.change(bench.ids[0], 1)
    bench.finish(bench.ids[0])
    records = [mail.record for mail in bench.session.drain() if isinstance(mail, TaskChanged)]
    for task_id in bench.ids:
        mine = [record for record in records if record.ref.task_id == task_id]
        assert mine and all(after != before for before, after in itertools.pairwise(mine))
    states = [record.state for record in records if record.ref.task_id == bench.ids[0]]
    assert states[0] == "running" and states[-2:] == ["completed", "completed"], states
