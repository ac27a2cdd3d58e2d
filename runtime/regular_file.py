"""Reads whole files that people name or keep in known places, and nothing that is no file.

Promises that a pipe, a device or a socket in the place of a file is refused and not waited for, as an `OSError` whose
text says what it is, and that no more than the limit is held in memory.
"""

from __future__ import annotations

import errno
import os
import stat

LIMIT = 64 * 1024 * 1024  # bytes; far more than any configuration, and what an image may have


def read_regular(path: str, *, pipes: bool = False) -> bytes:
    """All of the regular file at `path`, or, with `pipes`, of a pipe until its end. Raises OSError."""
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not (stat.S_ISREG(mode) or (pipes and stat.S_ISFIFO(mode))):
        raise OSError(errno.EINVAL, "it is not a regular file", path)
    with open(path, "rb") as file:
        data = file.read(LIMIT + 1)
    if len(data) > LIMIT:
        raise OSError(errno.EFBIG, f"it has more than {LIMIT >> 20} MB", path)
    return data
