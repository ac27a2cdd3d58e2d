"""Comparing two conversations: ids, times, paths and chunk borders are no difference, everything else is."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.compare import as_text, compare, normal

Record = dict[str, Any]


def shell(delta: str, id_: str = "b", channel: str = "stdout") -> Record:
    return {"type": "bash_execution_update", "id": id_, "channel": channel, "delta": delta}


def update(delta: str, index: int = 0, usage: int = 0) -> Record:
    event = {"type": "text_delta", "contentIndex": index, "delta": delta}
    return {"type": "message_update", "usage": {"input": usage}, "assistantMessageEvent": event}


def response(id_: str, **data: Any) -> Record:
    return {"type": "response", "id": id_, "command": "bash", "success": True, "data": data}


SAME: list[tuple[str, list[Record], list[Record]]] = [
    ("borders of chunks", [shell("ab"), shell("c")], [shell("a"), shell("bc")]),
    ("borders of deltas", [update("ab", usage=1), update("c")], [update("a"), update("bc", usage=2)]),
    ("interleaving", [shell("a"), shell("x", "o"), shell("b")], [shell("ab"), shell("x", "o")]),
    ("order of responses", [response("1"), response("2")], [response("2"), response("1")]),
    ("an event beside a response", [{"type": "agent_start"}, response("1")], [response("1"), {"type": "agent_start"}]),
    ("ids", [{"type": "x", "entry": {"id": "a1"}}], [{"type": "x", "entry": {"id": "b2"}}]),
    ("null and absent", [response("1", path=None)], [response("1")]),
    ("0 and 0.0", [response("1", n=0)], [response("1", n=0.0)]),
    (
        "times and paths",
        [response("1", file="/a/b/2026-01-01T00-00-00-000Z_01a228e1-326c-7b24-803f-b7ce7bd11743.jsonl", timestamp=1)],
        [
            response(
                "1", file="/tmp/x/c/2027-02-02T10-00-00-000Z_01b228e1-326c-7b24-803f-b7ce7bd11743.jsonl", timestamp=2
            )
        ],
    ),
    ("how often a tool reports", [{"type": "tool_execution_update", "n": 1}], []),
]


@pytest.mark.parametrize(("what", "left", "right"), SAME, ids=[row[0] for row in SAME])
def test_what_differs_from_run_to_run_is_no_difference(what: str, left: list[Record], right: list[Record]) -> None:
    assert compare(left, right) == []


OTHER: list[tuple[str, list[Record], list[Record], str]] = [
    ("a text", [shell("abc")], [shell("abd")], "delta"),
    ("a channel", [shell("a")], [shell("a", channel="stderr")], ""),
    ("a field", [response("1", exitCode=0)], [response("1", exitCode=1)], "data.exitCode"),
    ("a type of a field", [response("1", exitCode=0)], [response("1", exitCode=False)], "data.exitCode"),
    ("one more", [{"type": "agent_end"}], [{"type": "agent_end"}, {"type": "agent_end"}], ""),
    ("order", [{"type": "turn_end"}, {"type": "agent_end"}], [{"type": "agent_end"}, {"type": "turn_end"}], ""),
    ("a lost response", [response("1")], [], ""),
    ("an id echoed wrong", [response("1")], [response("2")], ""),
    ("the length of a list", [response("1", l=[1])], [response("1", l=[1, 2])], "data.l"),
]


@pytest.mark.parametrize(("what", "left", "right", "path"), OTHER, ids=[row[0] for row in OTHER])
def test_everything_else_is_a_difference(what: str, left: list[Record], right: list[Record], path: str) -> None:
    assert path in {one.path for one in compare(left, right)}
    assert path in {one.path for one in compare(right, left)}


def test_types_can_be_left_out() -> None:
    assert compare([{"type": "extension_ui_request", "x": 1}], [], ["extension_ui_request"]) == []


def test_a_text_with_a_slash_is_no_path() -> None:
    assert normal({"text": "1/2 and a/b, see https://example.org/a/b"}) == {
        "text": "1/2 and a/b, see https://example.org/a/b"
    }


def test_the_text_tells_lane_record_place_and_both_sides() -> None:
    text = as_text(compare([response("1", exitCode=0)], [response("1", exitCode=1)]), "A", "B")
    told = ["", 'response to "1"', "  response bash: data.exitCode", "    < 0", "    > 1", "", "1 differences"]
    assert text.splitlines() == ["<  A", ">  B", *told]
    assert as_text([], "A", "B") == "no difference\n"
