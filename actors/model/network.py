"""Sockets for the HTTP transport, each tied to the call that uses it.

Imported only once a request is due, since it loads httpcore2. Every connect, handshake and write tells the running
call which socket it blocks on, so that an abort can shut that socket down; every read first hands over what was
received, so that nothing waits in a buffer while the network is silent. Why a connect failed travels as the first
argument of its ConnectError: httpcore2's pool cuts the chain of causes.
"""

from __future__ import annotations

import select
import socket
import ssl
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import httpcore2

if TYPE_CHECKING:
    from actors.model.transport_call import Call


class Network(httpcore2.NetworkBackend):
    """Opens connections for the call that `current.call` names in this thread."""

    def __init__(self, current: threading.local) -> None:
        self._current = current

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> Stream:
        failure: OSError | None = None
        try:
            addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise httpcore2.ConnectError(error) from error
        for family, kind, number, _, address in addresses:
            try:
                return Stream(self._connected(family, kind, number, address, timeout), self._current)
            except OSError as error:
                failure = error
        if isinstance(failure, TimeoutError):
            raise httpcore2.ConnectTimeout("connect") from failure
        raise httpcore2.ConnectError(failure) from failure

    def _connected(self, family: int, kind: int, number: int, address: Any, timeout: float | None) -> socket.socket:
        sock = socket.socket(family, kind, number)
        try:
            self._current.call.attach(sock, is_new=True)
            sock.settimeout(timeout)
            sock.connect(address)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except BaseException:
            sock.close()
            raise
        return sock


class Stream(httpcore2.NetworkStream):
    """One connection. Its time-outs are the call's, not those that httpcore2 passes."""

    def __init__(self, sock: socket.socket, current: threading.local) -> None:
        self._sock = sock
        self._current = current

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        call: Call = self._current.call
        try:
            self._sock.settimeout(call.before_read())
            data = self._sock.recv(max_bytes)
        except TimeoutError as error:
            raise httpcore2.ReadTimeout("read") from error
        except OSError as error:
            raise httpcore2.ReadError("read") from error
        call.after_read(data)
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        call: Call = self._current.call
        call.attach(self._sock, is_new=False)
        view = memoryview(buffer)
        try:
            while view:
                self._sock.settimeout(call.write_timeout())
                view = view[self._sock.send(view) :]
        except TimeoutError as error:
            raise httpcore2.WriteTimeout("write") from error
        except OSError as error:
            raise httpcore2.WriteError("write") from error

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> Stream:
        # The handshake is a step of its own: inside wrap_socket it would block on a socket that nobody else can reach.
        try:
            self._sock.settimeout(timeout)
            sock = ssl_context.wrap_socket(self._sock, server_hostname=server_hostname, do_handshake_on_connect=False)
        except (OSError, ValueError) as error:
            self.close()
            raise httpcore2.ConnectError(error) from error
        try:
            self._current.call.attach(sock, is_new=True)
            sock.do_handshake()
        except TimeoutError as error:
            sock.close()
            raise httpcore2.ConnectTimeout("tls") from error
        except OSError as error:
            sock.close()
            raise httpcore2.ConnectError(error) from error
        return Stream(sock, self._current)

    def close(self) -> None:
        self._sock.close()

    def get_extra_info(self, info: str) -> Any:
        if info == "socket":
            return self._sock
        if info == "is_readable":
            return _is_readable(self._sock)
        return None


def _is_readable(sock: socket.socket) -> bool:
    """Whether a kept connection has something to read: its end, most likely."""
    if sock.fileno() < 0:
        return True
    if not hasattr(select, "poll"):
        return bool(select.select([sock], [], [], 0)[0])
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(0))
