"""Forks and clones copy one branch, whole, with its labels."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest

from actors.session.context import build_context
from actors.session.forking import (
    INVALID_FORK,
    NO_LEAF,
    ForkTexts,
    InvalidFork,
    branch_lines,
    clone_point,
    fork_point,
    inherited_workflow,
)
from actors.session.tree import Tree
from protocol.entry_head import WorkflowStage, read_entry


def uuids() -> Callable[[], str]:
    numbers = itertools.count(1)
    return lambda: f"{next(numbers):08x}-0000"


def user(entry_id: str, parent: str | None, *texts: str) -> dict[str, Any]:
    content = [{"type": "text", "text": text} for text in texts]
    message = {"role": "user", "content": content, "timestamp": 1}
    return {"type": "message", "id": entry_id, "parentId": parent, "timestamp": f"t-{entry_id}", "message": message}


def label(entry_id: str, parent: str, target: str, text: str | None) -> dict[str, Any]:
    named = {} if text is None else {"label": text}
    fields = {"type": "label", "id": entry_id, "parentId": parent, "timestamp": f"t-{entry_id}", "targetId": target}
    return {**fields, **named}


def tree_of(*entries: dict[str, Any]) -> Tree:
    return tree_of_lines([json.dumps(entry, separators=(",", ":")).encode() for entry in entries])


def tree_of_lines(lines: list[bytes]) -> Tree:
    tree = Tree()
    for raw in lines:
        head = read_entry(raw)
        assert head is not None
        tree.add(raw, head)
    return tree


def test_a_fork_ends_before_the_user_message_and_returns_its_text() -> None:
    point = fork_point(tree_of(user("a", None, "x"), user("b", "a", "one", "two")), "b")
    assert (point.leaf_id, point.text) == ("a", "onetwo")


def test_a_fork_before_a_root_begins_empty() -> None:
    point = fork_point(tree_of(user("a", None, "x"), user("o", "nowhere", "y")), "o")
    assert point.leaf_id is None
    assert branch_lines(tree_of(), None, uuids()) == []


@pytest.mark.parametrize("entry_id", ["zz", "l"])
def test_only_user_messages_can_be_forked_from(entry_id: str) -> None:
    with pytest.raises(InvalidFork) as caught:
        fork_point(tree_of(user("a", None, "x"), label("l", "a", "a", "L")), entry_id)
    assert str(caught.value) == INVALID_FORK


def test_a_clone_needs_a_leaf() -> None:
    with pytest.raises(InvalidFork) as caught:
        clone_point(Tree())
    assert str(caught.value) == NO_LEAF
    assert clone_point(tree_of(user("a", None, "x"))) == "a"


def test_the_branch_keeps_its_bytes_and_leaves_other_branches_behind() -> None:
    tree = tree_of(user("a", None, "x"), user("b", "a", "off"), user("c", "a", "on"))
    assert branch_lines(tree, "c", uuids()) == [tree.raws[0], tree.raws[2]]


def test_a_label_in_the_middle_does_not_cut_the_history() -> None:
    tree = tree_of(user("a", None, "x"), label("l", "a", "a", "L"), user("b", "l", "y"), user("c", "b", "z"))
    lines = branch_lines(tree, "c", uuids())
    copy = tree_of_lines(lines)
    assert [entry.head.id for entry in copy.path("c")] == ["a", "b", "c"]
    assert len(build_context(copy, copy.leaf_id).messages) == 3
    assert json.loads(lines[1]) == user("b", "a", "y")
    assert json.loads(lines[3]) == {**label("00000001", "c", "a", "L"), "timestamp": "t-l"}


def test_labels_follow_the_branch_in_its_order_with_their_last_text() -> None:
    tree = tree_of(
        user("a", None, "x"),
        user("off", "a", "o"),
        user("b", "a", "y"),
        label("l1", "b", "b", "B"),
        label("l2", "l1", "off", "OFF"),
        label("l3", "l2", "a", "first"),
        label("l4", "l3", "a", "A"),
        label("l5", "l4", "l4", "of a label"),
    )
    copied = [json.loads(line) for line in branch_lines(tree, "l5", uuids())[2:]]
    assert [(each["parentId"], each["targetId"], each["label"], each["timestamp"]) for each in copied] == [
        ("b", "a", "A", "t-l4"),
        ("00000001", "b", "B", "t-l1"),
    ]


def test_a_cleared_label_is_not_copied() -> None:
    tree = tree_of(user("a", None, "x"), label("l1", "a", "a", "A"), label("l2", "l1", "a", None))
    assert len(branch_lines(tree, "l2", uuids())) == 1


def test_a_lone_surrogate_survives_a_new_parent() -> None:
    tree = tree_of(user("a", None, "x"), label("l", "a", "a", "L"), user("b", "l", "bad \ud83d end"))
    assert json.loads(branch_lines(tree, "b", uuids())[1])["message"]["content"][0]["text"] == "bad \ud83d end"


def test_a_cycle_becomes_a_plain_chain() -> None:
    tree = tree_of(user("a", "c", "x"), user("b", "a", "y"), user("c", "b", "z"))
    assert [json.loads(line)["parentId"] for line in branch_lines(tree, "c", uuids())] == [None, "a", "b"]


def test_fork_messages_are_user_messages_with_text_of_all_branches() -> None:
    tree = tree_of(user("a", None, "x"), user("b", "a"), user("c", "a", "y", "z"), label("l", "c", "c", "L"))
    first, second = {"entryId": "a", "text": "x"}, {"entryId": "c", "text": "yz"}
    assert json.loads(ForkTexts().data(tree)) == {"messages": [first, second]}


def test_fork_messages_go_on_from_what_was_read() -> None:
    tree, texts = tree_of(user("a", None, "x")), ForkTexts()
    assert texts.data(Tree()) == b'{"messages":[]}'
    assert texts.data(tree) == texts.data(tree)
    (more,) = tree_of(user("b", "a", "y \ud83d")).entries
    tree.add(more.raw, more.head)
    assert [each["text"] for each in json.loads(texts.data(tree))["messages"]] == ["x", "y \ud83d"]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, None),
        ({"internal": True}, None),
        ({"internal": True, "workflow": {"runId": "r", "stageId": " ", "stageName": "n"}}, None),
        ({"internal": True, "workflow": "x"}, None),
        (
            {"internal": True, "workflow": {"runId": "r", "stageId": "s", "stageName": "n"}},
            WorkflowStage("r", "s", "n"),
        ),
    ],
)
def test_a_complete_workflow_marking_is_inherited(fields: dict[str, Any], expected: WorkflowStage | None) -> None:
    header = read_entry(json.dumps({"type": "session", "id": "s", **fields}).encode())
    assert header is not None and inherited_workflow(header) == expected
