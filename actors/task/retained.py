"""What a command has put out, byte by byte: kept in memory while it is short, then in a file, with at most one gap.

Offsets are those of the original stream. The beginning is kept up to the cap, or to where the file took no more; then
the file stays as it is and the end rolls on in memory. Bytes across the gap are never joined. No failure of the file
ends a command. Source: `tasks.md` 2.8.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable

from msgspec import Struct

from actors.shell.truncate import MAX_BYTES

OUTPUT_CAP = 5_368_709_120
"""Bytes of one command's output that are kept; one more is over."""
PAGE_BYTES = 8192
ROLLING_BYTES = 65536

OpenLog = Callable[[], tuple[int, str]]
"""Makes the file of one command: its descriptor and path. Raises `OSError`."""


class Page(Struct, frozen=True):
    """A piece of the output from `start` on. `omitted` are the bytes that are missing before it; `next` is where the
    next page begins, `more` whether there is anything."""

    data: bytes
    start: int
    next: int
    more: bool
    omitted: tuple[int, int] | None = None


class Retained:
    """`open_log` is called once the output is longer than what an answer shows. `path` is that of the file, None when
    the disk took no more: what is in it is still read, but it is no log of the output."""

    def __init__(self, open_log: OpenLog, cap: int = OUTPUT_CAP) -> None:
        self._open_log = open_log
        self._cap = cap
        self._head = bytearray()
        self._rolling = bytearray()
        self._kept = 0  # the length of the beginning that is kept
        self._frozen = False
        self._fd = -1
        self.path: str | None = None
        self.total = 0

    @property
    def over_cap(self) -> bool:
        return self.total > self._cap

    @property
    def gap(self) -> tuple[int, int] | None:
        """The bytes that are not kept: from the first up to, not including, the second."""
        start = self.total - len(self._rolling)
        return (self._kept, start) if self._frozen and start > self._kept else None

    def write(self, data: bytes) -> None:
        self.total += len(data)
        if not self._frozen:
            data = self._keep(data)
        if data:
            self._rolling += data
            del self._rolling[: max(len(self._rolling) - ROLLING_BYTES, 0)]

    def save(self) -> str | None:
        """Puts what is only in memory into the file as well; the file's path, None if there can be none."""
        if self.path is None and not self._frozen and self._head:
            self._begin_file()
        return self.path

    def page(self, offset: int, limit: int = PAGE_BYTES) -> Page:
        """The bytes from `offset` on, cut before a character that the page does not hold whole."""
        omitted = None
        gap = self.gap
        if gap is not None and gap[0] <= offset < gap[1]:
            omitted, offset = (offset, gap[1]), gap[1]
        data = _whole_characters(self._read(offset, limit + 3), limit)
        after = offset + len(data)
        return Page(data, offset, after, after < self.total, omitted)

    def tail(self, size: int = PAGE_BYTES) -> Page:
        """The last bytes, from a whole character on; `omitted` if something stands before them."""
        start = max(self.total - size, 0)
        gap = self.gap
        if gap is not None:
            start = max(start, gap[1])
        data = self._read(start, self.total - start)
        while start and data and data[0] & 0xC0 == 0x80:
            data, start = data[1:], start + 1
        return Page(data, start, self.total, False, (0, start) if start else None)

    def close(self) -> None:
        """Gives the descriptor back; the file stays. Nothing may be read any more."""
        fd, self._fd = self._fd, -1
        self._frozen = True
        if fd >= 0:
            os.close(fd)

    # -- the beginning

    def _keep(self, data: bytes) -> bytes:
        """Keeps what there is room for; the rest."""
        fits = data[: max(self._cap - self._kept, 0)]
        if self._fd < 0 and self._kept + len(fits) <= MAX_BYTES:
            self._head += fits
        elif (self._fd < 0 and not self._begin_file()) or not self._append(fits):
            self._frozen = True
            self.path = None
            return data
        self._kept += len(fits)
        self._frozen = len(fits) < len(data)
        return data[len(fits) :]

    def _begin_file(self) -> bool:
        try:
            self._fd, self.path = self._open_log()
        except OSError:
            return False
        if self._append(bytes(self._head)):
            self._head.clear()
            return True
        self._drop_file()
        return False

    def _append(self, data: bytes) -> bool:
        """Whether all of it is in the file; what a failure left half written is cut off again."""
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._fd, view) :]
        except OSError:
            if self._kept and not self._head:
                with contextlib.suppress(OSError):
                    os.ftruncate(self._fd, self._kept)
            return False
        return True

    def _drop_file(self) -> None:
        assert self.path is not None
        path, fd, self.path, self._fd = self.path, self._fd, None, -1
        with contextlib.suppress(OSError):
            os.unlink(path)
        with contextlib.suppress(OSError):
            os.close(fd)

    def _read(self, offset: int, size: int) -> bytes:
        if offset >= self._kept:
            start = self.total - len(self._rolling)
            return bytes(self._rolling[max(offset - start, 0) :][:size])
        size = min(size, self._kept - offset)
        if self._fd < 0:
            return bytes(self._head[offset : offset + size])
        try:
            os.lseek(self._fd, offset, os.SEEK_SET)
            return os.read(self._fd, size)
        except OSError:
            return b""
        finally:
            os.lseek(self._fd, 0, os.SEEK_END)


def _whole_characters(data: bytes, limit: int) -> bytes:
    """At most `limit` bytes, without the beginning of a character whose rest is not among them. What is no UTF-8 is
    cut anywhere."""
    page = data[:limit]
    for back in range(1, min(len(page), 3) + 1):
        byte = page[-back]
        if byte & 0xC0 == 0x80:
            continue
        length = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
        return page[:-back] if length > back and byte < 0xF8 else page
    return page
