"""What the tasks of a desk tell: that they have begun, how far they are, how they ended, and that nothing is left.

Part of the desk. None of these implies another, and one that comes too late or twice changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import UNSET

from actors.base import Address
from actors.mail import (
    AgentProgress,
    Arm,
    ClockMail,
    ShellTaskPlan,
    TaskDeskMail,
    TaskEnded,
    TaskReaped,
)
from actors.task.effects import Effects
from actors.task.owner import TaskOwner
from actors.task.runners import Runners
from actors.task.state import Refused
from protocol import tasks as t

CONFIRM_MS = 2000
"""After so long without a word what a dead actor left counts as not cleaned up."""

Do = Callable[[Effects], None]
"""Carries out what the owner has decided."""


class Reports:
    """`desk` is whom the clock tells that the time of a command is over."""

    def __init__(
        self, owner: TaskOwner, runners: Runners, clock: Address[ClockMail], desk: Address[TaskDeskMail], do: Do
    ) -> None:
        self._owner = owner
        self._runners = runners
        self._clock = clock
        self._desk = desk
        self._do = do

    def hear(self, report: Callable[[], Effects]) -> None:
        """A report that comes too late or twice is refused by the owner, and nobody else."""
        try:
            effects = report()
        except Refused:
            return
        self._do(effects)

    def spawned(self, task_id: str) -> None:
        plan = self._owner.task(task_id).launch.intent
        if isinstance(plan, ShellTaskPlan):
            self._clock.tell(Arm(f"timeout-{task_id}", plan.timeout_s * 1000, self._desk))
        self.hear(lambda: self._owner.spawned(task_id))

    def progress(self, mail: AgentProgress) -> None:
        def report() -> Effects:
            task = self._owner.task(mail.task_id)
            task.measure(mail.tools, mail.tokens)
            task.seems(mail.activity, is_quiet=mail.is_quiet)
            task.model, task.thinking, task.action = mail.model, mail.level, mail.action or UNSET
            return self._owner.changed(mail.task_id)

        self.hear(report)

    def ended(self, mail: TaskEnded) -> None:
        self._runners.keep(mail.task_id, mail.view)
        self.hear(lambda: self._owner.ended(mail.task_id, mail.result))

    def reaped(self, mail: TaskReaped) -> None:
        task_id = mail.task_id
        self._runners.keep(task_id, mail.view)
        self.hear(lambda: self._owner.reaped(task_id))
        self._runners.reaped(task_id)
        task = self._owner.task(task_id)
        if task.was_background or task.launch.kind == "agent":
            self._runners.forget_old()
        else:  # its result went back through the call, and nobody knows its id
            self._runners.forget(task_id)
            self._owner.forget(task_id)

    def rang(self, key: str) -> None:
        """The time of a wait is over, that of a command, or that of what a dead actor left."""
        kind, _, task_id = key.partition("-")
        match kind:
            case "timeout":
                self.hear(lambda: self._owner.cancel(task_id, "execution-timeout")[1])
            case "left":
                resources = self._runners.left(task_id)
                if resources:
                    self.hear(lambda: self._owner.cleanup_failed(task_id, resources))
            case _:
                self._do(self._owner.budget_passed(key))

    def died(self, task_id: str, error: str) -> None:
        """The actor of a task died. What it had started ends by its last words; until that is certain, the task is not
        reaped."""
        self._runners.died(task_id)
        self.hear(lambda: self._owner.ended(task_id, t.TaskFailed("RunnerFailed", f"the task failed: {error}")))
        if self._runners.left(task_id):
            self._clock.tell(Arm(f"left-{task_id}", CONFIRM_MS, self._desk))
        else:
            self.hear(lambda: self._owner.reaped(task_id))

    def gone(self, task_id: str) -> None:
        if self._runners.gone(task_id):
            self.hear(lambda: self._owner.reaped(task_id))
