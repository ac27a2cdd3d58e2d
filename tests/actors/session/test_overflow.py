"""A context that did not fit is told by the provider's words or by its numbers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.session.overflow import is_overflow
from protocol.messages import AssistantMessage, StopReason, Usage


def failed(text: str) -> AssistantMessage:
    return AssistantMessage([], "a", "p", "m", Usage(), "error", 1, error_message=text)


def replied(stop: StopReason, read_in: int, cached: int = 0, output: int = 0) -> AssistantMessage:
    return AssistantMessage([], "a", "p", "m", Usage(input=read_in, output=output, cache_read=cached), stop, 1)


@pytest.mark.parametrize(
    "text",
    [
        "prompt is too long: 213462 tokens > 200000 maximum",
        '400 {"type":"error","error":{"type":"invalid_request_error","message":"Prompt is too long"}}',
        "prompt too long; nothing was sent",
        '413 {"error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}',
        "Input is too long for requested model.",
        "Your input exceeds the context window of this model",
        "This exceeds the model's context window",
        "Requested tokens exceed the model's maximum context length of 131,072 tokens",
        "Input length (265330) exceeds model's maximum context length (262144).",
        "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575)",
        "This model's maximum prompt length is 131072 but the request has 537812 tokens",
        "Please reduce the length of the messages or completion",
        "This endpoint's maximum context length is 128000 tokens",
        "Input length 131393 exceeds the maximum allowed input length of 131040 tokens.",
        "The input (516368 tokens) is longer than the model's context length (262144 tokens).",
        "prompt token count of 150000 exceeds the limit of 128000",
        "the request exceeds the available context size, try to increase it",
        "tokens to keep is greater than the context length",
        "invalid params, context window exceeds limit",
        "Your request exceeded model token limit: 262144",
        "Prompt with 40000 tokens is too large for model with 32768 maximum context length",
        "prompt has 9000 tokens, but the configured context size is 8192",
        "Provider finish_reason: model_context_window_exceeded",
        "exceeded max context length by 12 tokens",
        "exceeded context length",
        "Range of input length should be [1, 258048]",
        "context length exceeded",
        "400: context_length_exceeded",
        "too many tokens",
        "token limit exceeded",
        "400 status code (no body)",
        "413 (no body)",
        "413 status code (no body)",
        "OpenAI API error (413): no body",
    ],
)
def test_each_providers_words_for_an_overflow_are_known(text: str) -> None:
    assert is_overflow(failed(text), None)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "529 overloaded_error",
        "500 status code (no body)",
        "see: 400 status code (no body)",
        "max_tokens must be at least 1",
        "Throttling error: Too many tokens, please wait before trying again.",
        "ThrottlingException: Too many tokens per day",
        "Service unavailable: too many tokens",
        "429: Too many tokens, please wait before trying again.",
        "OpenAI API error (429): Too many tokens per minute (tokens)",
        "Rate limit reached: too many tokens per minute",
        "rate_limit_error: the prompt is too long for this minute",
        "Too many requests: token limit exceeded",
    ],
)
def test_other_errors_and_limits_of_rate_are_no_overflow(text: str) -> None:
    assert not is_overflow(failed(text), 100)


@pytest.mark.parametrize(
    ("message", "overflows"),
    [
        (replied("stop", 1000), False),
        (replied("stop", 1001), True),
        (replied("stop", 1, cached=1000), True),
        (replied("stop", 1001, output=5), True),
        (replied("length", 990), True),
        (replied("length", 90, cached=900), True),
        (replied("length", 989), False),
        (replied("length", 5000, output=1), False),
        (replied("toolUse", 5000), False),
        (replied("aborted", 5000), False),
        (replied("error", 5000), False),
    ],
)
def test_the_numbers_of_a_reply_tell_an_overflow_that_nobody_spoke_of(
    message: AssistantMessage, overflows: bool
) -> None:
    assert is_overflow(message, 1000) is overflows


@pytest.mark.parametrize("window", [None, 0])
def test_without_a_window_numbers_say_nothing(window: int | None) -> None:
    assert not is_overflow(replied("stop", 10**9), window)
    assert not is_overflow(replied("length", 0), window)


@settings(max_examples=100)
@given(st.text(), st.one_of(st.none(), st.integers(0, 10**9)))
def test_the_window_does_not_matter_for_words(text: str, window: int | None) -> None:
    assert is_overflow(failed(text), window) is is_overflow(failed(text), None)


def test_the_words_stand_anywhere_in_a_long_text_and_cost_no_more_than_its_length() -> None:
    assert is_overflow(failed("input token count " * 500 + "prompt is too long"), None)
    assert not is_overflow(failed("input token count exceeds (" * 200_000), None)
