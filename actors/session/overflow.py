"""Whether a reply shows that the context did not fit into the model's window.

Pure. Owns the words that providers use for it. Compaction answers an overflow; it is never retried as it is.
Source: `sessions.md` 5.9.
"""

from __future__ import annotations

import re

from protocol.messages import AssistantMessage

_SHOWN_CHARS = 16_384
_N = r"[\d,]+"
# Patterns are strings: they are compiled when the first reply fails, not at start. Texts are in lower case by then.
_PASSING = (
    r"rate.?limit|too many requests|^\s*429\b|^openai api error \(429\)"
    r"|^(?:\d{3}:? )?(?:throttling ?(?:error|exception)|service unavailable):"
)
_OVERFLOW = "|".join(
    (
        r"prompt[_ ](?:is[_ ])?too[_ ]long",
        r"request_too_large",
        r"input (?:is )?too long for (?:the )?requested model",
        r"exceeds? (?:the )?(?:model'?s )?context window",
        rf"exceeds? (?:the )?(?:model'?s )?maximum context length (?:of {_N} tokens|\({_N}\))",
        r"input token count[^\n]{0,60}exceeds the maximum",
        rf"maximum prompt length is {_N}",
        r"reduce the length of the messages",
        rf"maximum context length is {_N} tokens",
        rf"exceeds? (?:the )?maximum allowed input length of {_N}",
        rf"input \({_N} tokens\) is longer than the model'?s context length \({_N} tokens\)",
        rf"exceeds the limit of {_N}",
        r"exceeds the available context size",
        r"greater than the context length",
        r"context window exceeds limit",
        r"exceeded model token limit",
        rf"too large for model with {_N} maximum context length",
        rf"prompt has {_N} tokens, but the configured context size is {_N}",
        r"model_context_window_exceeded",
        r"exceeded (?:max )?context length",
        r"range of input length should be",
        r"context[_ ]length[_ ]exceeded",
        r"too many tokens",
        r"token limit exceeded",
        r"^\s*4(?:00|13) ?(?:status code ?)?\(no body\)",
        r"^openai api error \(4(?:00|13)\): no body",
    )
)


def is_overflow(message: AssistantMessage, context_window: int | None) -> bool:
    """True for an error that says so, and for a reply whose usage shows it: read more than `context_window` tokens, or
    filled it and had no room to answer. Without a window (None or 0) only words count."""
    if message.stop_reason == "error":
        return _says_overflow(message.error_message or "")
    if not context_window:
        return False
    read_in = message.usage.input + message.usage.cache_read
    if message.stop_reason == "stop":
        return read_in > context_window
    is_mute = message.stop_reason == "length" and message.usage.output == 0
    return is_mute and 100 * read_in >= 99 * context_window


def _says_overflow(text: str) -> bool:
    shown = text[:_SHOWN_CHARS].lower()
    return re.search(_OVERFLOW, shown) is not None and re.search(_PASSING, shown) is None
