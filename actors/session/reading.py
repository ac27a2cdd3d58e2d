"""Reading session files: from bytes to a header and entries.

Tolerant: blank, torn and foreign lines are skipped wherever they stand, later headers are ignored, invalid UTF-8 is
repaired. Nothing here writes, locks or hangs on a pipe or a device. Source: `sessions.md` 1.6 and 1.7.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct

from actors.session.migrate import CURRENT, migrate, version_of
from actors.session.tree import Entry
from protocol.codec import BadJson, decode_any, encode, repair_utf8
from protocol.entries import EntryHead, read_entry

_CHUNK = 1 << 20
_PADDING = b" \t\r\0"


class SessionFileError(Exception):
    """A path that cannot be opened as a session. Its text is one sentence for the user."""


class StoredSession(Struct):
    """What a file says, for who only reads. `whole` tells whether it ends with a line feed or is empty; `old` holds the
    decoded header and the lines of a file whose version is below the current one."""

    header: EntryHead | None
    entries: list[Entry]
    skipped: int
    whole: bool
    old: tuple[dict[str, Any], list[bytes]] | None = None


def read_session(path: str, uuid4: Callable[[], str]) -> StoredSession:
    """What is in the file, without lock and without change: for copies and exports. Entries of old versions are brought
    to the current one, with ids from `uuid4`. Raises `SessionFileError`, also for a file that is no session."""
    path = os.path.abspath(path)
    try:
        demand_regular(path)
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except OSError as error:
        raise SessionFileError(f"Session file cannot be opened: {reason(path, error)}") from error
    try:
        stored = read_open(fd)
    finally:
        os.close(fd)
    if stored.header is None:
        raise not_a_session(path)
    return migrated(stored, uuid4)[0]


def migrated(stored: StoredSession, uuid4: Callable[[], str]) -> tuple[StoredSession, list[bytes]]:
    """`stored` in the current version, and all its lines if that changed anything (else none)."""
    if stored.old is None:
        return stored, []
    header, lines = migrate(*stored.old, uuid4)
    entries = [Entry(line, head) for line in lines if (head := read_entry(line)) is not None]
    return StoredSession(header_head(header), entries, stored.skipped, True), [header, *lines]


def demand_regular(path: str) -> None:
    """Raises `SessionFileError` for a folder, pipe or device, `OSError` for what is missing or out of reach."""
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise SessionFileError(f"Session file is a directory: {path}")
    if not stat.S_ISREG(mode):
        raise SessionFileError(f"Session file is not a regular file: {path}")


def read_open(fd: int) -> StoredSession:
    """Everything in an open file. The first line that is JSON must be the header, else there are no entries."""
    lines = _lines(fd)
    skipped = 0
    header: Any = None
    for line in lines:
        if line and (header := _decoded(line)) is not None:
            break
        skipped += bool(line)
    if not (isinstance(header, dict) and header.get("type") == "session" and isinstance(header.get("id"), str)):
        return StoredSession(None, [], skipped, True)
    if version_of(header) < CURRENT:
        return StoredSession(header_head(encode(header)), [], skipped, True, (header, [line for line in lines if line]))
    return _read_entries(header_head(encode(header)), lines, skipped, fd)


def _read_entries(header: EntryHead, lines: Iterator[bytes], skipped: int, fd: int) -> StoredSession:
    entries: list[Entry] = []
    for line in lines:
        head = read_entry(line) if line else None
        if head is not None and head.type != "session":
            entries.append(Entry(line, head))
        elif head is None and line:
            skipped += 1
    return StoredSession(header, entries, skipped, _ends_whole(fd))


def _ends_whole(fd: int) -> bool:
    size = os.lseek(fd, 0, os.SEEK_END)
    os.lseek(fd, max(size - 1, 0), os.SEEK_SET)
    return size == 0 or os.read(fd, 1) == b"\n"


def _lines(fd: int) -> Iterator[bytes]:
    """The lines of a file, of any length, without padding; valid UTF-8. A file system may leave NULs after a crash."""
    pieces: list[bytes] = []
    while chunk := os.read(fd, _CHUNK):
        cut = chunk.rfind(b"\n")
        if cut < 0:
            pieces.append(chunk)
            continue
        block = b"".join((*pieces, chunk[:cut]))
        pieces = [chunk[cut + 1 :]]
        for line in repair_utf8(block).split(b"\n"):
            yield line.strip(_PADDING)
    yield repair_utf8(b"".join(pieces)).strip(_PADDING)


def header_head(line: bytes) -> EntryHead:
    head = read_entry(line)
    assert head is not None, "a header line is an entry line"
    return head


def _decoded(line: bytes) -> Any:
    try:
        return decode_any(line)
    except BadJson:
        return None


def not_a_session(path: str) -> SessionFileError:
    return SessionFileError(f"Session file is not a valid atomic session: {path}")


def reason(path: str, error: OSError) -> str:
    return f"{path}: {error.strerror or error}"
