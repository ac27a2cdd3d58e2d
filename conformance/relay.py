"""Stands between a client and an agent: this process's stdin, stdout and stderr are the child's, byte for byte.

Owns the child and a thread for each stream. Promises that the client sees what it would see without it: the
bytes (unless a `Pass` changes them), the end of each stream in either direction, the exit code, and a death by the same
signal. Signals that it gets go to the child. POSIX.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

PASSED_ON = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
DRAIN = 2.0  # seconds that the child's pipes may stay open after its end
_CHUNK = 65536


class CannotStart(ValueError):
    """The command is none; the text is one line for the user."""


class Pass(Protocol):
    """What becomes of the bytes of one stream. Each is called in the stream's own thread."""

    def take(self, data: bytes) -> bytes:
        """What is passed on in place of `data`, now."""
        ...

    def end(self) -> bytes:
        """What is passed on before the end."""
        ...


class Untouched:
    """Bytes as they come."""

    def take(self, data: bytes) -> bytes:
        return data

    def end(self) -> bytes:
        return b""


class Watcher(Protocol):
    """Is told what is no byte: a signal that was passed on, and how the child ended."""

    def signalled(self, name: str) -> None: ...

    def exited(self, status: int) -> None: ...


class Relay:
    """`to_agent`, `to_client` and `to_stderr` see the three streams. `run` once, in the main thread."""

    def __init__(
        self, command: Sequence[str], to_agent: Pass, to_client: Pass, to_stderr: Pass, watcher: Watcher
    ) -> None:
        self._command, self._watcher = list(command), watcher
        self._passes = (to_agent, to_client, to_stderr)
        self._child: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []  # signals that came before there was a child

    def run(self) -> int:
        """The child's exit code. Does not return when a signal ended the child: this process ends by it too. Raises
        `CannotStart` when the command cannot be started."""
        before = {number: signal.signal(number, lambda got, _: self._pass_on(got)) for number in PASSED_ON}
        try:
            child = self._start()
            outward = self._connect(child)
            status = child.wait()
            for pump in outward:
                pump.finish()
        finally:
            for number, action in before.items():
                signal.signal(number, action)
        self._watcher.exited(status)
        if status < 0:
            _end_by(-status)
        return status

    def kill(self) -> None:
        """End the child at once, by SIGKILL; for a `Pass` that decides so."""
        if self._child is not None:
            self._child.kill()

    def _start(self) -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        try:
            # A group of its own: what the terminal sends to ours reaches the child once, by us.
            child = subprocess.Popen(self._command, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0, process_group=0)
        except (OSError, ValueError) as problem:
            raise CannotStart(f"{self._command[0]!r} cannot be started: {problem}") from problem
        self._child = child
        for number in self._early:
            child.send_signal(number)
        return child

    def _connect(self, child: subprocess.Popen[bytes]) -> list[_Pump]:
        assert child.stdin and child.stdout and child.stderr
        to_agent, to_client, to_stderr = self._passes
        pumps = [
            _Pump(0, os.dup(child.stdin.fileno()), to_agent),
            _Pump(os.dup(child.stdout.fileno()), 1, to_client),
            _Pump(os.dup(child.stderr.fileno()), 2, to_stderr),
        ]
        for stream in (child.stdin, child.stdout, child.stderr):
            stream.close()
        for pump in pumps:
            pump.others = [other for other in pumps if other is not pump]
        for pump in pumps:
            pump.thread.start()
        return pumps[1:]

    def _pass_on(self, number: int) -> None:
        self._watcher.signalled(signal.Signals(number).name.removeprefix("SIG"))
        if self._child is None:
            self._early.append(number)
        else:
            with suppress(ProcessLookupError):
                os.kill(self._child.pid, number)


class _Pump:
    """Moves everything from `source` to `sink`. When either side closes its end, so does the other; and since whoever
    closes one pipe and then writes into another expects that order, the others are looked at before each write."""

    def __init__(self, source: int, sink: int, passing: Pass) -> None:
        self._source, self._sink, self._passing = source, sink, passing
        self.others: list[_Pump] = []
        self._writing = False
        self._closed = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def finish(self) -> None:
        """Wait for the end of a stream whose writer has ended: as long as its reader takes what was written, but not
        for somebody else who holds the pipe open."""
        while self.thread.is_alive():
            self.thread.join(DRAIN)
            if not self._writing:
                return

    def look(self) -> None:
        """If nobody reads on the other side any more, return only when the writer's very next write will fail, as it
        would without us. The pump's own thread closes: a pipe stays open while anybody polls it."""
        if not self._closed.is_set() and _has_no_reader(self._sink):
            self._closed.wait(DRAIN)

    def _run(self) -> None:
        try:
            while data := self._read():
                self._write(self._passing.take(data))
            self._write(self._passing.end())
        except OSError:
            pass  # nobody reads there any more: whoever writes to us is to notice
        finally:
            _give_up(self._source)
            self._closed.set()
            _give_up(self._sink)

    def _read(self) -> bytes:
        poll = select.poll()
        poll.register(self._source, select.POLLIN)
        poll.register(self._sink, 0)  # only that its reader has gone
        if any(fd == self._sink for fd, _ in poll.poll()):
            raise BrokenPipeError
        return os.read(self._source, _CHUNK)

    def _write(self, data: bytes) -> None:
        for other in self.others:
            other.look()
        view = memoryview(data)
        self._writing = True
        while view:
            view = view[os.write(self._sink, view) :]
        self._writing = False


def _has_no_reader(fd: int) -> bool:
    poll = select.poll()
    poll.register(fd, 0)
    return any(what & select.POLLERR for _, what in poll.poll(0))


def _give_up(fd: int) -> None:
    """Close our end. The number of a standard stream is kept in use, so that nothing else gets it."""
    if fd > 2:
        os.close(fd)
        return
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, fd)
    os.close(nothing)


def _end_by(number: int) -> None:
    """Die of the signal that ended the child, without a core file of our own."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError):  # SIGKILL has no action that could be set
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
