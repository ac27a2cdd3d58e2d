"""What the desk is told of a subagent at work: how far it is, and whether somebody should look at it.

Part of the subagent. At most once in 400 ms, and once more at the end.
"""

from __future__ import annotations

from collections.abc import Callable

from actors.base import Address
from actors.mail import AgentProgress, Arm, ClockMail, SubagentMail, TaskDeskMail
from actors.task.subagent.child_log import ChildLog
from actors.task.subagent.parent_side import ParentSide
from actors.task.subagent.vigil import LONG_MS, QUIET_MS, Vigil

PROGRESS, PROGRESS_MS = "progress", 400
LOOK, LONG = "look", "long"


class Progress:
    """`now` is in monotonic seconds; `me` is whom the clock tells that the time has come."""

    def __init__(
        self,
        task_id: str,
        log: ChildLog,
        parent: ParentSide,
        desk: Address[TaskDeskMail],
        clock: Address[ClockMail],
        now: Callable[[], float],
        me: Address[SubagentMail],
    ) -> None:
        self._task_id = task_id
        self._log = log
        self._parent = parent
        self._desk = desk
        self._clock = clock
        self._now = now
        self._me = me
        self._vigil = Vigil(now() * 1000)
        self._changed = self._waits_for_tick = self._is_over = False

    def begin(self) -> None:
        """The child is at work from now on."""
        self._arm(LOOK, QUIET_MS)
        self._arm(LONG, LONG_MS)
        self._changed = True
        self.report_if_due()

    def heard(self) -> None:
        """The child has said or done something."""
        if self._vigil.heard(self._now() * 1000):
            self._changed = True
            self._arm(LOOK, QUIET_MS)

    def change(self) -> None:
        """Something that is told has changed."""
        self._changed = True

    def rang(self, key: str) -> None:
        match key:
            case "look":
                self._look()
            case "long":
                self._vigil.is_long = self._changed = True
            case _:
                self._waits_for_tick = False
        self.report_if_due()

    def report_if_due(self) -> None:
        if not self._changed or self._waits_for_tick or self._is_over:
            return
        self._waits_for_tick = True
        self._arm(PROGRESS, PROGRESS_MS)
        self._report()

    def end(self, *, last: bool) -> None:
        """Nothing is told any more but, with `last`, how far it came."""
        self._is_over = True
        if last:
            self._report()

    def _report(self) -> None:
        """One that waits for an answer is not silent: its question is to be looked at."""
        self._changed = False
        log, vigil, is_asking = self._log, self._vigil, self._parent.is_asking
        activity = None if is_asking else vigil.state(log.failures)
        is_silent = vigil.is_quiet and not is_asking
        self._desk.tell(
            AgentProgress(self._task_id, log.model, log.level, log.action, log.tools, log.tokens, activity, is_silent)
        )

    def _look(self) -> None:
        """Whether it is silent shows, and the next look is due."""
        delay = self._vigil.look(self._now() * 1000)
        self._changed = self._changed or delay is None
        if delay is not None and not self._is_over:
            self._arm(LOOK, delay)

    def _arm(self, key: str, delay_ms: int) -> None:
        self._clock.tell(Arm(key, delay_ms, self._me))
