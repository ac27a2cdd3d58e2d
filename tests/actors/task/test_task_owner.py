"""The owner of tasks: the cases of the specification's list for supervisor, waits and kill."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from actors.task.effects import (
    Announce,
    ArmBudget,
    Budgets,
    Close,
    ObserverCancelled,
    Resolve,
    Room,
    StartTask,
    StopTask,
    WaitPolicy,
)
from actors.task.owner import TaskOwner
from actors.task.state import EXECUTION, Event, Execution, Launch, Refused, Task
from protocol import tasks as t
from protocol.codec import encode
from tests.actors.task.owners import BACKGROUND, DONE, FOREGROUND, agent, code_of, command, of, resolved, running

# ---- one task ----------------------------------------------------------------------------------------------------


def test_a_launch_is_admitted_and_started_and_waited_for_with_the_budget_of_its_kind() -> None:
    owner = TaskOwner("1")
    task_id, effects = owner.launch(command(), WaitPolicy(), "host")
    assert task_id == "task-1-0"
    assert of(StartTask, effects) == [StartTask(task_id)]
    assert of(ArmBudget, effects) == [ArmBudget("wait-1-1", 10_000)]
    assert owner.task(task_id).badge == t.Foreground("wait-1-1")
    record = owner.task(task_id).record()
    assert (record.state, record.was_background, record.ref.owner_id) == ("running", False, "owner-1")


def test_ids_are_made_of_the_owners_name_and_of_the_place_in_it() -> None:  # 2.2
    owner, first = running()
    second, _ = owner.launch(command("b"), FOREGROUND, "host")
    assert (first, second) == ("task-1-0", "task-1-1")
    assert owner.task(second).ref == t.TaskRef("owner-1", "task-1-1", "attempt-1-1-1", "1")
    owner.ended(first, DONE)
    envelope = owner.envelope(first)
    assert (envelope.completion_id, envelope.owner_id, envelope.task_id) == ("completion-task-1-0", "owner-1", first)
    assert (envelope.terminal_sequence, envelope.result, envelope.display) == ("1", DONE, False)


def test_the_badge_of_a_task_that_nobody_has_waited_for_yet_and_of_one_that_is_over() -> None:  # 2.6
    assert Task(t.TaskRef("o", "t", "a", "1"), command(), 0, float).badge == t.Background("not-observed")
    owner, task_id = running()
    owner.ended(task_id, DONE)
    assert owner.task(task_id).badge == t.Unobserved("task-settled")


def test_an_agent_is_not_waited_for_unless_it_is_asked_for_and_then_half_a_minute() -> None:
    owner = TaskOwner("1")
    first, effects = owner.launch(agent("a"), WaitPolicy(), "host")
    assert resolved(effects) == []  # it has not begun
    assert resolved(owner.spawned(first)) == [t.YieldedWait(first, "wait-1-1", "default-background")]
    _, effects = owner.launch(agent("b"), FOREGROUND, "host")
    assert of(ArmBudget, effects) == [ArmBudget("wait-1-2", 30_000)]


def test_a_launch_in_the_background_goes_on_once_the_command_has_begun() -> None:
    owner = TaskOwner("1")
    task_id, effects = owner.launch(command(), BACKGROUND, "host")
    assert resolved(effects) == []
    assert resolved(owner.spawned(task_id)) == [t.YieldedWait(task_id, "wait-1-1", "explicit")]
    assert owner.task(task_id).was_background


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        (WaitPolicy(), "default-background"),
        (BACKGROUND, "explicit"),
        (WaitPolicy("foreground", 0), "elapsed"),
    ],
)
def test_a_launch_in_the_background_is_not_held_by_what_prepares_its_task(policy: WaitPolicy, reason: Any) -> None:
    owner = TaskOwner("1")
    task_id, effects = owner.launch(replace(agent("a"), is_prepared=True), policy, "host")
    assert resolved(effects) == [t.YieldedWait(task_id, "wait-1-1", reason)]
    assert resolved(owner.spawned(task_id)) == []
    assert of(Announce, owner.ended(task_id, t.TaskFailed("SpawnFailed", "no"))) == [Announce(task_id)]


def test_a_background_command_that_cannot_start_is_a_failed_launch() -> None:
    owner = TaskOwner("1")
    task_id, _ = owner.launch(command(), BACKGROUND, "host")
    failed = t.TaskFailed("SpawnFailed", "no such shell")
    effects = owner.ended(task_id, failed)
    assert resolved(effects) == [t.SettledWait(task_id, failed)]
    assert of(Announce, [*effects, *owner.reaped(task_id)]) == []


def test_the_states_that_people_see() -> None:
    owner, task_id = running()
    task = owner.task(task_id)
    task.inquire("q8")
    assert task.state == "inputNeeded"
    owner.cancel(task_id, "user")
    assert task.state == "stopping"
    owner.reaped(task_id)
    assert task.state == "stopped"
    for result, state in (
        (DONE, "completed"),
        (t.TaskCompleted(exit_code=2), "failed"),
        (t.TaskFailed("X", "y"), "failed"),
    ):
        other, its_id = running()
        other.ended(its_id, result)
        assert other.task(its_id).state == state


def test_a_claimed_runner_is_not_claimed_again() -> None:  # row 2
    owner, task_id = running()
    assert code_of(owner.task(task_id).start) == "RunnerUnavailable"


def test_an_operation_is_launched_once_and_never_with_another_intent() -> None:  # row 3
    owner, task_id = running()
    again, effects = owner.launch(command(), FOREGROUND, "host")
    assert again == task_id and of(StartTask, effects) == []
    assert code_of(lambda: owner.launch(command(intent="true "), FOREGROUND, "host")) == "OperationConflict"
    other, _ = owner.launch(command("other"), FOREGROUND, "host")
    assert other == "task-1-1"


def test_a_settled_task_keeps_its_result() -> None:  # row 5
    owner, task_id = running()
    owner.ended(task_id, DONE)
    assert owner.ended(task_id, DONE) == []
    assert code_of(lambda: owner.ended(task_id, t.TaskCompleted(exit_code=1))) == "ReportConflict"
    receipt, effects = owner.cancel(task_id, "user")
    assert (receipt.decision, receipt.execution, effects) == ("already-settled", t.Settled(DONE), [])
    assert owner.launch(command(), FOREGROUND, "again")[0] == task_id


def test_a_repeated_cancel_keeps_its_decision_also_when_the_task_has_stopped() -> None:
    owner, task_id = running()
    owner.cancel(task_id, "user")
    owner.reaped(task_id)
    again, effects = owner.cancel(task_id, "user")
    assert (again.decision, again.execution, again.cleanup, effects) == (
        "cancellation-requested",
        t.Settled(t.TaskCancelled("user")),
        t.CleanupReaped(),
        [],
    )
    timed_out, _ = owner.launch(command("other"), FOREGROUND, "host")
    owner.cancel(timed_out, "execution-timeout")
    owner.reaped(timed_out)
    assert owner.cancel(timed_out, "user")[0].decision == "already-settled"


def test_the_first_cause_is_kept() -> None:  # row 6
    owner, task_id = running()
    first, effects = owner.cancel(task_id, "user")
    assert of(StopTask, effects) == [StopTask(task_id, "user")]
    second, effects = owner.cancel(task_id, "shutdown")
    assert (first.decision, second.decision, effects) == ("cancellation-requested", "cancellation-requested", [])
    assert second.execution == t.Cancelling("user")
    owner.reaped(task_id)
    assert owner.task(task_id).result == t.TaskCancelled("user")


def test_a_success_that_comes_too_late_leaves_its_output() -> None:  # row 7
    owner, task_id = running()
    owner.cancel(task_id, "user")
    output = t.OutputRef("owner-1", task_id, "output", "12")
    assert code_of(lambda: owner.ended(task_id, t.TaskCompleted(output))) == "ReportConflict"
    owner.reaped(task_id)
    assert owner.task(task_id).result == t.TaskCancelled("user", output)


def test_a_cancelled_task_settles_only_when_it_is_reaped() -> None:  # row 8
    owner, task_id = running()
    effects = owner.cancel(task_id, "user")[1]
    assert resolved(effects) == []
    assert owner.task(task_id).cleanup == t.CleanupDraining()
    assert resolved(owner.reaped(task_id)) == [t.SettledWait(task_id, t.TaskCancelled("user"))]


def test_what_runs_is_not_reaped_and_what_is_reaped_stays_so() -> None:  # rows 18, 19
    owner, task_id = running()
    assert code_of(lambda: owner.reaped(task_id)) == "ReportConflict"
    assert code_of(lambda: owner.cleanup_failed(task_id, ("group 7",))) == "ReportConflict"
    owner.ended(task_id, DONE)
    owner.reaped(task_id)
    assert code_of(lambda: owner.cleanup_failed(task_id, ("group 7",))) == "ReportConflict"


def test_a_cancel_of_a_task_whose_cleanup_failed_names_what_is_left() -> None:  # row 18
    owner, task_id = running()
    owner.cancel(task_id, "user")
    owner.cleanup_failed(task_id, ("group 7",))
    with pytest.raises(Refused, match=r"^CleanupFailed: group 7$"):
        owner.cancel(task_id, "user")
    owner.reaped(task_id)
    assert owner.task(task_id).result == t.TaskCancelled("user")


def test_an_unknown_id_and_that_of_another_owner_are_the_same() -> None:  # rows 11, 42
    owner, task_id = running()
    for wrong in ("task-2-0", f" {task_id}", "", "7"):
        assert code_of(lambda wrong=wrong: owner.cancel(wrong, "user")) == "UnknownTask"
        assert code_of(lambda wrong=wrong: owner.wait(wrong, 0, "host", is_designated=True)) == "UnknownTask"
    with pytest.raises(Refused, match=r"^UnknownTask: UnknownTask$"):
        owner.cancel("task-2-0", "user")


def test_a_zero_that_was_measured_stays_and_what_was_not_is_left_out() -> None:  # row 14
    owner, task_id = running()
    task = owner.task(task_id)
    assert encode(task.record().metrics) == b'{"elapsedMs":0}'
    task.measure(tools=3)
    assert encode(task.record().metrics) == b'{"elapsedMs":0,"toolCount":3}'


def test_the_time_of_a_task_is_that_of_the_moment_and_stands_still_once_it_is_over() -> None:
    seconds = [100.0]
    owner, task_id = running(now=lambda: seconds[0])
    task = owner.task(task_id)
    seconds[0] = 102.5
    assert task.record().metrics == t.Metrics(elapsed_ms=2500)
    owner.cancel(task_id, "user")
    seconds[0] = 103.0
    owner.reaped(task_id)
    seconds[0] = 200.0
    assert task.record().metrics == t.Metrics(elapsed_ms=3000)


def test_a_task_that_never_began_has_no_time() -> None:
    owner, _ = running(room={"command": Room(running=1)})
    queued, _ = owner.launch(Launch("later", "command", "later"), FOREGROUND, "host")
    owner.cancel(queued, "user")
    assert owner.task(queued).record().metrics is UNSET


def test_an_answer_to_one_question_leaves_the_other_open() -> None:  # row 15
    owner, task_id = running()
    task = owner.task(task_id)
    task.inquire("q8")
    task.answered("q7")
    assert task.attention == t.Attention("input-needed", ("q8",))
    task.answered("q8")
    assert task.attention == t.Attention()
    owner.ended(task_id, DONE)
    assert code_of(lambda: task.inquire("q9")) == code_of(lambda: task.measure(tools=1)) == "TaskTerminal"


def test_a_task_that_is_stopping_asks_nothing_any_more() -> None:  # row 15
    owner, task_id = running()
    task = owner.task(task_id)
    task.inquire("q8")
    owner.cancel(task_id, "user")
    assert task.attention == t.Attention()
    assert code_of(lambda: task.inquire("q9")) == "OwnerClosing"


def test_sequences_are_text_and_exact_beyond_what_a_number_holds() -> None:  # row 12
    owner, task_id = running()
    owner._sequence = 2**53
    owner.ended(task_id, DONE)
    assert owner.envelope(task_id).terminal_sequence == "9007199254740993"


@pytest.mark.parametrize("event", ["start", "cancel", "outcome", "reaped", "cleanup-failed"])
@pytest.mark.parametrize("phase", ["queued", "running", "cancelling", "settled"])
def test_the_table_is_what_a_task_does(phase: Execution, event: Event) -> None:
    task = Task(t.TaskRef("o", "t", "a", "1"), command(), 0, float)
    if phase != "queued":
        task.start()
    if phase == "cancelling":
        task.cancel("user")
    if phase == "settled":
        task.end(DONE)
    assert task.phase == phase
    does: dict[Event, Any] = {
        "start": task.start,
        "cancel": lambda: task.cancel("shutdown"),
        "outcome": lambda: task.end(DONE),
        "reaped": task.reap,
        "cleanup-failed": lambda: task.fail_cleanup(("x",)),
    }
    if (phase, event) in EXECUTION:
        does[event]()
        assert task.phase == EXECUTION[phase, event]
    else:
        before = task.record()
        code_of(does[event])
        assert task.record() == before


# ---- waits -------------------------------------------------------------------------------------------------------


def test_a_wait_that_has_yielded_does_not_yield_again() -> None:  # row 1
    owner, task_id = running()
    assert resolved(owner.budget_passed("wait-1-1")) == [t.YieldedWait(task_id, "wait-1-1", "elapsed")]
    assert owner.budget_passed("wait-1-1") == owner.release("input-needed") == []
    assert owner.task(task_id).phase == "running"


def test_settlement_beats_a_late_yield() -> None:  # row 10
    owner, task_id = running()
    assert resolved(owner.ended(task_id, DONE)) == [t.SettledWait(task_id, DONE)]
    assert owner.budget_passed("wait-1-1") == []
    # also one that was registered after the end, with no time at all
    waited = owner.wait(task_id, 0, "host", is_designated=True)
    assert resolved(waited) == [t.SettledWait(task_id, DONE)]


def test_only_the_parents_own_waits_move_the_badge() -> None:  # row 9
    owner, task_id = running()
    task = owner.task(task_id)
    owner.wait(task_id, 5, "client", is_designated=False)
    assert resolved(owner.budget_passed("wait-1-2")) == [t.YieldedWait(task_id, "wait-1-2", "elapsed")]
    assert task.badge == t.Foreground("wait-1-1") and not task.was_background
    owner.budget_passed("wait-1-1")
    owner.wait(task_id, 5, "host", is_designated=True)
    assert task.badge == t.Foreground("wait-1-3")
    assert resolved(owner.give_up("host")) == [ObserverCancelled()]
    assert task.badge == t.Background("observer-cancelled")
    assert task.phase == "running" and task.was_background


def test_a_newer_wait_of_the_parent_has_the_badge_and_leaves_the_older_one_alone() -> None:  # 2.6
    owner, task_id = running()
    task = owner.task(task_id)
    owner.wait(task_id, 5, "another call", is_designated=True)
    assert len(owner.watching) == 2
    assert resolved(owner.budget_passed("wait-1-1")) == [t.YieldedWait(task_id, "wait-1-1", "elapsed")]
    assert (task.badge, task.was_background) == (t.Foreground("wait-1-2"), True)
    owner.wait(task_id, 5, "a third call", is_designated=True)
    assert resolved(owner.give_up("another call")) == [ObserverCancelled()]
    assert task.badge == t.Foreground("wait-1-3")


def test_a_wait_with_no_time_yields_at_once_and_says_each_time_the_same_task() -> None:  # row 39
    owner, task_id = running()
    owner.budget_passed("wait-1-1")
    for budget in (0.0, 0.0):
        (outcome,) = resolved(owner.wait(task_id, budget, "host", is_designated=True))
        assert (outcome.task_id, outcome.reason) == (task_id, "elapsed")
    ended = t.TaskCompleted(exit_code=7)
    owner.ended(task_id, ended)
    for _ in range(2):
        assert resolved(owner.wait(task_id, None, "host", is_designated=True)) == [t.SettledWait(task_id, ended)]


@pytest.mark.parametrize("policy", [BACKGROUND, WaitPolicy("foreground", 0), WaitPolicy()])
def test_with_no_budget_of_the_owner_every_policy_yields(policy: WaitPolicy) -> None:  # row 36
    owner = TaskOwner("1", Budgets(command_ms=0))
    task_id, _ = owner.launch(command(), policy, "host")
    (outcome,) = resolved(owner.spawned(task_id))
    assert outcome.reason == ("explicit" if policy is BACKGROUND else "elapsed")


def test_until_settled_arms_nothing_and_a_budget_of_the_call_counts_all_the_same() -> None:
    owner = TaskOwner("1", Budgets(until_settled=True))
    assert of(ArmBudget, owner.launch(command(), WaitPolicy(), "host")[1]) == []
    armed = owner.launch(command("b"), WaitPolicy("foreground", 1e12), "host")[1]
    assert of(ArmBudget, armed) == [ArmBudget("wait-1-2", 1e12)]
    assert of(ArmBudget, owner.launch(command("c"), WaitPolicy("foreground", math.nan), "host")[1]) == []


def test_a_message_ends_the_parents_waits_and_nothing_else() -> None:  # row 47, the owner's part
    owner, first = running()
    owner.launch(Launch("an agent", "agent", "t"), FOREGROUND, "other call")
    owner.wait(first, 50, "client", is_designated=False)
    owner.wait(first, 50, "waiting call", is_designated=True)
    released = of(Resolve, owner.release("input-needed"))
    assert [each.wait.observer for each in released] == ["other call", "waiting call"]
    assert {each.outcome.reason for each in released} == {"input-needed"}  # type: ignore[union-attr]
    assert len(owner.watching) == 2, "the client's, and the call that launched the command"
    assert {task.phase for task in owner.tasks} == {"running"}


def test_a_message_does_not_reach_a_launch_in_the_background_that_has_yet_to_begin() -> None:  # 2.6
    owner = TaskOwner("1")
    task_id, _ = owner.launch(agent("a"), WaitPolicy(), "host")
    assert owner.release("intercom-coordination") == []
    assert resolved(owner.spawned(task_id)) == [t.YieldedWait(task_id, "wait-1-1", "default-background")]


def test_an_observer_that_gives_up_a_launch_cancels_it_and_nothing_that_it_only_watched() -> None:  # row 40
    owner, task_id = running()
    effects = owner.give_up("host")
    assert of(StopTask, effects) == [StopTask(task_id, "user")]
    assert resolved(effects) == []
    assert resolved(owner.reaped(task_id)) == [t.SettledWait(task_id, t.TaskCancelled("user"))]
    other, its_id = running()
    other.budget_passed("wait-1-1")
    assert other.give_up("host") == []  # the launch has ended, so its abort reaches nothing
    assert other.task(its_id).phase == "running"


def test_an_observer_may_give_up_a_launch_whose_cleanup_has_failed() -> None:
    owner, task_id = running()
    owner.cancel(task_id, "owner-close")
    owner.cleanup_failed(task_id, ("group 7",))
    assert owner.give_up("host") == []
    assert resolved(owner.reaped(task_id)) == [t.SettledWait(task_id, t.TaskCancelled("owner-close"))]


def test_waits_that_are_over_are_not_kept() -> None:  # row 16
    owner, task_id = running()
    for number in range(1000):
        owner.wait(task_id, 1, number, is_designated=False)
        owner.give_up(number)
    assert len(owner.watching) == 1


# ---- room --------------------------------------------------------------------------------------------------------


def test_what_finds_no_room_waits_and_runs_in_the_order_of_admission() -> None:
    owner = TaskOwner("1", room={"agent": Room(running=1, queued=2)})
    ids = [owner.launch(agent(name), BACKGROUND, name)[0] for name in "abc"]
    assert [owner.task(each).state for each in ids] == ["running", "queued", "queued"]
    assert code_of(lambda: owner.launch(agent("d"), BACKGROUND, "d")) == "CapacityExhausted"
    assert of(StartTask, owner.launch(command(), BACKGROUND, "x")[1]) != []  # another kind has its own room
    assert of(StartTask, owner.ended(ids[0], DONE)) == [StartTask(ids[1])]
    assert of(StartTask, owner.cancel(ids[1], "user")[1]) == []
    assert of(StartTask, owner.reaped(ids[1])) == [StartTask(ids[2])]


def test_a_launch_may_allow_fewer_of_its_tasks_at_once_and_holds_nobody_else_up() -> None:
    owner = TaskOwner("1", room={"agent": Room(running=3)})

    def of_group(name: str, group: str | None, limit: int | None) -> str:
        return owner.launch(Launch(name, "agent", "a task", name, group=group, group_limit=limit), BACKGROUND, name)[0]

    first, second = of_group("a", "g", 1), of_group("b", "g", 1)
    other = of_group("c", "h", None)
    assert [owner.task(each).state for each in (first, second, other)] == ["running", "queued", "running"]
    owner.cancel(first, "user")
    assert owner.task(second).state == "queued"  # the first has not stopped yet
    assert of(StartTask, owner.reaped(first)) == [StartTask(second)]


def test_six_tasks_with_four_permits_all_finish() -> None:  # row 79
    owner = TaskOwner("1", room={"agent": Room(running=4)})
    ids = [owner.launch(agent(name), BACKGROUND, name)[0] for name in "abcdef"]
    while running := [each for each in ids if owner.task(each).state == "running"]:
        assert len(running) <= 4
        owner.ended(running[0], t.TaskCompleted())
        owner.reaped(running[0])
    assert {owner.task(each).state for each in ids} == {"completed"}


def test_a_queued_task_that_is_cancelled_never_starts_and_is_told_of_once() -> None:
    owner = TaskOwner("1", room={"agent": Room(running=1)})
    owner.launch(agent("a"), BACKGROUND, "host")
    queued, effects = owner.launch(agent("b"), BACKGROUND, "host")
    assert len(resolved(effects)) == 1  # nobody waits until it has begun
    receipt, effects = owner.cancel(queued, "user")
    assert receipt.execution == t.Settled(t.TaskCancelled("user")) and receipt.cleanup == t.CleanupReaped()
    assert of(Announce, effects) == [Announce(queued)]
    assert owner.cancel(queued, "shutdown")[1] == []


def test_a_parent_task_must_live() -> None:
    owner, task_id = running()
    child = Launch("child", "agent", "t", None, parent_task_id=task_id)
    assert owner.launch(child, BACKGROUND, "host")[0] == "task-1-1"
    owner.ended(task_id, DONE)
    late = Launch("late", "agent", "t", None, parent_task_id=task_id)
    assert code_of(lambda: owner.launch(late, BACKGROUND, "host")) == "OwnerClosing"


# ---- notices -----------------------------------------------------------------------------------------------------


def test_a_command_that_never_was_in_the_background_is_not_told_of() -> None:  # row 54
    owner, task_id = running()
    assert of(Announce, [*owner.ended(task_id, DONE), *owner.reaped(task_id)]) == []
    owner, task_id = running()
    owner.budget_passed("wait-1-1")
    assert of(Announce, owner.ended(task_id, t.TaskCompleted(exit_code=2))) == [Announce(task_id)]
    assert of(Announce, owner.reaped(task_id)) == []


def test_nobody_hears_that_a_task_is_over_before_its_notice_is_due() -> None:
    owner, task_id = running(BACKGROUND)
    owner.wait(task_id, None, "client", is_designated=False)
    effects = owner.ended(task_id, DONE)
    assert [type(effect) for effect in effects] == [Announce, Resolve]


def test_a_stopped_task_is_told_of_once_and_only_when_it_is_reaped() -> None:  # row 52
    owner, task_id = running(BACKGROUND)
    told = of(Announce, owner.cancel(task_id, "user")[1])
    code_of(lambda: owner.ended(task_id, DONE))
    told += of(Announce, owner.cancel(task_id, "user")[1])
    assert told == []
    assert of(Announce, owner.reaped(task_id)) == [Announce(task_id)]
    assert owner.reaped(task_id) == []


@pytest.mark.parametrize("kind", ["command", "agent"])
def test_one_that_was_in_the_background_is_told_of_also_when_its_end_was_waited_for(kind: Any) -> None:  # contract
    owner = TaskOwner("1")
    task_id, _ = owner.launch(Launch("op", kind, "a task"), BACKGROUND, "host")
    owner.spawned(task_id)
    owner.wait(task_id, None, "host", is_designated=True)
    assert owner.task(task_id).badge == t.Foreground("wait-1-2") and owner.task(task_id).was_background
    effects = owner.ended(task_id, DONE)
    assert of(Announce, effects) == [Announce(task_id)]
    assert resolved(effects) == [t.SettledWait(task_id, DONE)]
    assert owner.task(task_id).record().was_background


def test_output_over_the_limit_ends_a_background_command_and_no_other() -> None:  # row 27
    owner, task_id = running()
    assert owner.over_limit(task_id) == []
    effects = owner.budget_passed("wait-1-1")
    assert of(StopTask, effects) == [StopTask(task_id, "output-limit", at_once=True)]
    owner.reaped(task_id)
    result = owner.task(task_id).result
    assert isinstance(result, t.TaskFailed) and result.code == "OutputLimitExceeded"
    assert result.message == "Background command killed: output file exceeded 5 GiB"


# ---- the end -----------------------------------------------------------------------------------------------------


def test_an_owner_that_closes_refuses_and_is_closed_only_when_all_is_reaped() -> None:  # rows 4, 17, 41
    owner, settled = running(BACKGROUND)
    live, _ = owner.launch(command("b"), FOREGROUND, "host")
    owner.ended(settled, DONE)
    effects = owner.close()
    assert of(StopTask, effects) == [StopTask(live, "owner-close")]
    assert code_of(lambda: owner.launch(command("c"), FOREGROUND, "host")) == "OwnerClosing"
    assert code_of(lambda: owner.wait(live, 0, "host", is_designated=True)) == "OwnerClosed"
    assert owner.close() == []
    assert of(Close, owner.reaped(live)) == []
    (closed,) = of(Close, owner.reaped(settled))
    assert [(each.task_id, each.decision) for each in closed.receipts] == [
        (settled, "already-settled"),
        (live, "cancellation-requested"),
    ]


def test_a_wait_that_is_open_when_the_owner_closes_ends_with_what_became_of_the_task() -> None:  # row 41
    owner, task_id = running(BACKGROUND)
    owner.wait(task_id, 60_000, "host", is_designated=True)
    owner.close()
    assert owner.task(task_id).badge == t.Unobserved("owner-closing")
    assert resolved(owner.reaped(task_id)) == [t.SettledWait(task_id, t.TaskCancelled("owner-close"))]


def test_receipts_come_in_the_order_of_launch_whatever_is_reaped_first() -> None:  # row 18
    owner = TaskOwner("1")
    ids = [owner.launch(command(name), BACKGROUND, "host")[0] for name in "abc"]
    owner.close()
    owner.cleanup_failed(ids[1], ("group 7",))
    effects = [effect for place in (2, 0, 1) for effect in owner.reaped(ids[place])]
    (closed,) = of(Close, effects)
    assert [receipt.task_id for receipt in closed.receipts] == ids


def test_an_owner_without_tasks_closes_at_once() -> None:
    assert of(Close, TaskOwner("1").close()) == [Close(())]


def test_what_waits_to_run_is_cancelled_before_what_runs_frees_its_place() -> None:
    owner = TaskOwner("1", room={"agent": Room(running=1)})
    first = owner.launch(agent("a"), BACKGROUND, "host")[0]
    second = owner.launch(agent("b"), BACKGROUND, "host")[0]
    effects = [*owner.close(), *owner.reaped(first)]
    assert of(StartTask, effects) == []
    assert owner.task(second).result == t.TaskCancelled("owner-close")


def test_a_cleanup_that_failed_keeps_the_owner_closing_until_it_is_done_after_all() -> None:  # row 18
    owner, task_id = running()
    owner.close()
    owner.cleanup_failed(task_id, ("group 7",))
    assert owner.state == "closing"
    assert len(of(Close, owner.reaped(task_id))) == 1


def test_an_owner_closes_what_it_can_also_beside_a_cleanup_that_has_failed() -> None:  # row 18
    owner, stuck = running()
    other, _ = owner.launch(command("b"), FOREGROUND, "host")
    owner.cancel(stuck, "user")
    owner.cleanup_failed(stuck, ("group 7",))
    assert of(StopTask, owner.close()) == [StopTask(other, "owner-close")]
    (closed,) = of(Close, [*owner.reaped(other), *owner.reaped(stuck)])
    assert [each.execution.result.cause for each in closed.receipts] == ["user", "owner-close"]


@pytest.mark.parametrize("order", list(itertools.permutations(["user", "execution-timeout", "close"])))
def test_whoever_stops_a_task_first_is_the_cause_and_the_others_change_nothing(order: tuple[str, ...]) -> None:
    owner, task_id = running()  # row 6: a kill, the time-out and the end of the owner race
    stops: list[Any] = []
    for each in order:
        effects = owner.close() if each == "close" else owner.cancel(task_id, each)[1]  # type: ignore[arg-type]
        stops += of(StopTask, effects)
    first: Any = "owner-close" if order[0] == "close" else order[0]
    assert stops == [StopTask(task_id, first)]
    assert resolved(owner.reaped(task_id)) == [t.SettledWait(task_id, t.TaskCancelled(first))]


def test_only_what_is_over_can_be_forgotten() -> None:
    owner, task_id = running()
    owner.ended(task_id, DONE)
    assert code_of(lambda: owner.forget(task_id)) == "OwnerClosing"
    owner.reaped(task_id)
    owner.forget(task_id)
    assert owner.tasks == ()
