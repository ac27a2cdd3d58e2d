"""What the parent's model sees of its agents and of their questions, and whom it means.

Pure: the words of `intercom` against the owner of the tasks. Source: `tasks.md` 5.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from actors.task.child_message import ChildMessage, wire
from actors.task.effects import Effects
from actors.task.owner import TaskOwner
from actors.task.questions import receiver
from actors.task.state import Task


def use(
    owner: TaskOwner,
    action: Literal["list", "pending", "reply", "send"],
    target: str | None,
    reply_to: str | None,
) -> tuple[dict[str, Any], Effects]:
    """The answer to the call, and what follows. Raises `Refused`."""
    match action:
        case "list":
            live = [task for task in owner.tasks if task.launch.kind == "agent" and task.result is None]
            return {"kind": "list", "agents": [_agent(task) for task in live]}, []
        case "pending":
            return {"kind": "pending", "asks": [_ask(question) for question in owner.questions]}, []
        case "reply":
            question, effects = owner.answer(target, reply_to)
            return {"kind": "replied", "taskId": question.task_id, "requestId": question.message_id}, effects
        case "send":
            return _sent(receiver(target or "", owner.tasks)), []


def _agent(task: Task) -> dict[str, Any]:
    told: dict[str, Any] = {
        "taskId": task.id,
        "name": task.launch.agent_name,
        "state": task.state,
        "title": task.launch.title,
    }
    return told | ({"pending": list(task.attention.request_ids)} if task.attention.request_ids else {})


def _ask(question: ChildMessage) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(wire(question))
    return {"taskId": question.task_id, "agent": question.agent, **fields}


def _sent(task: Task) -> dict[str, Any]:
    """One that waits for an answer reads nothing before it has that."""
    told: dict[str, Any] = {"kind": "sent", "taskId": task.id}
    return told | ({"waitsFor": list(task.attention.request_ids)} if task.attention.request_ids else {})
