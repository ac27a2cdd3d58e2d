"""Shows what a child says to those who watch it.

Part of the subagent. At most once in 100 ms, and not while the client has not read the one before.
"""

from __future__ import annotations

from actors.base import Address
from actors.mail import AgentSaid, Arm, ClockMail, SubagentMail, TaskDeskMail
from actors.pump import Window
from actors.task.subagent.child_log import ChildLog
from actors.task.subagent.showing import Showing

SHOW, SHOW_MS = "show", 100


class TranscriptSide:
    """`me` is whom the clock tells that more may be shown."""

    def __init__(
        self,
        task_id: str,
        log: ChildLog,
        desk: Address[TaskDeskMail],
        clock: Address[ClockMail],
        me: Address[SubagentMail],
    ) -> None:
        self._task_id = task_id
        self._log = log
        self._desk = desk
        self._clock = clock
        self._me = me
        self._showing = Showing()
        self._window = Window(max_messages=1)
        self._is_armed = False

    def watch(self, on: bool) -> None:
        self._showing.watch(self._log, on)
        self.show_if_due()

    def rang(self) -> None:
        self._is_armed = False
        self.show_if_due()

    def show_if_due(self) -> None:
        if self._is_armed or not self._showing.is_due(self._log):
            return
        self._is_armed = True
        self._clock.tell(Arm(SHOW, SHOW_MS, self._me))
        self._show(self._window)

    def show_last(self) -> None:
        """Whether there is room or not."""
        if self._showing.is_due(self._log):
            self._show(Window())

    def _show(self, window: Window) -> None:
        ack = window.offer(1)
        if ack is not None:
            self._desk.tell(AgentSaid(self._task_id, *self._showing.take(self._log), ack))
