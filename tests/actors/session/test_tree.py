"""The tree of a session: order, leaf, path, labels and name, also for files that no sane writer made."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.session.tree import Tree, UnknownEntry, fresh_id
from protocol.entry_head import read_entry
from protocol.tree_json import read_deep

SECOND = "2026-01-01T00:00:{:02d}.000Z"


def line(entry_id: str, parent: str | None, second: int = 0, **fields: Any) -> bytes:
    base = {"type": "custom", "id": entry_id, "parentId": parent, "timestamp": SECOND.format(second), **fields}
    return json.dumps(base, separators=(",", ":")).encode()


def tree_of(*lines: bytes) -> Tree:
    tree = Tree()
    for raw in lines:
        head = read_entry(raw)
        assert head is not None
        tree.add(raw, head)
    return tree


def ids(entries: list[Any]) -> list[str]:
    return [entry.head.id for entry in entries]


def listed(nodes: list[Any]) -> list[str]:
    """The ids of all nodes, parents before children."""
    found, stack = [], list(reversed(nodes))
    while stack:
        node = stack.pop()
        found.append(node["entry"]["id"])
        stack.extend(reversed(node["children"]))
    return found


def test_the_last_entry_is_the_leaf_whatever_its_type() -> None:
    tree = tree_of(line("a", None), line("b", "a"), line("n", "b", type="session_info", name="x"))
    assert tree.leaf_id == "n"
    assert ids(tree.path(tree.leaf_id)) == ["a", "b", "n"]


def test_an_empty_tree_has_no_leaf_and_no_path() -> None:
    assert Tree().leaf_id is None
    assert Tree().path(None) == []
    assert json.loads(Tree().tree_data()) == {"tree": [], "leafId": None}


def test_branching_moves_the_leaf_only_and_refuses_unknown_ids() -> None:
    tree = tree_of(line("a", None), line("b", "a"))
    tree.branch("a")
    assert tree.leaf_id == "a" and len(tree) == 2
    with pytest.raises(UnknownEntry, match=r"^Entry zz not found$"):
        tree.branch("zz")
    tree.reset()
    assert tree.leaf_id is None


def test_entries_after_a_cursor_are_those_of_all_branches_in_append_order() -> None:
    lines = [line("a", None), line("b", "a"), line("c", "a")]
    tree = tree_of(*lines)
    assert tree.entries_after("a") == lines[1:]
    assert tree.entries_after(None) == lines
    assert json.loads(tree.entries_data("c")) == {"entries": [], "leafId": "c"}


def test_an_unknown_cursor_is_named_in_the_error() -> None:
    with pytest.raises(UnknownEntry) as caught:
        tree_of(line("a", None)).entries_after("zz")
    assert str(caught.value) == "Entry not found: zz"


def test_children_stand_by_time_and_ties_in_append_order() -> None:
    tree = tree_of(line("a", None), line("late", "a", 9), line("tie1", "a", 3), line("tie2", "a", 3), line("r", None))
    data = json.loads(tree.tree_data())
    assert listed(data["tree"]) == ["a", "tie1", "tie2", "late", "r"]
    assert data["leafId"] == "r"


def test_orphans_and_self_parents_are_roots() -> None:
    tree = tree_of(line("a", "nowhere"), line("b", "b"), line("c", "a"))
    assert [node["entry"]["id"] for node in json.loads(tree.tree_data())["tree"]] == ["a", "b"]
    assert ids(tree.path("c")) == ["a", "c"] and ids(tree.path("b")) == ["b"]


def test_a_cycle_with_a_duplicate_id_lists_every_entry_once_and_ends_the_path() -> None:
    tree = tree_of(line("a1", "a3"), line("a2", "a1"), line("a3", "a2"), line("a2", "a3"))
    assert sorted(listed(json.loads(tree.tree_data())["tree"])) == ["a1", "a2", "a2", "a3"]
    assert ids(tree.path("a2")) == ["a3", "a2"]


def test_of_duplicate_ids_the_last_is_found_and_both_are_listed() -> None:
    first, second = line("a", None, data=1), line("a", None, data=2)
    tree = tree_of(first, second)
    found = tree.get("a")
    assert found is not None and found.raw == second
    assert tree.entries_after(None) == [first, second]


def test_a_chain_of_4000_entries_is_walked_and_written_without_recursion() -> None:
    tree = tree_of(*(line(f"n{i}", f"n{i - 1}" if i else None) for i in range(4000)))
    assert len(tree.path("n3999")) == 4000
    assert listed(read_deep(tree.tree_data())["tree"]) == [f"n{i}" for i in range(4000)]


def test_the_last_label_of_a_target_counts_and_a_cleared_one_is_gone() -> None:
    tree = tree_of(
        line("a", None),
        line("l1", "a", 1, type="label", targetId="a", label="one"),
        line("l2", "l1", 2, type="label", targetId="a", label="two"),
        line("l3", "l2", 3, type="label", targetId="l1", label="gone"),
        line("l4", "l3", 4, type="label", targetId="l1"),
        line("l5", "l4", 5, type="label", targetId="nowhere", label="lost"),
    )
    node = read_deep(tree.tree_data())["tree"][0]
    assert (node["label"], node["labelTimestamp"]) == ("two", SECOND.format(2))
    assert "label" not in node["children"][0] and "labelTimestamp" not in node["children"][0]


def test_the_name_is_that_of_the_latest_session_info_of_any_branch() -> None:
    tree = tree_of(line("a", None), line("b", "a", type="session_info", name="  Work  "))
    tree.branch("a")
    assert tree.name == "Work"


def test_a_name_that_was_cleared_is_none() -> None:
    tree = tree_of(line("b", None, type="session_info", name="Work"), line("c", "b", type="session_info", name=" \t"))
    assert tree.name is None


def test_a_new_id_is_eight_digits_and_tried_again_when_taken() -> None:
    tree = tree_of(line("aaaaaaaa", None))
    uuids = iter(["aaaaaaaa-1111", "bbbbbbbb-2222"])
    assert tree.new_id(lambda: next(uuids)) == "bbbbbbbb"


def test_when_no_short_id_is_free_a_whole_uuid_is_taken() -> None:
    numbers = itertools.count()
    assert fresh_id(lambda: f"aaaaaaaa-{next(numbers)}", {"aaaaaaaa"}) == "aaaaaaaa-100"


NAMES = st.sampled_from("abcdef")


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(NAMES, st.none() | NAMES, st.integers(0, 3)), max_size=12))
def test_whatever_the_parents_every_entry_appears_once_and_every_path_ends(
    rows: list[tuple[str, str | None, int]],
) -> None:
    tree = tree_of(*(line(entry_id, parent, second) for entry_id, parent, second in rows))
    assert sorted(listed(read_deep(tree.tree_data())["tree"])) == sorted(row[0] for row in rows)
    for entry_id, _, _ in rows:
        path = ids(tree.path(entry_id))
        assert path[-1] == entry_id and len(set(path)) == len(path)
