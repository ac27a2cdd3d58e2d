"""Responses: one JSON line each, in the contract's order of keys."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from protocol.codec import encode
from protocol.envelope import failed, ok
from protocol.responses import BashResult, Forked, LastAssistantText

ANY_TEXT = st.text(st.characters(exclude_categories=[]))


def test_a_success_carries_data_only_when_there_is_some() -> None:
    assert ok(b'"7"', "abort") == b'{"id":"7","type":"response","command":"abort","success":true}\n'
    assert ok(b"", "get_tree", b"{}") == b'{"type":"response","command":"get_tree","success":true,"data":{}}\n'
    assert ok(b"", "cycle_model", b"null").endswith(b'"success":true,"data":null}\n')


def test_a_failure_names_its_command_unless_it_has_none() -> None:
    unknown = "Unknown command: foo"
    assert failed(b"1e400", "foo", unknown) == (
        b'{"id":1e400,"type":"response","command":"foo","success":false,"error":"Unknown command: foo"}\n'
    )
    assert failed(b"", None, "x") == b'{"type":"response","success":false,"error":"x"}\n'


def test_a_raw_id_without_content_is_no_id() -> None:
    assert ok(Raw(b""), "abort") == ok(b"", "abort")
    assert ok(Raw(b"5"), "abort") == ok(b"5", "abort")


def test_the_credential_error_carries_its_code_and_details() -> None:
    details = {"providerId": "p", "operation": "logout"}
    record = failed(b"", "logout_provider", "e", "credential_synchronization", details)
    assert list(json.loads(record)) == ["type", "command", "success", "error", "errorCode", "errorDetails"]
    assert json.loads(record)["errorDetails"] == details


@given(ANY_TEXT, ANY_TEXT)
@settings(max_examples=100)
def test_any_command_name_and_error_make_one_line_that_parses(command: str, error: str) -> None:
    record = failed(b"", command, error)
    assert record.count(b"\n") == 1 and record.endswith(b"\n")
    assert json.loads(record) == {"type": "response", "command": command, "success": False, "error": error}


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (LastAssistantText(None), b'{"text":null}'),
        (Forked(False), b'{"cancelled":false}'),
        (BashResult("o", False, True, 0, None), b'{"output":"o","cancelled":false,"truncated":true,"exitCode":0,'),
        (BashResult("o", True, False), b'{"output":"o","cancelled":true,"truncated":false}'),
    ],
)
def test_null_is_written_where_the_contract_says_so_and_absent_fields_are_left_out(data: object, text: bytes) -> None:
    assert encode(data).startswith(text)
