"""Where a move in the tree leads, and which entries it leaves behind."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.session.tree import Tree
from actors.session.tree_move import Destination, destination, left_behind
from protocol.entry_head import read_entry


def tree_of(*entries: dict[str, Any]) -> Tree:
    tree = Tree()
    for entry in entries:
        raw = json.dumps({"type": "custom", "timestamp": "2026-01-01T00:00:00.000Z", **entry}).encode()
        head = read_entry(raw)
        assert head is not None
        tree.add(raw, head)
    return tree


def node(entry_id: str, parent: str | None, **fields: Any) -> dict[str, Any]:
    return {"id": entry_id, "parentId": parent, **fields}


def user(text: str) -> dict[str, Any]:
    return {"type": "message", "message": {"role": "user", "content": [{"type": "text", "text": text}], "timestamp": 1}}


def reply() -> dict[str, Any]:
    return {"type": "message", "message": {"role": "assistant", "content": [], "stopReason": "stop", "timestamp": 1}}


def noted(text: str) -> dict[str, Any]:
    return {"type": "custom_message", "customType": "n", "content": text, "display": True}


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (user("hi"), Destination("r", "hi")),
        (noted("note"), Destination("r", "note")),
        (reply(), Destination("t")),
        ({"type": "label", "targetId": "r"}, Destination("t")),
    ],
    ids=["user", "custom message", "reply", "label"],
)
def test_a_move_stops_before_what_the_user_said(entry: dict[str, Any], expected: Destination) -> None:
    tree = tree_of(node("r", None), node("t", "r", **entry))
    target = tree.get("t")
    assert target is not None
    assert destination(tree, target) == expected


def test_before_a_first_message_there_is_no_leaf() -> None:
    tree = tree_of(node("t", None, **user("hi")))
    target = tree.get("t")
    assert target is not None
    assert destination(tree, target) == Destination(None, "hi")


@pytest.mark.parametrize(
    ("target", "expected"),
    [("c", []), ("b", ["c"]), ("r", ["a", "b", "c"]), ("x", ["b", "c"]), ("z", ["r", "a", "b", "c"])],
    ids=["the leaf", "its parent", "the root", "another branch", "another root"],
)
def test_what_is_left_begins_behind_the_common_ancestor(target: str, expected: list[str]) -> None:
    tree = tree_of(node("r", None), node("a", "r"), node("x", "a"), node("z", None), node("b", "a"), node("c", "b"))
    assert [entry.head.id for entry in left_behind(tree, target)] == expected


def test_moving_on_along_the_branch_leaves_nothing() -> None:
    tree = tree_of(node("r", None), node("a", "r"), node("b", "a"))
    tree.branch("r")
    assert left_behind(tree, "b") == []


def test_without_a_leaf_nothing_is_left() -> None:
    tree = tree_of(node("r", None))
    tree.reset()
    assert left_behind(tree, "r") == []


@given(st.lists(st.integers(0, 30), min_size=1, max_size=12), st.data())
def test_what_is_left_and_what_is_shared_make_up_the_branch(parents: list[int], data: st.DataObject) -> None:
    entries = [
        node(str(number), str(parent % number) if number and parent % (number + 1) else None)
        for number, parent in enumerate(parents)
    ]
    tree = tree_of(*entries)
    tree.branch(str(data.draw(st.integers(0, len(parents) - 1))))
    target = str(data.draw(st.integers(0, len(parents) - 1)))
    left = [entry.head.id for entry in left_behind(tree, target)]
    path = [entry.head.id for entry in tree.path(tree.leaf_id)]
    shared = path[: len(path) - len(left)]
    assert shared + left == path
    there = [entry.head.id for entry in tree.path(target)]
    assert there[: len(shared)] == shared
    assert not set(left) & set(there)
