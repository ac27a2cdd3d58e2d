"""Markdown as HTML that cannot do anything: no markup of the text's own, no address that runs script, no request.

Owns the rules for addresses. A link that they refuse leaves its text; an image is never loaded, it becomes a link to
its address, or its description alone. Source: `sessions.md` 9 and edge case 106.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from actors.session.export_code import Highlighter, escape

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_core import StateCore
    from markdown_it.token import Token

LIMIT = 60_000  # characters; more is shown as it stands, since some texts take the parser quadratic time
SCHEMES = ("http", "https", "mailto", "tel", "ftp")
# Control characters, and those that are not seen: browsers leave out some of them before they read the scheme.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]")
_ALIGNED = {"text-align:left": "left", "text-align:right": "right", "text-align:center": "center"}


def visible_address(address: str) -> str:
    """`address` without control characters, unseen characters and outer blanks."""
    return _UNSEEN.sub("", address).strip()


def is_safe_address(address: str) -> bool:
    """Whether a link may lead there: a known scheme, or none. An address without scheme that names a host is refused,
    since in a page from a file it would mean a network share."""
    seen = visible_address(address)
    scheme, colon, _ = re.split(r"[/?#\\]", seen, maxsplit=1)[0].partition(":")
    if colon:
        return scheme.lower() in SCHEMES
    return bool(seen) and not re.match(r"[/\\]{2}", seen)


class Markdown:
    """A parser with the rules of this page. Code blocks are coloured by `highlighter`."""

    def __init__(self, highlighter: Highlighter) -> None:
        from markdown_it import MarkdownIt

        self._highlighter = highlighter
        self._parser = MarkdownIt("commonmark", {"html": False, "highlight": self._code})
        self._parser.enable(["table", "strikethrough"])
        _guard(self._parser)

    def html(self, text: str) -> str:
        """`text` rendered; as it stands when it is too long or the parser fails. Never raises."""
        if len(text) <= LIMIT:
            try:
                return str(self._parser.render(text))
            except Exception:
                pass
        return f'<div class="plain">{escape(text)}</div>'

    def _code(self, code: str, language: str, _attributes: str) -> str:
        return f'<pre class="hl"><code>{self._highlighter.html(code, language)}</code></pre>'


def _guard(parser: MarkdownIt) -> None:
    """Every address passes the parser, and its token is judged afterwards: a refused link is then still its text."""
    normalize = parser.normalizeLink

    def visible(address: str) -> str:
        return normalize(visible_address(address))

    parser.normalizeLink = visible  # type: ignore[method-assign, assignment]
    parser.validateLink = lambda url: True  # type: ignore[method-assign]
    parser.core.ruler.push("guard", _guard_tokens)


def _guard_tokens(state: StateCore) -> None:
    for token in state.tokens:
        style = token.attrs.pop("style", None)
        if style in _ALIGNED:
            token.attrs["class"] = _ALIGNED[str(style)]
        if token.children:
            token.children = list(_guarded(token.children))


def _guarded(children: Iterable[Token]) -> Iterable[Token]:
    kept: list[bool] = []
    for token in children:
        if token.type == "link_open":
            address = str(token.attrs.get("href", ""))
            kept.append(is_safe_address(address))
            if kept[-1]:
                token.attrs = _link(address)
                yield token
        elif token.type == "link_close":
            if kept and kept.pop():
                yield token
        elif token.type == "image":
            yield from _described(token, linked=any(kept))
        else:
            yield token


def _described(image: Token, *, linked: bool) -> Iterable[Token]:
    from markdown_it.token import Token

    address = str(image.attrs.get("src", ""))
    text = Token("text", "", 0, content=f"[{image.content or 'image'}]")
    if linked or not is_safe_address(address):
        return [text]
    return [Token("link_open", "a", 1, attrs=_link(address)), text, Token("link_close", "a", -1)]


def _link(address: str) -> dict[str, Any]:
    return {"href": address, "target": "_blank", "rel": "noopener noreferrer nofollow"}
