"""The calls of `contact_supervisor`: which fields go together, what is said to the parent, and what the model reads.

Pure. Source: `tasks.md` 5.
"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, convert

from actors.base import Address
from actors.mail import ContactParent, ParentAnswer, ToolCallMail, ToolRequest
from actors.task.child_message import Contact
from actors.tool.schema import shorten
from actors.tool.table import Tool, ToolContext, ToolFailure, ToolOutput
from actors.tool.talk_schema import CONTACT, CONTACT_SNIPPET, CONTACTING, contact_parameters
from protocol.messages import TextContent
from protocol.tasks import InterviewQuestion

NO_PARENT = "Supervisor channel is not authorized"
_CHOICES = ("single", "multi")


def contact_tool() -> Tool:
    """It is given to the sessions of subagents alone."""
    parameters = contact_parameters()
    return Tool(CONTACT, CONTACTING, CONTACT_SNIPPET, parameters, _refuse, _nothing, fault=fault, talks="up")


def fault(arguments: dict[str, Any]) -> str | None:
    """Why the fields do not go together; None if they do. The rest is for the schema."""
    message, questions = arguments.get("message"), arguments.get("questions")
    if isinstance(message, str) and not message.strip():
        return "Invalid params: message must not be blank"
    if arguments.get("reason") != "interview_request":
        return None if questions is None else "Invalid params: questions belong to interview_request"
    if not isinstance(questions, list) or not questions:
        return f"Invalid params: interview_request needs questions, a list of at least one, got {shorten(questions)}"
    return next((told for place, each in enumerate(questions) if (told := _question_fault(place, each))), None)


def _question_fault(place: int, question: Any) -> str | None:
    if not isinstance(question, dict):
        return None  # the schema says so
    kind, options = question.get("type"), question.get("options")
    if kind in _CHOICES and not options:
        return f"Invalid params: questions[{place}].options must hold what to choose from for type {kind}"
    if kind not in _CHOICES and options is not None:
        return f"Invalid params: questions[{place}].options belong to single and multi, not to {shorten(kind)}"
    return None


def contact(request: ToolRequest, call: Address[ToolCallMail]) -> ContactParent:
    arguments = request.tool_call.arguments
    asked = [
        {name: value for name, value in each.items() if value is not None} for each in arguments.get("questions") or ()
    ]
    questions = convert(asked, tuple[InterviewQuestion, ...]) if asked else UNSET
    return ContactParent(Contact(arguments["reason"], arguments["message"], questions), call)


def output(answer: ParentAnswer) -> ToolOutput:
    """The result of the call."""
    details = UNSET if answer.request_id is None else {"requestId": answer.request_id}
    return ToolOutput(
        [TextContent(answer.text if answer.text.strip() else "(no text)")], details, is_error=answer.is_error
    )


def _refuse(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    raise ToolFailure(NO_PARENT)


def _nothing(arguments: dict[str, Any], cwd: str) -> str | None:
    return None
