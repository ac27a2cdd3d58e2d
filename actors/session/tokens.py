"""How full a context is, in tokens: what the provider told, and an estimate for what came after.

Text counts by UTF-16 units, four to a token. Pure. Source: `sessions.md` 2.9 and 1.11.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from actors.session.provider_view import shown_message
from protocol.codec import encode
from protocol.messages import (
    AssistantMessage,
    BashExecutionMessage,
    BranchSummaryMessage,
    CustomMessage,
    ImageContent,
    Message,
    TextContent,
    ThinkingContent,
    ToolCall,
    Usage,
)

if TYPE_CHECKING:
    from protocol.responses import ContextUsage

IMAGE_UNITS = 4800
_BOUNDARY = "compaction"


def utf16_length(text: str) -> int:
    """The length of `text` in UTF-16 code units; a lone surrogate is one."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def utf16_cut(text: str, units: int) -> str:
    """The first `units` UTF-16 code units of `text`; one less rather than half of a pair."""
    if text.isascii():
        return text[:units]
    cut = text.encode("utf-16-le", "surrogatepass")[: 2 * units].decode("utf-16-le", "surrogatepass")
    return cut[:-1] if "\ud800" <= cut[-1:] <= "\udbff" else cut


def usage_tokens(usage: Usage, api: str) -> int:
    """The context that a reply's usage tells, its output included; 0 when it tells nothing."""
    read_in, out = max(usage.input, 0), max(usage.output, 0)
    cached = max(usage.cache_read, 0) + max(usage.cache_write, 0)
    if api == "anthropic-messages" and cached and 10 * abs(cached - read_in) <= read_in:
        cached = 0  # the cache counters mirror the input
    return read_in + cached + out or max(usage.total_tokens, 0)


def message_tokens(message: Message) -> int:
    """The estimate for one message; 0 for one that a model does not see."""
    if shown_message(message) is None:
        return 0
    return -(-_units(message) // 4)


def estimate_tokens(messages: Iterable[Message]) -> int:
    """The tokens of a context: the usage of the last good reply that is not older than what stands before it, and the
    estimates of all that follows."""
    messages = list(messages)
    newest = list(accumulate((message.timestamp for message in messages), max))
    tokens = 0
    for position in range(len(messages) - 1, -1, -1):
        message = messages[position]
        told = _told(message)
        if told and message.timestamp == newest[position]:
            return tokens + told
        tokens += message_tokens(message)
    return tokens


def context_usage(messages: Sequence[Message], context_window: int) -> ContextUsage | None:
    """What `get_session_stats` tells of the context; `None` without a window. Unknown from a compaction until the next
    good reply."""
    from protocol.responses import ContextUsage

    if context_window <= 0:
        return None
    for message in reversed(messages):
        if _told(message):
            break
        if isinstance(message, CustomMessage) and message.custom_type == _BOUNDARY:
            return ContextUsage(None, context_window, None)
    tokens = estimate_tokens(messages)
    return ContextUsage(tokens, context_window, 100 * tokens / context_window)


def _told(message: Message) -> int:
    if not isinstance(message, AssistantMessage) or message.stop_reason in ("aborted", "error"):
        return 0
    return usage_tokens(message.usage, message.api)


def _units(message: Message) -> int:
    match message:
        case BashExecutionMessage():
            return utf16_length(message.command) + utf16_length(message.output)
        case BranchSummaryMessage():
            return utf16_length(message.summary)
    if isinstance(message.content, str):
        return utf16_length(message.content)
    return sum(_block_units(block) for block in message.content)


def _block_units(block: TextContent | ThinkingContent | ToolCall | ImageContent) -> int:
    match block:
        case TextContent():
            return utf16_length(block.text)
        case ThinkingContent():
            return utf16_length(block.thinking)
        case ImageContent():
            return IMAGE_UNITS
        case ToolCall():
            return utf16_length(block.name) + utf16_length(encode(block.arguments).decode())
