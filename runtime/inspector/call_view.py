"""The arguments of a tool call as people read them: the value that tells most in one line, or all of them.

Pure. They come as JSON; what was cut on its way is none any more and is shown as it stands.
"""

from __future__ import annotations

from typing import Any

from protocol.codec import BadJson, decode_any, encode


def brief(text: str) -> str:
    """The first argument that is a text: a command, a path, a pattern."""
    arguments = _arguments(text)
    if arguments is None:
        return text
    return next((value for value in arguments.values() if isinstance(value, str)), "" if not arguments else text)


def full(text: str) -> str:
    """A single argument alone, several by name."""
    arguments = _arguments(text)
    if arguments is None:
        return text
    if len(arguments) == 1:
        return _told(next(iter(arguments.values())))
    return "\n".join(f"{name}: {_told(value)}" for name, value in arguments.items())


def _arguments(text: str) -> dict[str, Any] | None:
    if not text.startswith("{"):
        return None
    try:
        found = decode_any(text)
    except BadJson:
        return None
    return found if isinstance(found, dict) else None


def _told(value: Any) -> str:
    return value if isinstance(value, str) else encode(value).decode()
