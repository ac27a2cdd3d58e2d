"""The tree of a session as JSON, at depths where recursion ends."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.json_text import BadJson
from protocol.tree_json import read_deep, tree_data


def raws_of(count: int) -> list[bytes]:
    return [b'{"id":"%d"}' % position for position in range(count)]


def nested(position: int, children: list[list[int]], labels: dict[int, tuple[str, str]]) -> dict[str, Any]:
    """What the contract says a node is, built the recursive way."""
    below = [nested(child, children, labels) for child in children[position]]
    node: dict[str, Any] = {"children": below, "entry": {"id": str(position)}}
    if position in labels:
        node["label"], node["labelTimestamp"] = labels[position]
    return node


@st.composite
def forests(draw: st.DrawFn) -> tuple[list[int], list[list[int]]]:
    count = draw(st.integers(0, 12))
    roots: list[int] = []
    children: list[list[int]] = [[] for _ in range(count)]
    for position in range(count):
        parent = draw(st.integers(-1, position - 1))
        (roots if parent < 0 else children[parent]).append(position)
    return roots, children


@given(forests(), st.dictionaries(st.integers(0, 11), st.tuples(st.text(), st.text())), st.none() | st.text())
@settings(max_examples=150)
def test_any_forest_is_written_as_the_contract_nests_it(
    forest: tuple[list[int], list[list[int]]], labels: dict[int, tuple[str, str]], leaf: str | None
) -> None:
    roots, children = forest
    text = tree_data(raws_of(len(children)), roots, children, labels, leaf)
    expected = {"tree": [nested(root, children, labels) for root in roots], "leafId": leaf}
    decoded = json.loads(text)
    assert json.dumps(decoded) == json.dumps(json.loads(json.dumps(expected)))
    assert read_deep(text) == decoded


def test_a_chain_of_four_thousand_entries_round_trips() -> None:
    count = 4000
    children = [[position + 1] for position in range(count - 1)] + [[]]
    text = tree_data(raws_of(count), [0], children, {count - 1: ("deep", "t")}, str(count - 1))
    (node,) = read_deep(text)["tree"]
    for position in range(count - 1):
        assert node["entry"] == {"id": str(position)} and "label" not in node
        (node,) = node["children"]
    assert node == {"entry": {"id": "3999"}, "children": [], "label": "deep", "labelTimestamp": "t"}


def test_entries_are_copied_as_they_stand() -> None:
    assert tree_data([b'{"n": 1e400}'], [0], [[]], {}, None) == (
        b'{"tree":[{"children":[],"entry":{"n": 1e400}}],"leafId":null}'
    )


@given(st.text(st.sampled_from('[]{},:"a1 -.\\n'), max_size=12))
@settings(max_examples=300)
def test_the_deep_reader_agrees_with_the_standard_library(text: str) -> None:
    try:
        expected = json.loads(text)
    except ValueError:
        with pytest.raises(BadJson):
            read_deep(text.encode())
    else:
        assert read_deep(text.encode()) == expected


def test_the_deep_reader_has_no_bottom() -> None:
    value = read_deep(b"[" * 50_000 + b"]" * 50_000)
    depth = 1
    while value:
        (value,) = value
        depth += 1
    assert depth == 50_000
