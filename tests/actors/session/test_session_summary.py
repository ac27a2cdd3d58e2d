"""When the line about a session is due, what it is made from, and what is stored."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.session.session_summary import LONGEST_LINE, due_summary, one_line
from actors.session.tree import Tree
from protocol.entry_head import read_entry
from protocol.model import Model, ModelCost

MODEL = Model("m", "M", "scripted", "p", "", True, ("text",), ModelCost(), 1000, 100)


def tree_of(*entries: dict[str, Any]) -> Tree:
    """A chain; ids are e0, e1 and so on."""
    tree = Tree()
    for number, entry in enumerate(entries):
        base = {"id": f"e{number}", "parentId": tree.leaf_id, "timestamp": "2026-01-01T00:00:00.000Z"}
        raw = json.dumps({**base, **entry}).encode()
        head = read_entry(raw)
        assert head is not None
        tree.add(raw, head)
    return tree


def message(role: str, text: str) -> dict[str, Any]:
    content = [{"type": "text", "text": text}]
    return {"type": "message", "message": {"role": role, "content": content, "stopReason": "stop", "timestamp": 1}}


def summarized(through: str) -> dict[str, Any]:
    return {"type": "session_summary", "summary": "S", "summarizedThroughId": through}


BEGIN = ({"type": "model_change"}, {"type": "thinking_level_change"})
TURN = (message("user", "hi"), message("assistant", "hello"))


def test_it_is_due_after_the_first_turn() -> None:
    due = due_summary(tree_of(*BEGIN, *TURN), MODEL)
    assert due is not None
    assert due.through_id == "e3"
    assert due.request.text == "<conversation>\n[User]: hi\n\n[Assistant]: hello\n</conversation>"
    assert (due.request.model, due.request.level) == (MODEL, "off")


@pytest.mark.parametrize(
    "entries",
    [(*BEGIN, TURN[0]), (*BEGIN, *BEGIN), (*BEGIN, *TURN, summarized("e3")), (*BEGIN, *TURN, summarized("e3"), *BEGIN)],
    ids=["short", "nothing said", "has its line", "has its line and more"],
)
def test_it_is_not_due(entries: tuple[dict[str, Any], ...]) -> None:
    assert due_summary(tree_of(*entries), MODEL) is None


def test_a_newer_message_makes_it_due_again() -> None:
    due = due_summary(tree_of(*BEGIN, *TURN, summarized("e3"), *TURN), MODEL)
    assert due is not None and due.through_id == "e6"


def test_only_the_current_branch_counts() -> None:
    tree = tree_of(*BEGIN, *TURN, summarized("e3"))
    tree.branch("e2")
    assert due_summary(tree, MODEL) is None
    assert due_summary(tree_of(*BEGIN, *BEGIN, message("user", " ")), MODEL) is None


def test_the_newest_part_is_asked_about() -> None:
    due = due_summary(tree_of(*BEGIN, message("user", "old"), *[message("user", "x" * 9000)] * 3, *TURN), MODEL)
    assert due is not None
    assert "old" not in due.request.text and due.request.text.endswith("hello\n</conversation>")
    assert len(due.request.text) < 16_100


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        ("  About\n  cats ", "About cats"),
        (" \n ", ""),
        ("x" * 160, "x" * 160),
        ("x" * 161, "x" * 159 + "…"),
        ("x" * 158 + " yy", "x" * 158 + "…"),
    ],
)
def test_the_answer_becomes_one_line(answer: str, line: str) -> None:
    assert one_line(answer) == line


@given(st.text())
def test_a_line_is_short_and_one(answer: str) -> None:
    line = one_line(answer)
    assert len(line) <= LONGEST_LINE and line == line.strip() and "\n" not in line
    assert bool(line) == bool(answer.strip())
