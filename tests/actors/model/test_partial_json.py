"""Arguments and events that are no proper JSON are read as far as they mean something."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.model.partial_json import MAX_DEPTH, decode_event, is_too_deep, parse_arguments

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=100)
@given(st.dictionaries(st.text(max_size=5), VALUES, max_size=4), st.data())
def test_whole_arguments_come_back_and_a_cut_one_is_a_part_of_them(value: dict[str, Any], data: st.DataObject) -> None:
    text = json.dumps(value, ensure_ascii=data.draw(st.booleans()))
    assert parse_arguments(text) == value
    part = parse_arguments(text[: data.draw(st.integers(0, len(text)))])
    assert part.keys() <= value.keys()


@settings(max_examples=150)
@given(st.text(alphabet='{}[]",:\\u0dn8 \x01\ud83d-1e9', max_size=40))
def test_no_text_makes_it_raise_and_the_result_can_be_encoded_or_holds_a_lone_surrogate(text: str) -> None:
    value = parse_arguments(text)
    assert isinstance(value, dict)
    json.dumps(value, allow_nan=False)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", {}),
        ("[1]", {}),
        ("null", {}),
        ("nonsense", {}),
        ('{"a": NaN}', {}),
        ('{"a": "x', {"a": "x"}),
        ('{"a": {"b": [1, 2', {"a": {"b": [1, 2]}}),
        ('{"a": "line\nbreak\ttab"}', {"a": "line\nbreak\ttab"}),
        (r'{"a": "C:\dir\x"}', {"a": "C:\\dir\\x"}),
        (r'{"a": "\u12', {"a": ""}),
        (r'{"a": "\ud83d\ude00 \ud83d"}', {"a": "\U0001f600 \ud83d"}),
    ],
)
def test_broken_arguments_give_what_can_be_read(text: str, value: dict[str, Any]) -> None:
    assert parse_arguments(text) == value


def test_arguments_nested_too_deeply_to_be_written_again_are_empty() -> None:
    for depth in (MAX_DEPTH + 1, 5_000, 100_000):
        assert parse_arguments('{"a":' * depth + "1" + "}" * depth) == {}
    fits = parse_arguments('{"a":' * 100 + "1" + "}" * 100)
    assert not is_too_deep(fits, 100)
    assert is_too_deep(fits, 99)
    msgspec.json.encode(fits)


def test_an_event_with_raw_control_characters_or_wrong_bytes_is_mended_and_a_cut_one_is_refused() -> None:
    assert decode_event(b'{"a": "x\ty\xff"}') == {"a": "x\ty\ufffd"}
    for bad in (b"", b'{"a": ', b"oops", b"[" * 100_000):
        with pytest.raises(ValueError):
            decode_event(bad)
