"""The calls of `subagent`: which fields go together, and what the model reads of the answer.

Pure. `fault` speaks before the schema does and before anything is read. Results are JSON, with the agents' answers in
them; details hold the same object and the records of the tasks. Source: `tasks.md` 3.2 and 3.4.
"""

from __future__ import annotations

from typing import Any

import msgspec

from actors.base import Address
from actors.mail import (
    AgentRefusal,
    AgentsAnswer,
    AgentSlot,
    AgentsPlanned,
    DescribeAgents,
    KillTask,
    LaunchAgents,
    TaskAnswer,
    ToolCallMail,
    ToolRequest,
    WaitForTask,
)
from actors.task.effects import WaitPolicy
from actors.tool.schema import given, shorten, text, whole
from actors.tool.shell_call import BAD_WAIT, is_budget, is_wait
from actors.tool.subagent_schema import ACTIONS
from actors.tool.table import ToolOutput
from protocol import tasks as t
from protocol.codec import encode
from protocol.messages import TextContent

_FIELDS_OF = {
    "list": ("agentScope", "cwd"),
    "get": ("agent", "agentScope", "cwd"),
    "status": ("id",),
    "wait": ("id", "budgetMs"),
    "kill": ("id",),
    "create": ("config", "agentScope", "cwd"),
    "update": ("agent", "config", "agentScope", "cwd"),
    "delete": ("agent", "agentScope", "cwd"),
}
_NEEDED = {
    "get": ("agent",),
    "wait": ("id",),
    "kill": ("id",),
    "create": ("config",),
    "update": ("agent", "config"),
    "delete": ("agent",),
}
DEFINITIONS = "definitions of subagents"
"""Not a path: what changes any of them waits for what changes another."""


# ---- arguments ---------------------------------------------------------------------------------------------------


def fault(arguments: dict[str, Any]) -> str | None:
    """Why the fields do not go together; None if they do. The rest is for the schema."""
    if "wait" in arguments and not is_wait(arguments["wait"]) and arguments.get("action") is None:
        return BAD_WAIT.format(tool="subagent")
    arguments = given(arguments)
    if "action" in arguments:
        return _action_fault(arguments)
    if "budgetMs" in arguments or "id" in arguments or "config" in arguments:
        return "Missing action."
    for each in (arguments, *_objects(arguments.get("tasks"))):
        reads = each.get("reads")
        is_list = isinstance(reads, list) and all(isinstance(path, str) for path in reads)
        if reads is not None and reads is not False and not is_list:
            return "reads must be an array of file path strings or false"
    if "tasks" in arguments and ("output" in arguments or "outputMode" in arguments):
        return "output and outputMode belong into each entry of tasks"
    return None


def _action_fault(arguments: dict[str, Any]) -> str | None:
    action = arguments["action"]
    if action not in ACTIONS:
        named = action[:80] if isinstance(action, str) and action.isprintable() else shorten(action)
        return f"Unknown action: {named}. Valid: {', '.join(ACTIONS)}"
    extra = [name for name in arguments if name not in ("action", *_FIELDS_OF[action])]
    if extra:
        return f"Invalid params: {shorten(extra[0])} does not belong to action {action}"
    for needed in _NEEDED.get(action, ()):
        if not isinstance(arguments.get(needed), dict if needed == "config" else str):
            return f"Invalid params: action {action} needs {needed}"
    if action == "create":
        for field in ("name", "description"):
            if not isinstance(arguments["config"].get(field), str):
                return f"Invalid params: action create needs config.{field}"
    if "budgetMs" in arguments and not is_budget(arguments["budgetMs"]):
        return f"Invalid params: budgetMs must be a finite number of 0 or more, got {shorten(arguments['budgetMs'])}"
    return None


def mutates(arguments: dict[str, Any], cwd: str) -> str | None:
    return DEFINITIONS if arguments.get("action") in ("create", "update", "delete") else None


