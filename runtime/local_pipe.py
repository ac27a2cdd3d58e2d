"""The named pipe of this program for inspectors, on Windows, and the connections at it.

It goes with the process. From the first instance on there is always one that is ours, so that nobody else can take the
name meanwhile; `runtime.inspector_pipes` says who may open it.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time

from actors.base import Address, StartPump
from actors.mail import DoorMail, DoorRefused, VisitorCame
from runtime.visitor_pumps import PumpedConnection

BREATH_S = 0.05

if sys.platform == "win32":
    from runtime.inspector_pipes import descriptor_of, pipe_name
    from runtime.named_pipe import Event, PipeEnd, PipeServer, current_user

    class LocalPipe:
        """The way in; see `actors.inspector.door`. `close` may be called from any thread, also without `open`."""

        def __init__(self, start_pump: StartPump) -> None:
            self._start_pump = start_pump
            self._over = Event()

        def open(self, to: Address[DoorMail]) -> None:
            self._start_pump("door", lambda: self._listen(to))

        def close(self) -> None:
            self._over.set()

        def _listen(self, to: Address[DoorMail]) -> None:
            name = "the pipe"
            try:
                user = current_user()
                name = pipe_name(user, os.getpid())
                server = PipeServer(name, descriptor_of(user))
                first = PipeEnd(server.instance(), self._over)
            except OSError as error:
                to.tell(DoorRefused(f"{name}: {error.strerror or error}"))
                return
            self._accept(server, first, to)

        def _accept(self, server: PipeServer, waiting: PipeEnd | None, to: Address[DoorMail]) -> None:
            while waiting is not None:
                is_here = waiting.await_client()
                following = self._following(server)
                try:
                    if is_here and following is not None:
                        to.tell(VisitorCame(PumpedConnection(PipeWire(waiting), self._start_pump)))
                except OSError:  # there is no memory left
                    time.sleep(BREATH_S)
                waiting.close()
                waiting = following

        def _following(self, server: PipeServer) -> PipeEnd | None:
            while not self._over.is_set:
                try:
                    return PipeEnd(server.instance(), self._over)
                except OSError:  # there is no memory left
                    time.sleep(BREATH_S)
            return None

    class PipeWire:
        """A connected pipe; see `runtime.visitor_pumps.Wire`. The end that was given stays with who gave it."""

        def __init__(self, end: PipeEnd) -> None:
            self._over = Event()
            self._own = end.shared(self._over)
            self._reader = end.shared(self._over)
            self._writer = end.shared(self._over)

        def receive(self) -> bytes:
            return self._reader.read()

        def is_gone(self) -> bool:
            """Always: a pipe cannot be closed for one direction."""
            return True

        def transmit(self, data: bytes) -> None:
            self._writer.write(data)

        def offer(self, line: bytes) -> None:
            with contextlib.suppress(OSError):
                self._own.offer(line)

        def end(self) -> None:
            self._over.set()
            self._own.close()

        def drop_reader(self) -> None:
            self._reader.close()

        def drop_writer(self) -> None:
            self._writer.close()
