"""What a recording says about the model: replies in order, with gates where the client wrote meanwhile."""

from __future__ import annotations

from typing import Any

from conformance.answers import read_answers
from conformance.model_play import Gates, read_reply
from conformance.recording import Line


def out(type_: str, **fields: Any) -> Line:
    return Line("out", {"type": type_, **fields})


def assistant(content: list[Any], stop: str = "stop", **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, "stopReason": stop, **more}


def delta(text: str, index: int = 0, kind: str = "text_delta") -> Line:
    return out("message_update", assistantMessageEvent={"type": kind, "contentIndex": index, "delta": text})


START = out("message_start", message={"role": "assistant", "content": []})


def end(*content: Any, stop: str = "stop", **more: Any) -> Line:
    return out("message_end", message=assistant(list(content), stop, **more))


TEXT = {"type": "text", "text": "Hello"}
CALL = {"type": "toolCall", "id": "c1", "name": "read", "arguments": {"path": "a"}}


def replies(*lines: Line) -> list[Any]:
    found = read_answers(lines).replies
    for reply in found:
        read_reply(reply, Gates())  # it is a reply that a case could have
    return found


def test_a_text_keeps_its_deltas() -> None:
    assert replies(START, delta("Hel"), delta("lo"), end(TEXT)) == [
        {"parts": [{"text": ["Hel", "lo"]}], "stop": "stop"}
    ]


def test_a_text_of_which_no_delta_was_seen_is_whole() -> None:
    assert replies(START, end(TEXT)) == [{"parts": [{"text": ["Hello"]}], "stop": "stop"}]
    assert replies(START, delta("other"), end(TEXT)) == [{"parts": [{"text": "Hello"}], "stop": "stop"}]


def test_blocks_stand_in_their_order() -> None:
    thinking = {"type": "thinking", "thinking": "hm"}
    found = replies(
        START, delta("hm", 0, "thinking_delta"), delta("Hello", 1), end(thinking, TEXT, CALL, stop="toolUse")
    )
    call = {"tool": {"name": "read", "id": "c1", "args": {"path": "a"}}}
    assert found == [{"parts": [{"thinking": ["hm"]}, {"text": ["Hello"]}, call], "stop": "tool"}]


def test_the_pieces_of_arguments_stay_when_they_are_the_arguments() -> None:
    pieces = [delta('{"path":', 0, "toolcall_delta"), delta('"a"}', 0, "toolcall_delta")]
    (reply,) = replies(START, *pieces, end(CALL, stop="toolUse"))
    assert reply["parts"][0]["tool"]["deltas"] == ['{"path":', '"a"}']
    (reply,) = replies(START, pieces[0], end(CALL, stop="toolUse"))
    assert reply["parts"][0]["tool"]["args"] == {"path": "a"}


def test_an_error_of_the_provider_comes_again() -> None:
    told = '529 {"type":"error"}'
    assert replies(START, end(stop="error", errorMessage=told)) == [{"error": 529, "body": '{"type":"error"}'}]
    assert replies(START, end(stop="error", errorMessage="503 try later")) == [{"error": 503, "message": "try later"}]
    assert replies(START, end(stop="error", errorMessage="broken")) == [{"parts": [{"stream_error": "broken"}]}]
    half = replies(START, delta("Hello"), end(TEXT, stop="error", errorMessage="broken"))
    assert half == [{"parts": [{"text": ["Hello"]}, {"stream_error": "broken"}]}]


def test_what_the_client_wrote_meanwhile_holds_the_stream() -> None:
    steer = Line("in", {"id": "2", "type": "steer"})
    found = read_answers([START, delta("Hel"), steer, delta("lo"), end(TEXT)])
    assert found.replies == [{"parts": [{"text": ["Hel", {"gate": "line_2"}, "lo"]}], "stop": "stop"}]
    assert found.gates == {2: "line_2"}


def test_an_aborted_answer_hangs_where_it_was_cut() -> None:
    abort = Line("in", {"id": "2", "type": "abort"})
    (reply,) = replies(START, delta("Hel"), abort, end({"type": "text", "text": "Hel"}, stop="aborted"))
    assert reply == {"parts": [{"text": ["Hel", {"gate": "line_2"}]}, {"hang": True}]}
    (reply,) = replies(START, abort, end(stop="aborted"))
    assert reply == {"parts": [{"gate": "line_1"}, {"hang": True}]}


def test_no_request_was_made_for_an_empty_aborted_answer() -> None:
    assert replies(START, end(stop="aborted")) == []


def test_what_others_say_is_no_answer() -> None:
    user = {"role": "user", "content": [TEXT]}
    assert replies(out("message_start", message=user), out("message_end", message=user)) == []
