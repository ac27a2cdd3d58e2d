"""What a model is shown: three roles, and exactly one result for each call that was made."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from actors.session.provider_view import IMAGE_BLOCKED, INTERRUPTED, ProviderMessage, provider_view
from protocol.messages import (
    AssistantMessage,
    BashExecutionMessage,
    BranchSummaryMessage,
    CustomMessage,
    ImageContent,
    Message,
    StopReason,
    TextContent,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
)


def user(content: Any = "hi") -> UserMessage:
    return UserMessage(content, 1)


def calls(*ids: str, stop: StopReason = "toolUse") -> AssistantMessage:
    return AssistantMessage([ToolCall(each, "bash", {}) for each in ids], "a", "p", "m", Usage(), stop, 7)


def result(call_id: str, text: str = "done") -> ToolResultMessage:
    return ToolResultMessage(call_id, "bash", [TextContent(text)], False, 8)


def interrupted(call_id: str) -> ToolResultMessage:
    return ToolResultMessage(call_id, "bash", [TextContent(INTERRUPTED)], True, 7)


def bash(**fields: Any) -> BashExecutionMessage:
    plain: dict[str, Any] = {"command": "ls -l", "output": "a\n", "cancelled": False, "truncated": False}
    return BashExecutionMessage(**{**plain, "timestamp": 3, **fields})


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"exit_code": 0}, "Ran `ls -l`\n```\na\n\n```"),
        ({"output": ""}, "Ran `ls -l`\n(no output)"),
        ({"exit_code": 2, "output": ""}, "Ran `ls -l`\n(no output)\n\nCommand exited with code 2"),
        ({"exit_code": 2, "cancelled": True, "output": ""}, "Ran `ls -l`\n(no output)\n\n(command cancelled)"),
        (
            {"truncated": True, "full_output_path": "/tmp/f", "output": ""},
            "Ran `ls -l`\n(no output)\n\n[Output truncated. Full output: /tmp/f]",
        ),
        ({"truncated": True, "full_output_path": None, "output": ""}, "Ran `ls -l`\n(no output)"),
        ({"truncated": False, "full_output_path": "/tmp/f", "output": ""}, "Ran `ls -l`\n(no output)"),
    ],
)
def test_a_shell_command_of_the_client_is_user_text(fields: dict[str, Any], text: str) -> None:
    assert provider_view([bash(**fields)]) == (UserMessage([TextContent(text)], 3),)


def test_what_is_excluded_is_not_shown() -> None:
    note = CustomMessage("n", "x", True, 1, exclude_from_context=True)
    assert provider_view([bash(exclude_from_context=True), note]) == ()


def test_custom_messages_and_summaries_become_user_messages() -> None:
    custom, summary = provider_view([CustomMessage("n", "x", False, 4), BranchSummaryMessage("S {x}", "a", 5)])
    assert custom == UserMessage([TextContent("x")], 4)
    assert isinstance(summary, UserMessage) and isinstance(summary.content, list)
    assert isinstance(summary.content[0], TextContent)
    assert summary.content[0].text.endswith("<summary>\nS {x}\n</summary>")
    assert provider_view([BranchSummaryMessage("", "a", 5)]) == ()


def test_blank_text_is_removed_and_a_user_message_of_nothing_is_dropped() -> None:
    image = ImageContent("d", "image/png")
    mixed = user([TextContent(" \u00a0\ufeff\n"), image, TextContent("x")])
    assert provider_view([user(" \t"), user([]), user([TextContent("")]), mixed]) == (
        UserMessage([image, TextContent("x")], 1),
    )


def test_blank_assistant_text_goes_unless_it_is_signed() -> None:
    signed = TextContent("", "sig")
    reply = AssistantMessage([TextContent(" "), signed, TextContent("x")], "a", "p", "m", Usage(), "stop", 7)
    (found,) = provider_view([reply])
    assert found.content == [signed, TextContent("x")]


def test_an_answered_call_is_left_as_it_is() -> None:
    messages: list[Message] = [user(), calls("t1", "t2"), result("t2"), result("t1"), user()]
    assert provider_view(messages) == tuple(messages)


def test_an_unanswered_call_gets_a_result_before_the_conversation_goes_on() -> None:
    first, second = calls("t1", "t2"), calls("t3")
    shown = provider_view([first, result("t2"), user(), second, second])
    assert shown == (first, result("t2"), interrupted("t1"), user(), second, interrupted("t3"), second)


def test_a_trailing_unanswered_call_is_answered_only_in_a_reopened_session() -> None:
    reply = calls("t1", "t2")
    assert provider_view([reply, result("t1")]) == (reply, result("t1"))
    assert provider_view([reply, result("t1")], reopened=True) == (reply, result("t1"), interrupted("t2"))


def test_of_two_results_the_first_is_kept_and_orphans_are_dropped() -> None:
    reply = calls("t1")
    shown = provider_view([result("t0"), reply, result("t1", "first"), result("t1", "second"), user(), result("t1")])
    assert shown == (reply, result("t1", "first"), user())


def test_what_the_client_ran_while_tools_worked_is_shown_after_their_results() -> None:
    reply = calls("t1", "t2")
    mixed = [reply, result("t1"), user(), result("t2"), reply]
    assert provider_view(mixed) == (reply, result("t1"), result("t2"), user(), reply)


def test_a_user_message_behind_an_unanswered_call_follows_the_derived_result() -> None:
    reply = calls("t1")
    assert provider_view([reply, user()]) == (reply, interrupted("t1"), user())


def test_an_excluded_message_does_not_part_a_call_from_its_result() -> None:
    reply = calls("t1")
    assert provider_view([reply, bash(exclude_from_context=True), result("t1")]) == (reply, result("t1"))


@pytest.mark.parametrize("stop", ["aborted", "error", "length"])
def test_no_result_is_invented_for_a_reply_that_was_cut_short(stop: Literal["aborted", "error", "length"]) -> None:
    reply = calls("t1", stop=stop)
    assert provider_view([reply, user()], reopened=True) == (reply, user())
    assert provider_view([reply, result("t1"), user()]) == (reply, result("t1"), user())


IDS = st.sampled_from(["t1", "t2", "t3"])
CONVERSATIONS = st.lists(
    st.builds(user)
    | st.builds(result, IDS)
    | st.lists(IDS, unique=True, max_size=3).map(lambda ids: calls(*ids))
    | st.builds(bash, exclude_from_context=st.sampled_from([True, UNSET])),
    max_size=10,
)


def runs(shown: tuple[ProviderMessage, ...]) -> list[tuple[list[str], list[str]]]:
    """For each message that is no result: the ids it calls, and those of the results right behind it."""
    found: list[tuple[list[str], list[str]]] = [([], [])]
    for message in shown:
        if isinstance(message, ToolResultMessage):
            found[-1][1].append(message.tool_call_id)
        else:
            found.append(([call.id for call in getattr(message, "tool_calls", [])], []))
    return found


@settings(max_examples=150, deadline=None)
@given(CONVERSATIONS)
def test_whatever_was_stored_each_call_has_exactly_one_result_right_behind_it(conversation: list[Message]) -> None:
    for called, answered in runs(provider_view(conversation, reopened=True)):
        assert sorted(called) == sorted(answered)


# ---- blocked images ----------------------------------------------------------------------------------------------


def image(data: str = "aGk=") -> ImageContent:
    return ImageContent(data, "image/png")


def test_blocked_images_leave_one_note_for_each_run_and_the_messages_stay_as_they_are() -> None:
    asked = user([TextContent("look"), image(), image(), TextContent("and"), image()])
    shown = ToolResultMessage("c", "read", [TextContent("Read"), image()], False, 8)
    told = CustomMessage("n", [image()], True, 4)
    note = TextContent(IMAGE_BLOCKED)
    assert provider_view([asked, calls("c"), shown, told], block_images=True) == (
        user([TextContent("look"), note, TextContent("and"), note]),
        calls("c"),
        ToolResultMessage("c", "read", [TextContent("Read"), note], False, 8),
        UserMessage([note], 4),
    )
    assert provider_view([asked])[0] is asked


@given(st.lists(st.lists(st.booleans(), min_size=1, max_size=6), max_size=4))
def test_no_image_passes_when_they_are_blocked_and_no_text_is_lost(messages: list[list[bool]]) -> None:
    history = [user([image() if is_image else TextContent("t") for is_image in blocks]) for blocks in messages]
    for before, after in zip(history, provider_view(history, block_images=True), strict=True):
        kept = [block for block in after.content if block == TextContent("t")]
        assert kept == [block for block in before.content if isinstance(block, TextContent)]
        assert not any(isinstance(block, ImageContent) for block in after.content)
