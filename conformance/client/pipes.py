"""The thread that moves bytes between the pipes of a child and the core, for the blocking face.

One thread and one selector for the three pipes, so that an agent that does not read its stdin never keeps us from
reading its stdout, and that closing never waits for a pipe which somebody else still holds open.
"""

from __future__ import annotations

import os
import selectors
import threading
from collections.abc import Callable
from contextlib import suppress

from conformance.client.core import Core
from conformance.client.process import Child

_CHUNK = 65536


class Pipes:
    """Runs until all pipes have ended or `close` is called. `lock` is held around every call of the core;
    `half_closed` is called, in this thread, when a pipe that a working agent keeps open has ended."""

    def __init__(self, child: Child, core: Core, lock: threading.RLock, half_closed: Callable[[], object]) -> None:
        self._core, self._lock, self._half_closed = core, lock, half_closed
        self._stdin: int | None = child.stdin
        self._takes = {
            child.stdout: (core.receive, core.stdout_ended),
            child.stderr: (core.receive_stderr, core.stderr_ended),
        }
        self._awake, self._wake = os.pipe()
        self._rest = memoryview(b"")
        self._closed = self._gone = False
        for fd in (child.stdin, child.stdout, child.stderr, self._wake, self._awake):
            os.set_blocking(fd, False)
        self._selector = selectors.DefaultSelector()
        self._thread = threading.Thread(target=self._run, name=f"pipes of {child.pid}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Let go of what is still open; returns once the thread has ended."""
        with self._lock:
            self._closed = True
            self._rouse()
        self._thread.join()

    def _rouse(self) -> None:
        """Called with the lock held, as whatever changes the outbox is."""
        if not self._gone:
            with suppress(BlockingIOError):  # full: it is awake already
                os.write(self._wake, b"!")

    def _run(self) -> None:
        with self._selector as selector, self._core.outbox.wakes(self._rouse):
            for fd in (self._awake, *self._takes):
                selector.register(fd, selectors.EVENT_READ)
            while not self._closed and (self._takes or self._stdin is not None):
                self._refill()
                for key, _ in selector.select():
                    self._move(key.fd)
            self._let_go()

    def _move(self, fd: int) -> None:
        if fd == self._awake:
            os.read(fd, _CHUNK)
        elif fd == self._stdin:
            self._write(fd)
        else:
            self._read(fd)

    def _read(self, fd: int) -> None:
        take, ended = self._takes[fd]
        try:
            data = os.read(fd, _CHUNK)
        except BlockingIOError:
            return
        with self._lock:
            if data:
                take(data)
                return
            ended()
        self._selector.unregister(fd)
        del self._takes[fd]
        os.close(fd)
        if take == self._core.receive:
            self._half_closed()

    def _refill(self) -> None:
        """Look whether there is something to write, or stdin is to be closed."""
        if self._stdin is None or self._rest:
            return
        with self._lock:
            outbox = self._core.outbox
            if not outbox.ready:
                return
            record = outbox.take()
        if record is None:
            self._close_stdin()
        else:
            self._rest = memoryview(record)
            self._selector.register(self._stdin, selectors.EVENT_WRITE)

    def _write(self, fd: int) -> None:
        try:
            self._rest = self._rest[os.write(fd, self._rest) :]
        except BlockingIOError:
            return
        except OSError:  # nobody reads there any more
            self._rest = memoryview(b"")
            self._selector.unregister(fd)
            self._close_stdin()
            self._half_closed()
            return
        if not self._rest:
            self._selector.unregister(fd)

    def _close_stdin(self) -> None:
        if self._stdin is not None:
            os.close(self._stdin)
            self._stdin = None

    def _let_go(self) -> None:
        with self._lock:
            for fd, (_, ended) in self._takes.items():
                os.close(fd)
                ended()
            self._close_stdin()
            self._gone = True
            os.close(self._wake)
            os.close(self._awake)
