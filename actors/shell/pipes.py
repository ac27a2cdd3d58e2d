"""Reading the two pipes of a child in the order observed, or its terminal, and telling how it ended without reaping it.

Whoever holds one of them after the exit is heard until it was silent for 100 ms, at most 5 s. What was written before
the exit is read in any case, however slow the reader of the output is. Source: contract, direct bash ("End of
command").
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, NamedTuple

from actors.shell.group import live_members

if TYPE_CHECKING:
    from subprocess import Popen

Channel = Literal["stdout", "stderr"]
OnOutput = Callable[[Channel, bytes], None]

READ_BYTES = 65536
QUIET_S = 0.1
HOLD_S = 5.0
# Without a pidfd the exit has to be asked for, at this pace as long as a pipe is open.
ASK_MS = 20.0


class Exit(NamedTuple):
    """How it ended: `code` (None after a signal, or when never started), the signal, and whether background processes
    of its session live on, which `kill_group_leftovers` could end."""

    code: int | None
    signal: int | None = None
    leftovers: bool = False


def read_pipes(popen: Popen[bytes], on_output: OnOutput, killed: Callable[[], bool]) -> None:
    """Blocks until the child has ended and both pipes too, or their holders are given up; then closes the pipes.

    `on_output` gets chunks of at most 64 KiB and may block. `killed` shortens the wait for holders."""
    assert popen.stdout is not None and popen.stderr is not None
    channels: dict[int, Channel] = {popen.stdout.fileno(): "stdout", popen.stderr.fileno(): "stderr"}
    reader = _Reader(popen.pid, channels, on_output, killed, lambda wait: _has_ended(popen, wait))
    try:
        reader.run()
    finally:
        reader.close()
        popen.stdout.close()
        popen.stderr.close()


def read_terminal(pid: int, fd: int, on_output: OnOutput, killed: Callable[[], bool]) -> None:
    """The same for the child `pid` on the terminal `fd`, which stays open. On Linux the exit of its leader hangs up no
    terminal: the group is signalled, and who ignores that, or has left the group, holds it as others hold a pipe."""
    reader = _TerminalReader(pid, {fd: "stdout"}, on_output, killed, lambda wait: _child_has_ended(pid, wait))
    try:
        reader.run()
    finally:
        reader.close()


class _Reader:
    """The reading of one child's pipes, and the watch over its exit."""

    def __init__(
        self,
        pid: int,
        channels: dict[int, Channel],
        on_output: OnOutput,
        killed: Callable[[], bool],
        has_ended: Callable[[bool], bool],
    ) -> None:
        self._on_output = on_output
        self._killed = killed
        self._has_ended = has_ended
        self._channels = channels
        self._poll = select.poll()
        self._pidfd = _open_pidfd(pid)
        self._ended_at: float | None = None
        self._last_output = 0.0
        for fd in [*self._channels, self._pidfd]:
            if fd is not None:
                self._poll.register(fd, select.POLLIN)

    def run(self) -> None:
        while self._channels or self._ended_at is None:
            timeout = self._timeout_ms()
            if timeout is not None and timeout <= 0:
                return self._drain()
            for fd, _ in self._poll.poll(timeout):
                self._ready(fd)
            if self._ended_at is None and self._pidfd is None and self._has_ended(not self._channels):
                self._ended_at = time.monotonic()

    def _timeout_ms(self) -> float | None:
        ended = self._ended_at
        if ended is None:
            return None if self._pidfd is not None else ASK_MS if self._channels else 0.001
        # After a kill only what left the session can hold a pipe, and nobody waits for what it says.
        hold = QUIET_S if self._killed() else HOLD_S
        until = min(max(ended, self._last_output) + QUIET_S, ended + hold)
        return (until - time.monotonic()) * 1000

    def _ready(self, fd: int) -> None:
        if fd == self._pidfd:
            self._poll.unregister(fd)
            self._ended_at = time.monotonic()
            return
        if data := self._read(fd, READ_BYTES):
            self._emit(fd, data)
        else:
            self._poll.unregister(fd)
            del self._channels[fd]

    def _emit(self, fd: int, data: bytes) -> None:
        self._on_output(self._channels[fd], data)
        # Taken after the call: time in which the reader of the output was slow is no silence of its writer.
        self._last_output = time.monotonic()

    def _drain(self) -> None:
        """What lies there now may have been written before the exit, however slow we were: no more than that."""
        for fd in self._channels:
            waiting = self._waiting(fd)
            while waiting > 0 and (data := self._read(fd, min(waiting, READ_BYTES))):
                waiting -= len(data)
                self._emit(fd, data)

    def _waiting(self, fd: int) -> int:
        import fcntl
        import termios

        return int.from_bytes(fcntl.ioctl(fd, termios.FIONREAD, bytes(4)), sys.byteorder)

    def _read(self, fd: int, size: int) -> bytes:
        return os.read(fd, size)

    def close(self) -> None:
        if self._pidfd is not None:
            os.close(self._pidfd)


