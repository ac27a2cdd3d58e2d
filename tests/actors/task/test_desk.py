"""The desk of tasks with real commands: of what it says to be over no process is left, and each is answered once."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from actors.base import Down
from actors.mail import (
    CloseTasks,
    CommandExited,
    CommandSwept,
    InputTaken,
    KillTask,
    PauseTasks,
    ResumeTasks,
    ShellTaskPlan,
    TaskAnswer,
    TaskChanged,
    TasksClosed,
    TasksPaused,
    TasksResumed,
    WaitForTask,
)
from actors.probe import Probe
from actors.task.launch import CONFIRM_S, GENTLE_S, STEP_S, CommandLauncher
from protocol import tasks as t
from tests.actors.task.desks import DeskBench, is_alive

STUBBORN = "trap '' TERM; sleep 1000 & echo $$ $! > ready; wait"
"""It does not end when it is asked to, and has a child of that kind."""


@pytest.fixture
def bench(tmp_path: Path) -> DeskBench:
    os.mkfifo(tmp_path / "ready")
    return DeskBench(tmp_path)


def causes(paused: TasksPaused) -> list[str]:
    """Why each was stopped; all have to be."""
    results = [receipt.execution.result for receipt in paused.receipts]  # type: ignore[union-attr]
    return [result.cause for result in results]  # type: ignore[union-attr]


def test_a_pause_is_confirmed_when_every_process_is_gone_and_refuses_until_it_is_lifted(bench: DeskBench) -> None:
    task_id = bench.begun(STUBBORN)
    pids = bench.said("ready")
    stage = bench.pause()
    assert bench.launch("true").of(TaskAnswer).outcome == "Workflow stage tasks are paused"
    paused = stage.of(TasksPaused)
    assert [is_alive(pid) for pid in pids] == [False, False]
    assert paused.error is None and causes(paused) == ["user"]
    assert bench.notice().envelope.task_id == task_id
    bench.desk.tell(ResumeTasks(stage))
    assert stage.of(TasksResumed) == TasksResumed("s.1")
    again = bench.launch("echo again", "foreground").of(TaskAnswer)
    assert again.outcome.result.exit_code == 0 and again.view.cut.content == "again\n"
    assert stage.drain() == []


@pytest.mark.parametrize("kind", ["background", "foreground"])
def test_a_command_that_is_just_being_started_is_awaited_and_ends_too(bench: DeskBench, kind: str) -> None:
    """Nothing that a pause confirmed ever becomes visible afterwards."""
    calls, stages = [], []
    for _ in range(5):
        calls.append(bench.launch("echo $$ >> pids; exec sleep 1000", kind))
        stages.append(bench.pause())
        bench.desk.tell(ResumeTasks(Probe[Any]()))
    for call, stage in zip(calls, stages, strict=True):
        assert set(causes(stage.of(TasksPaused))) == {"user"}
        assert isinstance(call.of(TaskAnswer).outcome, t.SettledWait | t.YieldedWait)
    begun = (bench.folder / "pids").read_text().split() if (bench.folder / "pids").exists() else []
    assert not any(is_alive(int(pid)) for pid in begun)


def test_each_of_many_requests_is_answered_once_also_when_the_owner_closes_meanwhile(bench: DeskBench) -> None:
    bench.begun(STUBBORN)
    pids = bench.said("ready")
    stages = [bench.pause(), bench.pause()]
    bench.desk.tell(CloseTasks())
    stages.append(bench.pause())
    bench.session.of(TasksClosed)
    assert [is_alive(pid) for pid in pids] == [False, False]
    late = Probe[Any]()
    bench.desk.tell(PauseTasks(late))
    bench.desk.tell(ResumeTasks(late))
    assert late.of(TasksResumed) == TasksResumed(None, "OwnerClosing: OwnerClosing")
    for stage in stages:
        (paused,) = stage.drain()
        assert isinstance(paused, TasksPaused) and paused.error is None


def test_a_wait_for_a_minute_ends_with_the_owner(bench: DeskBench) -> None:
    """And whoever waits later is refused."""
    task_id = bench.begun(STUBBORN)
    pids = bench.said("ready")
    early, late = Probe[Any](), Probe[Any]()
    bench.desk.tell(WaitForTask(task_id, 60_000, early))
    bench.desk.tell(CloseTasks())
    bench.desk.tell(WaitForTask(task_id, 0, late))
    assert early.of(TaskAnswer).outcome.result.cause == "owner-close"
    assert [is_alive(pid) for pid in pids] == [False, False]
    assert late.of(TaskAnswer).outcome == "OwnerClosed: OwnerClosed"


def test_a_desk_that_dies_answers_its_pauses_too(bench: DeskBench) -> None:
    bench.begun(STUBBORN)
    bench.said("ready")
    stage, other = bench.pause(), Probe[Any]()
    bench.desk.tell(PauseTasks(other))
    bench.desk.tell(ResumeTasks(other))
    bench.session.is_broken = True
    bench.owner.of(Down)
    gone = TasksPaused("the tasks of this session failed")
    assert stage.drain() == [gone]
    answers = other.drain()
    assert gone in answers and {type(mail) for mail in answers} == {TasksPaused, TasksResumed} and len(answers) == 2


def test_what_a_desk_that_dies_has_not_read_is_answered(bench: DeskBench) -> None:
    stages = [Probe[Any]() for _ in range(20)]
    bench.session.is_broken = True
    bench.launch("true")
    for stage in stages:
        bench.desk.tell(PauseTasks(stage))
        bench.desk.tell(ResumeTasks(stage))
    bench.owner.of(Down)
    for stage in stages:
        assert [type(mail) for mail in stage.drain()] == [TasksPaused, TasksResumed]


def test_a_command_whose_actor_dies_is_reaped_when_its_processes_are_gone(bench: DeskBench) -> None:
    task_id = bench.begun(STUBBORN)
    pids = bench.said("ready")
    bench.tasks[task_id].tell(InputTaken(1))  # nothing was typed: it dies of that
    record = bench.record(task_id, "failed")
    while not isinstance(record.cleanup, t.CleanupReaped):
        record = bench.record(task_id, "failed")
    assert [is_alive(pid) for pid in pids] == [False, False]
    assert record.execution.result.code == "RunnerFailed"  # type: ignore[union-attr]
    bench.desk.tell(CloseTasks())
    bench.session.of(TasksClosed)


# ---- how processes end -------------------------------------------------------------------------------------------


def test_a_stop_asks_first_and_what_it_is_told_then_is_still_heard(bench: DeskBench) -> None:  # 2.9
    task_id = bench.begun("trap 'echo asked; exit 0' TERM; sleep 1000 & echo $! > ready; wait")
    (sleeper,) = bench.said("ready")
    bench.patience = 20
    bench.desk.tell(KillTask(task_id, Probe[Any]()))
    told = bench.notice()
    assert told.excerpt == "asked\n" and told.envelope.result.cause == "user"  # type: ignore[union-attr]
    assert not is_alive(sleeper), "the notice says that nothing is left"


def test_what_does_not_listen_is_killed_250_ms_later_and_looked_for_for_two_seconds(bench: DeskBench) -> None:  # 2.9
    task_id = bench.begun(STUBBORN)
    pids = bench.said("ready")
    bench.desk.tell(KillTask(task_id, Probe[Any]()))
    bench.notice()
    assert [is_alive(pid) for pid in pids] == [False, False]
    assert 0.25 in bench.slept and (GENTLE_S, CONFIRM_S, STEP_S) == (0.25, 2.0, 0.005)


@pytest.mark.parametrize("trap", ["", "trap '' TERM; "])
def test_what_a_shell_leaves_running_ends_with_it(bench: DeskBench, trap: str) -> None:  # 2.9
    task_id = bench.begun(f"{trap}sleep 1000 & echo $! > ready; exit 5")
    (left,) = bench.said("ready")
    record = bench.record(task_id, "failed")
    assert record.execution.result.exit_code == 5  # type: ignore[union-attr]
    while not isinstance(record.cleanup, t.CleanupReaped):
        record = bench.record(task_id, "failed")
    assert not is_alive(left)


def test_a_time_out_ends_a_command_in_the_background(bench: DeskBench) -> None:  # row 43
    call = bench.launch("echo $$ > ready; sleep 1000", timeout_s=1)
    (shell,) = bench.said("ready")
    assert isinstance(call.of(TaskAnswer).outcome, t.YieldedWait)
    result = bench.notice().envelope.result
    assert (result.cause, result.output.byte_count) == ("execution-timeout", "0")  # type: ignore[union-attr]
    assert not is_alive(shell)


@pytest.mark.parametrize("kind", ["background", "foreground"])
def test_a_command_that_cannot_start_has_failed_in_either_case_and_is_no_background_task(
    bench: DeskBench, kind: str
) -> None:
    bench.folder = bench.folder / "gone"
    result = bench.launch("true", kind).of(TaskAnswer).outcome.result
    told = f"Working directory does not exist: {bench.folder}\nCannot execute bash commands."
    assert (result.code, result.message) == ("SpawnFailed", told)
    assert bench.session.of(TaskChanged).notice is None


def test_a_command_that_is_stopped_before_it_has_begun_never_runs(tmp_path: Path) -> None:  # 2.5
    works, task = list[Callable[[], None]](), Probe[Any]()
    launcher = CommandLauncher(
        lambda _, work: works.append(work), "/bin/sh", None, lambda _: None, time.monotonic, time.sleep
    )
    launcher.start(ShellTaskPlan("touch ran", str(tmp_path), "s", {"PATH": os.environ["PATH"]}, 300), task).stop()
    while works:
        works.pop(0)()
    assert [type(mail) for mail in task.drain()] == [CommandExited, CommandSwept]
    assert list(tmp_path.iterdir()) == []
