"""Why a call failed, in one sentence.

Pure but for its types: it looks at exceptions of httpcore2 and names host, port and times. Nothing of the request or
of an exception's own text gets into the result, except what the system or the TLS library says of the connection.
"""

from __future__ import annotations

import socket
import ssl
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import httpcore2

if TYPE_CHECKING:
    from actors.model.transport import TransportSettings


def error_text(error: Exception, url: str, settings: TransportSettings, is_overdue: bool) -> str:
    """`is_overdue`: the call's total time is over, whichever step noticed it."""
    host = _host(url)
    if isinstance(error, httpcore2.TimeoutException) and is_overdue:
        return f"Request timed out after {_ms(settings.total_timeout_s)}ms ({host})"
    if isinstance(error, httpcore2.ConnectTimeout):
        return f"Connection timed out after {_ms(settings.connect_timeout_s)}ms ({host})"
    if isinstance(error, httpcore2.TimeoutException):
        shown = _ms(settings.idle_timeout_s)
        return f"Provider stream timed out after {shown}ms without a new event (stream deadline exceeded)"
    if isinstance(error, httpcore2.ConnectError):
        return _connect_text(error.args[0] if error.args else None, host)
    if isinstance(error, httpcore2.ProxyError):
        return f"Connection error: the proxy refused to connect to {host} ({str(error)[:80]})"
    if isinstance(error, httpcore2.NetworkError | httpcore2.RemoteProtocolError):
        return f"Connection lost: {host} closed the connection before the response was complete"
    if isinstance(error, httpcore2.LocalProtocolError | UnicodeEncodeError):
        return f"The request to {host} has a header that HTTP does not allow; check the model's headers and key"
    if isinstance(error, OSError):
        return f"The CA file {str(settings.ca_file)[:80]!r} cannot be used: {error.strerror or type(error).__name__}"
    return f"Connection error: {type(error).__name__} ({host})"


def _connect_text(cause: object, host: str) -> str:
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"TLS connection to {host} failed: {cause.verify_message}"
    if isinstance(cause, ssl.SSLError):
        return f"TLS connection to {host} failed: {cause.reason or 'the server broke off the handshake'}"
    if isinstance(cause, socket.gaierror):
        return f"Network error: the host of {host} cannot be found (getaddrinfo ENOTFOUND)"
    if isinstance(cause, ConnectionRefusedError):
        return f"Connection refused by {host}"
    told = cause.strerror if isinstance(cause, OSError) and cause.strerror else "no reason given"
    return f"Connection error: cannot connect to {host} ({told})"


def _host(url: str) -> str:
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        return "the model's base URL"
    return f"{parts.hostname}:{port}"


def _ms(seconds: float | None) -> int:
    return round((seconds or 0) * 1000)
