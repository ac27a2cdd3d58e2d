"""One connection to a server: bytes in and out, each step tied to the call that it serves.

Every step tells the call which socket it blocks on, so that an abort can shut that socket down; every read first
hands over what was received, so that nothing waits in a buffer while the network is silent.
"""

from __future__ import annotations

import errno
import math
import os
import select
import socket
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from actors.model.transport_errors import ConnectFailed, ConnectTimeout, Dropped, Silent

if TYPE_CHECKING:
    import ssl

    from actors.model.nested_tls import NestedTls
    from actors.model.route import Endpoint
    from actors.model.transport_call import Call

# What the system calls struct linger.
_LINGER = "hh" if sys.platform == "win32" else "ii"
_READ_BYTES = 64 * 1024
_UNDER_WAY = (errno.EINPROGRESS, errno.EWOULDBLOCK, getattr(errno, "WSAEWOULDBLOCK", errno.EWOULDBLOCK))


class Line:
    """`raw` is the socket that is shut down to end a blocked step; `kept_since` is the pool's."""

    __slots__ = ("_top", "kept_since", "raw")

    def __init__(self, sock: socket.socket) -> None:
        self.raw = sock
        self._top: socket.socket | NestedTls = sock
        self.kept_since = 0.0

    def read(self, call: Call) -> bytes:
        """The next bytes, empty at the end. Raises Silent, Dropped."""
        try:
            self._top.settimeout(call.before_read())
            data = self._top.recv(_READ_BYTES)
        except TimeoutError:
            raise Silent from None
        except OSError:
            raise Dropped from None
        call.after_read(data)
        return data

    def write(self, data: bytes, call: Call) -> None:
        """All of `data`. Raises Silent, Dropped."""
        view = memoryview(data)
        try:
            while view:
                self._top.settimeout(call.write_timeout())
                view = view[self._top.send(view) :]
        except TimeoutError:
            raise Silent from None
        except OSError:
            raise Dropped from None

    def start_tls(self, context: ssl.SSLContext, host: str, call: Call) -> None:
        """Raises ConnectTimeout, ConnectFailed."""
        # The handshake is a step of its own: inside wrap_socket it would block on a socket that nobody else can reach.
        try:
            self._top = self._wrapped(context, host)
            call.attach(self.raw, is_new=True)
            self._top.settimeout(call.connect_timeout())
            self._top.do_handshake()
        except TimeoutError:
            raise ConnectTimeout from None
        except (OSError, ValueError) as error:
            raise ConnectFailed(error) from None

    def _wrapped(self, context: ssl.SSLContext, host: str) -> ssl.SSLSocket | NestedTls:
        import ssl

        if isinstance(self.raw, ssl.SSLSocket):
            from actors.model.nested_tls import NestedTls

            return NestedTls(self.raw, context, host)
        sock = context.wrap_socket(self.raw, server_hostname=host, do_handshake_on_connect=False)
        self.raw = sock
        return sock

    def is_readable(self) -> bool:
        """Whether a kept connection has something to read: its end, most likely."""
        return self.raw.fileno() < 0 or _is_ready(self.raw, 0, for_write=False)

    def cut(self) -> None:
        """Closes so that the other side hears of it at once. A server that waits until we read on would otherwise
        find out with the system's next probe, after seconds, and a model would go on writing for nobody."""
        import struct

        with suppress(OSError):
            self.raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack(_LINGER, 1, 0))
        self.close()

    def close(self) -> None:
        with suppress(OSError):
            self.raw.close()


def connect(endpoint: Endpoint, call: Call) -> Line:
    """Tries each address of the host in turn. Raises ConnectTimeout, ConnectFailed."""
    try:
        # As bytes: for a str Python loads its IDNA codec, which costs 2 ms.
        addresses = socket.getaddrinfo(endpoint.host.encode("ascii"), endpoint.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise ConnectFailed(error) from None
    failure: OSError | None = None
    for family, kind, number, _, address in addresses:
        try:
            return Line(_connected(socket.socket(family, kind, number), address, call))
        except OSError as error:
            failure = error
            if call.abort.fired:
                break
    if isinstance(failure, TimeoutError):
        raise ConnectTimeout
    raise ConnectFailed(failure)


def _connected(sock: socket.socket, address: Any, call: Call) -> socket.socket:
    try:
        call.attach(sock, is_new=True)
        sock.setblocking(False)
        code = sock.connect_ex(address)
        # An abort before the connect began found nothing to shut down: it is seen here. A later one ends the wait.
        if call.abort.fired:
            raise OSError(errno.ECONNABORTED, "aborted")
        if code in _UNDER_WAY:
            if not _is_ready(sock, call.connect_timeout(), for_write=True):
                raise TimeoutError
            code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            raise OSError(code, os.strerror(code))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except BaseException:
        sock.close()
        raise
    return sock


def _is_ready(sock: socket.socket, seconds: float | None, *, for_write: bool) -> bool:
    if not hasattr(select, "poll"):
        # Windows tells a failed connect as an exceptional condition.
        written = [sock] if for_write else []
        return any(select.select([] if for_write else [sock], written, written, seconds))
    poll = select.poll()
    poll.register(sock, select.POLLOUT if for_write else select.POLLIN)
    return bool(poll.poll(None if seconds is None else math.ceil(seconds * 1000)))
