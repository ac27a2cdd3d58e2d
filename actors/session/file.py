"""Opening and making sessions: from a path to a header, entries and a locked journal.

What is not a session is refused and left untouched, a file of an old version is replaced in one step, and whatever is
opened is locked until its journal is closed. Clock and ids come in through `Stamps`.
Source: `sessions.md` 1.2, 1.5 to 1.7.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable

from msgspec import UNSET, Struct

from actors.session.journal import FileJournal, Journal, JournalError, MemoryJournal, lock, open_locked
from actors.session.naming import checked_session_id, iso_time, session_file_name
from actors.session.reading import (
    SessionFileError,
    StoredSession,
    demand_regular,
    header_head,
    migrated,
    not_a_session,
    read_open,
    read_session,
    reason,
)
from actors.session.tree import Entry
from protocol.codec import encode
from protocol.entries import EntryHead, SessionHeader, WorkflowStage

__all__ = [
    "OpenedSession",
    "SessionFileError",
    "Stamps",
    "StoredSession",
    "new_session",
    "open_session",
    "read_session",
]


class Stamps(Struct, frozen=True):
    """Where time and ids come from: milliseconds since the epoch, a session id (UUIDv7), a random UUIDv4."""

    now: Callable[[], int]
    uuid7: Callable[[], str]
    uuid4: Callable[[], str]


class OpenedSession(Struct):
    """A session that stands: its header, its entries in append order, and where the next ones go. `notes` are lines
    for stderr."""

    header: EntryHead
    entries: list[Entry]
    journal: Journal
    notes: tuple[str, ...] = ()


# ---- making ------------------------------------------------------------------------------------------------------


def new_session(
    stamps: Stamps,
    cwd: str,
    directory: str | None,
    *,
    session_id: str | None = None,
    parent_session: str | None = None,
    workflow: WorkflowStage | None = None,
) -> OpenedSession:
    """A session without entries, in the folder `directory` (made at once), or in memory for `None`.

    Its file waits for the first message. An empty `parent_session` counts as none; with `workflow` the session is an
    internal one. Raises `BadSessionId`, `SessionFileError`.
    """
    header = SessionHeader(
        id=stamps.uuid7() if session_id is None else checked_session_id(session_id),
        timestamp=iso_time(stamps.now()),
        cwd=cwd,
        parent_session=parent_session or UNSET,
        internal=UNSET if workflow is None else True,
        workflow=UNSET if workflow is None else workflow,
    )
    if directory is None:
        return OpenedSession(header_head(encode(header)), [], MemoryJournal())
    name = session_file_name(header.timestamp, header.id)
    return _planned(os.path.join(os.path.abspath(directory), name), encode(header))


def _fresh_header(stamps: Stamps, cwd: str) -> bytes:
    return encode(SessionHeader(id=stamps.uuid7(), timestamp=iso_time(stamps.now()), cwd=cwd))


def _planned(path: str, header: bytes) -> OpenedSession:
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
    except OSError as error:
        raise SessionFileError(f"Session folder cannot be made: {reason(path, error)}") from error
    return OpenedSession(header_head(header), [], FileJournal.planned(path, header))


# ---- opening -----------------------------------------------------------------------------------------------------


def open_session(path: str, stamps: Stamps, cwd: str) -> OpenedSession:
    """The session at `path`, locked until its journal is closed. `cwd` is for a file that is missing or empty: both
    become a new session at exactly this path.

    Raises `SessionFileError`, and `SessionInUse` when another process holds the file.
    """
    path = os.path.abspath(path)
    fd = _locked(path)
    if fd is None:
        return _planned(path, _fresh_header(stamps, cwd))
    try:
        return _adopt(path, fd, stamps, cwd)
    except OSError as error:
        os.close(fd)
        raise SessionFileError(f"Session file cannot be opened: {reason(path, error)}") from error
    except BaseException:
        with contextlib.suppress(OSError):
            os.close(fd)
        raise


def _adopt(path: str, fd: int, stamps: Stamps, cwd: str) -> OpenedSession:
    stored = read_open(fd)
    if stored.header is None:
        if os.fstat(fd).st_size:
            raise not_a_session(path)
        return _initialised(path, fd, _fresh_header(stamps, cwd))
    stored, lines = migrated(stored, stamps.uuid4)
    if lines:
        fd = _rewritten(path, fd, lines)
    assert stored.header is not None
    journal = FileJournal.adopted(path, fd, ends_whole=stored.whole)
    noun = "line" if stored.skipped == 1 else "lines"
    notes = (f"Session file has {stored.skipped} unreadable {noun}: {path}",) if stored.skipped else ()
    return OpenedSession(stored.header, stored.entries, journal, notes)


def _initialised(path: str, fd: int, header: bytes) -> OpenedSession:
    journal = FileJournal.adopted(path, fd, ends_whole=True)
    try:
        journal.append(header)
    except JournalError as error:
        raise SessionFileError(str(error)) from error
    return OpenedSession(header_head(header), [], journal)


def _rewritten(path: str, fd: int, lines: list[bytes]) -> int:
    """Put `lines` in the place of the file by rename, so that a crash leaves one version whole. The new descriptor is
    locked before the old lock goes."""
    target = os.path.realpath(path)
    scratch = target + ".migrating"
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0)
    new = os.open(scratch, flags, 0o600)
    try:
        lock(new)
        with open(new, "wb", closefd=False) as file:
            file.write(b"\n".join(lines) + b"\n")
        os.fsync(new)
        os.chmod(scratch, stat.S_IMODE(os.fstat(fd).st_mode))
        os.replace(scratch, target)
    except OSError:
        os.close(new)
        with contextlib.suppress(OSError):
            os.unlink(scratch)
        raise
    os.close(fd)
    return new


def _locked(path: str) -> int | None:
    """The descriptor of the locked file; `None` when there is no such file."""
    try:
        demand_regular(path)
        return open_locked(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SessionFileError(f"Session file cannot be opened: {reason(path, error)}") from error
