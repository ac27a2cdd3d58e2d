"""What a subagent says at this moment: the text of a reply that still grows, or what a tool has given so far.

Pure. Records are kept as they come and read only when somebody looks, so that a child which nobody watches costs
nothing more. Of a long text the end is shown.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from actors.task.transcript import ENTRY_CHARS, entries_of
from protocol.codec import BadJson, decode_any
from protocol.tasks import TranscriptEntry

_TEXT = b'"assistantMessageEvent":{"type":"text_delta"'
UNREAD_BYTES = 524_288
"""Of so much the end is kept until somebody looks: more than a shown text takes, at the size of a delta."""
EARLIER = "[Earlier text omitted]\n"


class Live:
    """The reply and the tools of one child."""

    def __init__(self) -> None:
        self._unread: deque[bytes] = deque()
        self._size = 0
        self._text = ""
        self._block = -1
        self._is_cut = False
        self._partial = b""

    def reply_began(self) -> None:
        self._unread.clear()
        self._size = 0
        self._text, self._block, self._is_cut = "", -1, False

    def reply_grew(self, records: bytes) -> bool:
        """Whether there is more text in it."""
        if _TEXT not in records:
            return False
        self._unread.append(records)
        self._size += len(records)
        while self._size > UNREAD_BYTES and len(self._unread) > 1:
            self._size -= len(self._unread.popleft())
            self._is_cut = True
        return True

    def tool_gave(self, record: bytes) -> None:
        """A partial result; it replaces the one before."""
        self._partial = record

    def message_ended(self, call_id: str | None) -> None:
        """The message is an entry now: a reply, or with `call_id` the result of a tool."""
        if call_id is None:
            self.reply_began()
        elif self._partial and _decoded(self._partial).get("toolCallId") == call_id:
            self._partial = b""

    def entry(self) -> TranscriptEntry | None:
        """What there is now, without a number."""
        self._read()
        if self._text.strip():
            text = EARLIER + self._text if self._is_cut else self._text
            return TranscriptEntry(0, "assistant", text)
        return self._tool() if self._partial else None

    def _read(self) -> None:
        while self._unread:
            for line in self._unread.popleft().splitlines():
                if _TEXT in line:
                    self._take(_decoded(line).get("assistantMessageEvent") or {})
        self._size = 0
        if len(self._text) > ENTRY_CHARS:
            self._text, self._is_cut = self._text[-ENTRY_CHARS:], True

    def _take(self, change: dict[str, Any]) -> None:
        block, delta = change.get("contentIndex", 0), change.get("delta", "")
        if self._text and block != self._block:
            self._text += "\n\n"
        self._block = block
        self._text += delta

    def _tool(self) -> TranscriptEntry | None:
        record = _decoded(self._partial)
        given = record.get("partialResult")
        content = given.get("content") if isinstance(given, dict) else None
        entries = entries_of({**record, "role": "toolResult", "content": content, "isError": False})
        return entries[0] if entries and entries[0].text else None


def _decoded(record: bytes) -> dict[str, Any]:
    try:
        value = decode_any(record)
    except BadJson:
        return {}
    return value if isinstance(value, dict) else {}
