"""Server-sent events out of raw bytes, whatever the chunks.

Sans-io: bytes in, `(event name, data)` pairs out. Lines end with CR, LF or CRLF, also when a chunk border cuts the
CRLF; several `data` lines join with LF; comments, `id` and `retry` are skipped. A last event without its blank
line counts, since some gateways close right after it.
"""

from __future__ import annotations

SseEvent = tuple[bytes, bytes]
_BOM = b"\xef\xbb\xbf"


class SseDecoder:
    """Reads one stream. `feed` gives the events that `data` completes, `end` what was still open."""

    __slots__ = ("_after_cr", "_data", "_first", "_name", "_tail")

    def __init__(self) -> None:
        self._tail: list[bytes] = []
        self._data: list[bytes] = []
        self._name = b""
        self._after_cr = False
        self._first = True

    def feed(self, data: bytes) -> list[SseEvent]:
        if self._after_cr and data:
            self._after_cr = False
            data = data.removeprefix(b"\n")
        if b"\r" in data:
            self._after_cr = data.endswith(b"\r")
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if b"\n" not in data:
            # Kept in pieces: joining on every chunk would make one very long line quadratic.
            if data:
                self._tail.append(data)
            return []
        if self._tail:
            self._tail.append(data)
            data = b"".join(self._tail)
        lines = data.split(b"\n")
        rest = lines.pop()
        self._tail = [rest] if rest else []
        return self._read(lines)

    def end(self) -> list[SseEvent]:
        """The stream is over."""
        lines = [b"".join(self._tail), b""] if self._tail else [b""]
        self._tail = []
        return self._read(lines)

    def _read(self, lines: list[bytes]) -> list[SseEvent]:
        events: list[SseEvent] = []
        if self._first:
            self._first = False
            lines[0] = lines[0].removeprefix(_BOM)
        for line in lines:
            if line.startswith(b"data:"):
                self._data.append(line[6:] if line[5:6] == b" " else line[5:])
            elif not line:
                if self._data:
                    events.append((self._name, self._data[0] if len(self._data) == 1 else b"\n".join(self._data)))
                    self._data = []
                self._name = b""
            elif line.startswith(b"event:"):
                self._name = line[7:] if line[6:7] == b" " else line[6:]
            elif line == b"data":
                self._data.append(b"")
        return events
