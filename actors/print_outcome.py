"""What the last message of a conversation is worth: its text, and whether it is a whole answer.

Pure. Decides the exit code of the one-shot modes and what `-p` prints. Source: rpc 6, sessions 8.3; only a whole answer
counts as success here, and what a session would ask for again is none.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from actors.session.retry import classify, retry_text
from protocol.messages import AssistantMessage

CUT = "The answer was cut: it reached the output token limit"
NO_ANSWER = "The run ended without an answer"
FAILED = {"error": "Request error", "aborted": "Request aborted"}


class Outcome(NamedTuple):
    """`text` is what people read, each block ended by a line feed. Without `whole`, `error` says why."""

    text: str = ""
    whole: bool = False
    error: str = NO_ANSWER


def outcome_of(message: Any) -> Outcome:
    """`message` is decoded JSON, or None when nothing was said."""
    if not isinstance(message, dict):
        return Outcome()
    if message.get("role") == "custom" and message.get("display"):
        return Outcome(_text(message), whole=True, error="")
    if message.get("role") != "assistant":
        return Outcome()
    stop = message.get("stopReason")
    if stop == "stop":
        return _finished(message)
    if stop == "length":
        return Outcome(_text(message), error=CUT)
    if isinstance(stop, str) and stop in FAILED:
        told = message.get("errorMessage")
        return Outcome(error=told if told and isinstance(told, str) else FAILED[stop])
    return Outcome()


def _finished(message: dict[str, Any]) -> Outcome:
    """Of a reply that only looks whole, the text is kept if there is any. Of one in the shape of another program,
    nothing but the text is known."""
    text = _text(message)
    try:
        reply = msgspec.convert(message, AssistantMessage)
    except msgspec.ValidationError:
        return Outcome(text, whole=True, error="") if text.strip() else Outcome()
    if classify(reply) == "whole":
        return Outcome(text, whole=True, error="")
    return Outcome(text if text.strip() else "", error=retry_text(reply))


def _text(message: dict[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return f"{content}\n"
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    texts = [block.get("text") for block in blocks if block.get("type") == "text"]
    return "".join(f"{text}\n" for text in texts if isinstance(text, str))
