"""The tasks of an owner: by their ids, by the launch that they came from, and those of which something is left.

Part of the owner of tasks; pure. Ids hold the owner's, and another owner's is as unknown as one that never was.
"""

from __future__ import annotations

from collections.abc import Callable, ValuesView

from actors.task.state import Launch, Refused, Task
from protocol import tasks as t


class Roster:
    """`scope` is unique among all owners; `now` is in seconds and tells how long tasks have run."""

    def __init__(self, scope: str, owner_id: str, now: Callable[[], float]) -> None:
        self._scope = scope
        self._owner_id = owner_id
        self._now = now
        self._tasks: dict[str, Task] = {}
        self._unreaped: dict[str, Task] = {}
        self._operations: dict[str, str] = {}
        self._launched = 0

    def task(self, task_id: str) -> Task:
        """Raises `Refused` for an unknown id."""
        found = self._tasks.get(task_id)
        if found is None:
            raise Refused("UnknownTask")
        return found

    def find(self, task_id: str) -> Task | None:
        """None for an unknown one."""
        return self._tasks.get(task_id)

    def launched_by(self, operation: str) -> Task | None:
        task_id = self._operations.get(operation)
        return None if task_id is None else self._tasks[task_id]

    @property
    def tasks(self) -> tuple[Task, ...]:
        """In the order of launch."""
        return tuple(self._tasks.values())

    @property
    def unreaped(self) -> ValuesView[Task]:
        """Of these something is left, or may yet be. In the order of launch."""
        return self._unreaped.values()

    def admit(self, launch: Launch, generation: str) -> Task:
        number = f"{self._scope}-{self._launched}"
        ref = t.TaskRef(self._owner_id, f"task-{number}", f"attempt-{number}-1", generation)
        task = Task(ref, launch, self._launched, self._now)
        self._tasks[task.id] = self._unreaped[task.id] = task
        self._operations[launch.operation] = task.id
        self._launched += 1
        return task

    def reaped(self, task: Task) -> None:
        """Nothing of it is left."""
        del self._unreaped[task.id]

    def forget(self, task: Task) -> None:
        del self._tasks[task.id], self._operations[task.launch.operation]
