"""The text of an HTTP error answer, for the user and for the retry rules.

Pure. The text always begins with or contains the status, and keeps the provider's own words, since both decide
whether the request is tried again.
"""

from __future__ import annotations

from typing import Any

import msgspec

_BODY_CHARS = 4000


def http_error_text(api: str, status: int, body: bytes) -> str:
    """`<status> <body>` for Anthropic, as its SDK words it; `<status>: <body>` for OpenAI chat; for OpenAI responses
    `OpenAI API error (<status>): <message>`. Bodies are cut at 4000 characters."""
    text = body.decode("utf-8", "replace").strip()
    if api == "openai-responses":
        return f"OpenAI API error ({status}): {_cut(_message(text) or text or 'no body')}"
    if api == "openai-completions":
        return f"{status}: {_cut(text)}{_gateway_detail(text)}" if text else f"{status} status code (no body)"
    return f"{status} {_cut(text)}" if text else f"{status} status code (no body)"


def _cut(text: str) -> str:
    return text if len(text) <= _BODY_CHARS else f"{text[:_BODY_CHARS]}... ({len(text)} characters)"


def _error(text: str) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return {}
    error = value.get("error") if isinstance(value, dict) else None
    return error if isinstance(error, dict) else {}


def _message(text: str) -> str:
    """The message with its code: the code is what tells a spent quota from a short rate limit."""
    error = _error(text)
    message, code = error.get("message"), error.get("code") or error.get("type")
    if not isinstance(message, str) or not message:
        return ""
    return f"{message} ({code})" if isinstance(code, str) and code else message


def _gateway_detail(text: str) -> str:
    """What a gateway passes on from the provider behind it, when the cut body no longer shows it."""
    metadata = _error(text).get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    return f" {_cut(raw)}" if isinstance(raw, str) and raw and len(text) > _BODY_CHARS else ""
