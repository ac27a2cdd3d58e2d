"""A streaming reply, put together again: `message_start` and the deltas become the message so far.

Pure. Source: contract `json-mode.md`, where `message_update` carries the whole message.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw, Struct

from protocol.codec import encode

_EMPTY = Raw(b"")
KINDS = {"text": "text", "thinking": "thinking", "toolcall": "toolCall"}


class Event(Struct, rename="camel"):
    """An `assistantMessageEvent` of any kind. `type` is `text_start`, `thinking_delta`, `toolcall_end` and so on."""

    type: str
    content_index: int = 0
    delta: str = ""
    content: str | None = None
    tool_call: Raw = _EMPTY

    @property
    def block(self) -> tuple[str, int]:
        """Which block it belongs to: `text`, `thinking` or `toolcall`, and its place."""
        return self.type.partition("_")[0], self.content_index


class Update(Struct, rename="camel"):
    """A `message_update` as sessions send it: a delta and never the message."""

    usage: Raw
    assistant_message_event: Raw


_EVENT = msgspec.json.Decoder(Event)
_UPDATE = msgspec.json.Decoder(Update)


def read_update(line: bytes) -> tuple[Raw, Raw, Event]:
    """Usage, event as it stands, event. Only for lines that a session encoded."""
    update = _UPDATE.decode(line)
    return update.usage, update.assistant_message_event, _EVENT.decode(update.assistant_message_event)


class Block:
    """One block of content. A finished tool call is kept as it came, with its id and name; before that, nobody knows
    them."""

    __slots__ = ("_kind", "_pieces", "_whole")

    def __init__(self, kind: str, whole: Any = None) -> None:
        self._kind = kind
        self._pieces: list[str] = []
        self._whole = whole

    def take(self, event: Event) -> None:
        if event.delta:
            self._pieces.append(event.delta)
        if event.content is not None:
            self._pieces = [event.content]
        if event.tool_call:
            self._whole = event.tool_call

    def value(self) -> Any:
        if self._whole is not None:
            return self._whole
        text = "".join(self._pieces)
        self._pieces = [text]
        if self._kind == "toolCall":
            from actors.model.partial_json import parse_arguments

            return {"type": self._kind, "id": "", "name": "", "arguments": parse_arguments(text)}
        return {"type": self._kind, self._kind: text}


class Snapshot:
    """The message so far. `head` is the message of `message_start`, decoded."""

    def __init__(self, head: dict[str, Any]) -> None:
        self._head = head
        self._blocks = [Block("", block) for block in head.get("content") or ()]
        self._usage: Any = head.get("usage")

    def take(self, usage: Raw, event: Event) -> None:
        kind, place = event.block
        while len(self._blocks) <= place:
            self._blocks.append(Block(KINDS.get(kind, "text")))
        self._blocks[place].take(event)
        self._usage = usage

    def record(self, event: Any) -> bytes:
        """The `message_update` with `event`, as a line."""
        message = {**self._head, "content": [block.value() for block in self._blocks], "usage": self._usage}
        return encode({"type": "message_update", "message": message, "assistantMessageEvent": event}) + b"\n"
