"""HTTP for model requests: one POST, its body as it comes off the socket.

Blocking, for pump threads; an `Abort` from any thread ends a call in every phase that has a socket, within
milliseconds. Before there is one (name look-up) its caller walks away. Connections are kept and used again. No TLS
context is made for `http://`. Error texts name the host and the time, never a header, a key or a body.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from actors.model.light_import import import_httpcore2
from actors.model.prompt import HttpRequest
from actors.model.transport_call import Call, Foreign

_KEPT_CONNECTIONS = 8
_KEPT_SECONDS = 60.0
_MAX_CONNECTIONS = 1000


class TransportSettings(Struct, frozen=True):
    """Seconds; None or 0 is no limit. `idle_timeout_s` starts anew with every byte received, `total_timeout_s` bounds
    the whole call. `proxy` is a URL (http, https, socks5), `no_proxy` lists hosts and domains that bypass it,
    `ca_file` is a PEM file trusted besides the system's."""

    proxy: str | None = None
    no_proxy: tuple[str, ...] = ()
    ca_file: str | None = None
    connect_timeout_s: float | None = 30.0
    idle_timeout_s: float | None = 300.0
    total_timeout_s: float | None = None


class TransportError(Exception):
    """The call failed; the text is for the user and for the retry rules."""


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


class Transport:
    """The process's one HTTP client. Measured: httpcore2 alone takes 15 MB PSS and 0.10 s to import and build
    (`light_import` halves that), the httpx2 client over it 19.5 MB and 0.18 s, and that would not say which socket a
    reused connection blocks on."""

    def __init__(self, settings: TransportSettings) -> None:
        self._settings = settings
        self._current = threading.local()
        self._pools: dict[tuple[bool, bool], Any] = {}
        self._scripted: dict[str, Any] = {}

    def warm(self) -> None:
        """Loads the HTTP stack, so that the first request does not wait for it."""
        self._pool(is_tls=False, is_proxied=bool(self._settings.proxy))

    def close(self) -> None:
        """Closes the kept connections; calls that run are not its business."""
        for pool in list(self._pools.values()):
            pool.close()

    def stream(
        self,
        build: Callable[[], HttpRequest],
        abort: Abort,
        on_head: Callable[[int, Mapping[str, str]], None],
        on_bytes: Callable[[bytes], None],
    ) -> None:
        """Sends what `build` makes and returns when the answer's body is over. `on_head` is called once with the
        status and the lower-case headers, then `on_bytes` with body bytes as they arrive (64 KiB at most of an
        answer with status >= 400). Both run in this thread. Raises TransportError, Aborted if `abort` was fired, and
        whatever the callbacks raise."""
        try:
            request = build()
        except ValueError as error:
            raise TransportError(str(error)) from None
        if abort.fired:
            raise Aborted("Request was aborted")
        if request.url.startswith("scripted:"):
            self._scripted_source().stream(request, abort, on_head, on_bytes)
            return
        while not self._attempt(request, Call(self._settings, abort, on_head, on_bytes)):
            pass

    def _scripted_source(self) -> Any:
        from actors.model.scripted_source import ScriptedSource

        return self._scripted.setdefault("source", ScriptedSource())

    def _attempt(self, request: HttpRequest, call: Call) -> bool:
        """False when a kept connection turned out to be closed before it carried a byte. That connection has left
        the pool, so a repeat finds another one or makes a new one."""
        from actors.model.transport_errors import error_text

        self._current.call = call
        try:
            self._exchange(request, call)
            return True
        except Foreign as raised:
            raise raised.error from None
        except TransportError:
            raise
        except Exception as error:
            if call.abort.fired:
                raise Aborted("Request was aborted") from None
            if call.is_stale(error):
                return False
            raise TransportError(error_text(error, request.url, self._settings, call.is_overdue())) from None
        finally:
            self._current.call = None
            call.abort.detach()

    def _exchange(self, request: HttpRequest, call: Call) -> None:
        url = urlsplit(request.url)
        if url.scheme not in ("http", "https") or not url.hostname:
            shown = request.url.partition("?")[0].rpartition("@")[2][:80]
            raise TransportError(f"The model's base URL {shown!r} is not a http:// or https:// URL with a host")
        pool = self._pool(is_tls=url.scheme == "https", is_proxied=self._is_proxied(url.hostname or ""))
        headers = [(name, value) for name, value in request.headers if name != "accept-encoding"]
        # Compressed streams arrive late and in lumps, and cost a decoder.
        headers.append(("accept-encoding", "identity"))
        timeout = {"connect": self._settings.connect_timeout_s or None, "pool": None}
        stream = pool.stream(
            "POST",
            request.url,
            headers=[(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers],
            content=request.body,
            extensions={"timeout": timeout},
        )
        with stream as response:
            if 300 <= response.status < 400:
                raise TransportError(f"{response.status}: {url.hostname} redirects; base URLs have to be final")
            call.head(response.status, response.headers)
            for data in response.iter_stream():
                if not call.body(data):
                    return
            call.flush()
            # While the response is still ours: leaving the block gives the socket to the next call.
            call.abort.detach()
            if call.abort.fired:
                # The abort may be about to shut the socket down, so it must not reach the pool alive.
                response.extensions["network_stream"].close()
                raise Aborted("Request was aborted")

    def _is_proxied(self, host: str) -> bool:
        if not self._settings.proxy:
            return False
        names = [name.lstrip(".") for name in self._settings.no_proxy]
        return not any(name == "*" or host == name or host.endswith(f".{name}") for name in names)

    def _pool(self, *, is_tls: bool, is_proxied: bool) -> Any:
        key = (is_tls, is_proxied)
        # Two threads may both build one: the first stays (setdefault is atomic), the other holds no connection yet.
        return self._pools.get(key) or self._pools.setdefault(key, self._new_pool(is_tls, is_proxied))

    def _new_pool(self, is_tls: bool, is_proxied: bool) -> Any:
        import_httpcore2()
        import httpcore2

        from actors.model.network import Network

        context = None
        if is_tls:
            context = httpcore2.default_ssl_context()
            if self._settings.ca_file:
                context.load_verify_locations(self._settings.ca_file)
        return httpcore2.ConnectionPool(
            ssl_context=context,
            proxy=_proxy(self._settings.proxy) if is_proxied and self._settings.proxy else None,
            max_connections=_MAX_CONNECTIONS,
            max_keepalive_connections=_KEPT_CONNECTIONS,
            keepalive_expiry=_KEPT_SECONDS,
            network_backend=Network(self._current),
        )


def _proxy(url: str) -> Any:
    """User and password are taken out of the URL, where httpcore2 would not look for them."""
    import httpcore2

    parts = urlsplit(url)
    host = parts.hostname or ""
    bare = f"{parts.scheme}://{f'[{host}]' if ':' in host else host}" + (f":{parts.port}" if parts.port else "")
    auth = (parts.username, parts.password or "") if parts.username else None
    return httpcore2.Proxy(bare, auth=auth)
