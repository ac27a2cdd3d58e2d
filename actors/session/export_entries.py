"""Cards of entries that are no messages: changes of model and level, labels, compactions, summaries, foreign kinds.

Owns what a card is. Source: `sessions.md` 1.3 and 9.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import UNSET, Struct

from actors.session.export_parts import Part, Parts
from actors.session.tree import Entry

LINE = 140  # characters of a line in the tree


class Card(Struct):
    """`position` is that of the entry. `line` is its text in the tree, `quiet` one that only the filter "all" shows,
    `tool_only` a reply that holds nothing but calls, `shown` whether its entry is on the opened path."""

    position: int
    id: str
    kind: str
    title: str = ""
    time: str = ""
    meta: str = ""
    line: str = ""
    parts: list[Part] = []
    quiet: bool = False
    failed: bool = False
    tool_only: bool = False
    nested: bool = False
    shown: bool = False


def one_line(text: str) -> str:
    return " ".join(text.split())[:LINE]


def fill_entry(card: Card, entry: Entry, parts: Parts) -> None:
    """Complete `card`, made for `entry`, which is no message."""
    _KINDS.get(entry.head.type, _fill_other)(card, entry, parts)


def fill_summary(card: Card, summary: str, parts: Parts) -> None:
    card.kind, card.title, card.line = "branch", "Summary of another branch", summary[: LINE * 4]
    card.parts = parts.text(summary)


def _fill_branch(card: Card, entry: Entry, parts: Parts) -> None:
    fill_summary(card, entry.head.summary or "", parts)


def _fill_compaction(card: Card, entry: Entry, parts: Parts) -> None:
    head = entry.head
    tokens = f"{head.tokens_before:,.0f} tokens before" if head.tokens_before else ""
    card.kind, card.title, card.meta = "compaction", "Compaction", tokens
    card.line = tokens or card.title
    if head.summary:
        card.parts = [parts.details("What was kept", head.summary)]


def _fill_model(card: Card, entry: Entry, _parts: Parts) -> None:
    card.kind, card.title = "model", f"Model: {entry.head.provider or '?'}/{entry.head.model_id or '?'}"
    card.line = card.title


def _fill_level(card: Card, entry: Entry, _parts: Parts) -> None:
    card.kind, card.title = "level", f"Thinking level: {entry.head.thinking_level or '?'}"
    card.line = card.title


def _fill_label(card: Card, entry: Entry, _parts: Parts) -> None:
    label = entry.head.label
    card.kind, card.quiet, card.title = "label", True, f"Label: {label}" if label else "Label removed"
    card.line = card.title


def _fill_name(card: Card, entry: Entry, _parts: Parts) -> None:
    card.kind, card.quiet, card.title = "name", True, f"Session name: {entry.head.name or '(removed)'}"
    card.line = card.title


def _fill_session_summary(card: Card, entry: Entry, parts: Parts) -> None:
    card.kind, card.quiet, card.title = "summary", True, "Session summary"
    card.parts = parts.text(entry.head.summary or "")
    card.line = entry.head.summary or card.title


def _fill_other(card: Card, entry: Entry, parts: Parts) -> None:
    head = entry.head
    card.kind, card.quiet = "other", True
    card.title = f"{head.type}: {head.custom_type}" if head.custom_type else head.type
    card.line = card.title
    if head.data is not UNSET:
        card.parts = [parts.details("Data", bytes(head.data).decode(errors="replace"))]


_KINDS: dict[str, Callable[[Card, Entry, Parts], None]] = {
    "branch_summary": _fill_branch,
    "compaction": _fill_compaction,
    "model_change": _fill_model,
    "thinking_level_change": _fill_level,
    "label": _fill_label,
    "session_info": _fill_name,
    "session_summary": _fill_session_summary,
}
