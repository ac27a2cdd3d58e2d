"""Who waits for which task, and how each wait ends: exactly once.

Part of the owner of tasks; pure. Settlement, the budget, a message for the parent and the observer himself race for a
wait; the first takes it out of the register, so the others find nothing. The badge of a task tells whether its parent
waits: only the parent's own waits (the designated ones) move it. Source: `tasks.md` 2.6.
"""

from __future__ import annotations

import math
from typing import Any

from actors.task.effects import ArmBudget, Changed, Effects, ObserverCancelled, Resolve, Wait
from actors.task.state import Task
from protocol import tasks as t


class Watching:
    """The waits that are open. `scope` is the owner's."""

    def __init__(self, scope: str) -> None:
        self._scope = scope
        self._count = 0
        self._open: dict[str, tuple[Wait, Task]] = {}
        self._until_spawned: dict[str, t.YieldReason] = {}

    def __len__(self) -> int:
        return len(self._open)

    def observe(
        self, task: Task, budget_ms: float | None, observer: Any, *, is_designated: bool, is_launch: bool = False
    ) -> Effects:
        """Waits for the task, at most `budget_ms` (None: until it settles). One that begins at this moment is waited
        for until it has begun in any case, so that what cannot start is no background task; but not one that is
        prepared before."""
        wait = self._new(task, observer, is_designated, is_launch)
        if task.result is not None:
            return self._resolve(wait.id, t.SettledWait(task.id, task.result))
        if is_designated:
            task.badge = t.Foreground(wait.id)
        if budget_ms is None or math.isnan(budget_ms):
            return [Changed(task.id)]
        if budget_ms > 0:
            return [Changed(task.id), ArmBudget(wait.id, budget_ms)]
        return self._yield_when_begun(wait, task, "elapsed")

    def pass_by(self, task: Task, observer: Any, reason: t.YieldReason) -> Effects:
        """A launch that is not waited for."""
        return self._yield_when_begun(self._new(task, observer, True, is_launch=True), task, reason)

    def spawned(self, task: Task) -> Effects:
        """What runs it has begun: those who waited for no more go on."""
        effects: Effects = []
        for wait in self._of(task):
            reason = self._until_spawned.get(wait.id)
            if reason is not None:
                effects += self._yield(wait.id, reason)
        return effects

    def settled(self, task: Task) -> Effects:
        """Every wait for it ends with its result."""
        assert task.result is not None
        task.badge = t.Unobserved("task-settled")
        outcome = t.SettledWait(task.id, task.result)
        return [effect for wait in self._of(task) for effect in self._resolve(wait.id, outcome)]

    def budget_passed(self, wait_id: str) -> Effects:
        return self._yield(wait_id, "elapsed")

    def release(self, reason: t.YieldReason) -> Effects:
        """A message for the parent: its waits end, so that it can read it. What it launched in the background is not
        waited for; a command that it launched in the foreground ends first, as steering comes after the tools of a turn
        (contract)."""
        waits = [wait for wait, task in self._open.values() if self._may_go(wait, task)]
        return [effect for wait in waits for effect in self._yield(wait.id, reason)]

    def _may_go(self, wait: Wait, task: Task) -> bool:
        is_command_call = wait.is_launch and task.launch.kind == "command"
        return wait.is_designated and wait.id not in self._until_spawned and not is_command_call

    def dispose(self, observer: Any) -> tuple[Effects, list[Task]]:
        """The observer gives up: only its own waits end. Also the tasks whose launch it was still waiting for."""
        effects: Effects = []
        launches: list[Task] = []
        for wait, task in [each for each in self._open.values() if each[0].observer == observer]:
            if wait.is_launch:
                launches.append(task)
                continue
            if wait.is_designated and task.badge == t.Foreground(wait.id):
                task.badge = t.Background("observer-cancelled")
            effects += [*self._resolve(wait.id, ObserverCancelled()), Changed(task.id)]
        return effects, launches

    # -- one wait

    def _new(self, task: Task, observer: Any, is_designated: bool, is_launch: bool) -> Wait:
        self._count += 1
        wait = Wait(f"wait-{self._scope}-{self._count}", task.id, observer, is_designated, is_launch)
        self._open[wait.id] = (wait, task)
        return wait

    def _of(self, task: Task) -> list[Wait]:
        return [wait for wait, its_task in self._open.values() if its_task is task]

    def _yield_when_begun(self, wait: Wait, task: Task, reason: t.YieldReason) -> Effects:
        is_beginning = task.phase == "running" and not task.spawned
        if is_beginning and wait.is_launch and not task.launch.is_prepared:
            self._until_spawned[wait.id] = reason
            return [Changed(task.id)]
        return self._yield(wait.id, reason)

    def _yield(self, wait_id: str, reason: t.YieldReason) -> Effects:
        """Nothing for a wait that is over: what settled it counts."""
        found = self._open.get(wait_id)
        if found is None:
            return []
        wait, task = found
        if task.result is not None:
            return self._resolve(wait_id, t.SettledWait(task.id, task.result))
        if wait.is_designated:
            task.was_background = True
            if task.badge == t.Foreground(wait_id) or not isinstance(task.badge, t.Foreground):
                task.badge = t.Background(reason)
        return [Changed(task.id), *self._resolve(wait_id, t.YieldedWait(task.id, wait_id, reason))]

    def _resolve(self, wait_id: str, outcome: t.Observation | ObserverCancelled) -> Effects:
        wait, _ = self._open.pop(wait_id)
        self._until_spawned.pop(wait_id, None)
        return [Resolve(wait, outcome)]
