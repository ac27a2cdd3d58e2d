"""Opening and making sessions: from a path to a header, entries and a locked journal.

What is not a session is refused and left untouched, a file is replaced in one step and only under its lock (by a
migration or an import), and whatever is opened is locked until its journal is closed. Clock and ids come in through
`Stamps`.
Source: `sessions.md` 1.2, 1.5 to 1.7.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterator

from msgspec import UNSET, Struct

from actors.session.context import Context
from actors.session.journal import (
    FileJournal,
    Journal,
    JournalError,
    MemoryJournal,
    create_locked,
    open_locked,
    write_all,
)
from actors.session.migrate import CURRENT
from actors.session.naming import checked_session_id, iso_time, session_file_name
from actors.session.reading import (
    NotASession,
    SessionFileError,
    StoredSession,
    demand_regular,
    header_head,
    migrated,
    read_chunks,
    read_open,
    read_session,
    reason,
)
from actors.session.tree import Entry, Tree
from protocol.codec import encode
from protocol.entry_head import EntryHead, SessionHeader, WorkflowStage, head_of

__all__ = [
    "OpenedSession",
    "SessionFileError",
    "Stamps",
    "StoredSession",
    "import_session",
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
    for stderr; `derived` is what follows from the entries, if a pump has made it: for one history alone."""

    header: EntryHead
    entries: list[Entry]
    journal: Journal
    notes: tuple[str, ...] = ()
    derived: tuple[Tree, Context] | None = None


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
        return OpenedSession(head_of(header), [], MemoryJournal())
    name = session_file_name(header.timestamp, header.id)
    return _planned(os.path.join(os.path.abspath(directory), name), header)


def _fresh_header(stamps: Stamps, cwd: str) -> SessionHeader:
    return SessionHeader(id=stamps.uuid7(), timestamp=iso_time(stamps.now()), cwd=cwd)


def _planned(path: str, header: SessionHeader) -> OpenedSession:
    """Refused now rather than with the first message, when the session before it has let go."""
    folder = os.path.dirname(path)
    _make_folder(folder, path)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise SessionFileError(f"Session file cannot be created: {path}: its folder cannot be written")
    return OpenedSession(head_of(header), [], FileJournal.planned(path, encode(header)))


def _make_folder(folder: str, path: str) -> None:
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise SessionFileError(f"Session folder cannot be made: {reason(path, error)}") from error


# ---- opening -----------------------------------------------------------------------------------------------------


def open_session(path: str, stamps: Stamps, cwd: str) -> OpenedSession:
    """The session at `path`, locked until its journal is closed. `cwd` is for a file that is missing or empty: both
    become a new session at exactly this path (for a link without target: at the target).

    Raises `SessionFileError`, and `SessionInUse` when another process holds the file.
    """
    path = os.path.abspath(path)
    fd = _locked(path)
    if fd is None:
        return _planned(os.path.realpath(path) if os.path.islink(path) else path, _fresh_header(stamps, cwd))
    try:
        return _adopt(path, fd, stamps, cwd)
    except OSError as error:
        os.close(fd)
        raise SessionFileError(f"Session file cannot be opened: {reason(path, error)}") from error
    except BaseException:
        with contextlib.suppress(OSError):
            os.close(fd)
        raise


def import_session(source: str, destination: str, stamps: Stamps) -> OpenedSession:
    """The session of a copy of `source` that takes the place of `destination`, locked all the time. If that fails,
    `destination` is what it was.

    Raises `SessionFileError`, and `SessionInUse` when another process holds `destination`.
    """
    path = os.path.abspath(destination)
    target = os.path.realpath(path)
    _make_folder(os.path.dirname(target), path)
    previous = _locked(path)
    try:
        with _scratch(target, stamps.uuid4) as (fd, scratch):
            for chunk in read_chunks(source):
                write_all(fd, chunk)
            opened = _copied(source, path, fd, stamps)
            os.fsync(fd)
            _put(scratch, target, replaces=previous is not None)
            return opened
    except OSError as error:
        raise SessionFileError(f"Session file cannot be written: {reason(path, error)}") from error
    finally:
        if previous is not None:
            os.close(previous)


def _copied(source: str, path: str, fd: int, stamps: Stamps) -> OpenedSession:
    stored = read_open(fd, source)
    if stored.header is None:
        raise NotASession(source)
    stored, lines = migrated(stored, stamps.uuid4)
    if lines:
        os.ftruncate(fd, 0)
        write_all(fd, b"\n".join(lines) + b"\n")
    return _opened(path, fd, stored)


def _adopt(path: str, fd: int, stamps: Stamps, cwd: str) -> OpenedSession:
    stored = read_open(fd, path)
    if stored.header is None:
        if os.fstat(fd).st_size:
            raise NotASession(path)
        return _initialised(path, fd, encode(_fresh_header(stamps, cwd)))
    stored, lines = migrated(stored, stamps.uuid4)
    return _opened(path, _rewritten(path, fd, lines, stamps.uuid4) if lines else fd, stored)


def _opened(path: str, fd: int, stored: StoredSession) -> OpenedSession:
    assert stored.header is not None
    notes = []
    if stored.dropped:
        notes.append(f"Session file lost {_unreadable(stored.dropped)} in becoming version {CURRENT}: {path}")
    if stored.skipped:
        notes.append(f"Session file has {_unreadable(stored.skipped)}: {path}")
    return OpenedSession(stored.header, stored.entries, FileJournal.adopted(path, fd), tuple(notes))


def _unreadable(count: int) -> str:
    return f"{count} unreadable {'line' if count == 1 else 'lines'}"


def _initialised(path: str, fd: int, header: bytes) -> OpenedSession:
    journal = FileJournal.adopted(path, fd)
    try:
        journal.append(header)
    except JournalError as error:
        raise SessionFileError(str(error)) from error
    return OpenedSession(header_head(header), [], journal)


def _rewritten(path: str, fd: int, lines: list[bytes], uuid4: Callable[[], str]) -> int:
    """Put `lines` in the place of the file, with its permissions. The new descriptor is locked before the old lock
    goes."""
    target = os.path.realpath(path)
    with _scratch(target, uuid4) as (new, scratch):
        write_all(new, b"\n".join(lines) + b"\n")
        os.chmod(scratch, stat.S_IMODE(os.fstat(fd).st_mode))
        os.fsync(new)
        _put(scratch, target, replaces=True)
    os.close(fd)
    return new


@contextlib.contextmanager
def _scratch(target: str, uuid4: Callable[[], str]) -> Iterator[tuple[int, str]]:
    """A new, locked file beside `target`, by descriptor and name: renamed when it is whole, so that a crash leaves one
    version whole. If the body fails it is closed and removed. Its name is short, since that of `target` may be as long
    as names can be."""
    name = os.path.join(os.path.dirname(target), f".{uuid4()}.tmp")
    fd = create_locked(name)
    try:
        yield fd, name
    except BaseException:
        os.close(fd)
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def _put(scratch: str, target: str, *, replaces: bool) -> None:
    """Without `replaces` there was no file whose lock we could take, so none that came meanwhile is replaced."""
    if not replaces:
        try:
            os.link(scratch, target)
        except FileExistsError:
            raise
        except OSError:  # a file system without hard links
            pass
        else:
            os.unlink(scratch)
            return
    os.replace(scratch, target)


def _locked(path: str) -> int | None:
    """The descriptor of the locked file; `None` when there is no such file."""
    try:
        demand_regular(path)
        return open_locked(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SessionFileError(f"Session file cannot be opened: {reason(path, error)}") from error
