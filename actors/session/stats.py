"""Counts and sums over a whole session, for `get_session_stats`, and the last text of the assistant.

Pure, over every entry of the file: all branches, and what compactions replaced. Source: `sessions.md` 1.11.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from actors.session.context import ContextMessage
from actors.session.tree import Tree
from protocol.codec import BadJson, decode_any
from protocol.messages import AssistantMessage, TextContent
from protocol.responses import ContextUsage, SessionStats, TokenTotals

_TOKENS = ("input", "output", "cacheRead", "cacheWrite")


class _Spent(Struct, rename="camel"):
    input: float = 0
    output: float = 0
    cache_read: float = 0
    cache_write: float = 0
    cost: dict[str, Any] = {}


class _Block(Struct):
    type: str = ""


class _Counted(Struct, rename="camel"):
    role: str = ""
    content: str | list[_Block] | None = None
    usage: _Spent | None = None


_MESSAGE = msgspec.json.Decoder(_Counted)
_SPENT = msgspec.json.Decoder(_Spent)


def session_stats(
    tree: Tree, session_id: str, session_file: str | None = None, context_usage: ContextUsage | None = None
) -> SessionStats:
    """Data of `get_session_stats`: messages by role, tokens, and US dollars."""
    messages = [_counted(entry.head.message) for entry in tree.entries if entry.head.type == "message"]
    roles = [message.role for message in messages]
    tokens, cost = _sums(_all_spent(messages, tree))
    return SessionStats(
        session_id=session_id,
        user_messages=roles.count("user"),
        assistant_messages=roles.count("assistant"),
        tool_calls=sum(map(_tool_calls, messages)),
        tool_results=roles.count("toolResult"),
        total_messages=len(messages),
        tokens=tokens,
        cost=cost,
        session_file=UNSET if session_file is None else session_file,
        context_usage=UNSET if context_usage is None else context_usage,
    )


def last_assistant_text(messages: Iterable[ContextMessage]) -> str | None:
    """The text of the last assistant message of the context, trimmed; `None` without one, or without text.

    An aborted message without content is passed over.
    """
    for each in reversed(list(messages)):
        message = each.message()
        if not isinstance(message, AssistantMessage) or (message.stop_reason == "aborted" and not message.content):
            continue
        return "".join(block.text for block in message.content if isinstance(block, TextContent)).strip() or None
    return None


def _tool_calls(message: _Counted) -> int:
    if message.role != "assistant" or not isinstance(message.content, list):
        return 0
    return sum(block.type == "toolCall" for block in message.content)


def _all_spent(messages: list[_Counted], tree: Tree) -> list[_Spent]:
    """What assistants and tools used, then what summaries used."""
    spent = [each.usage for each in messages if each.usage is not None and each.role in ("assistant", "toolResult")]
    for entry in tree.entries:
        usage = entry.head.usage
        if usage is not UNSET and entry.head.type in ("branch_summary", "session_summary"):
            spent.append(_spent(usage))
    return spent


def _sums(spent: list[_Spent]) -> tuple[TokenTotals, float]:
    read_in, out = int(sum(each.input for each in spent)), int(sum(each.output for each in spent))
    read, written = int(sum(each.cache_read for each in spent)), int(sum(each.cache_write for each in spent))
    cost = sum(total for each in spent if isinstance(total := each.cost.get("total"), int | float))
    return TokenTotals(read_in, out, read, written, read_in + out + read + written), cost


# ---- tolerant reading --------------------------------------------------------------------------------------------


def _counted(raw: Raw | UnsetType) -> _Counted:
    if raw is UNSET:
        return _Counted()
    try:
        return _MESSAGE.decode(raw)
    except Exception:
        return _counted_slowly(_object(raw))


def _counted_slowly(stored: dict[str, Any]) -> _Counted:
    role, content, usage = (stored.get(key) for key in ("role", "content", "usage"))
    blocks = [_Block(str(block.get("type"))) for block in _list(content) if isinstance(block, dict)]
    return _Counted(
        role if isinstance(role, str) else "", blocks, _spent_slowly(usage) if isinstance(usage, dict) else None
    )


def _spent(raw: Raw) -> _Spent:
    try:
        return _SPENT.decode(raw)
    except Exception:
        return _spent_slowly(_object(raw))


def _spent_slowly(usage: dict[str, Any]) -> _Spent:
    read_in, out, read, written = (value if isinstance(value := usage.get(key), int | float) else 0 for key in _TOKENS)
    cost = usage.get("cost")
    return _Spent(read_in, out, read, written, cost if isinstance(cost, dict) else {})


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _object(raw: Raw) -> dict[str, Any]:
    try:
        stored = decode_any(bytes(raw))
    except BadJson:
        return {}
    return stored if isinstance(stored, dict) else {}
