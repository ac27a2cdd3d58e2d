"""Which requests outside a run are sent again, and what the client hears of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.session.retry import RetryPolicy
from actors.session.side_retry import SideSeries, is_passing
from protocol.events import SummarizationRetryAttemptStart, SummarizationRetryFinished, SummarizationRetryScheduled
from protocol.messages import AssistantMessage, StopReason, Usage

START = SummarizationRetryAttemptStart("branchSummary")


def reply(error: str | None = None, stop: StopReason = "error") -> AssistantMessage:
    fields: dict[str, Any] = {} if error is None else {"error_message": error}
    return AssistantMessage([], "a", "p", "m", Usage(), stop, 1, **fields)


@pytest.mark.parametrize(
    "text",
    [
        "overloaded_error: Overloaded",
        "Rate limit reached",
        "Too Many Requests",
        *(f"{status} something" for status in (429, 500, 502, 503, 504, 524)),
        "Service Unavailable",
        "server_error",
        "Internal error",
        "Provider returned error",
        "exceeded request buffer limit while retrying upstream",
        "network error",
        "Connection error.",
        "connection refused",
        "connection lost",
        "other side closed",
        "fetch failed",
        "getaddrinfo ENOTFOUND api.example",
        "EAI_AGAIN",
        "upstream connect error or disconnect/reset before headers",
        "socket hang up",
        "socket closed",
        "Request timed out.",
        "timeout",
        "terminated",
        "WebSocket closed 1006",
        "websocket error",
        "zlib: unexpected end of file",
        "incorrect header check",
        "decompression failed",
        "library error",
        "Provider stream timed out after 5ms without a new event (stream deadline exceeded)",
        "request ended without sending any chunks",
        "stream ended before message_stop",
        "stream ended before a terminal response event",
        "http2 request did not get a response",
        "retry delay 5s",
        "An error occurred, please retry your request",
        "ResourceExhausted",
    ],
)
def test_what_fails_in_passing_is_sent_again(text: str) -> None:
    assert is_passing(reply(text))


@pytest.mark.parametrize(
    "text",
    [
        "GoUsageLimitError",
        "FreeUsageLimitError: 429",
        "Monthly usage limit reached",
        "available balance is too low",
        "429 insufficient_quota",
        "out of budget",
        "429 quota exceeded",
        "billing hard limit",
        "No API key for provider: p",
        "401 Unauthorized",
        "400 invalid_request_error: bad",
        "prompt is too long: 250000 tokens > 200000 maximum",
        "content_filter",
        "weird thing",
        "",
    ],
)
def test_what_would_fail_again_is_not(text: str) -> None:
    assert not is_passing(reply(text))


@pytest.mark.parametrize("stop", ["stop", "length", "aborted", "toolUse"])
def test_only_an_error_is_tried_again(stop: StopReason) -> None:
    assert not is_passing(reply("529 overloaded", stop))


def test_the_events_of_one_retry() -> None:
    series, policy, failed = SideSeries(START), RetryPolicy(), reply("terminated")
    assert series.retry_after(failed, policy) == 2000
    assert series.scheduled(failed, policy) == (SummarizationRetryScheduled(1, 3, 2000, "terminated"),)
    assert series.woke() == (START,)
    assert series.over() == (SummarizationRetryFinished(),)
    assert series.over() == ()


def test_a_call_without_retry_says_nothing_at_its_end() -> None:
    assert SideSeries(START).over() == ()


def test_a_call_that_is_not_announced_retries_in_silence() -> None:
    series, policy, failed = SideSeries(None), RetryPolicy(), reply("terminated")
    assert series.retry_after(failed, policy) == 2000
    assert (series.scheduled(failed, policy), series.woke(), series.over()) == ((), (), ())


@given(st.integers(0, 6), st.booleans())
def test_there_are_as_many_retries_as_the_settings_allow_with_doubling_waits(most: int, enabled: bool) -> None:
    series, policy = SideSeries(START), RetryPolicy(enabled, most, 10)
    waits = []
    while (wait := series.retry_after(reply("terminated"), policy)) is not None:
        waits.append(wait)
    assert waits == [10 << n for n in range(most if enabled else 0)]
    assert series.retries == len(waits)
