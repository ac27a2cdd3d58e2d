"""Whose turn a reply is: the order of the lines, what the request looks like, and names that a step binds."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from conformance.model_play import Gates, ScriptError
from conformance.model_scripts import Reply
from conformance.model_server import Request
from conformance.model_turns import ModelPlay


def request(body: Any, number: int = 1) -> Request:
    return Request(number, "/messages", {}, body)


def said(reply: Reply) -> str:
    return "".join(str(delta) for part in reply.parts for delta in getattr(part, "deltas", ()))


def texts(play: ModelPlay, *bodies: Any) -> list[str]:
    return [said(play(request(body, number))) for number, body in enumerate(bodies, 1)]


def test_each_reply_answers_one_request_and_what_is_beyond_them_is_told() -> None:
    play = ModelPlay(["{{name}} one", "two"], Gates(), {"name": "the"})
    assert texts(play, {}, {}, {}) == ["the one", "two", "no reply is scripted for request 3"]


def test_a_reply_may_wait_for_its_request() -> None:
    play = ModelPlay([{"text": "for b", "when": {"model": "b"}}, "any"], Gates(), {})
    assert texts(play, {"model": "a"}, {"model": "b"}) == ["any", "for b"]


def test_without_replies_the_newest_user_text_decides() -> None:
    play = ModelPlay([], Gates(), {})
    assert texts(play, {"messages": [{"role": "user", "content": "SAY hello"}]}) == ["hello"]
    assert isinstance(play(request({})), Reply)


ASKS_A = {"messages": [{"role": "user", "content": "a"}], "tools": [{"name": "ls"}]}
ASKS_B = {"input": [{"role": "user", "content": [{"type": "input_text", "text": "b"}]}], "tools": [{"name": "kill"}]}


def test_a_reply_may_wait_for_a_request_whatever_the_dialect() -> None:
    replies = [{"text": "for b", "asked": {"last": "b"}}, {"text": "for kill", "asked": {"tools": ["kill"]}}, "any"]
    assert texts(ModelPlay(replies, Gates(), {}), ASKS_A, ASKS_B, ASKS_B) == ["any", "for b", "for kill"]


def test_a_reply_answers_as_often_as_it_says() -> None:
    play = ModelPlay([{"text": "twice", "asked": {"last": "a"}, "times": 2}, "any"], Gates(), {})
    assert texts(play, ASKS_A, ASKS_B, ASKS_A, ASKS_A) == [
        "twice",
        "any",
        "twice",
        "no reply is scripted for request 4",
    ]


def test_a_reply_waits_until_a_step_has_bound_what_it_says() -> None:
    names: dict[str, Any] = {}
    play = ModelPlay(["it is {{task}}"], Gates(), names)
    found: list[str] = []
    asking = threading.Thread(target=lambda: found.append(said(play(request({})))))
    asking.start()
    names["other"] = "y"
    play.named()
    names["task"] = "x"
    play.named()
    asking.join(20)
    assert found == ["it is x"]


def test_nobody_waits_for_a_name_when_no_step_follows() -> None:
    play = ModelPlay(["it is {{task}}", {"text": "a", "asked": {"last": "{{task}}"}}], Gates(), {})
    play.end()
    assert texts(play, {}, ASKS_A) == ["no step has bound the name task", "no reply is scripted for request 2"]


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"text": "a", "when": {"$x": 1}}, "when: $x: no such matcher"),
        ({"text": "a", "asked": {"$x": 1}}, "asked: $x: no such matcher"),
        ({"text": "a", "times": "2"}, 'times is "2"; allowed is a whole number from 1 on'),
        ({"txt": "a", "times": 2}, "a reply has no field 'txt'"),
    ],
)
def test_a_turn_that_cannot_be_read_is_told(value: Any, told: str) -> None:
    with pytest.raises(ScriptError) as refused:
        ModelPlay([value], Gates(), {})
    assert told in str(refused.value)
