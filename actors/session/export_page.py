"""The page of a session: one HTML file that needs nothing beside itself.

Promises: the page asks the network for nothing and runs no script but its own; its policy names both by hash, so that
a browser would refuse whatever slipped through. Without script it shows the opened path. The session itself is inside,
as compressed JSON lines for the download. Secrets are not looked for. Source: `sessions.md` 9.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from msgspec import UNSET

from actors.session.export_cards import cards
from actors.session.export_entries import Card, one_line
from actors.session.export_outline import Outline
from actors.session.export_parts import pretty
from actors.session.stats import session_stats
from actors.session.tree import Tree
from protocol.codec import encode
from protocol.entry_head import EntryHead
from protocol.responses import SessionStats

if TYPE_CHECKING:
    from jinja2 import Template

    from actors.model.prompt import ToolSpec

Theme = Literal["auto", "dark", "light"]
_TEMPLATES = os.path.join(os.path.dirname(__file__), "templates")
_POLICY = "default-src 'none'; img-src data:; style-src '{}'; script-src '{}'; base-uri 'none'; form-action 'none'"


def render_page(
    tree: Tree,
    header: EntryHead,
    *,
    leaf_id: str | None,
    name: str | None,
    system_prompt: str | None,
    tools: Sequence[ToolSpec] | None,
    theme: Theme = "auto",
) -> str:
    """The whole page, valid Unicode. `leaf_id` is the entry whose path is opened; `system_prompt` and `tools` are what
    a live session would send, `None` for one that is read from a file."""
    outline = Outline(tree, leaf_id)
    made = cards(tree, outline.parents)
    for card in made:
        card.shown = card.position in outline.path
    labels = {target: label for target, (label, _) in tree.labels().items()}
    style, script = _read("page.css"), _read("page.js")
    page = _template().render(
        policy=_POLICY.format(_digest(style), _digest(script)),
        style_html=style,
        script_html=script,
        theme=theme,
        title=name or _first_prompt(made) or header.id,
        facts=_facts(header, session_stats(tree, header.id), made),
        system_prompt=system_prompt,
        tools=[(tool.name, tool.description, pretty(tool.parameters)) for tool in tools or ()],
        cards=made,
        labels=labels,
        outline_html=outline.script_data(made, labels),
        archive=_archive(header, tree.raws),
        file_name=_file_name(header.id),
    )
    return _unicode(page)


# ---- the head of the page ----------------------------------------------------------------------------------------


def _first_prompt(made: list[Card]) -> str:
    return next((card.line for card in made if card.kind == "user"), "")[:80]


def _facts(header: EntryHead, stats: SessionStats, made: list[Card]) -> list[tuple[str, str]]:
    models = {card.meta.partition(" · ")[0]: None for card in made if card.kind == "assistant" and card.meta}
    tokens = stats.tokens
    told = [
        ("Session", header.id),
        ("Started", header.timestamp[:19].replace("T", " ")),
        ("Folder", header.cwd or ""),
        ("Continues", header.parent_session or ""),
        ("Models", ", ".join(models)),
        ("Messages", f"{stats.user_messages} user, {stats.assistant_messages} assistant, {stats.tool_results} tool"),
        ("Tokens", f"{tokens.input:,} in, {tokens.output:,} out, {tokens.cache_read:,} cache read, "
                   f"{tokens.cache_write:,} cache write" if tokens.total else ""),
        ("Cost", f"${stats.cost:.4f}" if stats.cost else ""),
    ]  # fmt: skip
    return [(fact, value) for fact, value in told if value]


# ---- what the page is made of ------------------------------------------------------------------------------------


@cache
def _read(name: str) -> str:
    with open(os.path.join(_TEMPLATES, name), encoding="utf-8") as file:
        return file.read()


@cache
def _template() -> Template:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    loader = FileSystemLoader(_TEMPLATES)
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template("page.html")


def _digest(text: str) -> str:
    """How a policy names the text of an element."""
    from base64 import b64encode
    from hashlib import sha256

    return "sha256-" + b64encode(sha256(text.encode()).digest()).decode()


def _archive(header: EntryHead, lines: list[bytes]) -> str:
    """The session's file, compressed, as base64. The same session gives the same text."""
    from base64 import b64encode
    from gzip import compress

    return b64encode(compress(b"\n".join([_header_line(header), *lines, b""]), 6, mtime=0)).decode()


def _header_line(header: EntryHead) -> bytes:
    fields: dict[str, Any] = {
        "type": "session",
        "version": header.version,
        "id": header.id,
        "timestamp": header.timestamp,
        "cwd": header.cwd,
        "parentSession": header.parent_session,
        "internal": header.internal,
        "workflow": None if header.workflow is UNSET else header.workflow,
    }
    return encode({key: value for key, value in fields.items() if value is not None})


def _file_name(session_id: str) -> str:
    kept = "".join(character if character.isalnum() or character in "._-" else "-" for character in session_id)
    return f"{one_line(kept) or 'session'}.jsonl"


def _unicode(text: str) -> str:
    """Lone surrogates, and NUL (which HTML does not know), become U+FFFD."""
    text = text.replace("\0", "\ufffd")
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
