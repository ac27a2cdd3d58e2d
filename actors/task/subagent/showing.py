"""What those who watch a subagent have been shown of its conversation, and what is new to them.

Pure. Nothing is read while nobody watches.
"""

from __future__ import annotations

from actors.task.subagent.child_log import ChildLog
from protocol.tasks import TranscriptEntry


class Showing:
    """`is_on` tells that somebody watches."""

    def __init__(self) -> None:
        self.is_on = False
        self._told = 0
        self._seen = -1

    def watch(self, log: ChildLog, on: bool) -> None:
        """Whoever begins to watch asks for what there is by then; of that nothing is new but the live entry."""
        if on and not self.is_on:
            self._told, self._seen = log.tail.total, -1
        self.is_on = on

    def is_due(self, log: ChildLog) -> bool:
        return self.is_on and log.seen != self._seen

    def take(self, log: ChildLog) -> tuple[int, tuple[bytes, ...], TranscriptEntry | None]:
        """The number of the first new entry, those that are still kept, and the live one."""
        self._seen = log.seen
        new = tuple(log.tail.since(self._told))
        self._told = log.tail.total
        return self._told - len(new), new, log.live.entry()
