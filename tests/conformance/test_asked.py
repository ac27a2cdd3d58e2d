"""What reached the model looks the same whatever the dialect: real requests of the three, one expectation."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.asked import asked
from conformance.model_server import Request

ANTHROPIC = {
    "model": "m",
    "system": [{"type": "text", "text": "be "}, {"type": "text", "text": "kind"}],
    "tools": [{"name": "read"}],
    "messages": [
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "look"},
                {"type": "tool_use", "id": "c", "name": "read", "input": {"path": "a"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": "AAA"}]},
                {"type": "text", "text": "and now"},
            ],
        },
    ],
}
CHAT = {
    "model": "m",
    "tools": [{"type": "function", "function": {"name": "read"}}],
    "messages": [
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": [{"type": "text", "text": "hi"}]},
        {
            "role": "assistant",
            "content": "look",
            "tool_calls": [{"id": "c", "function": {"name": "read", "arguments": '{"path": "a"}'}}],
        },
        {"role": "tool", "tool_call_id": "c", "content": "AAA"},
        {"role": "user", "content": "and now"},
    ],
}
RESPONSES = {
    "model": "m",
    "instructions": "be kind",
    "tools": [{"type": "function", "name": "read"}],
    "input": [
        {"role": "user", "content": [{"type": "input_text", "text": "hi"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "look"}]},
        {"type": "function_call", "call_id": "c", "name": "read", "arguments": '{"path": "a"}'},
        {"type": "function_call_output", "call_id": "c", "output": "AAA"},
        {"role": "user", "content": [{"type": "input_text", "text": "and now"}]},
    ],
}
CALL = {"id": "c", "name": "read", "args": {"path": "a"}}


@pytest.mark.parametrize("body", [ANTHROPIC, CHAT, RESPONSES], ids=["anthropic", "chat", "responses"])
def test_the_same_conversation_looks_the_same(body: dict[str, Any]) -> None:
    seen = asked(Request(3, "/v1/x", {"accept": "a"}, body))
    assert (seen["model"], seen["system"], seen["tools"], seen["last"]) == ("m", "be kind", ["read"], "and now")
    assert [one["role"] for one in seen["messages"] if one["role"] != "assistant"] == ["user", "tool", "user"]
    mine = [one for one in seen["messages"] if one["role"] == "assistant"]
    assert "".join(one["text"] for one in mine) == "look"
    assert [call for one in mine for call in one["calls"]] == [CALL]
    assert [one["results"] for one in seen["messages"] if one["role"] == "tool"] == [[{"id": "c", "text": "AAA"}]]
    assert (seen["number"], seen["path"], seen["body"], seen["outcome"]) == (3, "/v1/x", body, None)


@pytest.mark.parametrize("body", [None, "text", [], {}, {"messages": "x"}, {"input": "just text"}, {"messages": [5]}])
def test_anything_at_all_can_be_looked_at(body: Any) -> None:
    assert asked(Request(1, "/", {}, body))["body"] == body


def test_arguments_that_are_no_json_stay_as_they_are() -> None:
    call = {"type": "function_call", "call_id": "c", "name": "read", "arguments": "{"}
    assert asked(Request(1, "/", {}, {"input": [call]}))["messages"][0]["calls"][0]["args"] == "{"
