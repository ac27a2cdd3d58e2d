"""Opens a line to where a route leads: straight, or through a proxy that forwards or makes a tunnel."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from actors.model.http1 import Exchange
from actors.model.line import Line, connect
from actors.model.transport_errors import Dropped, NetworkFailure, ProxyRefused

if TYPE_CHECKING:
    import ssl

    from actors.model.route import Endpoint, Proxy, Route
    from actors.model.transport_call import Call


def dial(route: Route, call: Call, context: Callable[[], ssl.SSLContext]) -> Line:
    """`context` is asked only where TLS is due. Raises the kinds of NetworkFailure that a connect has; leaves no
    socket open then."""
    line = connect(route.origin, call) if route.proxy is None else _dial_proxy(route.proxy, route, call, context)
    try:
        if route.origin.scheme == "https":
            line.start_tls(context(), route.origin.host, call)
    except BaseException:
        line.close()
        raise
    return line


def _dial_proxy(proxy: Proxy, route: Route, call: Call, context: Callable[[], ssl.SSLContext]) -> Line:
    try:
        line = connect(proxy.endpoint, call)
        try:
            _pass(proxy, route, line, call, context)
        except BaseException:
            line.close()
            raise
    except NetworkFailure as failure:
        failure.is_at_proxy = True
        raise
    return line


def _pass(proxy: Proxy, route: Route, line: Line, call: Call, context: Callable[[], ssl.SSLContext]) -> None:
    if proxy.endpoint.scheme == "https":
        line.start_tls(context(), proxy.endpoint.host, call)
    if proxy.is_socks:
        _tunnel_by_socks(proxy, route.origin, line, call)
    elif not route.is_forwarded:
        _tunnel_by_connect(proxy, route.origin, line, call)


def _tunnel_by_connect(proxy: Proxy, origin: Endpoint, line: Line, call: Call) -> None:
    exchange = Exchange("CONNECT", origin.name, (("host", origin.name), *proxy.authorization))
    exchange.send(line, call)
    head = exchange.head(line, call)
    if not 200 <= head.status_code < 300:
        raise ProxyRefused(f"{head.status_code} {bytes(head.reason).decode('ascii', 'ignore')}".rstrip())
    if exchange.left_over:  # what a proxy says before the server could must not pass for the server's
        raise Dropped


def _tunnel_by_socks(proxy: Proxy, origin: Endpoint, line: Line, call: Call) -> None:
    from actors.model.socks import socks5

    steps = socks5(proxy, origin)
    out, count = next(steps)
    received = b""
    while True:
        line.write(out, call)
        while len(received) < count:
            data = line.read(call)
            if not data:
                raise ProxyRefused("it closed the connection")
            received += data
        answer, received = received[:count], received[count:]
        try:
            out, count = steps.send(answer)
        except StopIteration:
            break
    if received:
        raise Dropped
