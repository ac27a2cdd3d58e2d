"""What a compaction works on: the region that lines are taken out of, and the tail that stays as it is.

Derived from the entries of the branch. An earlier boundary's text begins the new region, so that its lines are ranked
anew; its tail is serialised again. Whether a result still has its call does not matter here. Pure.
Source: `sessions.md` 2.1 and 2.3.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from actors.session.compaction.parameters import Wish
from actors.session.compaction.region import Region, region_of
from actors.session.context import context_message, estimate_tokens, is_boundary, path_messages
from actors.session.provider_view import shown_message, trimmed
from actors.session.stored import text_of
from actors.session.tokens import message_tokens
from actors.session.transcript import compacted
from actors.session.tree import Entry
from protocol.messages import AssistantMessage, Message, ToolResultMessage
from protocol.responses import CompactionParameters


class Preparation(Struct, frozen=True):
    """`first_kept` is the entry that the tail begins with, None without a tail; `tail_tokens` is its estimate,
    `tokens_before` the whole context's."""

    region: Region
    parameters: CompactionParameters
    first_kept: str | None
    tail_tokens: int
    tokens_before: int


class _Visible(Struct, frozen=True):
    entry_id: str
    message: Message


def prepare(path: Sequence[Entry], wish: Wish) -> Preparation | None:
    """For the branch `path`, root first; None when there is nothing before the tail."""
    visible, earlier_text = _source(path)
    parameters = wish.effective(_said_last(path))
    cut = max(0, len(visible) - parameters.preserve_recent)
    tail = visible[cut:]
    fresh_text = compacted(each.message for each in visible[:cut])
    region = region_of("\n".join(filter(None, (earlier_text, fresh_text))))
    if not region.lines:
        return None
    return Preparation(
        region,
        parameters,
        tail[0].entry_id if tail else None,
        sum(message_tokens(each.message) for each in tail),
        estimate_tokens(path_messages(path)),
    )


def _source(path: Sequence[Entry]) -> tuple[list[_Visible], str]:
    """The messages since the earlier boundary, its tail included, and its text."""
    places = [place for place, entry in enumerate(path) if entry.head.type == "compaction"]
    boundary = next((place for place in reversed(places) if is_boundary(path[place])), None)
    if boundary is None:
        return _visible(path), ""
    head = path[boundary].head
    kept = (place for place in range(boundary) if path[place].head.id == head.first_kept_entry_id)
    return _visible(path[next(kept, boundary + 1) :]), head.summary or ""


def _visible(entries: Sequence[Entry]) -> list[_Visible]:
    found = []
    for entry in entries:
        stored = context_message(entry)
        if stored is not None and shown_message(message := stored.message()) is not None:
            found.append(_Visible(entry.head.id, message))
    return found


def _said_last(path: Sequence[Entry]) -> str:
    """What the user, or somebody in the user's place, said last."""
    for entry in reversed(path):
        stored = context_message(entry)
        shown = None if stored is None else shown_message(stored.message())
        if shown is None or isinstance(shown, AssistantMessage | ToolResultMessage):
            continue
        content = shown.content
        texts = [content] if isinstance(content, str) else [text_of([block]) for block in content]
        if text := trimmed("\n".join(filter(None, texts))):
            return text
    return ""
