"""Names: they are filled in everywhere, found everywhere, and a value keeps its type through `$ref`."""

from __future__ import annotations

import pytest

from conformance.names import bound_names, fill, resolve, used_names


def test_a_name_is_filled_into_texts_and_keys() -> None:
    assert resolve({"{{k}}": ["{{v}}/x", 5]}, {"k": "a", "v": "/w"}) == {"a": ["/w/x", 5]}


def test_a_reference_keeps_the_value_as_it_is() -> None:
    assert resolve({"id": {"$ref": "id"}}, {"id": [1, None]}) == {"id": [1, None]}


def test_a_text_many_times() -> None:
    assert resolve({"message": {"$times": [3, "{{a}}-"]}}, {"a": "x"}) == {"message": "x-x-x-"}


def test_braces_that_hold_no_name_stay() -> None:
    assert fill('{"a": {}} {{ x }} ${{HOME}', {}) == '{"a": {}} {{ x }} ${{HOME}'


def test_an_unknown_name_is_an_error() -> None:
    with pytest.raises(KeyError, match="nope"):
        fill("{{nope}}", {})


def test_names_that_are_used_and_bound_are_found() -> None:
    value = {"a": {"$ref": "one"}, "b": ["{{two}}"], "{{three}}": 1, "c": {"$contains": {"id": {"$bind": "four"}}}}
    assert sorted(used_names(value)) == ["one", "three", "two"]
    assert list(bound_names({"x": value, "y": {"$bind": ["five", {"z": {"$bind": "six"}}]}})) == ["four", "six", "five"]
