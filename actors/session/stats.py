"""Counts and sums over a whole session, for `get_session_stats`, and the last text of the assistant.

Pure, over every entry of the file: all branches, and what compactions replaced. Source: `sessions.md` 1.11.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from actors.session.context import ContextMessage
from actors.session.tree import Entry, Tree
from protocol.codec import BadJson, decode_any
from protocol.entry_head import EntryHead
from protocol.messages import AssistantMessage, TextContent

if TYPE_CHECKING:
    from protocol.responses import ContextUsage, SessionStats

LARGEST = 2**53  # the largest count that a double tells exactly; a request never has more
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


@cache
def _decoder() -> msgspec.json.Decoder[_Counted]:
    return msgspec.json.Decoder(_Counted)


class Tally:
    """What a tree's entries add up to, counted once: entries are only ever appended. One for each tree."""

    __slots__ = ("_cost", "_counted", "_roles", "_tokens", "_tool_calls")

    def __init__(self) -> None:
        self._counted = 0
        self._roles: Counter[str] = Counter()
        self._tool_calls = 0
        self._tokens: list[float] = [0] * len(_TOKENS)
        self._cost = 0.0

    def stats(self, tree: Tree, session_id: str, file: str | None, context_usage: ContextUsage | None) -> SessionStats:
        """Data of `get_session_stats`: messages by role, tokens, and US dollars."""
        from protocol.responses import SessionStats, TokenTotals

        self.count(self.uncounted(tree))
        read_in, out, read, written = map(int, self._tokens)
        return SessionStats(
            session_id=session_id,
            user_messages=self._roles["user"],
            assistant_messages=self._roles["assistant"],
            tool_calls=self._tool_calls,
            tool_results=self._roles["toolResult"],
            total_messages=self._roles.total(),
            tokens=TokenTotals(read_in, out, read, written, read_in + out + read + written),
            cost=self._cost,
            session_file=UNSET if file is None else file,
            context_usage=UNSET if context_usage is None else context_usage,
        )

    def uncounted(self, tree: Tree) -> list[Entry]:
        return tree.entries[self._counted :]

    def count(self, entries: list[Entry]) -> Tally:
        """What follows on those that are counted; itself."""
        for entry in entries:
            self._add(entry.head)
        self._counted += len(entries)
        return self

    def _add(self, head: EntryHead) -> None:
        if head.type == "message":
            message = _counted(head.message)
            self._roles[message.role] += 1
            self._tool_calls += _tool_calls(message)
            if message.usage is not None and message.role in ("assistant", "toolResult"):
                self._spend(message.usage)
        elif head.usage is not UNSET and head.type in ("branch_summary", "session_summary"):
            self._spend(_spent(head.usage))

    def _spend(self, spent: _Spent) -> None:
        for place, count in enumerate((spent.input, spent.output, spent.cache_read, spent.cache_write)):
            self._tokens[place] += min(count, LARGEST)
        if isinstance(total := spent.cost.get("total"), int | float):
            self._cost += min(total, LARGEST)


def session_stats(
    tree: Tree, session_id: str, session_file: str | None = None, context_usage: ContextUsage | None = None
) -> SessionStats:
    """`Tally.stats` of a tree that is counted once only."""
    return Tally().stats(tree, session_id, session_file, context_usage)


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


# ---- tolerant reading --------------------------------------------------------------------------------------------


def _counted(raw: Raw | UnsetType) -> _Counted:
    if raw is UNSET:
        return _Counted()
    try:
        return _decoder().decode(raw)
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
        return msgspec.json.decode(raw, type=_Spent)
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
