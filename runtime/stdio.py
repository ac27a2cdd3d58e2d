"""The process's three streams: stdin is read by a pump, stdout is taken over for the Writer alone.

Where nobody is driven, `say` is the way to stdout and `complain` the way to stderr; the house complains through
`Complaints`. Promises that no file of ours ever has the number of a standard stream, and that what could not be written
is no success.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import sys
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import NoReturn

from actors.base import Address, StartPump
from actors.mail import InputEnding, IntakeMail, RootMail, StdinBytes, StdinEnded
from actors.pump import Window

READ_BYTES = 64 * 1024
_RETRIED = (errno.EAGAIN, errno.EWOULDBLOCK, errno.ENOBUFS)
CANNOT_WRITE = "stdout cannot be written: {}"
CLOSED = "it is closed"
LOST = "lines are missing here: nobody read stderr"
MOST_UNWRITTEN = 1000


def hold_closed_streams() -> None:
    """To be called first of all. A stream that the caller closed becomes /dev/null: else the first file that is opened
    would get its number, and a session file would take what children print. Stdin is at its end then, what goes to
    stderr vanishes, and a write to stdout fails."""
    for fd, stream in enumerate((sys.stdin, sys.stdout, sys.stderr)):
        if stream is None:
            _hold(fd, os.O_WRONLY if fd == 2 else os.O_RDONLY)
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115


def _hold(fd: int, flags: int) -> None:
    null = os.open(os.devnull, flags)
    if null != fd:
        os.dup2(null, fd)
        os.close(null)


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


def read_stdin(intake: Address[IntakeMail], root: Address[RootMail] | None = None) -> None:
    """The pump of stdin. One mail for each read; Intake's ack lets the next one through. Where the end of stdin ends
    the process, `root` hears of it from here: Intake may stand behind a handler that hangs, and the time has to run."""
    window = Window()
    while data := _read(0):
        ack = window.admit(len(data))
        intake.tell(StdinBytes(data, ack))
    if root is not None:
        root.tell(InputEnding())
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


def say(text: str, *, end: str = "\n") -> None:
    """Writes to stdout, where it is not taken. Ends the process with 1 when that fails: without a word if the reader
    went away, else with one. What the encoding does not have becomes a question mark."""
    _put(lambda encoding: _encoded(text + end, encoding))


def say_json(value: bytes) -> None:
    """The same with a line of JSON, which is UTF-8 whatever the encoding of stdout: on Windows that is an older one if
    a program reads it."""
    _put(lambda _: value + b"\n")


def _put(data_in: Callable[[str], bytes]) -> None:
    try:
        if sys.stdout is None:
            _give_up(CLOSED)
        sys.stdout.buffer.write(data_in(sys.stdout.encoding or "utf-8"))
        sys.stdout.flush()
    except OSError as error:
        _give_up("" if isinstance(error, ConnectionError) else error.strerror or str(error))


def _encoded(text: str, encoding: str) -> bytes:
    """A file's name may hold bytes that are no text, which Python keeps as lone surrogates."""
    try:
        return text.encode(encoding, "surrogateescape")
    except UnicodeEncodeError:
        return text.encode(encoding, "replace")


def _give_up(reason: str) -> NoReturn:
    if reason:
        complain(CANNOT_WRITE.format(reason))
    if sys.stdout is not None:  # what its buffer still holds would fail again, with a traceback, at the end
        _hold(1, os.O_WRONLY)
    raise SystemExit(1)


def plain(text: str) -> str:
    """`text` from a file or a server, for a terminal: nothing in it moves the cursor or begins a line."""
    return text if text.isprintable() else "".join(letter if letter.isprintable() else " " for letter in text)


def complain(text: str) -> None:
    """For the people who read stderr. Each line of `text` gets our name; what is not printable is escaped."""
    note("".join(f"atomic: {_escaped(line)}\n" for line in text.split("\n")))


class Complaints:
    """`complain` for the actors: whoever does waits for nobody. A pump, made with the first line, writes them in their
    order. A client that does not read stderr would else hold up all actors, and the end of the program too."""

    def __init__(self, start_pump: StartPump, write: Callable[[str], None] = complain) -> None:
        self._start = [start_pump]  # taken once, whichever threads complain at the same time
        self._write = write
        self._waiting: SimpleQueue[str | SimpleQueue[None]] = SimpleQueue()
        self._lost = False

    def complain(self, text: str) -> None:
        """What comes when `MOST_UNWRITTEN` lines wait is lost, which is told."""
        if self._waiting.qsize() >= MOST_UNWRITTEN:
            self._lost = True
            return
        self._waiting.put(text)
        try:
            start_pump = self._start.pop()
        except IndexError:
            return
        start_pump("stderr", self._write_all)

    def flush(self, timeout_s: float = 1.0) -> bool:
        """Waits until all is written, for a while; whether it is."""
        if self._start:  # nobody has complained
            return True
        written: SimpleQueue[None] = SimpleQueue()
        self._waiting.put(written)
        try:
            written.get(timeout=timeout_s)
        except Empty:
            return False
        return True

    def _write_all(self) -> None:
        while True:
            waiting = self._waiting.get()
            if isinstance(waiting, str):
                self._write(waiting)
            else:
                waiting.put(None)
            if self._lost and self._waiting.empty():
                self._lost = False
                self._write(LOST)


def note(text: str) -> None:
    """Writes to stderr as it stands: help that must not go to stdout."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (OSError, ValueError):
        return  # nobody listens


def _escaped(line: str) -> str:
    if line.isprintable():
        return line
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in line)
