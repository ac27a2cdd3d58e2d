"""How full a context is: told by the provider as far as it goes, estimated after that."""

from __future__ import annotations

from typing import Any

import pytest

from actors.session.tokens import context_usage, estimate_tokens, message_tokens, usage_tokens, utf16_length
from protocol.messages import (
    AssistantContent,
    AssistantMessage,
    BashExecutionMessage,
    BranchSummaryMessage,
    CustomMessage,
    ImageContent,
    Message,
    StopReason,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from protocol.responses import ContextUsage


def user(text: str = "12345678", timestamp: int = 1) -> UserMessage:
    return UserMessage(text, timestamp)


def reply(tokens: int, timestamp: int = 1, stop: StopReason = "stop", **fields: Any) -> AssistantMessage:
    return AssistantMessage([TextContent("1234")], "a", "p", "m", Usage(input=tokens), stop, timestamp, **fields)


BOUNDARY = CustomMessage("compaction", [TextContent("12345678")], True, 5)


@pytest.mark.parametrize(
    ("usage", "api", "tokens"),
    [
        (Usage(100, 20, 1000, 5), "anthropic-messages", 1125),
        (Usage(1000, 20, 900, 50), "anthropic-messages", 1020),
        (Usage(1000, 20, 1100, 0), "anthropic-messages", 1020),
        (Usage(1000, 20, 1101, 0), "anthropic-messages", 2121),
        (Usage(1000, 20, 900, 50), "openai-completions", 1970),
        (Usage(-5, 20, -7, 0), "x", 20),
        (Usage(total_tokens=77), "x", 77),
        (Usage(), "anthropic-messages", 0),
    ],
)
def test_usage_counts_the_whole_request_once(usage: Usage, api: str, tokens: int) -> None:
    assert usage_tokens(usage, api) == tokens


def test_lengths_are_utf16_units() -> None:
    assert [utf16_length(text) for text in ("", "ab", "\u00e9", "\U0001f600", "\ud83d")] == [0, 2, 1, 2, 1]


@pytest.mark.parametrize(
    ("message", "tokens"),
    [
        (user("12345"), 2),
        (user(" \n"), 0),
        (UserMessage([TextContent("1234"), ImageContent("d", "image/png")], 1), 1201),
        (BashExecutionMessage("ls", "123456", False, False, 1), 2),
        (BashExecutionMessage("ls", "123456", False, False, 1, exclude_from_context=True), 0),
        (CustomMessage("n", "1234", False, 1), 1),
        (BranchSummaryMessage("123456789", "a", 1), 3),
        (BranchSummaryMessage("", "a", 1), 0),
        (ToolResultMessage("t", "bash", [TextContent("1234")], False, 1), 1),
        (ToolResultMessage("t", "bash", [], False, 1), 0),
    ],
)
def test_four_units_are_a_token_and_what_is_not_shown_is_none(message: Message, tokens: int) -> None:
    assert message_tokens(message) == tokens


def test_a_reply_counts_text_thinking_and_calls_with_compact_arguments() -> None:
    blocks: list[AssistantContent] = [
        TextContent("12"),
        ThinkingContent("34"),
        ToolCall("t", "bash", {"k": "\u00e9", "n": 1}),
    ]
    message = AssistantMessage(blocks, "a", "p", "m", Usage(), "stop", 1)
    assert message_tokens(message) == (2 + 2 + 4 + len('{"k":"x","n":1}') + 3) // 4


def test_without_usage_the_estimates_are_summed() -> None:
    assert estimate_tokens([user(), user(), reply(0)]) == 5
    assert estimate_tokens([]) == 0


def test_the_last_good_usage_replaces_all_before_it() -> None:
    assert estimate_tokens([user(), reply(100), user(), reply(500), user(), user()]) == 504


@pytest.mark.parametrize("stop", ["error", "aborted"])
def test_a_failed_reply_tells_nothing(stop: StopReason) -> None:
    assert estimate_tokens([reply(100), reply(900, stop=stop)]) == 101


def test_usage_older_than_what_stands_before_it_tells_nothing() -> None:
    assert estimate_tokens([BOUNDARY, reply(900, timestamp=4)]) == 3
    assert estimate_tokens([BOUNDARY, reply(900, timestamp=5)]) == 900


def test_context_usage_is_absent_without_a_window() -> None:
    assert context_usage([user()], 0) is None


def test_percent_is_of_the_window_and_not_rounded() -> None:
    assert context_usage([reply(100), user()], 300) == ContextUsage(102, 300, 34.0)


def test_after_a_boundary_the_usage_is_unknown_until_a_good_reply() -> None:
    unknown = ContextUsage(None, 1000, None)
    assert context_usage([BOUNDARY, user()], 1000) == unknown
    assert context_usage([BOUNDARY, reply(0, 6)], 1000) == unknown
    assert context_usage([BOUNDARY, reply(50, 6, "aborted")], 1000) == unknown
    assert context_usage([BOUNDARY, reply(50, 6)], 1000) == ContextUsage(50, 1000, 5.0)
