"""The socket of this program for inspectors, and the connections at it.

The file appears under its name only once the program listens. It is removed whichever way the program ends, as long as
that runs code. Only the user's own processes get in: the folder is private, and the peer is asked who it is.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from typing import TYPE_CHECKING

from actors.base import Address, StartPump
from actors.mail import DoorMail, DoorRefused, VisitorCame
from runtime.visitor_pumps import PumpedConnection

if TYPE_CHECKING:
    import socket

READ_BYTES = 64 * 1024
WAITING = 16
BREATH_S = 0.05


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

        from runtime.inspector_sockets import place_for, sweep

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
                    to.tell(VisitorCame(PumpedConnection(SocketWire(peer), self._start_pump)))
            except OSError:  # there are no descriptors left
                time.sleep(BREATH_S)


class SocketWire:
    """A connected socket; see `runtime.visitor_pumps.Wire`."""

    def __init__(self, peer: socket.socket) -> None:
        self._peer = peer
        self._reader = peer.dup()
        self._writer = peer.dup()

    def receive(self) -> bytes:
        try:
            return self._reader.recv(READ_BYTES)
        except OSError:
            return b""

    def is_gone(self) -> bool:
        """Whether the other side has closed its end for both directions, not only said that it sends no more."""
        import select

        poll = select.poll()
        poll.register(self._reader, 0)
        return any(event & (select.POLLHUP | select.POLLERR | select.POLLNVAL) for _, event in poll.poll(0))

    def transmit(self, data: bytes) -> None:
        self._writer.sendall(data)

    def offer(self, line: bytes) -> None:
        with contextlib.suppress(OSError):
            self._peer.setblocking(False)
            self._peer.send(line)

    def end(self) -> None:
        import socket

        with contextlib.suppress(OSError):
            self._peer.shutdown(socket.SHUT_RDWR)
        self._peer.close()

    def drop_reader(self) -> None:
        self._reader.close()

    def drop_writer(self) -> None:
        self._writer.close()


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
