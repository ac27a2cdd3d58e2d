"""A failed model call is tried again, so and so often, and the client hears of it."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.session.retry import (
    CANNED_REFUSAL,
    EMPTY_COMPLETION,
    Again,
    GiveUp,
    Retry,
    RetryPolicy,
    classify,
    is_fallbackable,
    is_retryable,
    retry_text,
)
from protocol.events import AutoRetryEnd, AutoRetryStart
from protocol.messages import (
    AssistantContent,
    AssistantMessage,
    StopReason,
    TextContent,
    ThinkingContent,
    ToolCall,
    Usage,
)

WINDOW = 200_000
OVERLOADED = "529 overloaded_error: Overloaded"
TWICE = RetryPolicy(max_retries=2)


def reply(stop: StopReason = "stop", *content: AssistantContent, output: int = 0, **fields: Any) -> AssistantMessage:
    return AssistantMessage(list(content), "a", "p", "m", Usage(output=output), stop, 1, **fields)


def said(text: str, output: int = 0, stop: StopReason = "stop") -> AssistantMessage:
    return reply(stop, TextContent(text), output=output)


GOOD = said("Hello", output=3)
FAILED = reply("error", error_message=OVERLOADED)
DENIED = reply("error", error_message="401 Unauthorized")


def again(outcome: Again | GiveUp | None) -> Again:
    assert isinstance(outcome, Again)
    return outcome


def given_up(outcome: Again | GiveUp | None) -> GiveUp:
    assert isinstance(outcome, GiveUp)
    return outcome


# ---- the series --------------------------------------------------------------------------------------------------


def test_one_transient_error_is_retried_and_the_good_reply_closes_the_series() -> None:
    retry = Retry()
    outcome = again(retry.run_ended(FAILED, WINDOW, RetryPolicy()))
    assert outcome.event == AutoRetryStart(1, 3, 2000, OVERLOADED)
    assert retry.waiting and retry.woke(outcome.wait) and not retry.waiting
    assert retry.replied(GOOD) == AutoRetryEnd(True, 1)
    assert retry.run_ended(GOOD, WINDOW, RetryPolicy()) is None


def test_the_wait_doubles_from_retry_to_retry() -> None:
    retry = Retry()
    policy = RetryPolicy(max_retries=4)
    delays = [again(retry.run_ended(FAILED, WINDOW, policy)).event.delay_ms for _ in range(4)]
    assert delays == [2000, 4000, 8000, 16000]


@pytest.mark.parametrize("max_retries", [0, 1, 2, 5])
def test_a_call_makes_one_request_and_max_retries_more(max_retries: int) -> None:
    retry = Retry()
    policy = RetryPolicy(max_retries=max_retries)
    requests = 1
    while isinstance(outcome := retry.run_ended(FAILED, WINDOW, policy), Again):
        assert retry.woke(outcome.wait)
        requests += 1
    assert requests == 1 + max_retries
    end = given_up(outcome).event(falls_back=False)
    assert end == (AutoRetryEnd(False, max_retries, OVERLOADED) if max_retries else None)


def test_each_model_call_has_its_own_retries() -> None:
    retry = Retry()
    for _ in range(3):
        again(retry.run_ended(FAILED, WINDOW, TWICE))
        assert again(retry.run_ended(FAILED, WINDOW, TWICE)).event.attempt == 2
        assert retry.replied(reply("toolUse", ToolCall("t", "read", {}))) == AutoRetryEnd(True, 2)


def test_a_good_reply_without_a_series_is_no_news() -> None:
    assert Retry().replied(GOOD) is None


@pytest.mark.parametrize("bad", [FAILED, DENIED, reply(), reply("aborted", TextContent("half"))])
def test_a_reply_that_is_not_good_does_not_close_the_series_as_a_success(bad: AssistantMessage) -> None:
    retry = Retry()
    again(retry.run_ended(FAILED, WINDOW, TWICE))
    assert retry.replied(bad) is None
    assert retry.attempt == 1


@pytest.mark.parametrize(
    ("last", "error"),
    [
        (DENIED, "401 Unauthorized"),
        (reply("error", error_message="prompt is too long"), "prompt is too long"),
        (reply("aborted", error_message="Request was aborted"), "Request was aborted"),
    ],
)
def test_a_series_ends_with_whatever_cannot_be_retried(last: AssistantMessage, error: str) -> None:
    retry = Retry()
    again(retry.run_ended(FAILED, WINDOW, TWICE))
    outcome = given_up(retry.run_ended(last, WINDOW, TWICE))
    assert outcome.event(falls_back=False) == AutoRetryEnd(False, 1, error)
    assert retry.attempt == 0


def test_without_a_retry_there_is_no_event_to_close_it() -> None:
    outcome = given_up(Retry().run_ended(DENIED, WINDOW, TWICE))
    assert outcome.event(falls_back=False) is None
    assert outcome.event(falls_back=True) is None


def test_a_fallback_model_closes_the_series_and_has_all_retries_before_it() -> None:
    retry = Retry()
    for _ in range(2):
        again(retry.run_ended(FAILED, WINDOW, TWICE))
    assert given_up(retry.run_ended(FAILED, WINDOW, TWICE)).event(falls_back=True) == AutoRetryEnd(True, 2)
    assert again(retry.run_ended(FAILED, WINDOW, TWICE)).event.attempt == 1


def test_nothing_is_retried_while_retries_are_off() -> None:
    outcome = given_up(Retry().run_ended(FAILED, WINDOW, RetryPolicy(enabled=False)))
    assert outcome == GiveUp(0, OVERLOADED)


def test_switching_retries_off_ends_the_series_at_the_next_failure() -> None:
    retry = Retry()
    again(retry.run_ended(FAILED, WINDOW, TWICE))
    outcome = given_up(retry.run_ended(FAILED, WINDOW, RetryPolicy(enabled=False)))
    assert outcome.event(falls_back=False) == AutoRetryEnd(False, 1, OVERLOADED)


# ---- cancelling --------------------------------------------------------------------------------------------------


def test_a_cancelled_wait_is_told_and_its_tick_wakes_nobody() -> None:
    retry = Retry()
    outcome = again(retry.run_ended(FAILED, WINDOW, TWICE))
    assert retry.cancelled() == AutoRetryEnd(False, 1, "Retry cancelled")
    assert not retry.woke(outcome.wait)


def test_the_tick_of_a_cancelled_wait_does_not_end_the_next_one() -> None:
    retry = Retry()
    old = again(retry.run_ended(FAILED, WINDOW, TWICE))
    retry.cancelled()
    new = again(retry.run_ended(FAILED, WINDOW, TWICE))
    assert new.event.attempt == 1
    assert not retry.woke(old.wait)
    assert retry.woke(new.wait)


def test_cancelling_outside_a_wait_changes_nothing() -> None:
    retry = Retry()
    assert retry.cancelled() is None
    outcome = again(retry.run_ended(FAILED, WINDOW, TWICE))
    assert retry.woke(outcome.wait)
    assert retry.cancelled() is None
    assert retry.replied(GOOD) == AutoRetryEnd(True, 1)


@pytest.mark.parametrize("woken", [True, False])
def test_a_series_that_is_broken_off_is_closed_once_whether_it_waits_or_runs(woken: bool) -> None:
    retry = Retry()
    assert retry.broken_off(FAILED) is None
    outcome = again(retry.run_ended(FAILED, WINDOW, TWICE))
    if woken:
        retry.woke(outcome.wait)
    aborted = reply("aborted", error_message="Request was aborted")
    assert retry.broken_off(aborted) == AutoRetryEnd(False, 1, "Request was aborted")
    assert retry.broken_off(aborted) is None
    assert again(retry.run_ended(FAILED, WINDOW, TWICE)).event.attempt == 1


# ---- replies that only look good ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "empty",
    [
        reply(),
        reply("toolUse"),
        reply("stop", TextContent(" \n\u00a0")),
        reply("stop", ThinkingContent("")),
    ],
)
def test_an_empty_completion_is_retried_and_may_spend_a_fallback(empty: AssistantMessage) -> None:
    assert classify(empty) == "empty"
    assert is_retryable(empty, WINDOW) and is_fallbackable(empty)
    assert retry_text(empty) == EMPTY_COMPLETION == "Provider returned an empty completion"


@pytest.mark.parametrize(
    "whole",
    [
        said("ok"),
        reply(output=1),
        reply("length"),
        reply("stop", ThinkingContent("hm"), output=0),
        reply("stop", ThinkingContent("", "payload", True)),
        reply("toolUse", ToolCall("t", "read", {})),
    ],
)
def test_a_reply_with_any_content_or_output_is_whole(whole: AssistantMessage) -> None:
    assert classify(whole) == "whole"
    assert not is_retryable(whole, WINDOW) and not is_fallbackable(whole)


def test_an_empty_completion_that_repeats_is_bounded() -> None:
    retry = Retry()
    assert [again(retry.run_ended(reply(), WINDOW, TWICE)).event.error_message for _ in range(2)] == [
        EMPTY_COMPLETION,
        EMPTY_COMPLETION,
    ]
    outcome = given_up(retry.run_ended(reply(), WINDOW, TWICE))
    assert outcome.event(falls_back=False) == AutoRetryEnd(False, 2, EMPTY_COMPLETION)


CANNED = [
    "I'm sorry, but I cannot assist with that request.",
    "I\u2019m sorry, but I can\u2019t help with that.",
    "Sorry, I can't do that.",
    "I am unable to help with this.",
    "I cannot comply.",
    "Unfortunately, I will not provide that.",
]


@pytest.mark.parametrize("stop", ["stop", "length", "toolUse"])
@pytest.mark.parametrize("text", CANNED)
def test_a_canned_refusal_is_retried_on_the_same_model_only(text: str, stop: StopReason) -> None:
    message = said(text, stop=stop)
    assert classify(message) == "canned"
    assert is_retryable(message, WINDOW) and not is_fallbackable(message)
    assert retry_text(message) == CANNED_REFUSAL == "Provider returned a canned safety refusal"


@pytest.mark.parametrize(
    "message",
    [
        said(CANNED[0], output=12),
        said(CANNED[0] + " " + "x" * 120),
        said(CANNED[0][:-1] + "\U0001f600" * 40),
        reply("stop", TextContent(CANNED[0]), ThinkingContent("hm")),
        reply("toolUse", TextContent(CANNED[0]), ToolCall("t", "read", {})),
        said("The tests pass. I cannot assist with more today."),
        said("Sorry for the wait: the build is green."),
    ],
)
def test_a_refusal_that_was_billed_or_says_more_is_accepted(message: AssistantMessage) -> None:
    assert classify(message) == "whole"


def test_an_aborted_reply_is_never_tried_again() -> None:
    message = reply("aborted", error_message=OVERLOADED)
    assert not is_retryable(message, WINDOW) and not is_fallbackable(message)


def test_an_overflow_is_left_to_compaction() -> None:
    told = reply("error", error_message="503 context_length_exceeded")
    assert not is_retryable(told, WINDOW) and not is_fallbackable(told)
    silent = AssistantMessage([], "a", "p", "m", Usage(input=WINDOW + 1), "stop", 1)
    assert not is_retryable(silent, WINDOW)
    assert is_retryable(silent, WINDOW + 1)


@pytest.mark.parametrize("blank", ["", "  "])
def test_an_error_without_words_is_an_unknown_error(blank: str) -> None:
    assert retry_text(reply("error", error_message=blank)) == "Unknown error"
    assert retry_text(reply("error")) == "Unknown error"


def test_the_providers_own_words_are_told_unchanged() -> None:
    assert retry_text(reply("error", error_message=" 529 Overloaded\n")) == " 529 Overloaded\n"


def test_no_setting_makes_a_wait_that_a_timer_cannot_hold() -> None:
    assert RetryPolicy(base_delay_ms=10**9).delay_ms(10_000) == 2**31 - 1
    assert RetryPolicy(base_delay_ms=0).delay_ms(3) == 0


# ---- whatever happens --------------------------------------------------------------------------------------------

MESSAGES = st.builds(
    reply,
    st.sampled_from([stop for stop in get_args(StopReason) if stop != "pending"]),
    st.sampled_from([TextContent(""), TextContent("Hello"), TextContent(CANNED[0]), ThinkingContent("hm")]),
    output=st.integers(0, 1),
    error_message=st.sampled_from(["", OVERLOADED, "401 Unauthorized", "prompt is too long"]),
)
POLICIES = st.builds(RetryPolicy, st.booleans(), st.integers(0, 3), st.integers(0, 10))


@settings(max_examples=150)
@given(st.lists(st.tuples(MESSAGES, POLICIES, st.booleans(), st.booleans()), max_size=12))
def test_every_series_is_opened_once_and_closed_once(
    steps: list[tuple[AssistantMessage, RetryPolicy, bool, bool]],
) -> None:
    retry = Retry()
    open_attempt = 0
    for message, policy, cancels, falls_back in steps:
        events: list[Any] = [retry.replied(message)]
        outcome = retry.run_ended(message, WINDOW, policy)
        if isinstance(outcome, Again):
            assert outcome.event.attempt <= policy.max_retries
            events += [outcome.event, retry.cancelled() if cancels else None]
            assert retry.woke(outcome.wait) is not cancels
        elif outcome is not None:
            events.append(outcome.event(falls_back=falls_back))
        for event in events:
            if isinstance(event, AutoRetryStart):
                open_attempt += 1
                assert event.attempt == open_attempt
            elif event is not None:
                assert event.attempt == open_attempt > 0
                open_attempt = 0
    assert retry.attempt == open_attempt
