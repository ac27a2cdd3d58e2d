"""What a command wrote, as text for people and models: decoded, cleaned, and its tail kept.

One `Sanitizer` (or `Decoder`, for the bash tool, which keeps escape sequences) stands for each channel, one `Tail` for
both. However the bytes are cut into chunks, the text that comes out is the same. Nothing here grows with the output.
Source: contract, direct bash ("Output handling") and the bash tool.
"""

from __future__ import annotations

import codecs
import re
from collections import deque
from collections.abc import Callable

from actors.shell.truncate import MAX_BYTES, MAX_LINES, Truncation, count_bytes, truncate_tail

# As a decoder that gives (text, bytes consumed) and leaves an incomplete character at the end unconsumed.
_decode: Callable[[bytes, str, bool], tuple[str, int]] = codecs.utf_8_decode

_BOM = "\ufeff"
_CONTROLS = bytes(code for code in range(0x20) if code not in b"\t\n")
_ANNOTATIONS = "\ufff9\ufffa\ufffb"

# An unterminated string (OSC, DCS, SOS, PM, APC) is given up as text beyond this many characters.
ESCAPE_LIMIT = 4096
_STRING = rf"[\]PX^_][^\x07\x1b\x9c]{{0,{ESCAPE_LIMIT}}}"
_CSI = r"\[[0-?]{0,256}[ -/]{0,16}"
# Whole sequences: strings with their terminator (BEL, ESC \ or C1 ST), CSI, then two bytes with intermediates. Strings
# hold no ESC, so that a search for their end stops at the next sequence: the work stays linear.
_ESCAPE = re.compile(rf"\x1b(?:{_CSI}[@-~]|{_STRING}(?:\x07|\x1b\\|\x9c)|[ -/]{{0,16}}[0-~])")
# What may still become one when more text comes.
_UNFINISHED = re.compile(rf"\x1b(?:{_CSI}|{_STRING}\x1b?|[ -/]{{0,16}})\Z")


class Decoder:
    """UTF-8 of one channel. What is invalid becomes U+FFFD, a byte order mark at the very start is dropped."""

    __slots__ = ("_bytes", "_started")

    def __init__(self) -> None:
        self._bytes = b""
        self._started = False

    def feed(self, data: bytes) -> str:
        """The text that `data` completes, possibly empty."""
        if self._bytes:
            data = self._bytes + data
        text, used = _decode(data, "replace", False)
        self._bytes = data[used:]
        if not self._started and text:
            self._started = True
            return text.removeprefix(_BOM)
        return text

    def end(self) -> str:
        """An incomplete character at the end, as U+FFFD."""
        rest, self._bytes = self._bytes, b""
        return _decode(rest, "replace", True)[0]


class Sanitizer:
    """Text of one channel without ANSI escape sequences, control characters (TAB and LF stay, DEL and C1 too) and
    U+FFF9 to U+FFFB. An incomplete character at the end is dropped, and so is a cut escape sequence, but not the text
    of a string that was never terminated.

    Measured: 0.7 to 1.1 GB/s of ASCII with nothing to remove, 0.4 of other plain text, 0.06 of coloured lines."""

    __slots__ = ("_cut", "_decoder")

    def __init__(self) -> None:
        self._decoder = Decoder()
        self._cut = ""

    def feed(self, data: bytes) -> str:
        """The cleaned text that `data` completes, possibly empty."""
        text = self._decoder.feed(data)
        # Deleting and comparing lengths is the fastest search for a set of bytes that the language has.
        if not self._cut and len(data.translate(None, _CONTROLS)) == len(data):
            return text if text.isascii() else _without_annotations(text)
        return _without_controls(self._without_escapes(self._cut + text))

    def end(self) -> str:
        """What was carried over and is text after all."""
        text, self._cut = self._cut, ""
        if text[1:2] not in ("]", "P", "X", "^", "_"):
            return ""
        return _without_controls(text[2:])

    def _without_escapes(self, text: str) -> str:
        last = text.rfind("\x1b")
        if last < 0:
            self._cut = ""
            return text
        # Only the last ESC can begin what is unfinished, or the one before it a string, if the text ends between its
        # terminator's two characters.
        before = text.rfind("\x1b", 0, last) if last == len(text) - 1 else -1
        cut = (before >= 0 and _UNFINISHED.match(text, before)) or _UNFINISHED.match(text, last)
        self._cut = cut.group() if cut else ""
        return _ESCAPE.sub("", text[: cut.start()] if cut else text)


def _without_controls(text: str) -> str:
    text = text.encode().translate(None, _CONTROLS).decode()
    return text if text.isascii() else _without_annotations(text)


def _without_annotations(text: str) -> str:
    for character in _ANNOTATIONS:
        if character in text:
            text = text.replace(character, "")
    return text


class Tail:
    """The last 100 KB or so of both channels, in the order of arrival, with the totals of all that passed.

    What is held is all that passed, as long as that is no more than the 51200 bytes that open the full log and the
    chunk (64 KiB) that crosses them; else it is longer than the limits of `truncate_tail`. It is never more than about
    250,000 characters."""

    __slots__ = ("_chunks", "_held", "_last_line_bytes", "_newlines", "total_bytes")

    KEEP = MAX_BYTES + 65536

    def __init__(self) -> None:
        self._chunks: deque[str] = deque()
        self._held = 0
        self._newlines = 0
        self._last_line_bytes = 0
        self.total_bytes = 0

    def append(self, text: str) -> None:
        """Adds what arrived; drops whole chunks at the front that are no longer needed."""
        if not text:
            return
        self._count(text)
        self._chunks.append(text)
        self._held += len(text)
        # Not below the limit of bytes: a large chunk that goes must not leave less than may be shown.
        while self._held > self.KEEP and self._held - len(self._chunks[0]) > MAX_BYTES:
            self._held -= len(self._chunks.popleft())

    def _count(self, text: str) -> None:
        size = count_bytes(text)
        newlines = text.count("\n")
        self.total_bytes += size
        self._newlines += newlines
        if newlines:
            self._last_line_bytes = count_bytes(text[text.rindex("\n") + 1 :])
        else:
            self._last_line_bytes += size

    @property
    def total_lines(self) -> int:
        """Lines that passed; a trailing LF begins none."""
        return self._newlines + (self._last_line_bytes > 0)

    @property
    def last_line_bytes(self) -> int:
        """The size of the text after the last LF."""
        return self._last_line_bytes

    def text(self) -> str:
        """All that is held."""
        return "".join(self._chunks)

    def truncated(self, max_lines: int = MAX_LINES, max_bytes: int = MAX_BYTES) -> Truncation:
        """The end of what passed within the limits, with the totals of all of it."""
        return truncate_tail(
            self.text(), max_lines, max_bytes, total_lines=self.total_lines, total_bytes=self.total_bytes
        )
