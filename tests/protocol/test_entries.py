"""Entries: heads of stored lines are read tolerantly, and written entries are the format of session files."""

from __future__ import annotations

import json
from time import perf_counter
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET, Raw, UnsetType

from protocol import entries
from protocol.codec import encode
from protocol.entry_head import EntryHead, SessionHeader, WorkflowStage, message_line, read_entry
from protocol.entry_head import head_of as head_of_header
from protocol.messages import UserMessage

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=[])),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
NAMES = sorted({each.encode_name for each in msgspec.structs.fields(EntryHead)} - {"type", "id"})


def stored(value: Raw | UnsetType) -> bytes:
    assert value is not UNSET
    return bytes(value)


def head_of(line: bytes | str) -> EntryHead:
    head = read_entry(line.encode() if isinstance(line, str) else line)
    assert head is not None
    return head


@given(st.dictionaries(st.sampled_from(NAMES), JSON))
@settings(max_examples=200)
def test_a_payload_of_any_type_never_loses_the_line(payload: dict[str, Any]) -> None:
    head = head_of(json.dumps({"type": "x", "id": "1", **payload}))
    assert (head.type, head.id) == ("x", "1")
    parent, time = payload.get("parentId"), payload.get("timestamp")
    assert head.parent_id == (parent if isinstance(parent, str) else None)
    assert head.timestamp == (time if isinstance(time, str) else "")


def test_a_field_of_the_wrong_type_is_dropped_and_the_others_stay() -> None:
    head = head_of(
        '{"type":"label","id":"1","parentId":"0","timestamp":"t","targetId":5,"label":"l","details":{"a":1}}'
    )
    assert (head.parent_id, head.timestamp, head.target_id, head.label) == ("0", "t", None, "l")
    assert stored(head.details) == b'{"a":1}'


def test_raw_payloads_are_copied_as_they_stand() -> None:
    head = head_of('{"type":"message","id":"1","message": {"role":"user", "content":"\\ud83d"} ,"label":"\\ud83d"}')
    assert stored(head.message) == b'{"role":"user", "content":"\\ud83d"}'
    assert head.label == "\ud83d" and head.usage is UNSET


@pytest.mark.parametrize("line", [b"", b"  ", b"\0\0\0", b"{", b"null", b"[]", b"5", b'{"type":"x"}', b'{"id":"1"}'])
def test_a_line_without_type_and_id_has_no_head(line: bytes) -> None:
    assert read_entry(line) is None


@pytest.mark.parametrize(
    "line", [b'{"type":5,"id":"1"}', b'{"type":"x","id":1}', b"[" * 100_000, b'{"type":"x"' + b"\xff"]
)
def test_wrong_types_of_type_and_id_and_bottomless_lines_have_no_head(line: bytes) -> None:
    assert read_entry(line) is None


@given(st.binary(max_size=60))
@settings(max_examples=150)
def test_no_bytes_make_reading_raise(line: bytes) -> None:
    head = read_entry(line)
    assert head is None or isinstance(head.id, str)


def test_invalid_utf8_is_repaired_before_raw_parts_are_cut() -> None:
    assert stored(head_of(b'{"type":"x","id":"1","content":"\xff"}').content) == '"\ufffd"'.encode()


def test_the_header_is_read_by_the_same_head() -> None:
    head = head_of(encode(SessionHeader(id="s", timestamp="t", cwd="/srv", parent_session="/p.jsonl")))
    assert (head.type, head.version, head.id, head.cwd) == ("session", 3, "s", "/srv")
    assert (head.parent_session, head.internal, head.parent_id) == ("/p.jsonl", None, None)


def test_optional_keys_are_left_out_and_a_root_has_a_null_parent() -> None:
    assert encode(SessionHeader(id="s", timestamp="t", cwd="/")) == (
        b'{"type":"session","version":3,"id":"s","timestamp":"t","cwd":"/"}'
    )
    assert encode(entries.LabelEntry("1", None, "t", "0")) == (
        b'{"type":"label","id":"1","parentId":null,"timestamp":"t","targetId":"0"}'
    )


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"cwd": "/bad\ud800"},
        {"parent_session": "/p.jsonl"},
        {"internal": True, "workflow": WorkflowStage("r", "s", "n")},
    ],
)
def test_the_head_of_a_header_is_what_its_line_is_read_as(more: dict[str, Any]) -> None:
    header = SessionHeader(**{"id": "s", "timestamp": "t", "cwd": "/srv", **more})
    assert head_of_header(header) == read_entry(encode(header))


def test_a_message_encoded_once_is_spliced_into_its_entry() -> None:
    message = UserMessage("hi", 5)
    line = message_line("1", None, "t", encode(message))
    assert line == encode(entries.MessageEntry("1", None, "t", message))


def test_every_entry_type_of_the_file_format_can_be_written() -> None:
    tags = {kind.__struct_config__.tag for kind in entries.Entry.__args__}
    assert tags == {
        *("message", "thinking_level_change", "model_change", "compaction", "branch_summary", "custom"),
        *("custom_message", "label", "session_info", "session_summary"),
    }


def test_two_thousand_heads_are_read_in_a_fraction_of_a_second() -> None:
    message = {"role": "assistant", "content": [{"type": "text", "text": "é" + "word " * 200}]}
    line = json.dumps({"type": "message", "id": "1", "parentId": "0", "timestamp": "t", "message": message}).encode()
    started = perf_counter()
    heads = [read_entry(line) for _ in range(2000)]
    assert perf_counter() - started < 0.5  # measured: 5 ms
    assert heads[0] is not None and isinstance(heads[0].message, Raw)
