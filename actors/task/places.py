"""Who may run now, and who waits for a place: in the order of admission, within the room of each kind and group.

Part of the owner of tasks; pure. Places are counted, so that it does not matter how many tasks there have been.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from actors.task.effects import Room
from actors.task.state import Launch, Task
from protocol import tasks as t

NO_LIMIT = Room()


class Places:
    """`room` bounds each kind; a launch may allow fewer of its tasks at once."""

    def __init__(self, room: Mapping[t.TaskKind, Room]) -> None:
        self._room = room
        self._queues: dict[t.TaskKind, dict[str, Task]] = {"agent": {}, "command": {}}
        self._active: Counter[t.TaskKind] = Counter()
        self._groups: Counter[str | None] = Counter()

    def check(self, kind: t.TaskKind) -> int | None:
        """How many wait already, if another one would be too many."""
        most = self._room.get(kind, NO_LIMIT).queued
        waiting = len(self._queues[kind])
        return waiting if most is not None and waiting >= most and not self._has_room(kind) else None

    def queue(self, task: Task) -> None:
        self._queues[task.launch.kind][task.id] = task

    def leave_queue(self, task: Task) -> None:
        """It will not run."""
        del self._queues[task.launch.kind][task.id]

    def next(self, kind: t.TaskKind) -> Task | None:
        """Gives a place to the first that waits and may run now. A group that is full holds up nobody else."""
        queue = self._queues[kind]
        if not self._has_room(kind):
            return None
        found = next((task for task in queue.values() if self._group_has_room(task.launch)), None)
        if found is None:
            return None
        del queue[found.id]
        self._active[kind] += 1
        self._groups[found.launch.group] += 1
        return found

    def free(self, task: Task) -> None:
        """It runs no more."""
        self._active[task.launch.kind] -= 1
        self._groups[task.launch.group] -= 1
        if not self._groups[task.launch.group]:
            del self._groups[task.launch.group]

    def _has_room(self, kind: t.TaskKind) -> bool:
        limit = self._room.get(kind, NO_LIMIT).running
        return limit is None or self._active[kind] < limit

    def _group_has_room(self, launch: Launch) -> bool:
        return launch.group_limit is None or self._groups[launch.group] < launch.group_limit
