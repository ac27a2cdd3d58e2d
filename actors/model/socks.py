"""The client's side of SOCKS5, as far as a TCP connection needs it (RFC 1928, RFC 1929).

Pure: a generator yields what to send and how many bytes to read, and is sent what was read. Names are resolved by
the proxy.
"""

from __future__ import annotations

from collections.abc import Generator

from actors.model.route import Endpoint, Proxy
from actors.model.transport_errors import ProxyRefused

_NO_PASSWORD, _PASSWORD = 0, 2
_REPLIES = (
    "succeeded",
    "general failure",
    "not allowed by its rules",
    "network unreachable",
    "host unreachable",
    "connection refused",
    "the connection took too long",
    "command not supported",
    "address type not supported",
)


def socks5(proxy: Proxy, origin: Endpoint) -> Generator[tuple[bytes, int], bytes, None]:
    """Ends when the tunnel stands; raises ProxyRefused."""
    method = _NO_PASSWORD if proxy.user is None else _PASSWORD
    answer = yield bytes((5, 1, method)), 2
    if answer != bytes((5, method)):
        raise ProxyRefused("it wants another way of authentication, or does not speak SOCKS5")
    if proxy.user is not None:
        answer = yield b"\x01" + _counted(proxy.user) + _counted(proxy.password or ""), 2
        if answer[1] != 0:
            raise ProxyRefused("user name or password are wrong")
    request = b"\x05\x01\x00" + _address(origin.host) + origin.port.to_bytes(2, "big")
    # One byte more than the fixed part: the first of the address, which for a name is its length.
    version, reply, _, kind, first = yield request, 5
    if version != 5 or reply != 0:
        raise ProxyRefused(_REPLIES[reply] if version == 5 and reply < len(_REPLIES) else "an unknown answer")
    yield b"", {1: 4, 4: 16}.get(kind, first + 1) - 1 + 2


def _counted(text: str) -> bytes:
    data = text.encode()
    if len(data) > 255:
        raise ProxyRefused("user name, password and host may have 255 bytes each")
    return bytes((len(data),)) + data


def _address(host: str) -> bytes:
    import socket

    for kind, family in ((1, socket.AF_INET), (4, socket.AF_INET6)):
        try:
            return bytes((kind,)) + socket.inet_pton(family, host)
        except OSError:
            continue
    return b"\x03" + _counted(host)
