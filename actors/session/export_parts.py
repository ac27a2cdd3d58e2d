"""The parts that an entry is shown with: text, thinking, images, skills, calls and outputs, as values for the template.

Every attribute whose name ends in `_html` holds markup that `export_code` or `export_markdown` made; all others are
plain text, which the template escapes. Source: `sessions.md` 9 and edge cases 107 and 108.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from actors.session.export_code import Highlighter, ansi_html, diff_html, escape, fold, language_of
from actors.session.export_markdown import Markdown
from protocol.codec import encode
from protocol.messages import ImageContent, TextContent, ToolCall, ToolResultMessage, UserContent

LINES = {"bash": 5, "read": 10, "write": 10, "ls": 20, "find": 20, "search": 20}
_OTHER_LINES = 10
_DIFF_LINES = 40
_IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_SKILL = re.compile(
    r'<skill name="([^"\n]*)"(?: location="([^"\n]*)")?[^>\n]*>\n(.*?)\n?</skill>(?:\n\n(.*))?', re.DOTALL
)
_TOLD_IN_TITLE = ("path", "paths", "pattern", "offset", "limit")
_TITLE = ("path", "paths", "pattern", "command", "description")


class Part(Struct):
    """`kind` chooses the template's macro. Of an output `body_html` are the first lines, `rest_html` the `more` others.
    `results` are the cards of a call's results, one a branch."""

    kind: str
    title: str = ""
    label: str = ""
    body_html: str = ""
    rest_html: str = ""
    more: int = 0
    parts: list[Part] = []
    results: list[Any] = []
    call_id: str = ""


class Parts:
    """Makes parts. One a page: it holds the parser and what is left of the highlighter's budget."""

    def __init__(self) -> None:
        self._highlighter = Highlighter()
        self._markdown = Markdown(self._highlighter)

    def text(self, text: str) -> list[Part]:
        return [Part("text", body_html=self._markdown.html(text))] if text.strip() else []

    def thinking(self, text: str) -> list[Part]:
        return [Part("thinking", body_html=self._markdown.html(text))] if text.strip() else []

    def content(self, content: str | Iterable[UserContent]) -> list[Part]:
        """Text as markdown, a skill's text as a card of its own, and images."""
        blocks = [TextContent(content)] if isinstance(content, str) else content
        parts: list[Part] = []
        for block in blocks:
            parts += [image(block)] if isinstance(block, ImageContent) else self._prompted(block.text)
        return parts

    def _prompted(self, text: str) -> list[Part]:
        found = skill_block(text)
        if found is None:
            return self.text(text)
        name, location, body, rest = found
        return [Part("skill", name, location, self._markdown.html(body)), *self.text(rest)]

    def terminal(self, text: str, tool: str = "bash") -> list[Part]:
        return [_output(ansi_html(text), tool)] if text.strip() else []

    def code(self, text: str, language: str, tool: str = "") -> Part:
        return _output(self._highlighter.html(text, language), tool)

    def json(self, value: Any) -> Part:
        return self.code(pretty(value), "json")

    def details(self, title: str, text: str) -> Part:
        """Text that is shown on demand, as it stands."""
        return Part("details", title, body_html=escape(text))

    # ---- tools ---------------------------------------------------------------------------------------------------

    def call(self, call: ToolCall) -> Part:
        return Part("call", call.name, call_title(call), parts=self._arguments(call), call_id=call.id)

    def _arguments(self, call: ToolCall) -> list[Part]:
        arguments = call.arguments
        match call.name:
            case "bash" if isinstance(arguments.get("command"), str):
                return [Part("command", body_html=self._highlighter.html(arguments["command"], "bash"))]
            case "write" if isinstance(arguments.get("content"), str):
                return [self.code(arguments["content"], language_of(str(arguments.get("path"))), "write")]
            case "edit":
                return [_output(diff_html(rows), "edit", _DIFF_LINES)] if (rows := _wanted_edits(arguments)) else []
            case "read" | "ls" | "find" | "search":
                rest = {key: value for key, value in arguments.items() if key not in _TOLD_IN_TITLE}
            case _:
                rest = arguments
        return [self.json(rest)] if rest else []

    def result(self, message: ToolResultMessage, call: ToolCall | None) -> list[Part]:
        """What a tool answered; `call` is the call that it belongs to."""
        texts = "\n".join(block.text for block in message.content if isinstance(block, TextContent))
        images = [image(block) for block in message.content if isinstance(block, ImageContent)]
        if shows_diff(message):
            diff = _output(diff_html(message.details["diff"]), "edit", _DIFF_LINES)
            return [*self.terminal(texts, message.tool_name), diff, *images]
        if message.tool_name == "read" and call is not None and not message.is_error and texts:
            return [self.code(texts, language_of(str(call.arguments.get("path"))), "read"), *images]
        return [*self.terminal(texts, message.tool_name), *images]


def _output(markup: str, tool: str, limit: int = 0) -> Part:
    first, rest, more = fold(markup, limit or LINES.get(tool, _OTHER_LINES))
    return Part("output", body_html=first, rest_html=rest, more=more)


def _wanted_edits(arguments: dict[str, Any]) -> str:
    edits = arguments.get("edits")
    rows: list[str] = []
    for edit in [*(edits if isinstance(edits, list) else []), arguments]:
        if isinstance(edit, dict):
            for mark, key in (("-", "oldText"), ("+", "newText")):
                if isinstance(edit.get(key), str):
                    rows += [mark + line for line in edit[key].split("\n")]
    return "\n".join(rows)


def call_title(call: ToolCall) -> str:
    """The argument that tells calls of one tool apart; empty when there is none."""
    keys = _TITLE if call.name != "bash" else ("description",)
    for key in keys:
        value = call.arguments.get(key)
        if isinstance(value, str) and value:
            return value[:300] + _range(call)
        if isinstance(value, list) and value:
            return ", ".join(str(item) for item in value[:5])[:300]
    return ""


def _range(call: ToolCall) -> str:
    offset, limit = call.arguments.get("offset"), call.arguments.get("limit")
    if call.name != "read" or not (isinstance(offset, int) or isinstance(limit, int)):
        return ""
    offset = offset if isinstance(offset, int) else 1
    return f":{offset}-{offset + limit - 1}" if isinstance(limit, int) else f":{offset}"


def shows_diff(message: ToolResultMessage) -> bool:
    """Whether a result tells what was changed, so that the call need not show what was wanted."""
    return not message.is_error and isinstance(message.details, dict) and isinstance(message.details.get("diff"), str)


def image(block: ImageContent) -> Part:
    """An image that the page holds itself; one of another kind, or with data that is not base64, is only named."""
    data = "".join(block.data.split())
    if block.mime_type in _IMAGE_TYPES and _BASE64.fullmatch(data):
        return Part("image", block.mime_type, f"data:{block.mime_type};base64,{data}")
    return Part("note", f"Image not shown: {block.mime_type[:80] or 'unknown type'}")


def skill_block(text: str) -> tuple[str, str, str, str] | None:
    """Name, location and body of the skill that a prompt begins with, and what the user wrote after it."""
    found = _SKILL.fullmatch(text.strip()) if text.lstrip().startswith("<skill ") else None
    if found is None:
        return None
    from html import unescape

    return unescape(found[1]), unescape(found[2] or ""), found[3], (found[4] or "").strip()


def pretty(value: Any) -> str:
    """JSON with one member a line; on one line when it is nested too deep for that."""
    import json

    try:
        return json.dumps(value, ensure_ascii=False, indent=2)
    except (RecursionError, TypeError, ValueError):
        return encode(value).decode()
