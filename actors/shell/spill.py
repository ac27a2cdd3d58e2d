"""The full log of one command whose output is more than its answer shows.

Owns the file `<tmpdir>/atomic-<uid>/<session id>/atomic-bash-<16 hex>.log`, which exists from the first write on. Any
refusal or failure leaves it without a path, never with an exception: a command does not fail because its log could not
be kept. Source: contract, direct bash ("Temp files").

Every level below the temp directory is made and opened through its parent's descriptor and never through a link: the
temp directory is shared, and whoever plants a name there must not choose where we write.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from collections.abc import Callable

from actors.session.journal import lock

FILE_CAP = 67_108_864
_MODE_DIRECTORY, _MODE_FILE = 0o700, 0o600
_ANCHORED = os.name == "posix" and os.open in os.supports_dir_fd
_NOT_A_DIRECTORY = (errno.ENOTDIR, errno.ELOOP, errno.EMLINK)


def directory_name(session_id: str) -> str:
    """`session_id` as a directory's name: `[A-Za-z0-9._-]`, at most 64 characters, `session` if none is left."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", session_id).strip("._")[:64].strip("._") or "session"


def cap_marker(cap: int) -> bytes:
    """The line that ends a log which reached `cap` bytes."""
    return b"\n[Output truncated: persisted-output cap of %d bytes reached]\n" % cap


class Spill:
    """The log of one command. `root` is the temp directory; `random_hex` gives 16 hex digits, once. `path` is the
    file's, None before the first write and after a refusal."""

    def __init__(
        self, root: str, session_id: str, uid: int, random_hex: Callable[[], str], cap: int = FILE_CAP
    ) -> None:
        self._root = root
        self._uid = uid
        self._directories = (f"atomic-{uid}", directory_name(session_id))
        self._random_hex = random_hex
        self._cap = cap
        self._size = 0
        self._fd = -1
        self._done = False
        self.path: str | None = None

    def write(self, data: str | bytes) -> None:
        """Adds to the log, and opens it with the first write. Never raises OSError; after a refusal it does nothing."""
        if self._done:
            return
        try:
            if self._fd < 0:
                self._open()
            self._append(data.encode(errors="replace") if isinstance(data, str) else data)
        except OSError:
            self._refuse()

    def close(self) -> str | None:
        """Ends the log and tells its path, None if there is none. May be repeated."""
        self._done = True
        fd, self._fd = self._fd, -1
        if fd >= 0:
            try:
                os.close(fd)
            except OSError:  # a full quota may be told only here
                self._refuse()
        return self.path

    def _open(self) -> None:
        name = f"atomic-bash-{self._random_hex()}.log"
        self._fd = open_private(self._root, self._directories, name, self._uid)
        self.path = os.path.join(self._root, *self._directories, name)

    def _append(self, data: bytes) -> None:
        if self._size + len(data) <= self._cap:
            _write_all(self._fd, data)
            self._size += len(data)
            return
        marker = cap_marker(self._cap)
        room = max(self._cap - len(marker), 0)
        _write_all(self._fd, data[: max(room - self._size, 0) + 4])
        os.ftruncate(self._fd, _character_border(self._fd, room))
        os.lseek(self._fd, 0, os.SEEK_END)
        _write_all(self._fd, marker[: self._cap])
        self.close()

    def _refuse(self) -> None:
        """Gives up for good; what was written of it would only fill the disk."""
        path, self.path = self.path, None
        self.close()
        if path is not None:
            with contextlib.suppress(OSError):
                os.unlink(path)


def open_private(root: str, directories: tuple[str, ...], name: str, uid: int) -> int:
    """A descriptor of the new file `name`, mode 0600, in directories of mode 0700 below `root` that `uid` owns. It is
    locked, which shows that somebody writes to it. Raises OSError when a directory is a link, foreign or cannot be
    tightened, or when the file exists."""
    fd = _open_anchored(root, directories, name, uid) if _ANCHORED else _open_plainly(root, directories, name)
    lock(fd)
    return fd


def _open_plainly(root: str, directories: tuple[str, ...], name: str) -> int:
    folder = os.path.join(root, *directories)
    os.makedirs(folder, exist_ok=True)
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    return os.open(os.path.join(folder, name), flags, _MODE_FILE)


def _open_anchored(root: str, directories: tuple[str, ...], name: str, uid: int) -> int:
    parent = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for level, directory in enumerate(directories, 1):
            inner = _enter(parent, directory, uid, replace=level == len(directories))
            os.close(parent)
            parent = inner
        return _create(parent, name, uid)
    finally:
        os.close(parent)


def private_directory(root: str, name: str, uid: int) -> str:
    """The path of the directory `name` below `root`, mode 0700 and owned by `uid`; it is made if it is missing. Raises
    OSError when it is a link, foreign or cannot be tightened."""
    path = os.path.join(root, name)
    if not _ANCHORED:
        os.makedirs(path, exist_ok=True)
        return path
    parent = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.close(_enter(parent, name, uid, replace=False))
    finally:
        os.close(parent)
    return path


def _enter(parent: int, name: str, uid: int, replace: bool) -> int:
    _make(parent, name)
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        fd = os.open(name, flags, dir_fd=parent)
    except OSError as error:
        if not replace or error.errno not in _NOT_A_DIRECTORY:
            raise
        # The parent is ours alone by now: a file or a link in the way is something stale of our own.
        os.unlink(name, dir_fd=parent)
        _make(parent, name)
        fd = os.open(name, flags, dir_fd=parent)
    return _checked(fd, uid, _MODE_DIRECTORY)


def _make(parent: int, name: str) -> None:
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, _MODE_DIRECTORY, dir_fd=parent)
        # The umask may have taken our own right to enter. The name was not there a moment ago, so it is no link.
        os.chmod(name, _MODE_DIRECTORY, dir_fd=parent)


def _create(parent: int, name: str, uid: int) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(name, flags, _MODE_FILE, dir_fd=parent)
    try:
        return _checked(fd, uid, _MODE_FILE)
    except OSError:
        os.unlink(name, dir_fd=parent)
        raise


def _checked(fd: int, uid: int, mode: int) -> int:
    """`fd`, once it is owned by `uid` and has exactly `mode`; else it is closed and PermissionError raised."""
    try:
        if os.fstat(fd).st_uid != uid:
            raise PermissionError(errno.EPERM, "not our own")
        if stat.S_IMODE(os.fstat(fd).st_mode) != mode:
            os.fchmod(fd, mode)
        if stat.S_IMODE(os.fstat(fd).st_mode) != mode:
            raise PermissionError(errno.EPERM, "mode cannot be tightened")
    except OSError:
        os.close(fd)
        raise
    return fd


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _character_border(fd: int, size: int) -> int:
    """The last border of UTF-8 characters at or before `size`; `size` itself where what is there is no such text."""
    start = max(size - 3, 0)
    os.lseek(fd, start, os.SEEK_SET)
    around = os.read(fd, 4)
    border = size - start
    while border > 0 and around[border] & 0xC0 == 0x80:
        border -= 1
    return size if around[border] & 0xC0 == 0x80 else start + border
