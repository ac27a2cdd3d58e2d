"""A connection to an inspector and its two pumps: one reads, another writes, and neither waits for the other.

What moves the bytes is a `Wire`: a Unix socket, or a named pipe on Windows.
"""

from __future__ import annotations

from queue import Empty, SimpleQueue
from typing import Protocol

from actors.base import Address, StartPump
from actors.mail import VisitorBytes, VisitorEnded, VisitorMail, VisitorRead
from actors.pump import Window

BURST_BYTES = 256 * 1024


class Wire(Protocol):
    """A stream of bytes in both directions. Three use it: a reader, a writer, and whoever ends it. Each closes a handle
    of its own, so that nobody closes what another one sits in."""

    def receive(self) -> bytes:
        """Waits; nothing once no more comes, or it was ended."""
        ...

    def is_gone(self) -> bool:
        """After the last `receive`: whether the other side reads nothing more either."""
        ...

    def transmit(self, data: bytes) -> None:
        """Waits until all of it has left. Raises `OSError` if it never will."""
        ...

    def offer(self, line: bytes) -> None:
        """Sends what is taken at once; the rest is lost."""
        ...

    def end(self) -> None:
        """Frees whoever waits in it, and lets go of the handle of who ends it. Once."""
        ...

    def drop_reader(self) -> None: ...
    def drop_writer(self) -> None: ...


class PumpedConnection:
    """See `actors.mail.Connection`."""

    def __init__(self, wire: Wire, start_pump: StartPump) -> None:
        self._wire = wire
        self._start_pump = start_pump
        self._window = Window()
        self._waiting: SimpleQueue[bytes] = SimpleQueue()
        self._is_writing = self._is_reading = False

    def read(self, to: Address[VisitorMail]) -> None:
        self._is_reading = True
        self._start_pump("visitor-read", lambda: self._read(to))

    def send(self, data: bytes, to: Address[VisitorMail]) -> None:
        self._waiting.put(data)
        if not self._is_writing:
            self._is_writing = True
            self._start_pump("visitor-write", lambda: self._write(to))

    def dismiss(self, line: bytes) -> None:
        """A new connection takes a short line at once; if not, the other side sees the end alone."""
        self._wire.offer(line)
        self.close()

    def close(self) -> None:
        """What has not left by now never will."""
        self._wire.end()
        self._window.close()
        self._waiting.put(b"")
        if not self._is_reading:
            self._wire.drop_reader()
        if not self._is_writing:
            self._wire.drop_writer()

    def _read(self, to: Address[VisitorMail]) -> None:
        try:
            while data := self._wire.receive():
                ack = self._window.admit(len(data))
                if ack is None:
                    return
                to.tell(VisitorBytes(data, ack))
            to.tell(VisitorEnded(is_gone=self._wire.is_gone()))
        finally:
            self._wire.drop_reader()

    def _write(self, to: Address[VisitorMail]) -> None:
        try:
            while burst := self._gathered():
                self._wire.transmit(burst)
                to.tell(VisitorRead(len(burst)))
        except OSError:
            to.tell(VisitorEnded(is_gone=True))
        finally:
            self._wire.drop_writer()

    def _gathered(self) -> bytes:
        """All that waits, up to a bound; nothing once it is closed."""
        parts = [self._waiting.get()]
        size = len(parts[0])
        while parts[-1] and size < BURST_BYTES:
            try:
                parts.append(self._waiting.get_nowait())
            except Empty:
                return b"".join(parts)
            size += len(parts[-1])
        return b"".join(parts) if parts[-1] else b""
