"""What models are told of `intercom`, for agents that have subagents, and of `contact_supervisor`, for these."""

from __future__ import annotations

from typing import Any

INTERCOM_SNIPPET = "Answer and tell running subagents"
INTERCOM = (
    "Talk with your running subagents. reply answers the question of one that waits for you, send tells one something"
    " that it reads before its next request, list shows who runs, pending which questions are open."
)
INTERCOM_ACTIONS = ("list", "pending", "reply", "send")
CONTACT = "contact_supervisor"
CONTACT_SNIPPET = "Ask the agent that you work for"
CONTACTING = (
    "Speak to the agent that gave you this task. need_decision and interview_request wait for its answer, as long as"
    " that takes: ask only what you cannot find out or decide yourself. progress_update waits for nothing, but it"
    " interrupts that agent: send one only if it changes what it should do now."
)
REASONS = ("need_decision", "interview_request", "progress_update")
QUESTION_TYPES = ("single", "multi", "text", "image", "info")


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


def _object(required: tuple[str, ...], /, **properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def intercom_parameters() -> dict[str, Any]:
    """A JSON schema; `actors.tool.intercom_call.fault` holds what it cannot say."""
    return _object(
        ("action",),
        action={"type": "string", "enum": list(INTERCOM_ACTIONS)},
        to=_text("Task id, or the name of an agent if only one has it"),
        replyTo=_text("With reply: the id of the question; may be left out if one is open"),
        message=_text("What to say, with reply and send"),
    )


def contact_parameters() -> dict[str, Any]:
    """A JSON schema; `actors.tool.contact_call.fault` holds what it cannot say."""
    question = _object(
        ("type", "question"),
        id=_text("Name for the answer"),
        type={"type": "string", "enum": list(QUESTION_TYPES), "description": "info only tells something"},
        question={**_text("What is asked"), "maxLength": 2000},
        options={
            "type": "array",
            "items": {"type": "string", "maxLength": 500},
            "maxItems": 20,
            "description": "To choose from, for single and multi",
        },
    )
    return _object(
        ("reason", "message"),
        reason={"type": "string", "enum": list(REASONS)},
        message={**_text("What it must know to answer, and what you would do"), "maxLength": 8000},
        questions={
            "type": "array",
            "items": question,
            "maxItems": 20,
            "description": "For interview_request, at least one",
        },
    )
