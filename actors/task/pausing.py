"""The pause of an owner: no launch while it lasts, and who asked for it hears when nothing of the old tasks is left.

Part of the owner of tasks; pure. A request covers what there is when it comes: what waits to run goes first, then
agents; commands only when those that are being set up have begun, since what has not begun cannot be confirmed to be
gone. Tasks that are launched after a resume are none of its business. Each request is answered once. Source: `tasks.md`
2.11.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from actors.task.effects import Effects, Paused
from actors.task.state import Refused, Task
from protocol import tasks as t

REFUSAL = "Workflow stage tasks are paused"
NOT_CANCELLED = "Workflow stage task cancellation failed"
NOT_CLEANED = "Workflow stage task cleanup failed: {}"

StopOne = Callable[[Task], Effects]
"""Raises `Refused` if the cleanup of the task has failed."""


class Pausing:
    """`generation` counts how often launches were allowed again."""

    def __init__(self, stop: StopOne) -> None:
        self.is_on = False
        self.generation = 0
        self._stop = stop
        self._drains: list[Drain] = []

    def check(self) -> None:
        """Raises `Refused` while it lasts."""
        if self.is_on:
            raise Refused("TasksPaused", text=REFUSAL)

    def pause(self, observer: Any, unreaped: Iterable[Task]) -> Effects:
        """`unreaped` are all that there are, in the order of launch."""
        self.is_on = True
        drain = Drain(observer, unreaped)
        effects = [effect for task in drain.first() for effect in self._stop_for(drain, task)]
        self._drains.append(drain)
        return effects + self._go_on()

    def resume(self) -> None:
        if self.is_on:
            self.is_on = False
            self.generation += 1

    def saw(self, task: Task) -> Effects:
        """Something has become of it, and somebody may have waited for that."""
        for drain in self._drains:
            drain.saw(task)
        return self._go_on()

    def _go_on(self) -> Effects:
        effects: Effects = []
        for drain in list(self._drains):
            for task in drain.commands():
                effects += self._stop_for(drain, task)
            if drain.is_over:
                self._drains.remove(drain)
                effects.append(drain.answer())
        return effects

    def _stop_for(self, drain: Drain, task: Task) -> Effects:
        try:
            effects = self._stop(task) if task.result is None else []
        except Refused:
            drain.refused(task)
            return []
        drain.saw(task)
        return effects


class Drain:
    """One request. `unreaped` are in the order of launch."""

    def __init__(self, observer: Any, unreaped: Iterable[Task]) -> None:
        self._observer = observer
        self._tasks = tuple(unreaped)
        self._left: set[str] = set()
        self._failed: set[str] = set()
        self._refused: set[str] = set()
        self._setups: set[str] = set()
        self._commands = [
            task for task in self._tasks if task.launch.kind == "command" and task.phase in ("running", "cancelling")
        ]
        for task in self._tasks:
            self._left.add(task.id)
            self.saw(task)

    def first(self) -> list[Task]:
        """What is to be stopped at once: those that wait to run, so that no place which becomes free starts one of
        them, and then agents."""
        queued = [task for task in self._tasks if task.phase == "queued"]
        agents = [task for task in self._tasks if task.launch.kind == "agent"]
        return queued + [task for task in agents if task.phase in ("running", "cancelling")]

    def commands(self) -> list[Task]:
        """The commands, once, as soon as none of them is being set up any more."""
        if self._setups:
            return []
        found, self._commands = self._commands, []
        return found

    def refused(self, task: Task) -> None:
        """It cannot be stopped, since its cleanup has failed."""
        self._refused.add(task.id)

    def saw(self, task: Task) -> None:
        if task.id not in self._left:
            return
        if task.launch.kind == "command" and task.phase == "running" and not task.spawned:
            self._setups.add(task.id)
        else:
            self._setups.discard(task.id)
        if isinstance(task.cleanup, t.CleanupFailed):
            self._failed.add(task.id)
        if task.is_reaped:
            for each in (self._left, self._failed, self._refused):
                each.discard(task.id)

    @property
    def is_over(self) -> bool:
        """Whether everything is reaped, or has failed to be."""
        return not self._commands and len(self._failed) == len(self._left)

    def answer(self) -> Paused:
        return Paused(self._observer, self._error(), tuple(task.receipt() for task in self._tasks))

    def _error(self) -> str | None:
        if self._refused:
            return NOT_CANCELLED
        found = [task.cleanup.resources for task in self._tasks if isinstance(task.cleanup, t.CleanupFailed)]
        return NOT_CLEANED.format("; ".join(", ".join(each) for each in found)) if found else None
