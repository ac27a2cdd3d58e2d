"""The journal of a session: where its lines go, so that what was acknowledged survives the process.

A line is either whole in the file or not there: a write that fails half way is cut back before the error is told. A
file that somebody else cut short is refused from then on; what somebody else appended is left to stand alone. The file
begins to exist with the first message; what came before is held and written together with it. While a file is open it
is locked, so that a second process cannot interleave its lines. There is no fsync: entries survive a killed process,
not a power cut. Source: `sessions.md` 1.5, with the outcomes of the design's section 7.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Sequence
from typing import Protocol

from protocol.entry_head import read_entry

_MESSAGE_TYPES = ("message", "custom_message")
_FLAGS = os.O_RDWR | os.O_APPEND | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
_NEW_FLAGS = _FLAGS | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
_LOCKED_BYTE = 1 << 40


class JournalError(Exception):
    """A line that is not in the file. Its text is one sentence for the user."""


class SessionInUse(JournalError):
    """Another process holds the file."""

    def __init__(self, path: str) -> None:
        super().__init__(f"Session file is in use by another process: {path}")


class Journal(Protocol):
    """What a session writes to. `append` takes JSON without line feed and raises `JournalError`, after which nothing
    of the line is stored."""

    @property
    def path(self) -> str | None:
        """The absolute path, also before the file exists; `None` in memory."""

    @property
    def exists_on_disk(self) -> bool: ...

    def append(self, line: bytes) -> None: ...

    def append_all(self, lines: Sequence[bytes]) -> None:
        """Several lines, all or none."""

    def close(self) -> None:
        """Let go of the file. Lines that still wait for a first message are dropped with the session."""


class MemoryJournal:
    """Keeps nothing: the session of `--no-session` lives in its tree alone."""

    __slots__ = ()
    path = None
    exists_on_disk = False

    def append(self, line: bytes) -> None:
        pass

    def append_all(self, lines: Sequence[bytes]) -> None:
        pass

    def close(self) -> None:
        pass


class FileJournal:
    """A session file. Made by `planned` (not on disk yet) or `adopted` (open and locked)."""

    __slots__ = ("_closed", "_cut_short", "_fd", "_size", "_waiting", "_whole", "path")

    def __init__(self, path: str, fd: int | None, size: int, waiting: list[bytes]) -> None:
        self.path: str = path
        self._fd = fd
        self._size = size
        self._whole = False  # whether the file is known to end with a line feed at `_size`
        self._waiting = waiting
        self._closed = self._cut_short = False

    @classmethod
    def planned(cls, path: str, header: bytes) -> FileJournal:
        """A file that will begin with `header` once the first message comes."""
        return cls(path, None, 0, [header])

    @classmethod
    def adopted(cls, path: str, fd: int) -> FileJournal:
        """The locked file behind `fd`. If its last line is torn, a line feed is written first. Raises `OSError`."""
        return cls(path, fd, os.fstat(fd).st_size, [])

    @property
    def exists_on_disk(self) -> bool:
        return self._fd is not None

    def append(self, line: bytes) -> None:
        self.append_all((line,))

    def append_all(self, lines: Sequence[bytes]) -> None:
        if self._closed:
            raise JournalError(f"Session file is closed: {self.path}")
        if self._fd is None:
            self._begin(lines)
        elif lines:
            self._write(self._fd, lines)

    def close(self) -> None:
        self._closed = True
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _begin(self, lines: Sequence[bytes]) -> None:
        if not any(_is_message(line) for line in lines):
            self._waiting.extend(lines)
            return
        fd = _create(self.path)
        try:
            self._write(fd, [*self._waiting, *lines])
        except JournalError:
            os.close(fd)
            with contextlib.suppress(OSError):
                os.unlink(self.path)
            raise
        self._fd = fd
        self._waiting = []

    def _write(self, fd: int, lines: Sequence[bytes]) -> None:
        size = self._current_size(fd)
        data = b"\n".join(lines) + b"\n"
        try:
            if not (self._whole and size == self._size) and not _ends_whole(fd, size):
                data = b"\n" + data
            write_all(fd, data)
        except OSError as error:
            self._cut_back(fd, size, error)
        self._size, self._whole = size + len(data), True

    def _current_size(self, fd: int) -> int:
        """Raises `JournalError` if the file is no longer the one that holds what was acknowledged."""
        try:
            status = os.fstat(fd)
        except OSError as error:
            raise JournalError(f"Session append failed: {self.path}: {error.strerror or error}") from error
        if not status.st_nlink:
            raise JournalError(f"Session file was removed or replaced: {self.path}")
        self._cut_short = self._cut_short or status.st_size < self._size
        if self._cut_short:
            raise JournalError(f"Session file was truncated by another program: {self.path}")
        return status.st_size

    def _cut_back(self, fd: int, size: int, error: OSError) -> None:
        """Remove what was written of a failed append, and raise what failed."""
        reason = f"{self.path}: {error.strerror or error}"
        try:
            os.ftruncate(fd, size)
        except OSError as second:
            raise JournalError(f"Session append and rollback failed: {reason}; {second.strerror or second}") from error
        raise JournalError(f"Session append failed: {reason}") from error


def open_locked(path: str, open_file: Callable[[str, int], int] = os.open) -> int:
    """Open the existing file for reading and appending, and lock it. Raises `SessionInUse` or `OSError`.

    A migration renames a new file over the old one: a lock that was won on a file that is no longer at `path` is
    given back and the new one is tried.
    """
    while True:
        fd = open_file(path, _FLAGS | getattr(os, "O_NONBLOCK", 0))
        if not lock(fd):
            os.close(fd)
            raise SessionInUse(path)
        if _is_at(fd, path):
            return fd
        os.close(fd)


def lock(fd: int) -> bool:
    """Take the advisory lock of an open file, which lasts until the descriptor is closed; false if it is taken."""
    try:
        if sys.platform == "win32":
            import msvcrt

            os.lseek(fd, _LOCKED_BYTE, os.SEEK_SET)
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
            os.lseek(fd, 0, os.SEEK_SET)
        else:
            import fcntl

            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:
        return True
    except (BlockingIOError, PermissionError):
        return False
    except OSError:
        # A file system without locks (some network mounts): better an unguarded session than none.
        return True
    return True


def create_locked(path: str) -> int:
    """A file that did not exist, for its owner alone, open for reading and appending, and locked. Raises
    `SessionInUse` or `OSError`."""
    fd = os.open(path, _NEW_FLAGS, 0o600)
    if not lock(fd):
        os.close(fd)
        raise SessionInUse(path)
    return fd


def write_all(fd: int, data: bytes) -> None:
    """All of `data`, at the end of the file. Raises `OSError`."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _create(path: str) -> int:
    try:
        return create_locked(path)
    except OSError as error:
        raise JournalError(f"Session file cannot be created: {path}: {error.strerror or error}") from error


def _is_at(fd: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path))
    except FileNotFoundError:
        return False


def _ends_whole(fd: int, size: int) -> bool:
    os.lseek(fd, max(size - 1, 0), os.SEEK_SET)
    return size == 0 or os.read(fd, 1) == b"\n"


def _is_message(line: bytes) -> bool:
    head = read_entry(line)
    return head is not None and head.type in _MESSAGE_TYPES
