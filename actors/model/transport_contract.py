"""What the transport and its callers tell each other: settings, the abort of a call, and how a call fails."""

from __future__ import annotations

import socket
from contextlib import suppress

from msgspec import Struct


class TransportSettings(Struct, frozen=True):
    """Seconds; None or 0 is no limit. `total_timeout_s` bounds the whole call, `answer_timeout_s` the wait for the head
    of the answer: None leaves that to `idle_timeout_s`, which starts anew with every byte received. `event_timeout_s`
    does so with every byte that is more than a sign of life (a comment of an event stream). `proxy` is a URL (http,
    https, socks5), `no_proxy` lists hosts and domains that bypass it, `ca_file` is a PEM file trusted besides the
    system's."""

    proxy: str | None = None
    no_proxy: tuple[str, ...] = ()
    ca_file: str | None = None
    connect_timeout_s: float | None = 30.0
    answer_timeout_s: float | None = None
    idle_timeout_s: float | None = 300.0
    event_timeout_s: float | None = None
    total_timeout_s: float | None = None


class TransportError(Exception):
    """The call failed; the text is for the user and for the retry rules. `unanswered` tells that the network failed
    before the head of an answer came, so that the same request may get one when it is sent again."""

    unanswered = False


class Aborted(TransportError):
    """The call ended because its `Abort` was fired."""


class Abort:
    """Ends a call. Each method works once and for good, from any thread, before, during or after the call."""

    __slots__ = ("_sock", "dismissed", "fired")

    def __init__(self) -> None:
        self.fired = False
        self.dismissed = False
        self._sock: socket.socket | None = None

    def fire(self) -> None:
        # The order matters, and makes a lock needless: fire sets the flag and then looks for a socket, attach and
        # detach set the socket and then look for the flag, so one of the two always sees the other.
        self.fired = True
        _shut_down(self._sock)

    def dismiss(self) -> None:
        """The reply is whole: no more bytes are wanted, but the body may end by itself, so that the connection can
        be used again. A fired abort closes it, and the next request pays for a new one."""
        self.dismissed = True

    def attach(self, sock: socket.socket) -> None:
        """The call blocks on `sock` from here on."""
        self._sock = sock
        if self.fired:
            _shut_down(sock)

    def detach(self) -> None:
        """The socket goes back to the pool; a later `fire` must not cut another call."""
        self._sock = None


def _shut_down(sock: socket.socket | None) -> None:
    """Closing would not wake a blocked read; this does, also out of a pending connect."""
    if sock is None:
        return
    with suppress(OSError):  # not connected yet, or already gone
        # Not SSLSocket's own: that one drops the TLS layer under the reading thread's feet.
        socket.socket.shutdown(sock, socket.SHUT_RDWR)
