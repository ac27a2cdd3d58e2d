"""Shapes: each matcher accepts what it says and refuses the rest, and a difference tells its place and both sides."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.json_values import ABSENT, same, shorten
from conformance.matchers import MATCHERS
from conformance.shapes import ShapeError, check_shape, match

# matcher -> (shape, values that match, values that do not)
EXAMPLES: dict[str, tuple[Any, list[Any], list[Any]]] = {
    "$any": ({"$any": True}, [None, 0, "x", []], [ABSENT]),
    "$absent": ({"$absent": True}, [ABSENT], [None, 0, ""]),
    "$type": ({"$type": ["integer", "null"]}, [1, 2.0, None], [True, 1.5, "1", ABSENT]),
    "$re": ({"$re": "^a.c$"}, ["abc"], ["xabc", 5, ABSENT]),
    "$starts": ({"$starts": "ab"}, ["abc"], ["xab", None]),
    "$ends": ({"$ends": "bc"}, ["abc"], ["bcd", None]),
    "$in": ({"$in": [1, "x"]}, [1, 1.0, "x"], [True, "1", ABSENT]),
    "$min": ({"$min": 2}, [2, 2.5], [1, True, "3", ABSENT]),
    "$max": ({"$max": 2}, [2, -1], [3, False, "1", ABSENT]),
    "$len": ({"$len": {"$min": 2}}, ["ab", [1, 2], {"a": 1, "b": 2}], ["a", 5, ABSENT]),
    "$contains": ({"$contains": {"a": 1}}, [[0, {"a": 1, "b": 2}]], [[], [{"a": 2}], "a", {"a": 1}, ABSENT]),
    "$ordered": ({"$ordered": [1, {"$min": 5}]}, [[0, 1, 3, 9]], [[9, 1], [1], 1, ABSENT]),
    "$said": ({"$said": [{"role": "user"}]}, [[{"role": "system"}, {"role": "user"}]], [[], [{"role": "tool"}], 1]),
    "$each": ({"$each": {"$min": 1}}, [[], [1, 2]], [[1, 0], 1, ABSENT]),
    "$exact": ({"$exact": {"a": 1}}, [{"a": 1}], [{"a": 1, "b": 2}, {}, 1]),
    "$optional": ({"$optional": 5}, [ABSENT, None, 5], [6, False]),
    "$not": ({"$not": 5}, [6, None, ABSENT], [5, 5.0]),
    "$or": ({"$or": [5, {"a": 1}]}, [5, {"a": 1}], [6, {}, ABSENT]),
    "$all": ({"$all": [{"$contains": "a"}, {"$contains": "b"}]}, ["ba"], ["a", "b"]),
    "$bind": ({"$bind": ["x", {"$min": 5}]}, [5], [4]),
    "$ref": ({"$ref": "known"}, [{"deep": [1]}], [{"deep": [2]}, ABSENT]),
    "$json": ({"$json": {"a": 1}}, ['{"a": 1, "b": 2}'], ["{", 5, '{"a": 2}', ABSENT]),
    "$times": ({"$times": [3, "ab"]}, ["ababab"], ["abab", ABSENT]),
    "$literal": ({"$literal": {"$any": True}}, [{"$any": True}], [5, {}, ABSENT]),
}
NAMES = {"known": {"deep": [1]}, "cwd": "/work"}


def test_every_matcher_has_examples() -> None:
    assert set(EXAMPLES) == set(MATCHERS)


@pytest.mark.parametrize("name", sorted(MATCHERS))
def test_a_matcher_accepts_and_refuses(name: str) -> None:
    shape, good, bad = EXAMPLES[name]
    check_shape(shape)
    assert [value for value in good if match(shape, value, NAMES).difference] == []
    assert [value for value in bad if match(shape, value, NAMES).difference is None] == []


def test_a_text_that_is_contained() -> None:
    assert match({"$contains": "{{cwd}}/a"}, "in /work/a.txt", NAMES).difference is None
    assert match({"$contains": "b"}, "in /work/a.txt", NAMES).difference is not None


def test_an_object_may_have_more_and_a_list_may_not() -> None:
    assert match({"a": {"b": [1]}}, {"a": {"b": [1], "c": 2}, "d": 3}, {}).difference is None
    found = match({"a": [1]}, {"a": [1, 2]}, {})
    assert found.difference == ("a", "1 items", "[1, 2]")


def test_the_first_difference_is_told_with_its_path() -> None:
    found = match({"type": "response", "data": {"exitCode": 0}}, {"type": "response", "data": {"exitCode": 1}}, {})
    assert found.difference == ("data.exitCode", "0", "1")
    assert match({"data": {"x": 1}}, {}, {}).difference == ("data", "an object", "nothing")


def test_an_item_that_is_missed_is_told_by_the_nearest() -> None:
    items = [{"name": "a", "x": 1}, {"name": "b", "x": 2}]
    assert match({"l": {"$contains": {"name": "b", "x": 3}}}, {"l": items}, {}).difference == ("l.1.x", "3", "2")
    found = match({"$contains": {"name": "c"}}, items, {}).difference
    assert found is not None
    assert found.awaited == 'an item {"name": "c"}'


def test_the_score_grows_with_what_agrees() -> None:
    shape = {"type": "a", "id": "1", "data": {"x": 1}}
    near, far = {"type": "a", "id": "1", "data": {"x": 2}}, {"type": "b", "id": "1"}
    assert match(shape, near, {}).score > match(shape, far, {}).score


def test_a_name_that_is_bound_is_known_to_the_rest_of_the_shape() -> None:
    shape = {"id": {"$bind": "id"}, "again": {"$ref": "id"}}
    assert match(shape, {"id": 7, "again": 7}, {}).bound == {"id": 7}
    assert match(shape, {"id": 7, "again": 8}, {}).difference == ("again", "7", "8")


def test_nothing_is_bound_by_an_item_that_did_not_match() -> None:
    shape = {"$contains": {"id": {"$bind": "id"}, "ok": True}}
    assert match(shape, [{"id": 1, "ok": False}, {"id": 2, "ok": True}], {}).bound == {"id": 2}


@pytest.mark.parametrize(
    ("shape", "place"),
    [
        ({"a": {"$nope": 1}}, "a.$nope"),
        ({"a": [{"$min": "1"}]}, "a.0.$min"),
        ({"$re": "("}, "$re"),
        ({"$type": "float"}, "$type"),
        ({"$any": True, "b": 1}, "the shape"),
        ({"$or": []}, "$or"),
        ({"$or": [{"$bad": 1}]}, "$or.0.$bad"),
        ({"$bind": "a b"}, "$bind"),
        ({"$bind": ["a", {"$bad": 1}]}, "$bind.$bad"),
        ({"$exact": 5}, "$exact"),
        ({"$times": "ab"}, "$times"),
    ],
)
def test_a_shape_that_cannot_be_meant_is_refused_at_its_place(shape: Any, place: str) -> None:
    with pytest.raises(ShapeError) as refused:
        check_shape(shape)
    assert str(refused.value).startswith(f"{place}: ")


def test_equality_is_that_of_json() -> None:
    assert same({"a": [0, "x"]}, {"a": [0.0, "x"]})
    assert not same(1, True)
    assert not same([0], [False])
    assert not same({"a": 1}, {"a": 1, "b": 2})


def test_a_long_value_is_cut_in_its_middle() -> None:
    text = shorten("x" * 500, 80)
    assert (len(text), text[:3], text[-3:]) == (80, '"xx', 'xx"')
