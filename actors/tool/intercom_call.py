"""The calls of `intercom`: which fields go together, what is asked of the tasks' desk, and what the model reads.

Pure. Source: `tasks.md` 5.
"""

from __future__ import annotations

from typing import Any

from msgspec import to_builtins

from actors.base import Address
from actors.mail import IntercomAnswer, TaskAnswer, ToolCallMail, ToolRequest, UseIntercom
from actors.tool.schema import shorten
from actors.tool.table import ToolOutput
from actors.tool.talk_schema import INTERCOM_ACTIONS
from protocol.codec import encode
from protocol.messages import TextContent

_FIELDS_OF = {"list": (), "pending": (), "reply": ("to", "replyTo", "message"), "send": ("to", "message")}
_NEEDED = {"reply": ("message",), "send": ("to", "message")}


def fault(arguments: dict[str, Any]) -> str | None:
    """Why the fields do not go together; None if they do. The rest is for the schema."""
    action = arguments.get("action")
    if action not in INTERCOM_ACTIONS:
        return None  # the schema says which there are
    extra = [
        name
        for name in ("to", "replyTo", "message")
        if arguments.get(name) is not None and name not in _FIELDS_OF[action]
    ]
    if extra:
        return f"Invalid params: {shorten(extra[0])} does not belong to action {action}"
    for name in _NEEDED.get(action, ()):
        value = arguments.get(name)
        if not isinstance(value, str) or not value.strip():
            return f"Invalid params: action {action} needs {name}, got {shorten(value)}"
    return None


def order(request: ToolRequest, call: Address[ToolCallMail]) -> UseIntercom:
    arguments = request.tool_call.arguments
    reply_to, message = arguments.get("replyTo"), arguments.get("message") or ""
    return UseIntercom(arguments["action"], arguments.get("to"), reply_to, message, call)


def output(answer: TaskAnswer | IntercomAnswer) -> ToolOutput:
    """The result of the call."""
    if isinstance(answer, TaskAnswer):
        return ToolOutput([TextContent(str(answer.outcome))], is_error=True)
    return ToolOutput([TextContent(encode(answer.told).decode())], to_builtins(answer.told))
