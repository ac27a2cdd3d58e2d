"""The history that a provider is told is whole, whatever the session went through."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from actors.model.replay import IMAGE_OMITTED, INTERRUPTED, replay
from protocol.messages import (
    AssistantMessage,
    ImageContent,
    Message,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from protocol.model import Model


def said(*content: Any, stop: str = "toolUse", model: str = "m", provider: str = "p") -> AssistantMessage:
    return AssistantMessage(list(content), "anthropic-messages", provider, model, Usage(), stop, 5)  # type: ignore[arg-type]


def result(call_id: str, text: str = "out") -> ToolResultMessage:
    return ToolResultMessage(call_id, "bash", [TextContent(text)], False, 6)


def call(call_id: str) -> ToolCall:
    return ToolCall(call_id, "bash", {"command": "ls"}, "sig")


def told(messages: list[Message], model: Model) -> list[Any]:
    return replay(messages, model, lambda call_id, message: call_id)


PARTS = st.one_of(
    st.just(UserMessage("hi", 1)),
    st.just(UserMessage("  ", 1)),
    st.builds(
        lambda ids, stop: said(*map(call, ids), stop=stop),
        st.lists(st.sampled_from("abc"), max_size=3),
        st.sampled_from(["toolUse", "stop", "error", "aborted", "length"]),
    ),
    st.builds(result, st.sampled_from("abc")),
)


@settings(max_examples=200)
@given(st.lists(PARTS, max_size=10))
def test_every_call_has_exactly_one_result_before_the_next_message_of_another_kind(
    model_of: Callable[..., Model], messages: list[Message]
) -> None:
    open_calls: list[str] = []
    seen: list[str] = []
    for message in told(messages, model_of()):
        if isinstance(message, ToolResultMessage):
            open_calls.remove(message.tool_call_id)
            continue
        assert not open_calls
        assert message.content
        if isinstance(message, AssistantMessage):
            open_calls = [block.id for block in message.tool_calls]
            seen += open_calls
    assert not open_calls
    assert len(seen) == len(set(seen))


def test_an_unanswered_call_gets_an_error_result_also_at_the_end(model_of: Callable[..., Model]) -> None:
    messages = told([UserMessage("x", 1), said(call("a"), call("b")), result("b")], model_of())
    assert [(m.tool_call_id, m.is_error) for m in messages[2:]] == [("b", False), ("a", True)]
    assert messages[3].content == [TextContent(INTERRUPTED)]


def test_the_results_of_a_failed_reply_go_with_it(model_of: Callable[..., Model]) -> None:
    messages = told([said(call("a"), stop="error"), result("a"), UserMessage("x", 1)], model_of())
    assert [type(message) for message in messages] == [UserMessage]


def test_thinking_is_kept_for_its_own_model_only(model_of: Callable[..., Model]) -> None:
    signed, plain = ThinkingContent("", "sig"), ThinkingContent("hmm")
    redacted = ThinkingContent("[Reasoning redacted]", "data", True)
    own = told([said(signed, plain, redacted, stop="stop")], model_of())
    assert own[0].content == [signed, plain, redacted]
    other = told([said(signed, plain, redacted, call("a"), model="other")], model_of())
    assert other[0].content[0] == TextContent("hmm")
    assert len(other[0].content) == 2
    assert not other[0].content[1].thought_signature


def test_a_run_of_images_becomes_one_note_for_a_model_that_reads_text_only(model_of: Callable[..., Model]) -> None:
    image = ImageContent("aGk=", "image/png")
    message = UserMessage([image, image, TextContent("and"), image], 1)
    (seen,) = told([message], model_of(input=("text",)))
    assert [block.text for block in seen.content] == [IMAGE_OMITTED, "and", IMAGE_OMITTED]
    assert told([message], model_of())[0].content == message.content


def test_a_message_with_nothing_to_see_is_left_out(model_of: Callable[..., Model]) -> None:
    assert told([UserMessage([TextContent(" \n")], 1), said(TextContent(""), stop="stop")], model_of()) == []
