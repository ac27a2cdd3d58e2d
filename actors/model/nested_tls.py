"""TLS inside of TLS, for `https://` through a proxy that is itself reached by TLS.

`SSLSocket` cannot wrap another one, so the inner layer runs over two buffers. Loaded only where both are in use.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import TypeVar

_PIECE_BYTES = 64 * 1024
_Result = TypeVar("_Result")


class NestedTls:
    """The part of a socket's interface that a `Line` uses; `outer` carries the bytes and has the time-out."""

    def __init__(self, outer: ssl.SSLSocket, context: ssl.SSLContext, host: str) -> None:
        self._outer = outer
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)

    def settimeout(self, seconds: float | None) -> None:
        self._outer.settimeout(seconds)

    def do_handshake(self) -> None:
        self._run(self._tls.do_handshake)

    def recv(self, size: int) -> bytes:
        try:
            return self._run(lambda: self._tls.read(size))
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            return b""

    def send(self, data: memoryview) -> int:
        return self._run(lambda: self._tls.write(data[:_PIECE_BYTES]))

    def _run(self, step: Callable[[], _Result]) -> _Result:
        while True:
            try:
                result = step()
                self._send_on()
                return result
            except ssl.SSLWantReadError:
                self._send_on()
                self._receive()

    def _send_on(self) -> None:
        if self._outgoing.pending:
            self._outer.sendall(self._outgoing.read())

    def _receive(self) -> None:
        data = self._outer.recv(_PIECE_BYTES)
        if data:
            self._incoming.write(data)
        else:
            self._incoming.write_eof()
