"""What a compaction works on: the region that lines are taken out of, and the tail that stays as it is.

Derived from the entries of the branch. An earlier boundary's text begins the new region, so that its lines are ranked
anew; its tail is serialised again. Replies that were asked for again are in neither. Whether a result still has its
call does not matter here. Pure.
Source: `sessions.md` 2.1 and 2.3.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec import Struct

from actors.session.compaction.parameters import Wish
from actors.session.compaction.region import Region, region_of
from actors.session.context import (
    context_message,
    estimate_tokens,
    is_boundary,
    path_messages,
    retried_ids,
    without,
)
from actors.session.provider_view import shown_message, trimmed
from actors.session.stored import text_of
from actors.session.tokens import message_tokens
from actors.session.transcript import compacted
from actors.session.tree import Entry
from protocol.compaction import CompactionParameters
from protocol.messages import AssistantMessage, CustomMessage, Message, ToolResultMessage, UserMessage


class Preparation(Struct, frozen=True):
    """`first_kept` is the entry that the tail begins with, None without a tail; `tail_tokens` is its estimate,
    `tokens_before` the whole context's. `tail` are its messages, `retried` the entries among them that are replies
    which were asked for again."""

    region: Region
    parameters: CompactionParameters
    first_kept: str | None
    tail_tokens: int
    tokens_before: int
    tail: tuple[Message, ...] = ()
    retried: tuple[str, ...] = ()

    @property
    def whole(self) -> Region:
        """The region with the tail in it, for a run that keeps neither."""
        return region_of("\n\n".join(("\n".join(self.region.lines), compacted(self.tail))))


class Interrupted(Struct, frozen=True):
    """What the live context is without. `dropped` are entries of replies that were asked for again, and `again` is the
    one that will be, after this compaction: it still counts for the length of the tail."""

    dropped: frozenset[str] = frozenset()
    again: str | None = None


UNINTERRUPTED = Interrupted()


class _Visible(Struct, frozen=True):
    entry_id: str
    message: Message


def prepare(path: Sequence[Entry], wish: Wish, interrupted: Interrupted = UNINTERRUPTED) -> Preparation | None:
    """For the branch `path`, root first; None when there is nothing before the tail."""
    visible, earlier_text, retried = _source(path, interrupted.dropped)
    parameters = wish.effective(_said_last(path))
    tokens_before = estimate_tokens(path_messages(path))
    cut = max(0, len(visible) - parameters.preserve_recent)
    if interrupted.again is not None:
        cut = min(cut, _work_start(visible, interrupted.again, tokens_before))
        retried |= {interrupted.again}
    tail = [each for each in visible[cut:] if each.entry_id != interrupted.again]
    fresh_text = compacted(each.message for each in visible[:cut] if each.entry_id != interrupted.again)
    region = region_of("\n".join(filter(None, (earlier_text, fresh_text))))
    if not region.lines:
        return None
    return Preparation(
        region,
        parameters,
        tail[0].entry_id if tail else None,
        sum(message_tokens(each.message) for each in tail),
        tokens_before,
        tuple(each.message for each in tail),
        _after(path, tail[0].entry_id, retried) if tail else (),
    )


def _after(path: Sequence[Entry], first: str, ids: Collection[str]) -> tuple[str, ...]:
    """Those of `ids` that stand behind `first` on the branch, in order."""
    order = [entry.head.id for entry in path]
    return tuple(each for each in order[order.index(first) :] if each in ids)


def _work_start(visible: Sequence[_Visible], again: str, tokens_before: int) -> int:
    """Where the work begins that goes on after the compaction. The prompts that nothing has answered yet are always
    kept; a turn that has come further is, unless it takes more than half of the context: then it is shortened too."""
    start = next((place for place in reversed(range(len(visible))) if _is_prompt(visible[place])), len(visible))
    while start and start < len(visible) and _is_prompt(visible[start - 1]):
        start -= 1
    work = [each.message for each in visible[start:] if each.entry_id != again]
    is_answered = any(isinstance(message, AssistantMessage) for message in work)
    if is_answered and 2 * sum(map(message_tokens, work)) > tokens_before:
        return len(visible)
    return start


def _is_prompt(visible: _Visible) -> bool:
    return isinstance(visible.message, UserMessage | CustomMessage)


def _source(path: Sequence[Entry], dropped: frozenset[str]) -> tuple[list[_Visible], str, frozenset[str]]:
    """The messages since the earlier boundary, its tail included, and its text; and the entries that are left out,
    those of that boundary included."""
    places = [place for place, entry in enumerate(path) if entry.head.type == "compaction"]
    boundary = next((place for place in reversed(places) if is_boundary(path[place])), None)
    if boundary is None:
        return _visible(without(path, dropped)), "", dropped
    head = path[boundary].head
    dropped |= retried_ids(path[boundary])
    kept = (place for place in range(boundary) if path[place].head.id == head.first_kept_entry_id)
    return _visible(without(path[next(kept, boundary + 1) :], dropped)), head.summary or "", dropped


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
