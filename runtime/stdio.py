"""The two pipes to the client: stdin is read by a pump, stdout is taken over for the Writer alone."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import sys
from collections.abc import Callable

from actors.base import Address
from actors.mail import IntakeMail, StdinBytes, StdinEnded
from actors.pump import Window

READ_BYTES = 64 * 1024
_RETRIED = (errno.EAGAIN, errno.EWOULDBLOCK, errno.ENOBUFS)


def take_stdout() -> int:
    """A private copy of stdout for the Writer. File descriptor 1 goes to stderr from now on, so that whatever a
    library or a child prints cannot break the protocol."""
    sys.stdout.flush()
    private = os.dup(1)  # not inherited by children
    _widen(private)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return private


def _widen(pipe: int) -> None:
    """Lets a megabyte lie in the pipe where the kernel allows it, so that one long record is not written in 16 turns
    with the client."""
    if sys.platform != "linux":
        return
    import fcntl

    with contextlib.suppress(OSError):  # no pipe, or the user's share is used up
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, 1 << 20)


class StdoutSink:
    """Writes all of a burst, however little the pipe takes at a time. `written` counts bytes, for who watches
    whether the client still reads."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self.written = 0

    def write_all(self, burst: bytes) -> None:
        """Raises `OSError` when nobody can read any more."""
        rest = memoryview(burst)
        while rest:
            try:
                count = os.write(self._fd, rest)
            except OSError as error:
                if error.errno not in _RETRIED:
                    raise
                self._wait(error.errno)
                continue
            self.written += count
            rest = rest[count:]

    def _wait(self, reason: int) -> None:
        """The client made the pipe non-blocking and does not read: wait until it does."""
        select.select([], [self._fd], [], None if reason != errno.ENOBUFS else 0.01)


def read_stdin(intake: Address[IntakeMail]) -> None:
    """The pump of stdin. One mail for each read; Intake's ack lets the next one through."""
    window = Window()
    while data := _read(0):
        ack = window.admit(len(data))
        intake.tell(StdinBytes(data, ack))
    intake.tell(StdinEnded())


def leave_stdin(intake: Address[IntakeMail]) -> None:
    """Stands for `read_stdin` where stdin is a terminal, which nobody reads."""
    intake.tell(StdinEnded())


def _read(fd: int) -> bytes:
    while True:
        try:
            return os.read(fd, READ_BYTES)
        except BlockingIOError:
            select.select([fd], [], [])
        except OSError:
            return b""


def complain(line: str) -> None:
    """One line for the people who read stderr."""
    try:
        sys.stderr.write(f"atomic: {line}\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        return  # nobody listens


Complain = Callable[[str], None]
