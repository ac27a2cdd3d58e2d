"""Replies as data, and the directives by which a user text chooses them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.model_scripts import (
    Control,
    Conversation,
    Gate,
    Reply,
    Text,
    TextScript,
    Thinking,
    ToolUse,
    Usage,
    drop,
    error,
    gate,
    hang,
    hang_before_head,
    pieces,
    read_conversation,
    text,
    thinking,
    tool,
    tools,
    words,
)

User, Assistant = "user", "assistant"


def ask(content: str, answered: int = 0, script: TextScript | None = None) -> Reply:
    """The answer to a chat whose newest user text got `answered` answers, each followed by a tool result."""
    after = [{"role": Assistant, "content": None}, {"role": "tool", "content": "result"}] * answered
    return (script or TextScript()).reply({"messages": [{"role": User, "content": content}, *after]})


@given(st.text())
def test_words_lose_nothing(content: str) -> None:
    assert "".join(words(content)) == content


@given(st.text(), st.integers(1, 50))
def test_pieces_lose_nothing_and_are_no_more_than_asked(content: str, count: int) -> None:
    assert "".join(pieces(content, count)) == content
    assert len(pieces(content, count)) == min(count, len(content))


def test_text_is_cut_as_asked() -> None:
    assert text("a bc d").parts == (Text(("a ", "bc ", "d")),)
    assert text("abcd", chunks=2).parts == (Text(("ab", "cd")),)
    assert text(chunks=["x", "y"]).parts == (Text(("x", "y")),)
    assert text("a b", pause=0.5).parts == (Text(("a ", 0.5, "b", 0.5)),)


def test_joined_replies_keep_their_parts_and_the_last_stop() -> None:
    joined = thinking("hm").then(text("cut", stop="length"), tool("bash", {}), Reply(usage=Usage(1, 2)))
    assert [type(part) for part in joined.parts] == [Thinking, Text, ToolUse]
    assert (joined.stop, joined.usage) == ("length", Usage(1, 2))


def test_a_gate_between_texts_is_inside_one_block_and_between_replies_beside_them() -> None:
    (block,) = gate("a", "b").parts
    assert isinstance(block, Text) and isinstance(block.deltas[1], Gate)
    kinds = [type(part) for part in gate(thinking("a"), tools([("bash", {}), tool("read", "{")])).parts]
    assert kinds == [Thinking, Gate, ToolUse, ToolUse]


def test_a_gate_wakes_whoever_arrives_before_or_after_it_is_opened() -> None:
    reply, woken = gate("a", "b"), []
    (one,) = reply.gates
    one.arrive(lambda: woken.append("early"))
    assert reply.reached.is_set() and woken == []
    reply.open()
    one.arrive(lambda: woken.append("late"))
    assert woken == ["early", "late"]


def test_a_gate_that_is_not_reached_fails_the_wait() -> None:
    with pytest.raises(AssertionError, match="not reached"):
        gate().reached.wait(0.01)


RESULT = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "no user text"}]}
CONVERSATIONS: dict[str, tuple[dict[str, Any], Conversation]] = {
    "a lone input": ({"input": "hi"}, Conversation("hi", 0, 0)),
    "anthropic, two calls": (
        {"messages": [
            {"role": User, "content": [{"type": "text", "text": "go"}]},
            {"role": Assistant, "content": []}, {"role": User, "content": [RESULT]},
            {"role": Assistant, "content": []}, {"role": User, "content": [RESULT]},
        ]},
        Conversation("go", 0, 2),
    ),
    "anthropic, a steer beside the result": (
        {"messages": [
            {"role": User, "content": "go"}, {"role": Assistant, "content": []},
            {"role": User, "content": [RESULT, {"type": "text", "text": "turn"}]},
        ]},
        Conversation("turn", 2, 0),
    ),
    "chat, one call": (
        {"messages": [
            {"role": "system", "content": "be"}, {"role": User, "content": "go"},
            {"role": Assistant, "tool_calls": []}, {"role": "tool", "content": "r"}, {"role": "tool", "content": "r"},
        ]},
        Conversation("go", 1, 1),
    ),
    "responses, the items of one answer": (
        {"input": [
            {"role": User, "content": [{"type": "input_text", "text": "go"}]},
            {"type": "reasoning"}, {"type": "message", "role": Assistant}, {"type": "function_call"},
            {"type": "function_call_output", "output": "r"}, {"type": "function_call"},
            {"type": "function_call_output", "output": "r"},
        ]},
        Conversation("go", 0, 2),
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", sorted(CONVERSATIONS))
def test_the_newest_user_text_and_its_answers_are_found_in_every_dialect(kind: str) -> None:
    body, wanted = CONVERSATIONS[kind]
    assert read_conversation(body) == wanted


def test_other_text_is_echoed() -> None:
    assert ask("just a question") == text("echo: just a question")


def test_each_line_answers_one_call_of_the_turn_and_the_rest_is_done() -> None:
    script = 'TOOL bash {"command": "ls"}\nTOOLS 2 read {"path": "f$i"}\nSAY bye'
    assert ask(script) == tool("bash", '{"command": "ls"}')
    assert ask(script, 1) == tools([("read", '{"path": "f0"}'), ("read", '{"path": "f1"}')])
    assert ask(script, 2) == text("bye")
    assert ask(script, 3) == text("done")


def test_a_line_without_directive_belongs_to_the_one_above() -> None:
    assert ask("SAY one\ntwo") == text("one\ntwo")


def test_a_passing_error_lets_the_next_line_answer_and_comes_again_for_a_new_session() -> None:
    script, content = TextScript(), "ERR 529 x2 busy\nSAY fine"
    for _ in range(2):
        answers = [ask(content, script=script) for _ in range(3)]
        assert answers == [error(529, message="busy"), error(529, message="busy"), text("fine")]


def test_an_error_without_a_count_stays() -> None:
    script = TextScript()
    assert [ask("ERR 500\nSAY fine", script=script).status for _ in range(3)] == [500] * 3


def test_usage_holds_for_every_step() -> None:
    assert ask("USAGE 900 5 30\nSAY a").usage == ask("SAY b\nUSAGE 900 5 30", 1).usage == Usage(900, 5, 30)


def test_the_remaining_directives() -> None:
    assert ask("TOKENS 3").parts == (Text(("tok ",) * 3),)
    assert ask("SLOW 2 50").parts == (Text(("w0 ", 0.05, "w1 ", 0.05)),)
    assert ask("THINK deep") == thinking("deep", "thought")
    assert ask("HANG") == hang() and ask("HANGPRE") == hang_before_head() and ask("DROP 2") == drop(2)
    assert ask("BADSSE").parts == (Text(("x ", Control.GARBAGE)),)
    assert ask("EMPTY") == Reply(usage=Usage(10, 0))
    assert ask("LENGTH of it") == text("of it", stop="length")
    assert "prompt is too long" in ask("CTXOVERFLOW").message


@pytest.mark.parametrize("content", ["TOKENS many", "ERR often", "TOOLS x bash {}", "DROP it"])
def test_a_directive_that_cannot_be_read_is_named(content: str) -> None:
    with pytest.raises(ValueError, match=content.split()[0]):
        ask(content)
