"""Which bytes of an event stream are more than a sign of life.

Sans-io. Servers that let a request wait send comments (lines that begin with a colon) so that the connection is kept;
the deadline for the next event must not start anew with those. Promises the same verdict for any chunking.
"""

from __future__ import annotations

import re

_SPOKEN = re.compile(rb"(?:\A|[\r\n])[^:\r\n]")
_IN_COMMENT = b":"


class EventBytes:
    """Reads one body."""

    __slots__ = ("_line",)

    def __init__(self) -> None:
        self._line = b""  # the first byte of the line that is not over yet

    def speak(self, data: bytes | bytearray) -> bool:
        """Whether `data`, which is not empty, has a byte that belongs neither to a comment nor to an empty line."""
        line = self._line + data
        if self._line in (b"", _IN_COMMENT):
            is_spoken = _SPOKEN.search(line) is not None
        else:
            is_spoken = data[0] not in b"\r\n" or _SPOKEN.search(data) is not None
        begin = max(line.rfind(b"\n"), line.rfind(b"\r")) + 1
        self._line = bytes(line[begin : begin + 1])
        return is_spoken
