"""The user name and password that a URL may carry: shown to nobody, sent as a Basic header.

Pure, and cheap to load. Made for base URLs that users write, so what is no URL is handled with care: where the login
cannot be told from the address, everything before the last `@` goes.
"""

from __future__ import annotations

import re

_START = r"(?:[A-Za-z][A-Za-z0-9+.-]*:)?//"


def without_login(url: str) -> str:
    """`scripted:` and other URLs without `//` stay as they are."""
    start, login, rest = _split(url)
    return url if login is None else start + rest


def login_in(url: str) -> str | None:
    """`user:password`, percent-encoding decoded."""
    login = _split(url)[1]
    if not login:
        return None
    from urllib.parse import unquote

    user, _, password = login.partition(":")
    return f"{unquote(user)}:{unquote(password)}"


def basic(login: str) -> str:
    """The value of an Authorization header."""
    from binascii import b2a_base64

    return "Basic " + b2a_base64(login.encode("utf-8", "surrogatepass"), newline=False).decode()


def _split(url: str) -> tuple[str, str | None, str]:
    """What stands before the login, the login, and the rest."""
    if "@" not in url:
        return "", None, url
    start = re.match(_START, url)
    if start is None:
        return "", None, url
    rest = url[start.end() :]
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if "@" not in authority and _is_address(authority):
        return start[0], None, rest
    login, at, _ = (rest if "@" not in authority else authority).rpartition("@")
    return (start[0], login, rest[len(login) + 1 :]) if at else (start[0], None, rest)


def _is_address(authority: str) -> bool:
    """Whether this is a host and maybe a port; the beginning of a password with a slash in it is not."""
    return re.fullmatch(r"(?:\[[^\]]*\]|[^:]*)(?::[0-9]*)?", authority) is not None
