"""What the model must answer so that a recorded conversation happens again: read from the messages of the recording.

Pure. Where the client wrote something in the middle of an answer, the answer gets a gate there, which a replay opens
once it has written the same. Requests that leave no assistant message (a planner of compaction) are not in a recording.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from conformance.recording import Line

_DELTAS = ("text_delta", "thinking_delta", "toolcall_delta")
_STOPS = {"stop": "stop", "length": "length", "toolUse": "tool"}
_STATUS = re.compile(r"\s*(\d{3})\s+(.*)", re.DOTALL)


class Answers(NamedTuple):
    """`replies` in the order of the requests; `gates[i]` is the gate that opens when line `i` has been written."""

    replies: list[Any]
    gates: dict[int, str]


class _Open(NamedTuple):
    """An answer under way: for each content block its deltas, and whether the client wrote meanwhile."""

    blocks: dict[int, list[Any]]
    written: list[str]


def read_answers(lines: Sequence[Line]) -> Answers:
    replies: list[Any] = []
    gates: dict[int, str] = {}
    open_: _Open | None = None
    for index, line in enumerate(lines):
        record = line.value if line.kind == "out" and isinstance(line.value, dict) else {}
        message = record.get("message")
        mine = isinstance(message, dict) and message.get("role") == "assistant"
        if line.kind in ("in", "in_raw") and open_ is not None:
            name = gates[index] = f"line_{index}"
            open_.written.append(name)
            open_.blocks.setdefault(max(open_.blocks, default=0), []).append({"gate": name})
        elif record.get("type") == "message_start" and mine:
            open_ = _Open({}, [])
        elif record.get("type") == "message_update" and open_ is not None:
            _grow(open_, record.get("assistantMessageEvent") or {})
        elif record.get("type") == "message_end" and isinstance(message, dict) and mine:
            replies += _reply(message, open_ or _Open({}, []))
            open_ = None
    return Answers(replies, gates)


def _grow(open_: _Open, event: dict[str, Any]) -> None:
    deltas = open_.blocks.setdefault(event.get("contentIndex", 0), [])
    if event.get("type") in _DELTAS:
        deltas.append(str(event.get("delta")))


def _reply(message: dict[str, Any], open_: _Open) -> list[Any]:
    """The one reply that gives this message, or none when no request can have been made for it."""
    content, stop = message.get("content") or [], message.get("stopReason")
    if stop == "error" and not content:
        return [_error(str(message.get("errorMessage", "")))]
    parts = [
        _part(block, open_.blocks.get(index, [])) for index, block in enumerate(content) if isinstance(block, dict)
    ]
    extra = [step for index, steps in open_.blocks.items() if index >= len(content) for step in steps]
    parts += [step for step in extra if isinstance(step, dict)]
    if stop == "aborted":
        return [{"parts": [*parts, {"hang": True}]}] if parts or open_.written else []
    if stop == "error":
        return [{"parts": [*parts, {"stream_error": str(message.get("errorMessage", ""))}]}]
    return [{"parts": parts, "stop": _STOPS.get(str(stop), "stop")}]


def _part(block: dict[str, Any], deltas: list[Any]) -> Any:
    if block.get("type") == "toolCall":
        return {"tool": {"name": block.get("name"), "id": block.get("id"), **_arguments(block, deltas)}}
    kind = "thinking" if block.get("type") == "thinking" else "text"
    whole = str(block.get(kind, ""))
    said = "".join(delta for delta in deltas if isinstance(delta, str))
    rest = [whole[len(said) :]] if whole.startswith(said) and whole != said else []
    return {kind: [*deltas, *rest] if whole.startswith(said) else whole}


def _arguments(block: dict[str, Any], deltas: list[Any]) -> dict[str, Any]:
    """The pieces as they came, when they are these arguments."""
    try:
        whole = json.loads("".join(delta for delta in deltas if isinstance(delta, str)))
    except ValueError:
        whole = None
    return {"deltas": deltas} if whole == block.get("arguments") else {"args": block.get("arguments")}


def _error(text: str) -> Any:
    """An HTTP error whose text a program tells as `status body`."""
    found = _STATUS.match(text)
    if not found:
        return {"parts": [{"stream_error": text}]}
    return {"error": int(found[1]), "body" if found[2].startswith("{") else "message": found[2]}
