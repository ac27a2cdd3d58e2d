"""Opens and replaces files so that nothing about them changes but their content.

Reading never blocks: pipes, sockets and devices are refused before and after the open. Replacing goes through symlinks
to the target, is atomic (a new file beside it, renamed), and keeps mode and owner; a file with other hard links or with
access lists, or in a directory that takes no new file, is rewritten in place instead, unless the caller wants its other
names left alone. Source: `tasks.md` 1.1 to 1.4.
"""

from __future__ import annotations

import errno
import os
import stat
from io import BufferedReader

from actors.tool.table import ToolFailure

CHUNK = 1 << 20  # bytes a read
_BINARY = getattr(os, "O_BINARY", 0)
BINARY_PROBE = 8192
_KINDS = (
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISBLK, "a block device"),
    (stat.S_ISDIR, "a directory"),
)


def failure(error: OSError, operation: str, path: str) -> ToolFailure:
    """The text of a file-system error, such as `ENOENT: no such file or directory, open 'PATH'`."""
    code = errno.errorcode.get(error.errno or 0, "EIO")
    return ToolFailure(f"{code}: {(error.strerror or 'input/output error').lower()}, {operation} '{path}'")


def kind(mode: int) -> str:
    """What a file of this `st_mode` is, with its article."""
    return next((name for test, name in _KINDS if test(mode)), "a regular file")


def require_regular(mode: int, action: str, path: str) -> None:
    if not stat.S_ISREG(mode):
        raise ToolFailure(f"Cannot {action} {path}: it is {kind(mode)}, not a regular file")


def open_regular(path: str, action: str) -> BufferedReader:
    """The regular file at `path`, for reading. Raises `ToolFailure`."""
    try:
        # Asked before the open, since opening some devices does something; and after it, since the name may have moved.
        require_regular(os.stat(path).st_mode, action, path)
        descriptor = os.open(path, os.O_RDONLY | _BINARY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0))
    except OSError as error:
        raise failure(error, "open", path) from None
    file = open(descriptor, "rb")  # noqa: SIM115 - the caller closes it
    try:
        require_regular(os.fstat(descriptor).st_mode, action, path)
    except BaseException:
        file.close()
        raise
    return file


def load(path: str, action: str) -> bytes:
    """All of the regular file at `path`. Raises `ToolFailure`."""
    with open_regular(path, action) as file:
        try:
            return file.read() or b""
        except OSError as error:
            raise failure(error, "read", path) from None


def replace(path: str, data: bytes, action: str, *, keep_links: bool = True) -> None:
    """Make `data` the content of the file at `path`, which is created if missing. Without `keep_links`, other
    hard links keep the old content. Raises `ToolFailure`."""
    target = os.path.realpath(path)
    try:
        old = _stat(target)
        if old is None:
            _write_beside(target, data, None)
            return
        require_regular(old.st_mode, action, path)
        if not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        if (keep_links and _must_stay(target, old)) or not _write_beside(target, data, old):
            if old.st_nlink > 1 and not keep_links:
                raise ToolFailure(f"Cannot {action} {path}: it has other hard links, and no file can be made beside it")
            _write_in_place(target, data)
    except OSError as error:
        raise failure(error, "open", path) from None


def _stat(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _must_stay(target: str, old: os.stat_result) -> bool:
    """Whether the inode carries what a renamed copy would lose: other names, access lists, user attributes."""
    if old.st_nlink > 1:
        return True
    if not hasattr(os, "listxattr"):
        return False
    try:
        return any(not name.startswith("security.") for name in os.listxattr(target))
    except OSError:
        return False


def _write_beside(target: str, data: bytes, old: os.stat_result | None) -> bool:
    """Write a new file and rename it over `target`. False, and no trace, if `old` cannot be replaced like that."""
    temporary = os.path.join(os.path.dirname(target), f".atomic-{os.urandom(8).hex()}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY | getattr(os, "O_NOFOLLOW", 0)
    try:
        descriptor = os.open(temporary, flags, 0o666 if old is None else 0o600)
    except OSError:
        if old is None:
            raise
        return False
    renamed = False
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            kept = old is None or _keep_owner_and_mode(file.fileno(), old)
        if kept:
            renamed = _rename(temporary, target, old is not None)
        return renamed
    finally:
        if not renamed:
            os.unlink(temporary)


def _keep_owner_and_mode(descriptor: int, old: os.stat_result) -> bool:
    if not hasattr(os, "fchown"):
        return True
    try:
        new = os.fstat(descriptor)
        if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
            os.fchown(descriptor, old.st_uid, old.st_gid)
        os.fchmod(descriptor, stat.S_IMODE(old.st_mode))
    except OSError:
        return False
    return True


def _rename(temporary: str, target: str, may_fail: bool) -> bool:
    try:
        os.replace(temporary, target)
    except OSError:  # a mount point of its own is busy
        if not may_fail:
            raise
        return False
    return True


def _write_in_place(target: str, data: bytes) -> None:
    flags = os.O_WRONLY | os.O_TRUNC | _BINARY | getattr(os, "O_NONBLOCK", 0)
    with open(os.open(target, flags), "wb") as file:
        file.write(data)
