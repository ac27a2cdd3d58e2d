"""Why a call failed: the kinds of failure, and one sentence for each.

The sentences name host, port and times. Nothing of the request or of an exception's own text gets into them, except
what the system or the TLS library says of the connection.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from actors.model.route import Route
    from actors.model.transport_contract import TransportSettings


Limit = Literal["total", "answer", "event"]
"""Of time: that of the whole call, that until the head of the answer, that until the next event."""


class NetworkFailure(Exception):
    """A step of the call did not work. Never leaves the transport. `is_at_proxy`: before the way to the origin was
    open, so the proxy is to blame. `is_ours`: what we were given is wrong, and would be wrong again."""

    is_at_proxy = False
    is_ours = False


class ConnectTimeout(NetworkFailure):
    """No connection, or no TLS on it, in time."""


class ConnectFailed(NetworkFailure):
    """`cause` is what the system or the TLS library raised."""

    def __init__(self, cause: Exception | None) -> None:
        super().__init__()
        self.cause = cause


class Silent(NetworkFailure):
    """The server neither sent nor took a byte in time."""


class Dropped(NetworkFailure):
    """The connection ended, or carried what is not HTTP, before the answer was complete."""


class ProxyRefused(NetworkFailure):
    """`reason` is ours, or a proxy's status line."""

    def __init__(self, reason: str) -> None:
        super().__init__()
        self.reason = reason


class BadHeader(NetworkFailure):
    """The request has a header that HTTP does not allow; its text is not kept, since it may be a key."""

    is_ours = True


class BadCaFile(NetworkFailure):
    is_ours = True

    def __init__(self, path: str, cause: OSError) -> None:
        super().__init__()
        self.path = path
        self.cause = cause


def error_text(error: Exception, route: Route, settings: TransportSettings, overdue: Limit | None) -> str:
    """`overdue` is the limit of the call that has passed, whichever step noticed it."""
    host = peer = place = route.origin.name
    if route.proxy is not None and (route.is_forwarded or getattr(error, "is_at_proxy", False)):
        peer = f"proxy {route.proxy.endpoint.name} (for {host})"
        place = f"proxy {route.proxy.endpoint.name}, for {host}"
    match error:
        case ConnectTimeout() | Silent() if overdue == "total":
            return f"Request timed out after {_ms(settings.total_timeout_s)}ms ({place})"
        case ConnectTimeout() | Silent() if overdue == "answer":
            return f"Request timed out after {_ms(settings.answer_timeout_s)}ms without an answer ({place})"
        case ConnectTimeout() | Silent() if overdue == "event":
            return _silence(settings.event_timeout_s)
        case ConnectTimeout():
            return f"Connection timed out after {_ms(settings.connect_timeout_s)}ms ({place})"
        case Silent():
            return _silence(settings.idle_timeout_s)
        case ConnectFailed():
            return _connect_text(error.cause, peer)
        case ProxyRefused():
            return f"Connection error: the proxy refused to connect to {host} ({error.reason[:80]})"
        case Dropped():
            return f"Connection lost: {peer} closed the connection before the response was complete"
        case BadHeader():
            return f"The request to {host} has a header that HTTP does not allow; check the model's headers and key"
        case BadCaFile():
            told = error.cause.strerror or type(error.cause).__name__
            return f"The CA file {error.path[:80]!r} cannot be used: {told}"
    return f"Connection error: {type(error).__name__} ({place})"


def _silence(seconds: float | None) -> str:
    return f"Provider stream timed out after {_ms(seconds)}ms without a new event (stream deadline exceeded)"


def _connect_text(cause: Exception | None, host: str) -> str:
    """`host` may be words that end with one."""
    if isinstance(cause, socket.gaierror | UnicodeError):
        return f"Network error: the host of {host} cannot be found (getaddrinfo ENOTFOUND)"
    if isinstance(cause, ConnectionRefusedError):
        return f"Connection refused by {host}"
    if _is_tls(cause):
        told = getattr(cause, "verify_message", None) or getattr(cause, "reason", None)
        return f"TLS connection to {host} failed: {told or 'the server broke off the handshake'}"
    told = cause.strerror if isinstance(cause, OSError) and cause.strerror else "no reason given"
    return f"Connection error: cannot connect to {host} ({told})"


def _is_tls(cause: Exception | None) -> bool:
    """By name: importing ssl would cost a plain connection 10 ms."""
    return any(kind.__name__ == "SSLError" for kind in type(cause).__mro__)


def _ms(seconds: float | None) -> int:
    return round((seconds or 0) * 1000)
