"""A stored message, read as what it is today, whatever wrote it.

Old and foreign files hold messages without content, with `null` where a field is optional, with blocks we do not know.
The strict decoder takes the ordinary ones; the rest is read field by field, and what cannot be read gets its plainest
value. The file itself is never changed. Source: `sessions.md` 1.8 step 5.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
from msgspec import Raw, Struct

from protocol.codec import BadJson, decode_any, encode
from protocol.messages import (
    AssistantMessage,
    BashExecutionMessage,
    BranchSummaryMessage,
    CustomMessage,
    Message,
    TextContent,
    ToolResultMessage,
    Usage,
    UserMessage,
)

_WITH_CONTENT = ("user", "assistant", "toolResult", "custom")
_NO_CONTENT = Raw(b"null")
_PLAIN: dict[str, tuple[type[Message], dict[str, Any]]] = {
    "user": (UserMessage, {"content": ()}),
    "assistant": (
        AssistantMessage,
        {"content": (), "api": "", "provider": "", "model": "", "usage": None, "stop_reason": "stop"},
    ),
    "toolResult": (ToolResultMessage, {"content": (), "tool_call_id": "", "tool_name": "", "is_error": False}),
    "bashExecution": (BashExecutionMessage, {"command": "", "output": "", "cancelled": False, "truncated": False}),
    "custom": (CustomMessage, {"content": (), "custom_type": "", "display": True}),
    "branchSummary": (BranchSummaryMessage, {"summary": "", "from_id": "root"}),
}


class MessageHead(Struct, rename="camel"):
    """What choosing and repairing needs to know of a message."""

    role: str = ""
    content: Raw = _NO_CONTENT
    provider: str = ""
    model: str = ""


_ORDINARY = tuple(
    b'{"role":%b"%b",%b"content":%b' % (space, role, space, space + opening)
    for role in (b"user", b"assistant")
    for space in (b"", b" ")
    for opening in (b"[", b'"')
)
_HEAD = msgspec.json.Decoder(MessageHead)


@cache
def _any_message() -> msgspec.json.Decoder[Message]:
    """Made with the first message that is read: a start with an empty session needs none."""
    return msgspec.json.Decoder(Message)


def message_head(raw: bytes | Raw) -> MessageHead:
    """The head of the message `raw`; an empty role for what is no message. Never raises."""
    try:
        return _HEAD.decode(raw)
    except Exception:
        return _head_slowly(bytes(raw))


def is_ordinary(raw: bytes) -> bool:
    """Whether `raw` begins as the messages do that we and others write, with a known role and content that is there.
    Nearly all do, and a look at the beginning takes 0.3 us where decoding takes 3."""
    return raw.startswith(_ORDINARY)


def known_role(role: str) -> bool:
    return role in _PLAIN


def with_content(raw: bytes, head: MessageHead) -> bytes:
    """`raw`, with an empty list where a message that must have content has none."""
    if bytes(head.content) != b"null" or head.role not in _WITH_CONTENT:
        return raw
    return encode({**decode_any(raw), "content": []})


def read_message(raw: bytes, timestamp: int = 0) -> Message:
    """The message `raw`, whose role is known. `timestamp` (ms) stands in for a missing one."""
    try:
        return _any_message().decode(raw)
    except Exception:
        return _read_slowly(decode_any(raw), timestamp)


def text_of(content: str | list[Any]) -> str:
    """The text blocks of `content`, joined with nothing."""
    if isinstance(content, str):
        return content
    return "".join(block.text for block in content if isinstance(block, TextContent))


def _head_slowly(raw: bytes) -> MessageHead:
    try:
        stored = decode_any(raw)
    except BadJson:
        return MessageHead()
    if not isinstance(stored, dict):
        return MessageHead()
    names = {key: value for key in ("role", "provider", "model") if isinstance(value := stored.get(key), str)}
    return MessageHead(**names, content=Raw(encode(stored.get("content"))))


def _read_slowly(stored: dict[str, Any], timestamp: int) -> Message:
    kind, plain = _PLAIN[stored["role"]]
    values: dict[str, Any] = {**plain, "timestamp": timestamp}
    if "content" in plain:
        values["content"] = []
    if "usage" in plain:
        values["usage"] = Usage()
    for field in msgspec.structs.fields(kind):
        _take(values, field, stored.get(field.encode_name))
    return kind(**values)


def _take(values: dict[str, Any], field: msgspec.structs.FieldInfo, value: Any) -> None:
    """Put `value` under the field's name, if it is of the field's type."""
    if value is None:
        return
    if field.name == "content" and isinstance(value, list):
        value = [block for block in value if _converts([block], field.type)]
    if _converts(value, field.type):
        values[field.name] = msgspec.convert(value, field.type, strict=False)


def _converts(value: Any, kind: Any) -> bool:
    try:
        msgspec.convert(value, kind, strict=False)
    except Exception:
        return False
    return True
