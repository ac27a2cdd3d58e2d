"""Compactions of a conversation that goes on between them, from stored entries to the context and back."""

from __future__ import annotations

import json
import re
from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st

from actors.session.compaction.boundary import planned_boundary
from actors.session.compaction.ladder import Ask, Ladder, Plan
from actors.session.compaction.outcome import outcome_of
from actors.session.compaction.parameters import Wish
from actors.session.compaction.preparation import prepare
from actors.session.context import build_context
from actors.session.fallback import Place
from actors.session.tree import Tree
from protocol.codec import encode
from protocol.entry_head import read_entry
from protocol.messages import AssistantMessage, TextContent, Usage
from protocol.model import Model, ModelCost

MODEL = Model("m", "m", "a", "p", "http://x", False, ("text",), ModelCost(), 100_000, 100)
ROLES = st.sampled_from(("user", "assistant", "toolResult"))
TEXTS = st.lists(
    st.sampled_from(("one", "two", "", "<keepContext>", "</keepContext>", "caf\u00e9", "[User]: quoted")),
    min_size=1,
    max_size=14,
).map("\n".join)
ANSWERS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=6).map(
    lambda ranges: "\n".join(f"{start},{end}" for start, end in ranges)
) | st.text(alphabet="0123456789,\n ", max_size=20)
MARKER = re.compile(r"\(filtered ([0-9]+) lines\)")


class Conversation:
    """A branch in memory."""

    def __init__(self) -> None:
        self.tree = Tree()

    def append(self, kind: str, **fields: Any) -> None:
        stamps = {"id": f"e{len(self.tree)}", "parentId": self.tree.leaf_id, "timestamp": "2026-02-01T10:00:05.000Z"}
        raw = encode({"type": kind, **stamps, **fields})
        head = read_entry(raw)
        assert head is not None
        self.tree.add(raw, head)

    def say(self, role: str, text: str) -> None:
        message: dict[str, Any] = {"role": role, "content": [{"type": "text", "text": text}], "timestamp": 5}
        if role == "assistant":
            names = {"api": "a", "provider": "p", "model": "m", "stopReason": "stop"}
            message |= {**names, "usage": json.loads(encode(Usage()))}
        elif role == "toolResult":
            message |= {"toolCallId": "t", "toolName": "read", "isError": False}
        self.append("message", message=message)

    def text(self) -> str:
        """All that the model sees, as lines."""
        found = []
        for each in build_context(self.tree, self.tree.leaf_id).messages:
            message = each.message()
            content: Any = getattr(message, "content", [])
            found.append("".join(block.text for block in content if isinstance(block, TextContent)))
        return "\n".join(found)


def planned(conversation: Conversation, answer: str, stop: Any, window: int, *, must: bool) -> Any:
    """Compacts as the session does, with this answer of every planner; None if nothing comes of it."""
    found = prepare(conversation.tree.path(conversation.tree.leaf_id), Wish(preserve_recent=2))
    if found is None:
        return None
    ladder = Ladder(found.region, Place(MODEL, "off"), None, (), (), must_succeed=must)
    step = ladder.begin()
    while isinstance(step, Ask):
        reply = AssistantMessage([TextContent(answer)], "a", "p", "m", Usage(), stop, 1)
        step = ladder.answered(outcome_of(reply, step.view, MODEL.context_window))
    return (found, planned_boundary(found, step, window, None)) if isinstance(step, Plan) else None


ROUND = st.tuples(
    st.lists(st.tuples(ROLES, TEXTS), max_size=6),
    ANSWERS,
    st.sampled_from(("stop", "length")),
    st.booleans(),
    st.sampled_from((100_000, 2)),
)


@settings(max_examples=60)
@given(st.lists(ROUND, min_size=1, max_size=4))
def test_every_line_is_there_or_counted_whatever_planners_say(rounds: list[Any]) -> None:
    conversation = Conversation()
    for said, answer, stop, must, window in rounds:
        for role, text in said:
            conversation.say(role, text)
        before = conversation.text()
        outcome = planned(conversation, answer, stop, window, must=must)
        if outcome is None:
            assert conversation.text() == before
            continue
        found, boundary = outcome
        event(boundary.result.rung)
        text = boundary.result.compacted_text
        drops_tail = found.first_kept is not None and boundary.result.first_kept_entry_id is None
        event(f"the tail is dropped: {drops_tail}")
        region = found.whole if drops_tail else found.region
        assert _stands_for(text.split("\n")) == _stands_for(region.lines)
        assert _kept_in_order(text.split("\n"), list(region.lines))
        for start, end in region.protected:
            assert "\n".join(region.lines[start - 1 : end]) in text
        conversation.append("compaction", **boundary.entry)
        (shown,) = build_context(conversation.tree, conversation.tree.leaf_id).messages
        assert text in json.loads(shown.raw)["content"][0]["text"]


def _stands_for(lines: Any) -> int:
    found = [MARKER.fullmatch(line) for line in lines]
    return sum(1 if each is None else int(each[1]) for each in found)


def _kept_in_order(text: list[str], lines: list[str]) -> bool:
    """Every line that is no marker is found in the region, behind the one before it."""
    place = 0
    for line in text:
        if MARKER.fullmatch(line):
            continue
        if line not in lines[place:]:
            return False
        place += lines[place:].index(line) + 1
    return True
