"""How many tokens an answer may take.

Pure. The estimate of what the prompt takes is deliberately rough and on its own: it only keeps a request from being
refused for asking more than the window holds.
"""

from __future__ import annotations

import msgspec

from actors.model.prompt import ModelPrompt, RequestOptions
from protocol.messages import AssistantMessage, ImageContent, Message, TextContent, ThinkingContent, ToolCall, Usage
from protocol.model import Model, ThinkingLevel

_RESERVE_TOKENS = 4096
_CHARS_PER_TOKEN = 4
_IMAGE_CHARS = 4800
_MIN_ANSWER_TOKENS = 1024
_MIN_BUDGET_TOKENS = 1024
_BUDGETS = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 16384}


def output_limit(model: Model, prompt: ModelPrompt, wanted: int | None) -> int:
    """Tokens to allow: `wanted` or the model's most, no more than what the window leaves, at least 1."""
    limit = min(wanted, model.max_tokens) if wanted and model.max_tokens > 0 else wanted or model.max_tokens
    if model.context_window > 0:
        limit = min(limit, model.context_window - prompt_tokens(prompt) - _RESERVE_TOKENS)
    return max(1, limit)


def thinking_budget(level: ThinkingLevel, options: RequestOptions, limit: int) -> int:
    """Tokens of `limit` for thinking, so that 1024 stay for the answer; 0 when that leaves too few to think with."""
    rank = "high" if level in ("xhigh", "max") else level
    budget = {**_BUDGETS, **(options.thinking_budgets or {})}.get(rank, 0)
    budget = min(budget, limit - _MIN_ANSWER_TOKENS)
    return budget if budget >= _MIN_BUDGET_TOKENS else 0


def prompt_tokens(prompt: ModelPrompt) -> int:
    """A rough count: the usage of the last whole reply and what came after it; without one, everything."""
    for position in range(len(prompt.messages) - 1, -1, -1):
        message = prompt.messages[position]
        if isinstance(message, AssistantMessage) and message.stop_reason not in ("error", "aborted"):
            known = _told(message.usage)
            if known:
                return known + sum(_message_tokens(later) for later in prompt.messages[position + 1 :])
    tools = sum(_chars(tool.name + tool.description) + _json_chars(tool.parameters) for tool in prompt.tools)
    return (_chars(prompt.system) + tools) // _CHARS_PER_TOKEN + sum(map(_message_tokens, prompt.messages))


def _told(usage: Usage) -> int:
    return usage.total_tokens or usage.input + usage.output + usage.cache_read + usage.cache_write


def _message_tokens(message: Message) -> int:
    content = getattr(message, "content", "")
    chars = _chars(content) if isinstance(content, str) else sum(map(_block_chars, content))
    return -(-chars // _CHARS_PER_TOKEN)


def _block_chars(block: TextContent | ThinkingContent | ToolCall | ImageContent) -> int:
    if isinstance(block, TextContent):
        return _chars(block.text)
    if isinstance(block, ThinkingContent):
        return _chars(block.thinking)
    return _IMAGE_CHARS if isinstance(block, ImageContent) else _chars(block.name) + _json_chars(block.arguments)


def _chars(text: str) -> int:
    """UTF-16 units, as the reference counts."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def _json_chars(value: object) -> int:
    try:
        return len(msgspec.json.encode(value))
    except UnicodeEncodeError:
        return len(repr(value))
    except RecursionError:
        return 0  # writing the request will tell
