"""The owner of tasks, as decisions without effects: who may run, who waits for what, what is stopped, when it closes.

Each method takes what happened and returns what is to be done, in order. A task is admitted, runs when there is room
(`places`), settles once, and is forgotten only when nothing that it started is left. Each wait is resolved exactly once
(`watching`), and each request to pause is answered once (`pausing`). Ids hold the owner's, and another owner's is as
unknown as one that never was. Source: `tasks.md` 2.3, 2.5, 2.6, 2.11.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from msgspec.structs import replace

from actors.task.child_message import ChildMessage, Contact
from actors.task.effects import (
    Announce,
    Budgets,
    Changed,
    Close,
    Effects,
    Relay,
    Room,
    StartTask,
    StopTask,
    WaitPolicy,
)
from actors.task.pausing import Pausing
from actors.task.places import Places
from actors.task.questions import Questions
from actors.task.roster import Roster
from actors.task.state import Launch, Refused, Task
from actors.task.watching import Watching
from protocol import tasks as t

UNLIMITED: Mapping[t.TaskKind, Room] = {}
OWN_BUDGETS = Budgets()


class TaskOwner:
    """`scope` is unique among all owners, also those of earlier processes: completions are known by the ids made of
    it. `room` bounds each kind; `now` is in seconds and tells how long tasks have run, nothing else."""

    def __init__(
        self,
        scope: str,
        budgets: Budgets = OWN_BUDGETS,
        room: Mapping[t.TaskKind, Room] = UNLIMITED,
        now: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self.id = f"owner-{scope}"
        self.state: Literal["open", "closing", "closed"] = "open"
        self.watching = Watching(scope)
        self.questions = Questions()
        self._scope = scope
        self._budgets = budgets
        self._places = Places(room)
        self._pausing = Pausing(lambda task: self._stop(task, "user"))  # the owner stays
        self._roster = Roster(scope, self.id, now)
        self._sequence = 0

    # -- looking

    def task(self, task_id: str) -> Task:
        """Raises `Refused` for an unknown id, which another owner's is too."""
        return self._roster.task(task_id)

    def find(self, task_id: str) -> Task | None:
        """None for an unknown one."""
        return self._roster.find(task_id)

    @property
    def tasks(self) -> tuple[Task, ...]:
        """In the order of launch."""
        return self._roster.tasks

    @property
    def generation(self) -> str:
        """Of tasks that are launched now."""
        passed = self._pausing.generation
        return f"{self._scope}.{passed}" if passed else self._scope

    def envelope(self, task_id: str) -> t.CompletionEnvelope:
        """The notice of a task that has settled."""
        task = self.task(task_id)
        assert task.result is not None
        sequence = str(task.terminal_sequence)
        return t.CompletionEnvelope(f"completion-{task_id}", self.id, task_id, sequence, task.result)

    # -- launching

    def launch(self, launch: Launch, policy: WaitPolicy, observer: Any) -> tuple[str, Effects]:
        """The task's id. Raises `Refused`, and then nothing was admitted."""
        effects: Effects = []
        task = self._roster.launched_by(launch.operation)
        if task is None:
            self._check_admission(launch)
            task = self._roster.admit(launch, self.generation)
            self._places.queue(task)
            effects = [Changed(task.id), *self._start_next(launch.kind)]
        elif task.launch != launch:
            raise Refused("OperationConflict", "the same operation was launched with something else")
        return task.id, effects + self._observe_launch(task, policy, observer)

    def _check_admission(self, launch: Launch) -> None:
        parent = self.find(launch.parent_task_id or "")
        if self.state != "open" or (launch.parent_task_id and (parent is None or not _is_live(parent))):
            raise Refused("OwnerClosing")
        self._pausing.check()
        waiting = self._places.check(launch.kind)
        if waiting is not None:
            raise Refused("CapacityExhausted", f"{waiting} tasks are waiting already")

    def _observe_launch(self, task: Task, policy: WaitPolicy, observer: Any) -> Effects:
        if policy.kind == "background":
            return self.watching.pass_by(task, observer, "explicit")
        if policy.kind == "default" and task.launch.kind == "agent":
            return self.watching.pass_by(task, observer, "default-background")
        budget = self._budget(task, policy.budget_ms)
        return self.watching.observe(task, budget, observer, is_designated=True, is_launch=True)

    def _budget(self, task: Task, asked: float | None) -> float | None:
        return self._budgets.of(task.launch.kind) if asked is None else asked

    def _start_next(self, kind: t.TaskKind) -> Effects:
        """In the order of admission; none once the owner closes."""
        effects: Effects = []
        while self.state == "open" and (task := self._places.next(kind)) is not None:
            task.start()
            effects += [Changed(task.id), StartTask(task.id)]
        return effects

    # -- what becomes of a task

    def spawned(self, task_id: str) -> Effects:
        """What runs the task has begun."""
        task = self.task(task_id)
        task.spawn()
        return self.watching.spawned(task) + self._limit(task) + self._pausing.saw(task)

    def ended(self, task_id: str, result: t.TaskResult) -> Effects:
        """The outcome. Raises `Refused` when it comes after a cancel, or differs from the one that there is."""
        task = self.task(task_id)
        return self._settle_active(task) + self._pausing.saw(task) if task.end(result) else []

    def reaped(self, task_id: str) -> Effects:
        """Nothing that the task started is left. After a cancel this settles it."""
        task = self.task(task_id)
        if task.is_reaped:
            return []
        effects = self._settle_active(task) if task.reap() else self._changed(task)
        self._roster.reaped(task)
        return effects + self._pausing.saw(task) + self._close_when_done()

    def cleanup_failed(self, task_id: str, resources: tuple[str, ...]) -> Effects:
        """Something that the task started could not be ended in time."""
        task = self.task(task_id)
        task.fail_cleanup(resources)
        return [Changed(task_id), *self._pausing.saw(task)]

    def over_limit(self, task_id: str) -> Effects:
        """Its output passed what may be kept: it is stopped, but only once nobody waits for its launch any more."""
        task = self.task(task_id)
        task.over_limit = True
        return self._limit(task)

    def changed(self, task_id: str) -> Effects:
        """Something that shows of the task has changed: its questions, its numbers, its output."""
        return [Changed(self.task(task_id).id)]

    def _limit(self, task: Task) -> Effects:
        if task.over_limit and task.was_background and task.phase == "running":
            return self._stop(task, "output-limit", at_once=True)
        return []

    def _settle_active(self, task: Task) -> Effects:
        """Its place is free for the next one."""
        self._places.free(task)
        return self._settle(task) + self._start_next(task.launch.kind)

    def _settle(self, task: Task) -> Effects:
        self._sequence += 1
        self.questions.drop_task(task.id)
        task.terminal_sequence = self._sequence
        resolved = self.watching.settled(task)
        return [*self._changed(task), *resolved]

    def _changed(self, task: Task) -> Effects:
        """The notice, if it is due, comes with the change and before all who waited: nobody hears earlier that it is
        over. A stopped task is told of only when it is certain that nothing of it runs."""
        is_due = task.result is not None and (task.is_reaped or not isinstance(task.result, t.TaskCancelled))
        if not (is_due and task.was_background) or task.is_told:
            return [Changed(task.id)]
        task.is_told = True
        return [Announce(task.id)]

    # -- waiting

    def wait(self, task_id: str, budget_ms: float | None, observer: Any, *, is_designated: bool) -> Effects:
        """Observes a task that exists. Without a budget the owner's counts. Raises `Refused`."""
        if self.state != "open":
            raise Refused("OwnerClosed")
        task = self.task(task_id)
        return self._checked(
            self.watching.observe(task, self._budget(task, budget_ms), observer, is_designated=is_designated)
        )

    def budget_passed(self, wait_id: str) -> Effects:
        return self._checked(self.watching.budget_passed(wait_id))

    def release(self, reason: t.YieldReason) -> Effects:
        """A message for the parent has been taken: what it waits for runs on without it."""
        return self._checked(self.watching.release(reason))

    def give_up(self, observer: Any) -> Effects:
        """The observer was cancelled. A launch that it still waits for is cancelled with it; other tasks run on. What
        could not be cleaned up is stopping already."""
        effects, launches = self.watching.dispose(observer)
        for task in launches:
            if not isinstance(task.cleanup, t.CleanupFailed):
                effects += self._stop(task, "user")
        return effects

    def _checked(self, effects: Effects) -> Effects:
        """With what follows for tasks that are in the background now."""
        changed = dict.fromkeys(effect.task_id for effect in effects if isinstance(effect, Changed))
        return effects + [more for task_id in changed for more in self._limit(self.task(task_id))]

    # -- what agents say to their parent

    def spoke(self, task_id: str, message_id: str, contact: Contact) -> Effects:
        """It is passed on. One that is being stopped can be answered no more. Raises `Refused`."""
        task = self.task(task_id)
        return [Relay(self.questions.hear(self.id, task, message_id, contact)), Changed(task.id)]

    def answer(self, to: str | None, reply_to: str | None) -> tuple[ChildMessage, Effects]:
        """The question that is meant; it is answered with this. Raises `Refused` if there is none."""
        question = self.questions.take(to, reply_to)
        return question, self.withdrawn(question.task_id, question.message_id)

    def withdrawn(self, task_id: str, request_id: str) -> Effects:
        """Who asked waits no longer."""
        self.questions.drop(request_id)
        task = self.task(task_id)
        task.answered(request_id)
        return [Changed(task.id)]

    # -- stopping

    def cancel(self, task_id: str, cause: t.CancelCause) -> tuple[t.CancelReceipt, Effects]:
        """Asks for the end of a task. What has been stopped for this cause is not called settled before (contract).
        Raises `Refused` for an unknown one, or when its cleanup has failed."""
        task = self.task(task_id)
        was_over = task.result is not None and getattr(task.result, "cause", None) != cause
        effects = self._stop(task, cause)
        decision: Literal["already-settled", "cancellation-requested"]
        decision = "already-settled" if was_over else "cancellation-requested"
        return replace(task.receipt(), decision=decision), effects

    def _stop(self, task: Task, cause: t.CancelCause, *, at_once: bool = False) -> Effects:
        was = task.phase
        if task.cancel(cause):
            self.questions.drop_task(task.id)
            return [Changed(task.id), StopTask(task.id, cause, at_once)]
        if was != "queued":
            return []
        self._places.leave_queue(task)
        self._roster.reaped(task)
        return self._settle(task) + self._pausing.saw(task)

    def close(self) -> Effects:
        """Ends all of it: no launch any more, those that wait to run first. `Close` comes when all is reaped."""
        if self.state != "open":
            return []
        self.state = "closing"
        live = [task for task in self._roster.unreaped if task.result is None]
        effects: Effects = []
        for task in sorted(live, key=lambda task: task.phase != "queued"):
            if not isinstance(task.cleanup, t.CleanupFailed):
                effects += self._stop(task, "owner-close")
            if task.result is None:
                task.badge = t.Unobserved("owner-closing")
        return effects + self._close_when_done()

    def _close_when_done(self) -> Effects:
        if self.state != "closing" or self._roster.unreaped:
            return []
        self.state = "closed"
        return [Close(tuple(task.receipt() for task in self.tasks))]

    # -- a pause

    def pause(self, observer: Any) -> Effects:
        """Refuses launches from now on and ends all that there is; waits and looks go on. One `Paused` comes of it."""
        return self._pausing.pause(observer, self._roster.unreaped)

    def resume(self) -> str:
        """Allows launches again, as a generation of their own: its name. What a pause stopped stays stopped. Raises
        `Refused` when the owner closes."""
        if self.state != "open":
            raise Refused("OwnerClosing")
        self._pausing.resume()
        return self.generation

    def forget(self, task_id: str) -> None:
        """Drops a task that is over and that nobody will ask for. Raises `Refused` while something of it is left."""
        task = self.task(task_id)
        if task.result is None or not task.is_reaped:
            raise Refused("OwnerClosing", "it is not over")
        self._roster.forget(task)


def _is_live(task: Task) -> bool:
    return task.phase in ("queued", "running")
