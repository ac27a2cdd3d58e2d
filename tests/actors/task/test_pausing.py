"""The pause of an owner of tasks: what it refuses, what it stops and in which order, and when it is confirmed."""

from __future__ import annotations

from actors.task.effects import Announce, ArmBudget, Close, Paused, Room, StartTask, StopTask
from actors.task.owner import TaskOwner
from protocol import tasks as t
from tests.actors.task.owners import BACKGROUND, DONE, FOREGROUND, agent, code_of, command, of, resolved, running


def launched(owner: TaskOwner, operation: str, *, spawned: bool = True) -> str:
    task_id, _ = owner.launch(command(operation), BACKGROUND, operation)
    if spawned:
        owner.spawned(task_id)
    return task_id


def test_a_pause_refuses_launches_and_nothing_else() -> None:
    owner, task_id = running(BACKGROUND)
    owner.pause("stage")
    for launch in (command("other"), agent("a")):
        assert code_of(lambda launch=launch: owner.launch(launch, FOREGROUND, "host")) == "TasksPaused"
    try:
        owner.launch(agent("b"), BACKGROUND, "host")
    except Exception as refused:
        assert str(refused) == "Workflow stage tasks are paused"
    assert owner.launch(command(), FOREGROUND, "host")[0] == task_id, "it is no other task"
    assert of(ArmBudget, owner.wait(task_id, 5, "host", is_designated=True)) != []
    owner.reaped(task_id)
    waited = owner.wait(task_id, None, "host", is_designated=True)
    assert resolved(waited) == [t.SettledWait(task_id, t.TaskCancelled("user"))]


def test_what_waits_to_run_goes_before_what_would_free_its_place() -> None:
    owner = TaskOwner("1", room={"agent": Room(running=1)})
    first = owner.launch(agent("a"), BACKGROUND, "host")[0]
    owner.spawned(first)
    second = owner.launch(agent("b"), BACKGROUND, "host")[0]
    shell = launched(owner, "c")
    effects = owner.pause("stage")
    assert of(Announce, effects) == [Announce(second)], "it never ran, and its parent hears so"
    assert [each.task_id for each in of(StopTask, effects)] == [first, shell]
    assert {each.cause for each in of(StopTask, effects)} == {"user"}
    effects = [*owner.reaped(first), *owner.reaped(shell)]
    assert of(StartTask, effects) == []
    (paused,) = of(Paused, effects)
    assert (paused.observer, paused.error) == ("stage", None)
    assert [each.task_id for each in paused.receipts] == [first, second, shell]
    assert {each.execution for each in paused.receipts} == {t.Settled(t.TaskCancelled("user"))}


def test_what_a_pause_stopped_is_told_of_when_it_is_reaped() -> None:  # the stage's messages stay open
    owner, task_id = running(BACKGROUND)
    assert of(Announce, owner.pause("stage")) == []
    told = owner.reaped(task_id)
    assert [type(effect) for effect in told] == [Announce, Paused]


def test_a_command_that_is_being_set_up_is_awaited_and_then_all_of_them_are_stopped() -> None:  # row 55
    owner = TaskOwner("1")
    runs, begins = launched(owner, "a"), launched(owner, "b", spawned=False)
    assert owner.pause("stage") == [], "no list is empty, and nothing is confirmed"
    stopped = of(StopTask, owner.spawned(begins))
    assert [each.task_id for each in stopped] == [runs, begins]
    assert of(Paused, owner.reaped(begins)) == []
    assert len(of(Paused, owner.reaped(runs))) == 1


def test_a_command_that_could_not_be_set_up_holds_nothing_up() -> None:
    owner = TaskOwner("1")
    runs, begins = launched(owner, "a"), launched(owner, "b", spawned=False)
    owner.pause("stage")
    stopped = of(StopTask, owner.ended(begins, t.TaskFailed("SpawnFailed", "no such shell")))
    assert [each.task_id for each in stopped] == [runs]
    (paused,) = of(Paused, [*owner.reaped(runs), *owner.reaped(begins)])
    assert [each.decision for each in paused.receipts] == ["cancellation-requested", "already-settled"]


def test_a_pause_with_nothing_to_stop_is_confirmed_at_once_each_time() -> None:
    owner, task_id = running(BACKGROUND)
    owner.ended(task_id, DONE)
    assert of(Paused, owner.pause("one")) == [], "what it started may be left"
    assert of(Paused, owner.reaped(task_id))[0].observer == "one"
    assert owner.pause("two") == [Paused("two", None, ())]


