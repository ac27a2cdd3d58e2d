"""JSON text: the fast and the slow path tell the same story."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from protocol.events import AgentEnd, BashExecutionUpdate, MessageUpdate, TextDelta
from protocol.json_text import BadJson, decode_any, encode, raw_members, repair_utf8
from protocol.messages import Usage

ANY_TEXT = st.text(st.characters(exclude_categories=[]))  # lone surrogates included
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=8,
)


def nested(depth: int) -> Any:
    value: Any = "\ud83d"
    for _ in range(depth):
        value = [value]
    return value


@given(VALUES)
@settings(max_examples=200)
def test_what_is_encoded_decodes_to_the_same_value(value: Any) -> None:
    text = encode(value)
    assert b"\n" not in text
    assert decode_any(text) == value == json.loads(text)


@given(st.binary(max_size=40) | st.text(max_size=40))
@settings(max_examples=150)
def test_decoding_gives_a_value_or_bad_json(data: bytes | str) -> None:
    try:
        value = decode_any(data)
    except BadJson as error:
        assert str(error)
    else:
        assert decode_any(encode(value)) == value


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", '{"a":-Infinity}', "1e400", "[-1e400]", '["\\ud83d",1e999]'])
def test_numbers_that_are_not_finite_do_not_enter(text: str) -> None:
    for data in (text, text.encode()):
        with pytest.raises(BadJson):
            decode_any(data)


@pytest.mark.parametrize("text", ["", "{", "[1,]", "{'a':1}", '"\x01"', "[" * 100_000, '{"a":' * 50_000, "01", "1 2"])
def test_malformed_or_bottomless_text_is_bad_json(text: str) -> None:
    with pytest.raises(BadJson):
        decode_any(text)


def test_invalid_utf8_is_repaired_and_the_last_duplicate_counts() -> None:
    assert decode_any(b'{"a":1,"a":"\xff"}') == {"a": "\ufffd"}


def test_a_struct_with_a_lone_surrogate_keeps_its_keys_and_its_raw_fields() -> None:
    update = BashExecutionUpdate("stdout", "\ud83d", Raw(b"1e400"))
    assert encode(update) == b'{"type":"bash_execution_update","channel":"stdout","delta":"\\ud83d","id":1e400}'


def test_nested_structs_and_absent_fields_are_written_by_the_slow_path_as_by_the_fast_one() -> None:
    plain, odd = (MessageUpdate(Usage(input=3, cache_write_1h=2), TextDelta(0, text)) for text in ("S", "\udc00"))
    assert encode(odd) == encode(plain).replace(b'"S"', b'"\\udc00"')
    assert encode(AgentEnd([Raw(b'{"role":"user"}')])) == b'{"type":"agent_end","messages":[{"role":"user"}]}'


def test_depth_is_no_limit_to_what_is_encoded() -> None:
    assert encode(nested(5000)) == b"[" * 5000 + b'"\\ud83d"' + b"]" * 5000


def test_a_type_that_json_does_not_know_is_an_error() -> None:
    with pytest.raises(TypeError):
        encode({"\ud83d": object()})


@given(st.binary())
@settings(max_examples=150)
def test_repair_leaves_valid_text_alone_and_makes_the_rest_valid(line: bytes) -> None:
    assert repair_utf8(line).decode() == line.decode(errors="replace")


def test_valid_input_is_not_copied() -> None:
    for line in (b"plain" * 100, "é\u2028".encode() * 100):
        assert repair_utf8(line) is line


@given(st.dictionaries(st.text(), VALUES), st.sampled_from([None, 1]))
@settings(max_examples=100)
def test_raw_members_are_the_values_as_they_stand(members: dict[str, Any], indent: int | None) -> None:
    raw = raw_members(json.dumps(members, indent=indent))
    assert {key: json.loads(value) for key, value in raw.items()} == members


def test_a_raw_member_is_verbatim() -> None:
    assert raw_members(' { "a" : 1e400 , "\\u0062":"\\u0041" ,"a": -0.0 } ') == {"a": b"-0.0", "b": b'"\\u0041"'}
