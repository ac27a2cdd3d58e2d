"""The socket of this program for inspectors, and the connections at it, each with its pumps.

The file appears under its name only once the program listens. It is removed whichever way the program ends, as long as
that runs code. Only the user's own processes get in: the folder is private, and the peer is asked who it is.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from actors.base import Address, StartPump
from actors.mail import DoorMail, DoorRefused, VisitorBytes, VisitorCame, VisitorEnded, VisitorMail, VisitorRead
from actors.pump import Window

if TYPE_CHECKING:
    import socket

READ_BYTES = 64 * 1024
BURST_BYTES = 256 * 1024
WAITING = 16
BREATH_S = 0.05
NO_PIPES = "there are no named pipes on Windows yet"


class LocalSocket:
    """The way in; see `actors.inspector.door`. `close` may be called from any thread, also without `open`."""

    def __init__(self, start_pump: StartPump) -> None:
        self._start_pump = start_pump
        self._paths: tuple[str, ...] = ()
        self._is_closed = False

    def open(self, to: Address[DoorMail]) -> None:
        self._start_pump("door", lambda: self._listen(to))

    def close(self) -> None:
        """Nobody can connect any more. The pump is left to sit in its call: the program ends."""
        self._is_closed = True
        for path in self._paths:
            with contextlib.suppress(OSError):
                os.unlink(path)

    def _listen(self, to: Address[DoorMail]) -> None:
        from runtime.inspector_sockets import NoPlace

        try:
            listener = self._bound()
        except NoPlace as refused:
            to.tell(DoorRefused(str(refused)))
            return
        except OSError as error:
            to.tell(DoorRefused(f"{error.filename or 'the socket'}: {error.strerror or error}"))
            return
        with listener:
            self._accept(listener, to)

    def _bound(self) -> socket.socket:
        import socket

        from runtime.inspector_sockets import HAS_SOCKETS, NoPlace, place_for, sweep

        if not HAS_SOCKETS:
            raise NoPlace(NO_PIPES)
        pid = os.getpid()
        folder, path = place_for(pid, os.getuid())
        unborn = os.path.join(folder, f"n{pid}.sock")
        self._paths = (unborn, path)
        sweep(folder, time.time())
        with contextlib.suppress(FileNotFoundError):
            os.unlink(unborn)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listener.bind(unborn)
            os.chmod(unborn, 0o600)
            listener.listen(WAITING)
            os.rename(unborn, path)
        except OSError:
            listener.close()
            raise
        if self._is_closed:  # while it was made
            self.close()
        return listener

    def _accept(self, listener: socket.socket, to: Address[DoorMail]) -> None:
        while not self._is_closed:
            try:
                peer, _ = listener.accept()
                if self._is_closed or peer_uid(peer) not in (None, os.getuid()):
                    peer.close()
                else:
                    to.tell(VisitorCame(SocketConnection(peer, self._start_pump)))
            except OSError:  # there are no descriptors left
                time.sleep(BREATH_S)


class SocketConnection:
    """One connection: a pump reads, another writes. Each of the three that use it closes a descriptor of its own, so
    that nobody closes what another one sits in."""

    def __init__(self, peer: socket.socket, start_pump: StartPump) -> None:
        self._peer = peer
        self._reader = peer.dup()
        self._writer = peer.dup()
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
        """A new socket takes a short line at once; if not, the other side sees the end alone."""
        with contextlib.suppress(OSError):
            self._peer.setblocking(False)
            self._peer.send(line)
        self.close()

    def close(self) -> None:
        """What has not left by now never will."""
        import socket

        with contextlib.suppress(OSError):
            self._peer.shutdown(socket.SHUT_RDWR)
        self._peer.close()
        self._window.close()
        self._waiting.put(b"")
        if not self._is_reading:
            self._reader.close()
        if not self._is_writing:
            self._writer.close()

    def _read(self, to: Address[VisitorMail]) -> None:
        with self._reader:
            while data := _received(self._reader):
                ack = self._window.admit(len(data))
                if ack is None:
                    return
                to.tell(VisitorBytes(data, ack))
            to.tell(VisitorEnded(is_gone=_is_gone(self._reader)))

    def _write(self, to: Address[VisitorMail]) -> None:
        with self._writer:
            while burst := self._gathered():
                try:
                    self._writer.sendall(burst)
                except OSError:
                    to.tell(VisitorEnded(is_gone=True))
                    return
                to.tell(VisitorRead(len(burst)))

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


def _received(peer: socket.socket) -> bytes:
    try:
        return peer.recv(READ_BYTES)
    except OSError:
        return b""


def _is_gone(peer: socket.socket) -> bool:
    """Whether the other side has closed its end for both directions, not only said that it sends no more."""
    import select

    poll = select.poll()
    poll.register(peer, 0)
    return any(event & (select.POLLHUP | select.POLLERR | select.POLLNVAL) for _, event in poll.poll(0))


def peer_uid(peer: socket.socket) -> int | None:
    """Whose process it is; None where the system does not tell."""
    import socket
    import struct

    with contextlib.suppress(OSError):
        if hasattr(socket, "SO_PEERCRED"):
            _, uid, _ = struct.unpack("iII", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            return int(uid)
        if sys.platform == "darwin":  # struct xucred of LOCAL_PEERCRED: version, uid, ...
            _, uid = struct.unpack("Ii", peer.getsockopt(0, 1, 76)[:8])
            return int(uid)
    return None