def _objects(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


# ---- asking ------------------------------------------------------------------------------------------------------


def order(request: ToolRequest, call: Address[ToolCallMail]) -> DescribeAgents | WaitForTask | KillTask:
    """What a call about agents that were launched asks of the tasks' desk. Raises `ToolFailure`."""
    arguments = request.tool_call.arguments
    match arguments["action"]:
        case "wait":
            return WaitForTask(text(arguments, "id"), arguments.get("budgetMs"), call, "agent")
        case "kill":
            return KillTask(text(arguments, "id"), call, "agent")
    return DescribeAgents(arguments.get("id"), call)


def launch(request: ToolRequest, planned: AgentsPlanned, call: Address[ToolCallMail]) -> LaunchAgents:
    arguments = request.tool_call.arguments
    wait = arguments.get("wait") or {"kind": "default"}
    policy = WaitPolicy(wait["kind"], wait.get("budgetMs"))
    return LaunchAgents(planned.run, planned.plans, policy, whole(arguments, "concurrency"), call)


# ---- saying ------------------------------------------------------------------------------------------------------


def output(request: ToolRequest, answer: TaskAnswer | AgentsAnswer) -> ToolOutput:
    """The result of the call."""
    if isinstance(answer, AgentsAnswer):
        return _answered(request.tool_call.arguments, answer.slots)
    if isinstance(answer.outcome, t.CancelReceipt):
        failed = isinstance(answer.outcome.cleanup, t.CleanupFailed)
        return _json(msgspec.to_builtins(answer.outcome), (), is_error=failed)
    return ToolOutput([TextContent(str(answer.outcome))], is_error=True)


def progress(slots: tuple[AgentSlot, ...]) -> ToolOutput:
    """The whole of a launch so far, while its parent waits."""
    records = [slot.record for slot in slots if slot.record is not None]
    lines = [f"{record.agent_name or 'agent'}: {_doing(record)}" for record in records]
    return ToolOutput([TextContent("\n".join(lines))], {"taskRecords": msgspec.to_builtins(records)})


def _doing(record: t.TaskRecord) -> str:
    if record.state != "running" or not record.current_action:
        return record.state
    return f"{record.current_action.tool} {record.current_action.text}".strip()


def _answered(arguments: dict[str, Any], slots: tuple[AgentSlot, ...]) -> ToolOutput:
    if arguments.get("action") == "status":
        return _json({"kind": "status", "tasks": [_described(slot) for slot in slots]}, slots)
    if arguments.get("action") == "wait":
        return _json(_observed(slots[0]), slots)
    if arguments.get("tasks") is None:
        refused = isinstance(slots[0].outcome, AgentRefusal)
        return _json(_outcome(slots[0]), slots, is_error=refused)
    numbered = [{"ordinal": place, "outcome": _outcome(slot)} for place, slot in enumerate(slots)]
    return _json({"kind": "parallel", "slots": numbered}, slots)


def _outcome(slot: AgentSlot) -> dict[str, Any]:
    if isinstance(slot.outcome, AgentRefusal):
        error = {"code": slot.outcome.code, "message": slot.outcome.message}
        return {"kind": "unstarted", "reason": {"kind": "rejected", "error": error}}
    return {"kind": "admitted", **_observed(slot)}


def _observed(slot: AgentSlot) -> dict[str, Any]:
    told: dict[str, Any] = {"observation": msgspec.to_builtins(slot.outcome)}
    return {**told, **_answer_of(slot)}


def _described(slot: AgentSlot) -> dict[str, Any]:
    return {"task": msgspec.to_builtins(slot.record), **_answer_of(slot)}


def _answer_of(slot: AgentSlot) -> dict[str, Any]:
    """What the agent said last, once it is over, and the files that are kept of it."""
    if slot.view is None:
        return {}
    told: dict[str, Any] = {"output": slot.view.shown}
    if slot.view.artifacts:
        told["artifacts"] = list(slot.view.artifacts)
    if slot.view.patch:
        told["patch"] = slot.view.patch
    if slot.view.skipped:
        told["skippedModels"] = list(slot.view.skipped)
    return told


def _json(told: dict[str, Any], slots: tuple[AgentSlot, ...], *, is_error: bool = False) -> ToolOutput:
    records = [msgspec.to_builtins(slot.record) for slot in slots if slot.record is not None]
    details: dict[str, Any] = {"taskResponse": told}
    if records:
        details["taskRecords"] = records
    return ToolOutput([TextContent(encode(told).decode())], details, is_error=is_error)
