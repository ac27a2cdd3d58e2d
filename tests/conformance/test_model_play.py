"""The model's part of a case: replies are read, and refused with what is allowed."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.model_play import Gates, ScriptError, read_reply
from conformance.model_scripts import Control, StreamError, Text, Thinking, ToolUse, Usage


def test_a_text_is_a_delta_a_word_and_a_list_is_as_it_is() -> None:
    gates = Gates()
    assert read_reply("a text", gates).parts == (Text(("a ", "text")),)
    reply = read_reply({"text": ["x ", {"gate": "g"}, {"pause": 0.5}, "y"], "stop": "length"}, gates)
    assert reply.parts == (Text(("x ", gates["g"], 0.5, "y")),)
    assert reply.stop == "length"


def test_parts_thinking_text_and_calls_stand_in_this_order() -> None:
    call = {"name": "read", "args": {"path": "ä"}, "id": "c"}
    value = {"tools": [call], "text": "t", "thinking": "h", "signature": "s", "parts": [{"text": "first"}]}
    reply = read_reply({**value, "usage": {"input": 7, "cache_read": 2}}, Gates())
    assert reply.parts[:3] == (Text(("first",)), Thinking(("h",), "s"), Text(("t",)))
    last = reply.parts[3]
    assert isinstance(last, ToolUse)
    assert ("".join(map(str, last.deltas)), last.id) == ('{"path": "ä"}', "c")
    assert reply.usage == Usage(input=7, cache_read=2)


def test_faults_of_a_provider() -> None:
    gates = Gates()
    assert read_reply({"parts": [{"text": "a"}, {"stream_error": "no"}]}, gates).parts[1] == StreamError("no")
    assert read_reply({"text": ["a", {"cut": True}]}, gates).parts == (Text(("a", Control.CUT)),)
    assert read_reply({"silent": True}, gates).answers is False
    error = read_reply({"error": 529, "body": {"a": 1}, "headers": {"retry-after": "1"}}, gates)
    assert (error.status, error.body, error.headers) == (529, b'{"a": 1}', {"retry-after": "1"})
    raw = read_reply({"raw": ["a", {"hex": "ff"}, {"hang": True}], "status": 201}, gates)
    assert (raw.raw, raw.status) == ((b"a", b"\xff", Control.HANG), 201)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (5, "a reply needs an object, not 5"),
        ({}, "a reply needs one of text, thinking"),
        ({"txt": "a"}, "a reply has no field 'txt'; allowed are text"),
        ({"text": "a", "stop": "end"}, 'stop is "end"; allowed are stop, length, tool, refusal'),
        ({"text": 5}, "a text is a string, or a list of strings and steps, not 5"),
        ({"text": [{"gat": "a"}]}, "a step of a stream has no field 'gat'; allowed are gate, pause"),
        ({"text": [{"pause": "1"}]}, "a step is one of gate, pause, cut, hang, garbage with its value"),
        ({"parts": [{"txt": 1}]}, "a part has no field 'txt'"),
        ({"tool": {"args": {}}}, "a tool call needs a name, not null"),
        ({"text": "a", "usage": {"in": 1}}, "usage has no field 'in'; allowed are input, output"),
    ],
)
def test_what_cannot_be_read_is_told(value: Any, told: str) -> None:
    with pytest.raises(ScriptError) as refused:
        read_reply(value, Gates())
    assert told in str(refused.value)


def test_all_gates_open_at_once() -> None:
    gates = Gates()
    read_reply({"text": [{"gate": "a"}, {"gate": "b"}]}, gates)
    gates.open_all()
    assert (gates["a"].opened, gates["b"].opened) == (True, True)
