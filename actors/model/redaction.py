"""The secrets that one request carries, and texts without them.

Pure. A server may say what it was sent, in an error above all; what it says ends on stdout and in the session's file.
So every spelling of a secret that an error may hold (plain, or escaped for JSON once or twice, for a URL or for HTML)
becomes `***`. A value shorter than `LEAST_CHARS` stays: it might be a part of ordinary words, and a text full of holes
hides why a request failed. Of a user name and password the pair counts too, so a short password goes with its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress

from actors.model.url_login import basic, login_in

LEAST_CHARS = 8
MASK = "***"
# Headers that say how to talk and not who talks. All others may hold secrets: their values are the user's.
_OPEN_HEADERS = frozenset(
    (
        "accept",
        "accept-encoding",
        "accept-language",
        "anthropic-beta",
        "anthropic-version",
        "connection",
        "content-length",
        "content-type",
        "host",
        "http-referer",
        "openai-beta",
        "referer",
        "user-agent",
        "x-amz-content-sha256",
        "x-amz-date",
        "x-title",
    )
)
_LOGIN_HEADERS = ("authorization", "proxy-authorization", "cookie")
_UNESCAPED = re.compile(r"[A-Za-z0-9]+")
_HTML_NAMES = {"&": b"amp", "<": b"lt", ">": b"gt", '"': b"quot", "'": b"apos"}


def secrets_in(headers: Iterable[tuple[str, str]], *urls: str) -> list[str]:
    """What of a request's headers, of its URL and of its proxy's URL is nobody else's business."""
    found: list[str] = []
    for name, value in headers:
        name = name.lower()
        if name in _OPEN_HEADERS or name.startswith("x-stainless-"):
            continue
        found.append(value)
        if name in _LOGIN_HEADERS:
            found += _pieces(value)
    for url in urls:
        login = login_in(url)
        if login:
            found += (*_pair(login), basic(login).partition(" ")[2])
    return found


def _pieces(value: str) -> Iterator[str]:
    """The parts of `Bearer TOKEN`, `Basic BASE64`, `SCHEME name=value, name=value` and of cookies."""
    scheme, _, rest = value.partition(" ")
    if scheme.lower() == "basic":
        from base64 import b64decode

        with suppress(ValueError):
            yield from _pair(b64decode(rest).decode())
    yield rest
    for piece in re.split(r"[\s,;]+", rest or value):
        yield piece
        yield piece.partition("=")[2]


def _pair(login: str) -> tuple[str, str]:
    """Of `user:password`; as a URL has it percent-encoded is one of the spellings."""
    return login, login.partition(":")[2]


class Redaction:
    """A value. `may_be_in` is cheap and errs on the side of yes."""

    __slots__ = ("_needles", "_pattern", "_secrets")

    def __init__(self, secrets: Iterable[str]) -> None:
        known = {secret for secret in secrets if len(secret) >= LEAST_CHARS}
        self._secrets = sorted(known, key=len, reverse=True)  # the longest first, since others are parts of it
        needles = {_needle(secret) for secret in known}
        self._needles = [one for one in needles if not any(other in one and other != one for other in needles)]
        self._pattern: re.Pattern[bytes] | None = None

    def __repr__(self) -> str:
        return f"Redaction(of {len(self._secrets)})"

    def __bool__(self) -> bool:
        return bool(self._secrets)

    def may_be_in(self, data: bytes) -> bool:
        for needle in self._needles:  # noqa: SIM110 - any() would take twice as long, for every delta of a stream
            if needle in data:
                return True
        return False

    def data(self, data: bytes) -> bytes:
        if not self.may_be_in(data):
            return data
        if self._pattern is None:
            self._pattern = re.compile(b"|".join(map(_spellings, self._secrets)))
        return self._pattern.sub(MASK.encode(), data)

    def text(self, text: str) -> str:
        data = text.encode("utf-8", "surrogatepass")
        return self.data(data).decode("utf-8", "surrogatepass")

    def cut_text(self, data: bytes) -> bytes:
        """`data` that may have been cut anywhere: the beginning of a secret at its end goes too."""
        data = self.data(data)
        for secret in map(str.encode, self._secrets):
            for size in range(len(secret) - 1, LEAST_CHARS - 1, -1):
                if data.endswith(secret[:size]):
                    return data[:-size] + MASK.encode()
        return data


def _needle(secret: str) -> bytes:
    """The longest part that looks the same in every spelling; of a secret without one, nothing, which is everywhere."""
    return max(_UNESCAPED.findall(secret), key=len, default="").encode()


def _spellings(secret: str) -> bytes:
    return b"".join(re.escape(x.encode()) if _UNESCAPED.fullmatch(x) else _spelling(x) for x in secret)


def _spelling(character: str) -> bytes:
    plain = character.encode("utf-8", "surrogatepass")
    code, units = ord(character), character.encode("utf-16-be", "surrogatepass")
    escapes = b"".join(rb"\\+u" + units[at : at + 2].hex().encode() for at in range(0, len(units), 2))
    ways = [b"(?i:%s)" % escapes, b"(?i:%s)" % b"".join(b"%%%02x" % byte for byte in plain)]
    ways.append(b"(?i:&#(?:0*%d|x0*%x);)" % (code, code))
    if character in _HTML_NAMES:
        ways.append(b"&%s;" % _HTML_NAMES[character])
    ways.append(rb"\\*" + re.escape(plain))  # the last, since escapes of `%`, `&` and a backslash begin with themselves
    return b"(?:%s)" % b"|".join(ways)
