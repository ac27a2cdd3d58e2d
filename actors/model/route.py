"""Where a request goes: its host, a proxy on the way, and how the request names its target.

Pure. It promises that no text of an error holds a user name, a password or a query. URLs are split here and not by
urllib.parse, whose import takes 3 ms that the first prompt would wait for.
"""

from __future__ import annotations

import re

from msgspec import Struct

# RFC 3986: user information ends at the last @ before the path; an IPv6 address stands in brackets. Both cases are
# spelt: a pattern that folds them takes 2 ms to make, and each start with a models.json makes this one.
_URL = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?:(?P<user>[^/?#]*)@)?"
    r"(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<host>[^/?#@:\[\]\\\s]+))(?::(?P<port>[0-9]{0,5}))?"
    r"(?P<path>/[^?#]*)?(?P<query>\?[^#]*)?(?:#.*)?"
)
_PORTS = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}


class BadUrl(ValueError):
    """The text is for the user."""


class Endpoint(Struct, frozen=True):
    """What a socket is connected to, and by which scheme. `host` is ASCII, without brackets."""

    scheme: str
    host: str
    port: int

    @property
    def name(self) -> str:
        """Host and port for people and for CONNECT."""
        return f"{_bracketed(self.host)}:{self.port}"

    @property
    def authority(self) -> str:
        """The value of the Host header: the port only where it is not the scheme's own."""
        return _bracketed(self.host) if self.port == _PORTS[self.scheme] else self.name


class Proxy(Struct, frozen=True):
    """`user` and `password` are None without user information in the URL, and are never shown."""

    endpoint: Endpoint
    user: str | None
    password: str | None

    def __repr__(self) -> str:
        return f"Proxy({self.endpoint})"

    @property
    def is_socks(self) -> bool:
        return self.endpoint.scheme.startswith("socks")

    @property
    def authorization(self) -> tuple[tuple[str, str], ...]:
        """The header that a HTTP proxy wants, if it wants one."""
        if self.user is None:
            return ()
        from binascii import b2a_base64

        pair = f"{self.user}:{self.password}".encode()
        return (("proxy-authorization", "Basic " + b2a_base64(pair, newline=False).decode()),)


class Route(Struct, frozen=True):
    """`target` is path and query, percent-encoded where HTTP wants it."""

    origin: Endpoint
    target: str
    proxy: Proxy | None = None

    @property
    def is_forwarded(self) -> bool:
        """A HTTP proxy sends `http://` requests on; for everything else it only makes a tunnel."""
        return self.proxy is not None and not self.proxy.is_socks and self.origin.scheme == "http"

    @property
    def request_target(self) -> str:
        return f"http://{self.origin.authority}{self.target}" if self.is_forwarded else self.target


def route_to(url: str, proxy: str | None, no_proxy: tuple[str, ...]) -> Route:
    """Raises `BadUrl` for what is no http:// or https:// URL, or for a proxy that is none."""
    found = _URL.fullmatch(url)
    origin = _endpoint(found, ("http", "https"))
    if found is None or origin is None:
        raise BadUrl(f"The model's base URL {_shown(url)!r} is not a http:// or https:// URL with a host")
    target = _quoted((found["path"] or "/") + (found["query"] or ""))
    is_direct = not proxy or bypasses(origin.host, no_proxy)
    return Route(origin, target, None if is_direct else parse_proxy(proxy or ""))


def host_of(url: str) -> str:
    """The host that `url` names, in small letters and without brackets; empty for what is no URL."""
    found = _URL.fullmatch(url)
    return "" if found is None else (found["v6"] or found["host"]).lower()


def parse_proxy(url: str) -> Proxy:
    found = _URL.fullmatch(url)
    endpoint = _endpoint(found, tuple(_PORTS))
    if found is None or endpoint is None:
        raise BadUrl(f"The proxy {_shown(url)!r} is not a http://, https:// or socks5:// URL with a host")
    if not found["user"]:
        return Proxy(endpoint, None, None)
    from urllib.parse import unquote

    user, _, password = found["user"].partition(":")
    return Proxy(endpoint, unquote(user), unquote(password))


def bypasses(host: str, no_proxy: tuple[str, ...]) -> bool:
    """Whether `host` is one of the names or below one of them; `*` is every host."""
    names = [name.lstrip(".") for name in no_proxy]
    return any(name == "*" or host == name or host.endswith(f".{name}") for name in names)


def _endpoint(found: re.Match[str] | None, schemes: tuple[str, ...]) -> Endpoint | None:
    if found is None or found["scheme"].lower() not in schemes:
        return None
    scheme = found["scheme"].lower()
    port = int(found["port"] or _PORTS[scheme])
    host = (found["v6"] or found["host"]).lower()
    try:
        # The codec costs 2 ms to load, and hardly any host needs it.
        host = host if host.isascii() else host.encode("idna").decode()
    except UnicodeError:
        return None
    return Endpoint(scheme, host, port) if 0 < port < 65536 else None


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _quoted(target: str) -> str:
    if target.isascii() and target.isprintable() and " " not in target:
        return target
    return "".join(x if "!" <= x <= "~" else "".join(f"%{byte:02X}" for byte in x.encode()) for x in target)


def _shown(url: str) -> str:
    return url.partition("?")[0].rpartition("@")[2][:80]