def test_two_requests_are_two_answers_and_what_stops_is_stopped_once() -> None:
    owner, task_id = running(BACKGROUND)
    assert len(of(StopTask, owner.pause("one"))) == 1
    assert owner.pause("two") == []
    assert [each.observer for each in of(Paused, owner.reaped(task_id))] == ["one", "two"]


def test_a_cleanup_that_failed_is_told_instead_of_a_confirmation() -> None:
    owner = TaskOwner("1")
    first, second = launched(owner, "a"), launched(owner, "b")
    owner.pause("stage")
    assert of(Paused, owner.cleanup_failed(first, ("group 7", "group 8"))) == [], "the other may yet be reaped"
    (paused,) = of(Paused, owner.reaped(second))
    assert paused.error == "Workflow stage task cleanup failed: group 7, group 8"
    assert paused.receipts[0].decision == "cancellation-requested"
    assert paused.receipts[0].cleanup == t.CleanupFailed(("group 7", "group 8"))
    assert of(Paused, owner.pause("again")) == [
        Paused("again", "Workflow stage task cancellation failed", (paused.receipts[0],))
    ]
    owner.reaped(first)
    assert owner.pause("at last") == [Paused("at last", None, ())]


def test_a_result_whose_cleanup_failed_is_a_cleanup_that_failed() -> None:
    owner, task_id = running(BACKGROUND)
    owner.ended(task_id, DONE)
    owner.cleanup_failed(task_id, ("group 7",))
    (paused,) = of(Paused, owner.pause("stage"))
    assert paused.error == "Workflow stage task cleanup failed: group 7"


def test_a_cleanup_that_failed_and_then_was_done_after_all_is_confirmed() -> None:
    owner = TaskOwner("1")
    first, second = launched(owner, "a"), launched(owner, "b")
    owner.pause("stage")
    owner.cleanup_failed(first, ("group 7",))
    owner.reaped(first)
    assert of(Paused, owner.reaped(second))[0].error is None


def test_a_resume_begins_a_generation_and_brings_nothing_back() -> None:
    owner = TaskOwner("1", room={"agent": Room(running=1)})
    old = [owner.launch(agent(name), BACKGROUND, "host")[0] for name in "ab"]
    owner.pause("stage")
    owner.reaped(old[0])
    assert (owner.generation, owner.resume(), owner.resume()) == ("1", "1.1", "1.1")
    new, effects = owner.launch(agent("c"), BACKGROUND, "host")
    assert of(StartTask, effects) == [StartTask(new)]
    assert [owner.task(each).ref.generation for each in (*old, new)] == ["1", "1", "1.1"]
    assert {owner.task(each).state for each in old} == {"stopped"}


def test_a_resume_before_the_pause_is_through_leaves_the_old_to_it_and_the_new_alone() -> None:
    owner = TaskOwner("1")
    old = launched(owner, "a", spawned=False)
    owner.pause("stage")
    owner.resume()
    new = launched(owner, "b")
    assert [each.task_id for each in of(StopTask, owner.spawned(old))] == [old]
    (paused,) = of(Paused, owner.reaped(old))
    assert [each.task_id for each in paused.receipts] == [old]
    assert owner.task(new).state == "running"


def test_an_owner_that_closes_answers_its_pauses_first_and_is_not_resumed() -> None:
    owner = TaskOwner("1")
    task_id = launched(owner, "a", spawned=False)
    owner.pause("stage")
    assert of(StopTask, owner.close()) == [StopTask(task_id, "owner-close")]
    assert code_of(owner.resume) == "OwnerClosing"
    assert owner.pause("late") == []
    effects = owner.reaped(task_id)
    assert [type(each) for each in effects if isinstance(each, Paused | Close)] == [Paused, Paused, Close]
    assert owner.pause("later") == [Paused("later", None, ())]


def test_a_stop_that_came_before_the_pause_keeps_its_cause() -> None:
    owner, task_id = running(BACKGROUND)
    owner.cancel(task_id, "execution-timeout")
    assert owner.pause("stage") == []
    (paused,) = of(Paused, owner.reaped(task_id))
    assert paused.receipts[0].execution == t.Settled(t.TaskCancelled("execution-timeout"))
