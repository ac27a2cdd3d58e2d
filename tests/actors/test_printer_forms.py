"""What each form of output makes of a session's events."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.print_outcome import CUT, NO_ANSWER, Outcome, outcome_of
from actors.print_stream import DeltaForm, Form, SnapshotForm, TextForm
from protocol.codec import encode

HEADER = b'{"type":"session","version":3,"id":"s"}\n'
START = {"role": "assistant", "content": [], "usage": {"output": 0}, "stopReason": "pending"}


def line(record: Any) -> bytes:
    return encode(record) + b"\n"


def update(kind: str, place: int = 0, **fields: Any) -> bytes:
    event = {"type": kind, "contentIndex": place, **fields}
    return line({"type": "message_update", "usage": {"output": 7}, "assistantMessageEvent": event})


def started(form: Form) -> Form:
    form.take(line({"type": "message_start", "message": START}))
    return form


def read(lines: list[bytes]) -> list[Any]:
    return [json.loads(each) for each in b"".join(lines).splitlines()]


def test_the_header_comes_before_the_first_event_and_once() -> None:
    form = DeltaForm(HEADER)
    lines = [*form.take(line({"type": "agent_start"})), *form.take(line({"type": "turn_start"}))]
    assert [record["type"] for record in read(lines)] == ["session", "agent_start", "turn_start"]


def test_a_run_without_events_has_its_header_unless_the_prompt_was_refused() -> None:
    assert DeltaForm(HEADER).end(Outcome(), refused=False) == [HEADER]
    assert DeltaForm(HEADER).end(Outcome(), refused=True) == []


def test_the_form_with_deltas_passes_every_line_on_as_it_is() -> None:
    form = DeltaForm(b"")
    two = update("text_delta", delta="a") + update("text_delta", delta="b")
    assert form.take(two) == [two]


def test_deltas_of_a_block_wait_for_the_tick_and_are_shown_as_one() -> None:
    form = started(SnapshotForm(HEADER))
    assert [record["assistantMessageEvent"]["type"] for record in read(form.take(update("text_start")))] == [
        "text_start"
    ]
    assert form.take(update("text_delta", delta="Hel")) == []
    number = form.wants_tick()
    assert number is not None
    assert form.take(update("text_delta", delta="lo")) == []
    assert form.wants_tick() is None
    (shown,) = read(form.tick(number))
    assert list(shown) == ["type", "message", "assistantMessageEvent"]
    assert shown["assistantMessageEvent"] == {"type": "text_delta", "contentIndex": 0, "delta": "Hello"}
    assert shown["message"] == {**START, "content": [{"type": "text", "text": "Hello"}], "usage": {"output": 7}}
    assert not form.waits()


def test_a_tick_that_something_else_made_needless_shows_nothing() -> None:
    form = started(SnapshotForm(HEADER))
    form.take(update("text_delta", delta="a"))
    late = form.wants_tick()
    form.take(update("text_end", content="a"))
    form.take(update("text_delta", 1, delta="b"))
    assert late is not None and form.wants_tick() == late + 1
    assert form.tick(late) == []
    assert form.waits()


def test_what_waits_is_shown_before_any_other_event() -> None:
    form = started(SnapshotForm(b""))
    form.take(update("thinking_delta", delta="hm"))
    shown = read(form.take(line({"type": "queue_update", "steering": [], "followUp": []})))
    assert [record["type"] for record in shown] == ["message_update", "queue_update"]
    assert shown[0]["message"]["content"] == [{"type": "thinking", "thinking": "hm"}]


def test_deltas_of_another_block_are_not_merged_with_those_that_wait() -> None:
    form = started(SnapshotForm(b""))
    form.take(update("text_delta", 0, delta="a"))
    (shown,) = read(form.take(update("text_delta", 1, delta="b")))
    assert shown["assistantMessageEvent"] == {"type": "text_delta", "contentIndex": 0, "delta": "a"}
    assert shown["message"]["content"] == [{"type": "text", "text": "a"}]


def test_a_tool_call_shows_the_arguments_so_far_and_at_its_end_the_whole_call() -> None:
    form = started(SnapshotForm(b""))
    form.take(update("toolcall_start"))
    form.take(update("toolcall_delta", delta='{"command": "l'))
    number = form.wants_tick()
    assert number is not None
    (shown,) = read(form.tick(number))
    assert shown["message"]["content"][0]["arguments"] == {"command": "l"}
    call = {"type": "toolCall", "id": "t1", "name": "bash", "arguments": {"command": "ls"}}
    shown = read(form.take(update("toolcall_end", toolCall=call)))[-1]
    assert shown["message"]["content"] == [call]
    assert shown["assistantMessageEvent"] == {"type": "toolcall_end", "contentIndex": 0, "toolCall": call}


def test_a_message_that_fails_in_the_middle_shows_what_waited_before_its_end() -> None:
    form = started(SnapshotForm(b""))
    form.take(update("text_delta", delta="par"))
    shown = read(form.take(line({"type": "message_end", "message": {**START, "stopReason": "error"}})))
    assert [record["type"] for record in shown] == ["message_update", "message_end"]


STEPS = st.lists(st.one_of(st.text(max_size=5), st.just(None), st.integers(0, 3)), max_size=30)


@settings(max_examples=80)
@given(steps=STEPS)
def test_merged_deltas_add_up_to_the_text_whatever_the_ticks(steps: list[Any]) -> None:
    """A text is a delta, None a tick, a number an event of another kind."""
    form, lines, number, text = started(SnapshotForm(b"")), [], 0, ""
    for step in steps:
        if step is None:
            lines += form.tick(number)
        elif isinstance(step, int):
            lines += form.take(line({"type": "other", "n": step}))
        else:
            text += step
            lines += form.take(update("text_delta", delta=step))
        number = form.wants_tick() or number
    lines += form.take(update("text_end", content=text))
    shown = read(lines)
    deltas = [record for record in shown if record["type"] == "message_update"][:-1]
    so_far = ""
    for record in deltas:
        so_far += record["assistantMessageEvent"]["delta"]
        assert record["message"]["content"][0]["text"] == so_far
    assert so_far == text
    assert [record["n"] for record in shown if record["type"] == "other"] == [s for s in steps if isinstance(s, int)]


def test_the_text_form_says_nothing_until_the_end_and_nothing_after_a_refusal() -> None:
    form = TextForm()
    assert form.take(line({"type": "agent_start"})) == []
    answer = Outcome("two\nblocks\n", whole=True)
    assert form.end(answer, refused=False) == [b"two\nblocks\n"]
    assert form.end(answer, refused=True) == []


def test_only_a_reply_that_stopped_by_itself_is_whole() -> None:
    def reply(stop: str, **more: Any) -> Outcome:
        return outcome_of(
            {"role": "assistant", "content": [{"type": "text", "text": "hi"}], "stopReason": stop, **more}
        )

    assert reply("stop") == Outcome("hi\n", whole=True, error="")
    assert reply("length") == Outcome("hi\n", whole=False, error=CUT)
    assert reply("error", errorMessage="Overloaded") == Outcome("", whole=False, error="Overloaded")
    assert reply("error").error == "Request error"
    assert reply("aborted").error == "Request aborted"
    assert reply("toolUse") == outcome_of({"role": "toolResult"}) == outcome_of(None) == Outcome("", False, NO_ANSWER)


def finished(*content: Any, output: int = 0, stop: str = "stop") -> Outcome:
    """What the last reply of a session is worth."""
    told = {"role": "assistant", "api": "a", "provider": "p", "model": "m", "timestamp": 1, "stopReason": stop}
    return outcome_of({**told, "content": list(content), "usage": {"output": output}})


def test_a_reply_that_a_session_would_ask_for_again_is_no_whole_answer() -> None:
    empty, refusal = "Provider returned an empty completion", "Provider returned a canned safety refusal"
    assert finished() == Outcome("", error=empty)
    assert finished({"type": "text", "text": " \n"}) == Outcome("", error=empty)
    assert finished({"type": "thinking", "thinking": ""}) == Outcome("", error=empty)
    sorry = {"type": "text", "text": "I'm sorry, I can't help with that."}
    assert finished(sorry) == Outcome(f"{sorry['text']}\n", error=refusal)


@pytest.mark.parametrize("content", [5, None, {}, [5], [{"type": "text"}], [{"type": "text", "text": 5}], [None]])
@pytest.mark.parametrize("kind", [{"role": "assistant"}, {"role": "custom", "display": True}])
def test_a_message_of_another_program_is_read_as_far_as_it_can_be(content: Any, kind: dict[str, Any]) -> None:
    finished = outcome_of({**kind, "content": content, "stopReason": "stop", "errorMessage": 5})
    assert finished.text == "" and finished.whole == (kind["role"] == "custom")
    assert isinstance(outcome_of({**kind, "content": content, "stopReason": "error", "errorMessage": 5}).error, str)
    assert outcome_of({**kind, "content": content, "stopReason": ["stop"]}).text == ""


def test_a_reply_with_content_or_with_tokens_is_whole() -> None:
    assert finished({"type": "text", "text": "ok"}) == Outcome("ok\n", whole=True, error="")
    assert finished({"type": "thinking", "thinking": "hm"}).whole
    assert finished(output=3).whole


def test_each_text_block_is_a_line_and_thinking_is_left_out() -> None:
    content = [{"type": "text", "text": "a"}, {"type": "thinking", "thinking": "x"}, {"type": "text", "text": "b"}]
    assert outcome_of({"role": "assistant", "content": content, "stopReason": "stop"}).text == "a\nb\n"


def test_a_custom_message_counts_when_it_is_for_display() -> None:
    message = {"role": "custom", "content": "note", "display": True}
    assert outcome_of(message) == Outcome("note\n", whole=True, error="")
    assert not outcome_of({**message, "display": False}).whole
