"""What a desk asks of tasks, and what calls and clients are answered; the tasks are played by hand."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from actors.base import Down
from actors.mail import (
    AgentsAnswer,
    Arm,
    DescribeAgents,
    GiveUp,
    HideOutput,
    KillTask,
    LaunchAgents,
    LaunchShell,
    OutputRead,
    ReadOutput,
    ReleaseWaits,
    ShellTaskPlan,
    StopCommand,
    TaskAnswer,
    TaskChanged,
    TaskCommand,
    TaskEnded,
    TaskOverLimit,
    TaskReaped,
    TaskResponse,
    TaskSpawned,
    Tick,
    Ticket,
    WaitForTask,
)
from actors.probe import Probe
from actors.task.agent_view import AgentView
from actors.task.desk import TaskDesk
from actors.task.effects import Budgets, WaitPolicy
from actors.task.notice import TaskNotice
from actors.task.retained import Page
from protocol import commands as c
from protocol import tasks as t
from protocol.codec import decode_any
from tests.actors.task.agents import plan
from tests.actors.task.owners import BACKGROUND, FOREGROUND
from tests.actors.task.views import view

DONE = t.TaskCompleted(exit_code=0)


class Bench:
    """A desk and its tasks by id, none of which does anything by itself."""

    def __init__(self) -> None:
        self.session, self.clock = Probe[Any](), Probe[Any]()
        self.tasks: dict[str, Probe[Any]] = {}
        self.desk = TaskDesk("1", Budgets(), self.session, self.clock, self._start, self._start, lambda: 0.0)
        self.desk.me = Probe()
        self.desk.begin()
        self.asked = 0

    def _start(self, ref: t.TaskRef, *_: Any) -> Any:
        self.tasks[ref.task_id] = Probe()
        return self.tasks[ref.task_id]

    def tell(self, *mails: Any) -> None:
        for mail in mails:
            self.desk.receive(mail)

    def shell(
        self, command: str = "make", policy: WaitPolicy = BACKGROUND, timeout_s: int = 300
    ) -> tuple[str, Probe[Any]]:
        """A command that has begun, and the call that launched it."""
        call, self.asked = Probe[Any](), self.asked + 1
        launch = ShellTaskPlan(command, "/project", "s", {}, timeout_s)
        self.tell(LaunchShell(f"op{self.asked}", launch, policy, call))
        task_id = list(self.tasks)[-1]
        self.tell(TaskSpawned(task_id))
        return task_id, call

    def agents(self, *tasks: str, policy: WaitPolicy = BACKGROUND, concurrency: int | None = None) -> Probe[Any]:
        call, self.asked = Probe[Any](), self.asked + 1
        plans = tuple(replace(plan(), task=task) for task in tasks)
        self.tell(LaunchAgents(f"run{self.asked}", plans, policy, concurrency, call))
        return call

    def ends(self, task_id: str, result: t.TaskResult = DONE) -> None:
        shown = AgentView("found", "found") if task_id in self.agent_ids else view("out\n")
        self.tell(TaskEnded(task_id, result, shown), TaskReaped(task_id, shown))

    @property
    def agent_ids(self) -> list[str]:
        return [task.id for task in self.desk._owner.tasks if task.launch.kind == "agent"]

    def records(self) -> list[t.TaskRecord]:
        return [mail.record for mail in self.session.drain() if isinstance(mail, TaskChanged)]

    def notices(self) -> list[TaskNotice]:
        return [mail.notice for mail in self.session.drain() if isinstance(mail, TaskChanged) and mail.notice]

    def client(self, command: c.Command) -> Any:
        """Its data, or the error of a refusal."""
        self.session.drain()
        self.tell(TaskCommand(Ticket(9, b"", "x"), command))
        (mail,) = [mail for mail in self.session.drain() if isinstance(mail, TaskResponse)]
        told = decode_any(mail.response.line)
        return told["data"] if told["success"] else told["error"]


@pytest.fixture
def bench() -> Bench:
    return Bench()


def outcomes(call: Probe[Any]) -> list[Any]:
    return [mail.outcome for mail in call.drain() if isinstance(mail, TaskAnswer)]


def outcomes_after_read(bench: Bench, task_id: str, call: Probe[Any]) -> list[Any]:
    """What the call is answered once its task has shown its output."""
    number = bench.tasks[task_id].of(ReadOutput).number
    bench.tell(OutputRead(number, view("out\n", page=Page(b"out\n", 0, 4, False))))
    return outcomes(call)


def test_the_time_of_a_command_counts_from_its_start_and_ends_it_in_the_background_too(bench: Bench) -> None:  # 1.8
    task_id, call = bench.shell(timeout_s=3600)
    (yielded,) = outcomes_after_read(bench, task_id, call)
    assert yielded.reason == "explicit"
    assert Arm(f"timeout-{task_id}", 3_600_000, bench.desk.me) in bench.clock.drain()
    bench.tell(Tick(f"timeout-{task_id}"))
    assert bench.tasks[task_id].of(StopCommand) == StopCommand(at_once=False)
    bench.tell(TaskReaped(task_id, view("out\n")))
    (told,) = bench.notices()
    assert told.envelope.result == t.TaskCancelled("execution-timeout")


def test_a_time_out_that_comes_after_a_kill_or_after_the_end_changes_nothing(bench: Bench) -> None:  # 2.9, row 6
    task_id, _ = bench.shell()
    killer = Probe[Any]()
    bench.tell(KillTask(task_id, killer), Tick(f"timeout-{task_id}"), TaskReaped(task_id, view("")))
    assert [told.envelope.result for told in bench.notices()] == [t.TaskCancelled("user")]
    over, _ = bench.shell()
    bench.tell(TaskEnded(over, DONE, view("")), Tick(f"timeout-{over}"), TaskReaped(over, view("")))
    assert [told.envelope.result for told in bench.notices()] == [DONE]
    assert [mail for mail in bench.tasks[over].drain() if isinstance(mail, StopCommand)] == []


def test_kill_knows_commands_and_unknown_ids_and_refuses_agents_by_name(bench: Bench) -> None:  # 1.9
    shell, _ = bench.shell()
    bench.agents("look")
    (agent,) = bench.agent_ids
    for task_id in (agent, "task-2-0", f" {shell}", "7", ""):
        call = Probe[Any]()
        bench.tell(KillTask(task_id, call))
        refusal = "kill only supports shell tasks" if task_id == agent else "UnknownTask: UnknownTask"
        assert outcomes(call) == [refusal]
    call = Probe[Any]()
    bench.tell(KillTask(shell, call))
    (receipt,) = outcomes(call)
    assert receipt == t.CancelReceipt(shell, "cancellation-requested", t.Cancelling("user"), t.CleanupDraining())
    assert bench.tasks[agent].drain() == []


def test_each_tool_waits_for_its_own_kind_alone(bench: Bench) -> None:
    shell, _ = bench.shell()
    bench.agents("look")
    (agent,) = bench.agent_ids
    call = Probe[Any]()
    bench.tell(WaitForTask(agent, 0, call), WaitForTask(shell, 0, call, "agent"), WaitForTask("task-2-0", 0, call))
    unknown = "UnknownTask: UnknownTask"
    assert outcomes(call) == [unknown, f"No in-process child found for '{shell}'.", unknown]


def test_a_wait_of_the_model_is_the_parents_and_that_of_a_client_is_not(bench: Bench) -> None:  # 2.6, row 9
    task_id, call = bench.shell()
    outcomes_after_read(bench, task_id, call)
    assert bench.records()[-1].observation == t.Background("explicit")
    bench.tell(TaskCommand(Ticket(5, b"", "wait_task"), c.WaitTask(task_id=task_id, budget_ms=5000)))
    assert bench.desk._owner.task(task_id).badge == t.Background("explicit")
    bench.tell(WaitForTask(task_id, 5000, call))
    assert isinstance(bench.records()[-1].observation, t.Foreground)


def test_a_wait_that_is_given_up_ends_alone_and_its_command_runs_on(bench: Bench) -> None:  # row 40
    task_id, launched = bench.shell()
    outcomes_after_read(bench, task_id, launched)
    call = Probe[Any]()
    bench.tell(WaitForTask(task_id, 60_000, call), GiveUp(call))
    assert outcomes(call) == ["aborted"]
    assert [mail for mail in bench.tasks[task_id].drain() if isinstance(mail, StopCommand)] == []
    bench.ends(task_id)
    assert [told.envelope.result for told in bench.notices()] == [DONE]


@pytest.mark.parametrize("reason", ["input-needed", "intercom-coordination"])
def test_a_message_ends_waits_and_agents_in_the_foreground_and_no_command_in_it(  # contract, row 47
    bench: Bench, reason: Any
) -> None:
    observed, launch = bench.shell(policy=FOREGROUND)
    waited, launched = bench.shell()
    outcomes_after_read(bench, waited, launched)
    agents, call = bench.agents("one", "two", policy=FOREGROUND), Probe[Any]()
    for task_id in bench.agent_ids:
        bench.tell(TaskSpawned(task_id))
    bench.tell(WaitForTask(waited, 60_000, call), ReleaseWaits(reason))
    (answer,) = [mail for mail in agents.drain() if isinstance(mail, AgentsAnswer)]
    assert [slot.outcome.reason for slot in answer.slots] == [reason] * 2  # type: ignore[union-attr]
    assert [each.reason for each in outcomes_after_read(bench, waited, call)] == [reason]
    assert outcomes(launch) == [] and bench.desk._owner.task(observed).state == "running"
    assert {task.phase for task in bench.desk._owner.tasks} == {"running"}


def test_a_task_is_called_after_its_first_line_that_is_not_blank(bench: Bench) -> None:  # 2.4
    for command in ("\n\n  make all  \nmake test", "", "x" * 300):
        bench.shell(command)
    bench.agents(" \n trace it\nthen stop", "\n")
    titles = [task.launch.title for task in bench.desk._owner.tasks]
    assert titles == ["make all", "", "x" * 240, "trace it", plan().agent.name]


def test_a_launch_shows_its_output_until_it_yields_and_a_wait_never_does(bench: Bench) -> None:
    task_id, call = bench.shell(policy=WaitPolicy("foreground", 50))
    assert bench.tasks[task_id].drain() == []
    bench.tell(Tick("wait-1-1"))
    assert bench.tasks[task_id].drain() == [HideOutput(), ReadOutput(1)]
    bench.tell(OutputRead(1, view("out\n")), WaitForTask(task_id, 0, call))
    assert bench.tasks[task_id].drain() == [ReadOutput(2, page=True)]


def test_clients_see_what_is_or_was_in_the_background(bench: Bench) -> None:  # contract
    shown, _ = bench.shell()
    hidden, _ = bench.shell(policy=FOREGROUND)
    assert [task["ref"]["taskId"] for task in bench.client(c.GetTasks())["tasks"]] == [shown]
    bench.ends(shown)
    assert [task["state"] for task in bench.client(c.GetTasks())["tasks"]] == ["completed"]
    bench.ends(hidden)
    for unknown in (hidden, "task-2-0", f" {shown}", ""):
        for command in (c.GetTask(task_id=unknown), c.WaitTask(task_id=unknown), c.CancelTask(task_id=unknown)):
            assert bench.client(command) == "UnknownTask: UnknownTask", "what never left the foreground is forgotten"


def test_four_agents_run_at_once_whatever_a_call_allows_and_the_others_are_queued(bench: Bench) -> None:  # 3.2
    bench.agents(*"abcdefg", concurrency=6)
    states = [task.state for task in bench.desk._owner.tasks]
    assert states == ["running"] * 4 + ["queued"] * 3
    bench.ends(bench.agent_ids[0])
    assert [task.state for task in bench.desk._owner.tasks][3:] == ["running", "running", "queued", "queued"]
    few = Bench()
    few.agents(*"abc", concurrency=2)
    few.agents(*"de")
    assert [task.state for task in few.desk._owner.tasks] == ["running", "running", "queued", "running", "running"]


def test_output_over_the_cap_kills_a_command_in_the_background_and_spares_one_that_is_waited_for(
    bench: Bench,
) -> None:  # row 27
    task_id, _ = bench.shell(policy=WaitPolicy("foreground", 50))
    bench.tell(TaskOverLimit(task_id))
    assert bench.tasks[task_id].drain() == []
    bench.tell(Tick("wait-1-1"))
    assert StopCommand(at_once=True) in bench.tasks[task_id].drain()
    bench.tell(TaskReaped(task_id, view("")))
    (told,) = bench.notices()
    assert told.envelope.result == t.TaskFailed(
        "OutputLimitExceeded", "Background command killed: output file exceeded 5 GiB"
    )


def test_a_notice_names_what_ended_and_shows_its_end(bench: Bench) -> None:  # 2.10
    shell, _ = bench.shell()
    bench.ends(shell)
    bench.agents("look")
    (agent,) = bench.agent_ids
    bench.tell(TaskSpawned(agent))
    bench.ends(agent, t.TaskCompleted())
    of_shell, of_agent = bench.notices()
    assert (of_shell.label, of_shell.title, of_shell.excerpt) == ("Background shell", "make", "out\n")
    assert (of_agent.label, of_agent.title, of_agent.excerpt) == (f"Subagent {plan().agent.name}", "look", "found")
    lost, _ = bench.shell()
    bench.tell(Down(lost, "ValueError in receive"))
    assert [told.excerpt for told in bench.notices()] == ["Output unavailable"]


def test_status_tells_of_agents_alone_and_knows_no_others(bench: Bench) -> None:  # 3.2
    shell, _ = bench.shell()
    bench.agents("one")
    bench.agents("two")
    call = Probe[Any]()
    bench.tell(DescribeAgents(None, call), DescribeAgents(bench.agent_ids[1], call), DescribeAgents(shell, call))
    every, one, refused = call.drain()
    assert [slot.record.title for slot in every.slots] == ["one", "two"]
    assert [slot.record.title for slot in one.slots] == ["two"]
    assert refused == TaskAnswer(f"No in-process child found for '{shell}'.")


def test_each_launch_is_a_group_of_its_own_and_its_concurrency_bounds_no_other(bench: Bench) -> None:  # 3.2
    bench.agents("a", "b", concurrency=1)
    bench.agents("c", "d", concurrency=1)
    records = [task.record() for task in bench.desk._owner.tasks]
    assert [record.launch_group_id for record in records] == ["run1", "run1", "run2", "run2"]
    assert [record.state for record in records] == ["running", "queued", "running", "queued"]


def test_a_look_at_a_command_shows_what_it_runs_and_the_end_of_its_output(bench: Bench) -> None:  # contract
    task_id, _ = bench.shell("make all", timeout_s=7)
    bench.tell(TaskEnded(task_id, DONE, view("out\n", path="/log")), TaskReaped(task_id, view("out\n", path="/log")))
    detail = bench.client(c.GetTask(task_id=task_id))
    told = {name: detail[name] for name in ("command", "cwd", "timeoutSeconds", "tail", "fullOutputPath")}
    assert told == {
        "command": "make all",
        "cwd": "/project",
        "timeoutSeconds": 7,
        "tail": "out\n",
        "fullOutputPath": "/log",
    }
    assert detail["task"]["output"]["byteCount"] == "4"
    bench.agents("look\nclosely")
    (agent,) = bench.agent_ids
    assert bench.client(c.GetTask(task_id=agent))["prompt"] == "look\nclosely"


def test_what_is_over_takes_no_input_and_what_has_yet_to_run_has_no_terminal(bench: Bench) -> None:  # 2.8
    task_id, _ = bench.shell()
    bench.ends(task_id)
    bench.agents(*"abcde")
    for command in (c.SendTaskInput(task_id=task_id, input="x"), c.ResizeTask(task_id=task_id, columns=80, rows=24)):
        assert bench.client(command) == "TaskTerminal: TaskTerminal"
    for agent in bench.agent_ids:
        assert bench.client(c.ResizeTask(task_id=agent, columns=80, rows=24)) == "StdinClosed: StdinClosed"
        assert bench.client(c.SendTaskInput(task_id=agent, input="x")) == 'No pending ask from "' + agent + '"'


def test_of_the_two_hundred_last_the_output_can_be_asked_for_and_of_older_ones_the_record_remains(bench: Bench) -> None:
    ids = [bench.shell()[0] for _ in range(201)]
    for task_id in ids:
        bench.ends(task_id)
    first, second = (bench.client(c.GetTask(task_id=task_id)) for task_id in ids[:2])
    assert "tail" not in first and second["tail"] == "out\n"
    assert (first["task"]["state"], len(bench.client(c.GetTasks())["tasks"])) == ("completed", 201)
