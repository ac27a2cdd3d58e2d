"""What an inspector knows of one session: its tasks as last told, and whether there is still anybody who tells.

Pure: the time comes with each call, in seconds of any steady clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from protocol.tasks import TaskRecord, TaskState
from runtime.inspector.records import Incoming, Session, TaskUpdate

State = Literal["connecting", "live", "lost", "ended", "replaced"]
ACTIVE: frozenset[TaskState] = frozenset({"queued", "running", "inputNeeded", "stopping"})


class Seen(NamedTuple):
    """A record and when it came."""

    record: TaskRecord
    at: float


class Board:
    """`tasks` are in the order of launch. Once the state is not `live`, nothing changes any more: what is known stays
    readable. `successor` is the session that took the place of this one."""

    def __init__(self) -> None:
        self.session: Session | None = None
        self.successor: Session | None = None
        self.state: State = "connecting"
        self.reason = ""
        self.stopped_at: float | None = None
        self._tasks: dict[str, Seen] = {}

    @property
    def tasks(self) -> list[TaskRecord]:
        """What the list shows. A command that never left the foreground is its call's business."""
        shown = (seen.record for seen in self._tasks.values() if _belongs(seen.record))
        return sorted(shown, key=lambda record: record.launch_ordinal)

    @property
    def is_live(self) -> bool:
        return self.state == "live"

    @property
    def is_over(self) -> bool:
        """Nothing is heard any more, unless somebody asks for another look."""
        return self.state in ("lost", "ended", "replaced")

    def task(self, task_id: str) -> TaskRecord | None:
        seen = self._tasks.get(task_id)
        return seen.record if seen else None

    def begin(self, session: Session, records: Iterable[TaskRecord], now: float) -> None:
        """A connection stands; what came before belongs to another one."""
        self.session, self.successor, self.state, self.reason, self.stopped_at = session, None, "live", "", None
        self._tasks = {record.ref.task_id: Seen(record, now) for record in records}

    def hear(self, record: Incoming, now: float) -> None:
        """Takes in what was told."""
        if self.state == "replaced" and isinstance(record, Session):
            self.successor = record
        if not self.is_live:
            return
        if isinstance(record, TaskUpdate):
            self._tasks[record.task.ref.task_id] = Seen(record.task, now)
        elif isinstance(record, Session):
            self._hear_session(record, now)

    def renew(self, record: TaskRecord, now: float) -> None:
        """The record that came with an answer."""
        if self.is_live:
            self._tasks[record.ref.task_id] = Seen(record, now)

    def lose(self, reason: str, *, is_alive: bool, now: float) -> None:
        """The connection is over; `is_alive` tells whether the program still runs."""
        if self.state != "replaced":
            self.state = "lost" if is_alive else "ended"
        self.reason, self.stopped_at = reason, self.stopped_at or now

    def elapsed_ms(self, task_id: str, now: float) -> int | None:
        """How long a task has run; None if nobody told. One that runs is counted on from when it was told."""
        seen = self._tasks[task_id]
        metrics = seen.record.metrics
        if not metrics or not isinstance(metrics.elapsed_ms, int):
            return None
        since = 0.0
        if seen.record.state in ACTIVE and seen.record.state != "queued":
            since = (self.stopped_at or now) - seen.at
        return metrics.elapsed_ms + int(max(since, 0) * 1000)

    def _hear_session(self, session: Session, now: float) -> None:
        if self.session is None or session.session_id == self.session.session_id:
            self.session = session
        else:
            self.successor, self.state, self.stopped_at = session, "replaced", now


def _belongs(record: TaskRecord) -> bool:
    return record.was_background or record.kind == "agent"
