"""What the tests of the owner of tasks are made of: launches, an owner with a command that runs, effects by kind."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from actors.task.effects import Effects, Resolve, WaitPolicy
from actors.task.owner import TaskOwner
from actors.task.state import Launch, Refused
from protocol import tasks as t

DONE = t.TaskCompleted(exit_code=0)
BACKGROUND, FOREGROUND = WaitPolicy("background"), WaitPolicy("foreground")


def command(operation: str = "op", intent: Any = "true") -> Launch:
    return Launch(operation, "command", "a command", intent)


def agent(operation: str) -> Launch:
    return Launch(operation, "agent", "a task", operation)


def resolved(effects: Effects) -> list[Any]:
    return [effect.outcome for effect in effects if isinstance(effect, Resolve)]


def of(kind: type[Any], effects: Iterable[Any]) -> list[Any]:
    return [effect for effect in effects if isinstance(effect, kind)]


def running(policy: WaitPolicy = FOREGROUND, **more: Any) -> tuple[TaskOwner, str]:
    """An owner with one command that runs."""
    owner = TaskOwner("1", **more)
    task_id, _ = owner.launch(command(), policy, "host")
    owner.spawned(task_id)
    return owner, task_id


def code_of(action: Any) -> str:
    with pytest.raises(Refused) as caught:
        action()
    return caught.value.code
