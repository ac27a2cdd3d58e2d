"""What an owner of tasks decides is to be done, in order. The desk carries it out."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from actors.task.child_message import ChildMessage
from protocol.tasks import CancelCause, CancelReceipt, Observation, TaskKind

WaitKind = Literal["default", "background", "foreground"]


class WaitPolicy(Struct, frozen=True):
    """How long a launch is waited for. Without a budget the owner's own counts."""

    kind: WaitKind = "default"
    budget_ms: float | None = None


class Budgets(Struct, frozen=True):
    """The owner's own, in milliseconds; with `until_settled` a wait without a budget has none."""

    command_ms: float = 10_000
    agent_ms: float = 30_000
    until_settled: bool = False

    def of(self, kind: TaskKind) -> float | None:
        if self.until_settled:
            return None
        return self.command_ms if kind == "command" else self.agent_ms


class Room(Struct, frozen=True):
    """How many of a kind may run at once, and how many may wait for that; None: any number."""

    running: int | None = None
    queued: int | None = None


class Wait(Struct, frozen=True):
    """Somebody who waits for a task; `observer` is whatever the desk knows it by. A designated one is the parent
    itself: whether it waits decides if the task is in the foreground."""

    id: str
    task_id: str
    observer: Any
    is_designated: bool
    is_launch: bool = False


class ObserverCancelled(Struct, frozen=True):
    """The end of a wait that its observer gave up."""


class StartTask(Struct, frozen=True):
    """Start what runs the task."""

    task_id: str


class StopTask(Struct, frozen=True):
    """End it: gently first, or `at_once`."""

    task_id: str
    cause: CancelCause
    at_once: bool = False


class Resolve(Struct, frozen=True):
    """The wait is over. Once for each wait."""

    wait: Wait
    outcome: Observation | ObserverCancelled


class ArmBudget(Struct, frozen=True):
    """Call `TaskOwner.budget_passed` with the wait's id after this time."""

    wait_id: str
    delay_ms: float


class Changed(Struct, frozen=True):
    """The record of the task is another one."""

    task_id: str


class Announce(Struct, frozen=True):
    """The record of the task is another one: it is over, and its parent did not see it. A completion notice is due.
    Once for each task."""

    task_id: str


class Paused(Struct, frozen=True):
    """What `observer` asked for has come about: nothing is left of what there was. With an `error` something is, and
    the receipts tell what. They are in the order of launch. Once for each request."""

    observer: Any
    error: str | None
    receipts: tuple[CancelReceipt, ...]


class Relay(Struct, frozen=True):
    """An agent has said this to its parent. Once for each message."""

    message: ChildMessage


class Close(Struct, frozen=True):
    """The owner has closed: everything that it owned is reaped. The receipts are in the order of launch."""

    receipts: tuple[CancelReceipt, ...]


Effect = StartTask | StopTask | Resolve | ArmBudget | Changed | Announce | Paused | Relay | Close
Effects = list[Effect]