class _TerminalReader(_Reader):
    """A terminal tells less than a pipe: nobody is left when it fails, and what lies there comes in parts."""

    def _waiting(self, fd: int) -> int:
        """Linux keeps some 12 KB for the reader and names but a part of it."""
        return READ_BYTES

    def _read(self, fd: int, size: int) -> bytes:
        ready = select.poll()
        ready.register(fd, select.POLLIN)
        while ready.poll(QUIET_S * 1000):
            try:
                return os.read(fd, size)
            except BlockingIOError:
                continue
            except OSError as error:
                if error.errno != errno.EIO:
                    raise
                break
        return b""


def _open_pidfd(pid: int) -> int | None:
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            return os.pidfd_open(pid)
    return None


def _has_ended(popen: Popen[bytes], wait: bool) -> bool:
    if not hasattr(os, "waitid"):  # macOS before Python 3.13: asking reaps, and `kill` sees the return code
        return (popen.wait() if wait else popen.poll()) is not None
    return _child_has_ended(popen.pid, wait)


def _child_has_ended(pid: int, wait: bool) -> bool:
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | (0 if wait else os.WNOHANG)) is not None
    except ChildProcessError:
        return True


def peek_exit(pid: int, returncode: int | None = None) -> Exit:
    """How the child `pid` ended, waiting for it but not reaping it; `returncode` is told by whoever had to reap it."""
    code = returncode if returncode is not None else peek_code(pid)
    leftovers = bool(live_members(pid))
    if code is None or code >= 0:
        return Exit(code, None, leftovers)
    return Exit(None, -code, leftovers)


def peek_code(pid: int) -> int | None:
    try:
        status = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    except ChildProcessError:  # SIGCHLD is ignored in this process: the kernel has thrown the status away
        return None
    assert status is not None
    return status.si_status if status.si_code == os.CLD_EXITED else -status.si_status


def read_windows(popen: Popen[bytes], on_output: OnOutput) -> Exit:
    """Pipes cannot be polled there: one thread a channel, and the pump takes from both."""
    from queue import Empty, Queue
    from threading import Thread

    assert popen.stdout is not None and popen.stderr is not None
    chunks: Queue[tuple[Channel, bytes]] = Queue(16)

    def read(channel: Channel, fd: int) -> None:
        data = b"start"
        while data:
            data = os.read(fd, READ_BYTES)
            chunks.put((channel, data))

    Thread(target=read, args=("stdout", popen.stdout.fileno()), daemon=True).start()
    Thread(target=read, args=("stderr", popen.stderr.fileno()), daemon=True).start()
    still_open, ended_at = 2, None
    while still_open and (ended_at is None or time.monotonic() < ended_at + HOLD_S):
        try:
            channel, data = chunks.get(timeout=QUIET_S)
        except Empty:
            if ended_at is not None:
                break
            ended_at = time.monotonic() if popen.poll() is not None else None
            continue
        still_open -= not data
        if data:
            on_output(channel, data)
    return Exit(popen.wait())
