"""Whether somebody should look at a subagent: it has been silent for a minute, its changes fail one after the other,
or it has been at work for four minutes.

Pure, and for the eye alone: nothing is ever ended for it. Source: `tasks.md` 3.4.
"""

from __future__ import annotations

from protocol.tasks import ActivityState

QUIET_MS, LONG_MS = 60_000, 240_000
FAILURES = 3


class Vigil:
    """Times are in milliseconds of a clock that never goes back; it begins with the agent."""

    def __init__(self, now: float) -> None:
        self._began = self._active = now

    def heard(self, now: float) -> None:
        """The agent has said or done something."""
        self._active = now

    def is_quiet(self, now: float) -> bool:
        return now - self._active >= QUIET_MS

    def state(self, now: float, failures: int) -> ActivityState | None:
        """`failures` counts the changes of files that have failed since the last one that did not."""
        if failures >= FAILURES or self.is_quiet(now):
            return "needs_attention"
        return "active_long_running" if now - self._began >= LONG_MS else None

    def next_look_ms(self, now: float) -> int | None:
        """When to look again; None: not before it is heard of."""
        if self.is_quiet(now):
            return None
        waits = [self._active + QUIET_MS - now]
        waits += [self._began + LONG_MS - now] if now - self._began < LONG_MS else []
        return max(1, round(min(waits)))
