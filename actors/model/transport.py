"""HTTP for model requests: one request, its body as it comes off the socket.

Blocking, for pump threads; an `Abort` from any thread ends a call in every phase that has a socket, within
milliseconds. Before there is one (name look-up) its caller walks away. Connections are kept and used again. No TLS
context is made for `http://`. Error texts name the host and the time, never a header, a key or a body; what a server
says of an error comes without the secrets that it was sent (`redaction`).

What it costs, import and construction together, the best of 12 runs: with httpcore2 56 ms and 15.6 MB PSS, with h11
alone 36 ms and 12.3 MB; from the first prompt of a fresh process to its first delta 51 ms before, 29 ms now.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from actors.model.pool import Pool
from actors.model.prompt import HttpRequest
from actors.model.redacted_answer import RedactedAnswer
from actors.model.redaction import Redaction, secrets_in
from actors.model.route import BadUrl, Route, route_to
from actors.model.transport_call import Call, Foreign
from actors.model.transport_contract import Abort, Aborted, TransportError, TransportSettings
from actors.model.transport_errors import NetworkFailure, error_text

if TYPE_CHECKING:
    import ssl

    from actors.model.http1 import Exchange
    from actors.model.line import Line

__all__ = ("Abort", "Aborted", "Transport", "TransportError", "TransportSettings")


class Transport:
    """The process's one HTTP client. It owns the kept connections and the TLS context; everything else belongs to a
    call."""

    def __init__(self, settings: TransportSettings) -> None:
        self._settings = settings
        self._pool = Pool()
        self._contexts: dict[str, ssl.SSLContext] = {}
        self._scripted: dict[str, Any] = {}
        self._clouds: dict[str, Any] = {}

    def warm(self, *, secure: bool = False) -> None:
        """Loads what speaks HTTP, and if `secure` the certificates that TLS trusts (0.1 s), so that the first request
        does not wait for it."""
        import actors.model.dial  # noqa: F401  # loading it, and h11 with it, is the purpose

        if secure:
            self._context()

    def close(self) -> None:
        """Closes the kept connections; calls that run are not its business."""
        self._pool.close()
        for source in self._clouds.values():
            source.close()

    def stream(
        self,
        build: Callable[[], HttpRequest],
        abort: Abort,
        on_head: Callable[[int, Mapping[str, str]], None],
        on_bytes: Callable[[bytes], None],
        method: str = "POST",
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
        if request.url.startswith("cloud:"):
            self._cloud_source().stream(request, abort, on_head, on_bytes)
            return
        redaction = Redaction(secrets_in(request.headers, request.url, self._settings.proxy or ""))
        answer = RedactedAnswer(redaction, abort, on_head, on_bytes)
        try:
            self._send(request, abort, answer, method)
        except TransportError as error:
            answer.end()
            shown = type(error)(redaction.text(str(error)))
            shown.unanswered = error.unanswered
            raise shown from None
        answer.end()

    def _send(self, request: HttpRequest, abort: Abort, answer: RedactedAnswer, method: str) -> None:
        route = self._route(request.url)
        while not self._attempt(request, route, Call(self._settings, abort, answer.on_head, answer.on_bytes), method):
            pass

    def _scripted_source(self) -> Any:
        from actors.model.scripted_source import ScriptedSource

        return self._scripted.setdefault("source", ScriptedSource())

    def _cloud_source(self) -> Any:
        from actors.model.cloud_source import CloudSource, token_settings

        # Two threads may both make one: the first stays, since it holds tokens.
        if (known := self._clouds.get("source")) is not None:
            return known
        return self._clouds.setdefault("source", CloudSource(self, Transport(token_settings(self._settings))))

    def _route(self, url: str) -> Route:
        try:
            return route_to(url, self._settings.proxy, self._settings.no_proxy)
        except BadUrl as error:
            raise TransportError(str(error)) from None

    def _attempt(self, request: HttpRequest, route: Route, call: Call, method: str) -> bool:
        """False when a kept connection turned out to be closed before it carried a byte. That connection has left
        the pool, so a repeat finds another one or makes a new one."""
        try:
            self._exchange(request, route, call, method)
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
            failure = TransportError(error_text(error, route, self._settings, call.overdue()))
            failure.unanswered = isinstance(error, NetworkFailure) and not (call.is_answered or error.is_ours)
            raise failure from None
        finally:
            call.abort.detach()

    def _exchange(self, request: HttpRequest, route: Route, call: Call, method: str) -> None:
        from actors.model.dial import dial
        from actors.model.http1 import Exchange

        exchange = Exchange(method, route.request_target, _headers(request, route), request.body)
        line = self._pool.take(route.origin)
        if line is None:
            line = dial(route, call, self._context)
        try:
            call.attach(line.raw, is_new=False)
            self._converse(exchange, route, line, call)
            # While the line is still ours: the pool gives it to the next call.
            call.abort.detach()
            if call.abort.fired:  # the abort may be about to shut the socket down
                raise Aborted("Request was aborted")
        except BaseException:
            line.cut()
            raise
        if exchange.can_be_kept:
            self._pool.keep(route.origin, line)
        else:
            line.close()

    def _converse(self, exchange: Exchange, route: Route, line: Line, call: Call) -> None:
        exchange.send(line, call)
        head = exchange.head(line, call)
        if 300 <= head.status_code < 400:
            raise TransportError(f"{head.status_code}: {route.origin.host} redirects; base URLs have to be final")
        call.head(head.status_code, head.headers)
        for data in exchange.body(line, call):
            if not call.body(data):
                return
        call.flush()

    def _context(self) -> ssl.SSLContext:
        from actors.model.trust import client_context

        # Two threads may both build one: the first stays (setdefault is atomic).
        made = self._contexts.get("client") or client_context(self._settings.ca_file, os.environ)
        return self._contexts.setdefault("client", made)


def _headers(request: HttpRequest, route: Route) -> list[tuple[str, str]]:
    """The request's own ones, except that compressed streams, which arrive late and in lumps, are not asked for."""
    ours = {"host": route.origin.authority, "content-length": str(len(request.body)), "accept-encoding": "identity"}
    told = [("host", ours["host"])]
    told += [(name, value) for name, value in request.headers if name.lower() not in ours]
    told += [(name, ours[name]) for name in ("accept-encoding", "content-length")]
    if route.is_forwarded and route.proxy is not None:
        told += route.proxy.authorization
    return told
