"""Reading session files: from bytes to a header and entries.

Tolerant: blank, torn and foreign lines are skipped wherever they stand, later headers are ignored, invalid UTF-8 is
repaired. A header with a version that is none is refused. Nothing here writes, locks or hangs on a pipe or a device.
Source: `sessions.md` 1.6 and 1.7.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from msgspec import Struct

from actors.session.migrate import CURRENT, BadVersion, migrate, version_of
from actors.session.tree import Entry
from protocol.codec import BadJson, decode_any, encode, repair_utf8
from protocol.entry_head import EntryHead, read_entry

_CHUNK = 1 << 20
_PADDING = b" \t\r\0"


class SessionFileError(Exception):
    """A path that cannot be opened as a session. Its text is one sentence for the user."""


class NotASession(SessionFileError):
    """A file that can be read and holds no session."""

    def __init__(self, path: str) -> None:
        super().__init__(f"Session file is not a valid atomic session: {path}")


class StoredSession(Struct):
    """What a file says, for who only reads. `skipped` lines cannot be read; `dropped` ones are no JSON, and a migration
    leaves them out. `old` holds the decoded header and the lines of a file whose version is below the current one."""

    header: EntryHead | None
    entries: list[Entry]
    skipped: int = 0
    dropped: int = 0
    old: tuple[dict[str, Any], list[bytes]] | None = None


def read_session(path: str, uuid4: Callable[[], str]) -> StoredSession:
    """What is in the file, without lock and without change: for copies and exports. Entries of old versions are brought
    to the current one, with ids from `uuid4`. Raises `SessionFileError`, also for a file that is no session."""
    path = os.path.abspath(path)
    fd = _open_to_read(path)
    try:
        stored = read_open(fd, path)
    except OSError as error:
        raise SessionFileError(f"Session file cannot be read: {reason(path, error)}") from error
    finally:
        os.close(fd)
    if stored.header is None:
        raise NotASession(path)
    return migrated(stored, uuid4)[0]


def read_chunks(path: str) -> Iterator[bytes]:
    """The bytes of the file, for a copy. Raises `SessionFileError`."""
    fd = _open_to_read(path)
    try:
        while chunk := os.read(fd, _CHUNK):
            yield chunk
    except OSError as error:
        raise SessionFileError(f"Session file cannot be read: {reason(path, error)}") from error
    finally:
        os.close(fd)


def _open_to_read(path: str) -> int:
    try:
        demand_regular(path)
        return os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except OSError as error:
        raise SessionFileError(f"Session file cannot be opened: {reason(path, error)}") from error


def migrated(stored: StoredSession, uuid4: Callable[[], str]) -> tuple[StoredSession, list[bytes]]:
    """`stored` in the current version, and all its lines if that changed anything (else none)."""
    if stored.old is None:
        return stored, []
    header, lines, dropped = migrate(*stored.old, uuid4)
    entries, skipped = _entries(lines)
    return StoredSession(header_head(header), entries, skipped, dropped), [header, *lines]


def demand_regular(path: str) -> None:
    """Raises `SessionFileError` for a folder, pipe or device, `OSError` for what is missing or out of reach."""
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise SessionFileError(f"Session file is a directory: {path}")
    if not stat.S_ISREG(mode):
        raise SessionFileError(f"Session file is not a regular file: {path}")


def read_open(fd: int, path: str) -> StoredSession:
    """Everything in an open file, from its beginning. The first line that is JSON must be the header, else there are no
    entries. Raises `SessionFileError` for a header whose version is none, and `OSError`."""
    os.lseek(fd, 0, os.SEEK_SET)
    lines = _lines(fd)
    before: list[bytes] = []
    header: Any = None
    for line in lines:
        if line and (header := _decoded(line)) is not None:
            break
        before.append(line)
    if not (isinstance(header, dict) and header.get("type") == "session" and isinstance(header.get("id"), str)):
        return StoredSession(None, [])
    version = _checked_version(header, path)
    head = header_head(encode({**header, "version": version}))
    if version < CURRENT:
        return StoredSession(head, [], old=(header, [line for line in (*before, *lines) if line]))
    entries, skipped = _entries(lines)
    return StoredSession(head, entries, skipped + sum(map(bool, before)))


def _checked_version(header: dict[str, Any], path: str) -> int:
    try:
        return version_of(header)
    except BadVersion as error:
        raise SessionFileError(f"Session file has an invalid header: {path}: {error}") from None


def _entries(lines: Iterable[bytes]) -> tuple[list[Entry], int]:
    """The entries, and how many lines are neither blank nor readable."""
    entries: list[Entry] = []
    skipped = 0
    for line in lines:
        head = read_entry(line) if line else None
        if head is not None and head.type != "session":
            entries.append(Entry(line, head))
        elif head is None and line:
            skipped += 1
    return entries, skipped


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


def reason(path: str, error: OSError) -> str:
    return f"{path}: {error.strerror or error}"
