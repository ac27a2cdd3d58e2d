"""Whether somebody should look at a subagent: it has been silent for a minute, its changes fail one after the other,
or it has been at work for four minutes.

Pure, and for the eye alone: nothing is ever ended for it. Only one that has been heard of is looked at again, so that
looking never keeps anything going. Source: `tasks.md` 3.4.
"""

from __future__ import annotations

from protocol.tasks import ActivityState

QUIET_MS, LONG_MS = 60_000, 240_000
FAILURES = 3


class Vigil:
    """The first look is due `QUIET_MS` after the beginning. Times are in milliseconds of a clock that never goes back.
    `is_long` is for the caller to set, after `LONG_MS`."""

    def __init__(self, now: float) -> None:
        self.is_quiet = self.is_long = False
        self._heard_at = now
        self._was_heard = False

    def heard(self, now: float) -> bool:
        """The agent has said or done something; whether it had been silent, so that a look is due in `QUIET_MS`."""
        was_quiet, self.is_quiet = self.is_quiet, False
        self._heard_at, self._was_heard = now, not was_quiet
        return was_quiet

    def look(self, now: float) -> int | None:
        """When to look again, in milliseconds; None: it is silent, so not before it is heard of."""
        if not self._was_heard:
            self.is_quiet = True
            return None
        self._was_heard = False
        return max(1, round(self._heard_at + QUIET_MS - now))

    def state(self, failures: int) -> ActivityState | None:
        """`failures` counts the changes of files that have failed since the last one that did not."""
        if failures >= FAILURES or self.is_quiet:
            return "needs_attention"
        return "active_long_running" if self.is_long else None
