"""The transcript of a subagent: its messages as numbered entries, the end of them that is kept, and pages of both.

Pure. Entries count from 0 in the order in which the child said them; a history that it was given does not count. Kept
is the end of it, encoded, up to 64 KiB; what came before stands in the child's session file, if there is one. What is
neither here nor there is counted and not invented. Hidden reasoning is left out, an image is `[image]`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec import UNSET, Raw, Struct
from msgspec.structs import replace

from protocol.codec import BadJson, decode_any, encode
from protocol.tasks import Transcript, TranscriptEntry

KEPT_BYTES = 65_536
ENTRY_CHARS = 16_000
PAGE_BYTES = 262_144
"""A page holds fewer entries than were asked for when they are longer than this together."""
MOST, USUAL = 200, 50
IMAGE = "[image]"


def entries_of(message: Any) -> list[TranscriptEntry]:
    """What a message of a session shows, without numbers; nothing for one that does not look like any."""
    try:
        return list(_entries(message))
    except (KeyError, TypeError, AttributeError):
        return []


def _entries(message: dict[str, Any]) -> Iterator[TranscriptEntry]:
    at = message.get("timestamp", UNSET)
    match message["role"]:
        case "user":
            yield _entry("user", _text_of(message["content"]), at)
        case "assistant":
            yield from _reply(message, at)
        case "toolResult":
            tool, call, is_error = message["toolName"], message["toolCallId"], message["isError"]
            yield replace(
                _entry("toolResult", _text_of(message["content"]), at), tool=tool, tool_call_id=call, is_error=is_error
            )
        case "custom" if message["display"]:
            yield _entry("notice", _text_of(message["content"]), at)


def _reply(message: dict[str, Any], at: Any) -> Iterator[TranscriptEntry]:
    """Neighbouring text is one entry, each call of a tool is one, and so is an error."""
    said: list[str] = []
    for block in message["content"]:
        if block["type"] == "text":
            said.append(block["text"])
        elif block["type"] == "toolCall":
            yield from _said(said, at)
            said = []
            arguments = encode(block["arguments"]).decode()
            yield replace(_entry("toolCall", arguments, at), tool=block["name"], tool_call_id=block["id"])
    yield from _said(said, at)
    if message.get("errorMessage"):
        yield replace(_entry("notice", message["errorMessage"], at), is_error=True)


def _said(texts: list[str], at: Any) -> Iterator[TranscriptEntry]:
    text = "\n\n".join(text for text in texts if text.strip())
    if text:
        yield _entry("assistant", text, at)


def _entry(role: Any, text: str, at: Any) -> TranscriptEntry:
    rest = len(text) - ENTRY_CHARS
    if rest > 0:
        text = f"{text[:ENTRY_CHARS]}\n[Truncated: {rest} more characters]"
    return TranscriptEntry(0, role, text, timestamp=at if isinstance(at, int) else UNSET)


def _text_of(content: str | list[dict[str, Any]]) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(block["text"] if block["type"] == "text" else IMAGE for block in content)


# ---- what is kept ------------------------------------------------------------------------------------------------


class History(Struct, frozen=True):
    """The end of a transcript, frozen: `entries`, encoded, are the last of `total`. Those before them stand in the
    session file at `path`, behind its first `inherited` entries; None: nowhere."""

    entries: tuple[bytes, ...] = ()
    total: int = 0
    path: str | None = None
    inherited: int = 0

    @property
    def first(self) -> int:
        """The number of the first entry that is kept."""
        return self.total - len(self.entries)

    def bare(self) -> History:
        """The same, and of what it holds only where it can be read."""
        return replace(self, entries=())


class Tail:
    """Collects the end of a transcript. The newest entry is kept whatever its size."""

    def __init__(self, kept_bytes: int = KEPT_BYTES) -> None:
        self._kept_bytes = kept_bytes
        self._entries: deque[bytes] = deque()
        self._size = 0
        self.total = 0

    def add(self, message: Any) -> None:
        for entry in entries_of(message):
            self._keep(encode(replace(entry, index=self.total)))
            self.total += 1

    def _keep(self, line: bytes) -> None:
        self._entries.append(line)
        self._size += len(line)
        while self._size > self._kept_bytes and len(self._entries) > 1:
            self._size -= len(self._entries.popleft())

    def since(self, number: int) -> list[bytes]:
        """Those from this number on that are kept."""
        new = self.total - number
        return list(self._entries)[-new:] if new > 0 else []

    def history(self, path: str | None = None, inherited: int = 0) -> History:
        return History(tuple(self._entries), self.total, path, inherited)


# ---- pages -------------------------------------------------------------------------------------------------------


class Span(Struct, frozen=True):
    """Entries from `first` up to, not including, `end`."""

    first: int
    end: int


def span_of(total: int, before: int | None, limit: int | None) -> Span:
    """What a page holds, if there is nothing missing."""
    end = total if before is None else min(before, total)
    return Span(max(end - (USUAL if limit is None else limit), 0), end)


def earlier(history: History, span: Span) -> Span | None:
    """The part of the page that only the file can tell; None if there is no such part, or no file."""
    if span.first >= min(history.first, span.end) or history.path is None:
        return None
    return Span(span.first, min(history.first, span.end))


def page(history: History, span: Span, read: Sequence[bytes] | None, live: TranscriptEntry | None = None) -> Transcript:
    """The page. `read` is what the file gave for `earlier`, None if nothing could be read; of the live entry the
    number is set here."""
    is_lost = history.path is None or (read is None and earlier(history, span) is not None)
    missing = history.first if is_lost else 0
    start = max(span.first, missing)
    kept = history.entries[max(start - history.first, 0) : max(span.end - history.first, 0)]
    entries = _bounded([*(read or ()), *kept])
    first = span.end - len(entries) if entries else min(start, span.end)
    return Transcript(
        [Raw(entry) for entry in entries],
        first,
        history.total,
        missing,
        UNSET if live is None else replace(live, index=history.total),
    )


def _bounded(entries: list[bytes]) -> list[bytes]:
    """The last of them that are a page."""
    size = 0
    for place in range(len(entries) - 1, -1, -1):
        size += len(entries[place])
        if size > PAGE_BYTES and place < len(entries) - 1:
            return entries[place + 1 :]
    return entries


def numbered(messages: Iterable[bytes], span: Span) -> list[bytes] | None:
    """The entries of this span out of all messages of a child, encoded; None if there are not as many."""
    found: list[bytes] = []
    number = 0
    for raw in messages:
        try:
            entries = entries_of(decode_any(raw))
        except BadJson:
            entries = []
        for entry in entries:
            if span.first <= number < span.end:
                found.append(encode(replace(entry, index=number)))
            number += 1
        if number >= span.end:
            return found
    return None
