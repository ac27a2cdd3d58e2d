"""Data of responses: absent and null are the same, unknown fields are ignored, another shape is said to be one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import UNSET, Raw

from conformance.client.errors import ProtocolError
from conformance.client.shapes import read_data
from protocol.responses import BashResult, CycledModel, ForkMessageList, LastAssistantText, LevelList, SessionStats

STATS: dict[str, Any] = {
    "sessionId": "s",
    "userMessages": 0,
    "assistantMessages": 0,
    "toolCalls": 0,
    "toolResults": 0,
    "totalMessages": 0,
    "tokens": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0},
    "cost": 0,
}


def read(value: Any, kind: Any) -> Any:
    return read_data(Raw(json.dumps(value).encode()), kind, "x")


def test_what_is_typed_as_null_may_be_absent_and_what_is_left_out_may_be_null() -> None:
    assert read({}, LastAssistantText) == read({"text": None}, LastAssistantText) == LastAssistantText(None)
    bash = {"output": "o", "cancelled": True, "truncated": False}
    assert read(bash | {"exitCode": None}, BashResult) == read(bash, BashResult) == BashResult("o", True, False)


def test_so_it_is_within_objects_and_lists() -> None:
    usage = {"contextWindow": 10, "percent": None}  # no tokens
    stats: SessionStats = read(STATS | {"sessionFile": None, "contextUsage": usage}, SessionStats)
    assert stats.session_file is UNSET
    assert stats.context_usage is not UNSET and stats.context_usage.tokens is None
    messages = {"messages": [{"entryId": "e", "text": "t", "more": 1}], "more": None}
    assert read(messages, ForkMessageList).messages[0].entry_id == "e"


def test_absent_data_are_null() -> None:
    assert read_data(UNSET, CycledModel | None, "cycle_model") is None
    with pytest.raises(ProtocolError, match="the data of get_state have another shape"):
        read_data(UNSET, SessionStats, "get_state")


@pytest.mark.parametrize("value", [5, [], {"levels": "high"}, {"levels": ["ultra"]}, {}])
def test_another_shape_is_a_protocol_error_with_the_data(value: Any) -> None:
    with pytest.raises(ProtocolError, match="another shape") as error:
        read(value, LevelList)
    assert json.loads(error.value.line) == value
