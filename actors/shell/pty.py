"""A command on a terminal of its own, for the bash tool's `pty: true`.

`Terminal` is used like `actors.shell.process.Process`: start, pump, kill, close. All that it writes is "stdout".
Source: contract, PTY and Windows. Set up with ptyprocess, or pywinpty on Windows, imported when the first one starts.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
from collections.abc import Mapping
from typing import Any

from actors.shell.group import Beside, Census, Job, Leader
from actors.shell.job import JobRefused
from actors.shell.pipes import READ_BYTES, Exit, OnOutput, peek_exit, read_terminal
from actors.shell.process import ContainmentUnavailable, ProcessSpec, SpawnError, check_cwd, check_text

COLUMNS = 120
ROWS = 40
ROOM_MS = 100
"""How soon who types sees that the terminal was closed while somebody else still held it."""


def wants_pty(requested: bool, environment: Mapping[str, str]) -> bool:
    """Whether a terminal is used: when asked for, and not switched off by PI_NO_PTY=1 or ATOMIC_NO_PTY=1."""
    return requested and "1" not in (environment.get("PI_NO_PTY"), environment.get("ATOMIC_NO_PTY"))


def open_pty(spec: ProcessSpec, columns: int = COLUMNS, rows: int = ROWS) -> Any:
    """Starts `spec` on a new terminal with TERM=xterm-256color: the library's own object, or a `WindowsPty`. SpawnError
    when it cannot."""
    check_text("command", spec.argv[-1])
    check_cwd(spec.cwd)
    env = {**spec.env, "TERM": "xterm-256color"}
    try:
        if sys.platform == "win32":
            from actors.shell.windows_pty import WindowsPty

            return WindowsPty(spec.argv, spec.cwd, env, rows, columns)
        from ptyprocess import PtyProcess  # type: ignore[import-untyped]

        return PtyProcess.spawn(list(spec.argv), cwd=spec.cwd, env=env, dimensions=(rows, columns))
    except (ImportError, OSError, ValueError) as error:
        raise SpawnError(f"Cannot open a terminal for {spec.argv[0]!a}: {error}") from error


class Terminal:
    """One command on a terminal, started at most once; threads as for `Process`."""

    __slots__ = ("_census", "_killed", "_leader", "_pty")

    def __init__(self, census: Census | None = None) -> None:
        self._census = census
        self._pty: Any = None
        self._leader: Leader | None = None
        self._killed = False

    @property
    def killed(self) -> bool:
        """Whether `kill` was called, at any time."""
        return self._killed

    @property
    def leader(self) -> Leader | None:
        """The command, once it has started."""
        return self._leader

    def write(self, data: bytes) -> int:
        """Types `data`; how much of it was taken. May block while the command does not read. Raises `OSError`."""
        if sys.platform == "win32":
            return int(self._pty.write(data))
        if sys.platform == "linux":
            self._await_room()
        try:
            return os.write(self._pty.fd, data)
        except BlockingIOError:
            return 0

    def _await_room(self) -> None:
        """Until the terminal takes something, or is gone. Linux does not wake a write that blocks when the last user of
        a terminal goes: its thread would stay for ever."""
        fd = self._pty.fd
        if fd < 0:
            return
        room = select.poll()
        room.register(fd, select.POLLOUT)
        while not room.poll(ROOM_MS) and self._pty.fd == fd:
            pass

    def resize(self, columns: int, rows: int) -> bool:
        """Gives the terminal another size, which its foreground processes are told. False if there is none."""
        if self._leader is None:
            return False
        try:
            self._pty.setwinsize(rows, columns)
        except (OSError, ValueError, EOFError):
            return False
        return True

    def start(self, spec: ProcessSpec, columns: int = COLUMNS, rows: int = ROWS) -> bool:
        """Starts the command. False when it was killed before. Raises SpawnError."""
        if self._killed:
            return False
        pty = self._pty = open_pty(spec, columns, rows)
        if sys.platform == "linux":
            os.set_blocking(pty.fd, False)
        self._leader = Leader(pty.pid, lambda: _reap(pty), self._census, _job_of(pty))
        if self._killed:
            self.kill()
        return True

    def pump(self, on_output: OnOutput) -> Exit:
        """Reads until the terminal has no user left, then tells the exit. The shell's exit hangs it up, but on Linux:
        there whoever still holds it is given up, like one that holds a pipe."""
        if self._pty is None:
            return Exit(None, signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL)
        if sys.platform == "linux":
            read_terminal(self._pty.pid, self._pty.fd, on_output, lambda: self._killed)
            return peek_exit(self._pty.pid)
        while data := self._read():
            on_output("stdout", data)
        if sys.platform == "win32":
            return Exit(self._pty.wait())
        return peek_exit(self._pty.pid)

    def _read(self) -> bytes:
        try:
            if sys.platform == "win32":
                return bytes(self._pty.read())
            return os.read(self._pty.fd, READ_BYTES)
        except (EOFError, OSError):  # EIO on Linux
            return b""

    def kill(self, beside: Beside | None = None) -> None:
        """Kills the command and what it started; nothing before the start, nothing once closed. May be repeated. With
        `beside` its caller waits for none of it."""
        self._killed = True
        if self._leader is not None:
            self._leader.kill(beside)

    def close(self) -> None:
        """Reaps the command, which has ended, and gives the terminal back. May be repeated."""
        if self._leader is not None:
            self._leader.close()


def _job_of(pty: Any) -> Job | None:
    """On Windows the job that the command is in. The library starts no command asleep: what this one starts in its very
    first moments is outside, and one that has ended by now is in none. Raises ContainmentUnavailable, and then it is
    gone."""
    if sys.platform == "win32":
        from actors.shell.job import JobObject

        job = None
        try:
            job = JobObject()
            job.take_pid(pty.pid)
        except JobRefused as refused:
            if job is None or not pty.has_ended():
                pty.close()
                raise ContainmentUnavailable(f"ContainmentUnavailable: {refused}") from None
        return job
    return None


def _reap(pty: Any) -> None:
    if sys.platform == "win32":
        pty.close()
        return
    if pty.terminated:
        return
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pty.pid, 0)
    # Its close would ask for the child again, signal its number, and sleep 0.1 s.
    pty.terminated = True
    pty.delayafterclose = 0
    pty.close(force=False)
