"""The words of an error tell what kind of failure it is."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.model.http_errors import http_error_text
from actors.session.retry import classify, is_fallbackable, is_retryable
from actors.session.retry_errors import Kind, kind_of_error
from protocol.messages import AssistantMessage, Usage

WINDOW = 200_000
OPENAI_RATE_LIMIT = (
    "429: Rate limit reached for gpt-x on tokens per min (TPM): Limit 10000. Please try again in 6s. You can increase "
    "your rate limit by adding a payment method at https://platform.openai.com/account/billing."
)
ANTHROPIC_RATE_LIMIT = (
    '429 {"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization\'s '
    "rate limit of 30,000 input tokens per minute. Please reduce the prompt length or the maximum tokens requested, or "
    'try again later."}}'
)
SPENT_QUOTA = (
    '429: {"error":{"message":"You exceeded your current quota, please check your plan and billing details. See '
    'https://platform.openai.com/docs/errors.","type":"insufficient_quota","code":"insufficient_quota"}}'
)


def failed(text: str, **fields: Any) -> AssistantMessage:
    return AssistantMessage([], "a", "p", "m", Usage(), "error", 1, error_message=text, **fields)


# text, kind, another model may help, the same model is asked again
SAMPLES: list[tuple[str, Kind, bool, bool]] = [
    ("429 Too Many Requests", "rate_limit", True, True),
    ("529 overloaded_error", "unavailable", True, True),
    ("400 invalid_request_error: bad tool", "request", True, False),
    ("401 Unauthorized", "auth", True, False),
    ("model not found: x", "model", True, False),
    ("quota exceeded", "quota", True, False),
    ("insufficient_quota", "quota", True, False),
    ("terminated", "unavailable", True, True),
    ("fetch failed", "transport", True, True),
    ("weird thing", "unknown", True, False),
    ("connection interrupted", "cancelled", False, False),
    ("Provider finish_reason: content_filter", "refusal", False, True),
    ("Provider finish_reason: network_error", "network", True, True),
]
OURS: list[tuple[str, Kind, bool, bool]] = [
    ('{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}', "unavailable", True, True),
    ('503: {"error":{"message":"unavailable"}}', "unavailable", True, True),
    ("Anthropic stream ended before message_stop", "unavailable", True, True),
    ("OpenAI Responses stream ended before a terminal response event", "unavailable", True, True),
    ("Stream ended without finish_reason", "unavailable", True, True),
    ("The provider's stream ended without a stop reason", "unavailable", True, True),
    ("Request timed out after 500ms (a:443)", "network", True, True),
    ("Connection timed out after 500ms (a:443)", "network", True, True),
    (
        "Provider stream timed out after 300000ms without a new event (stream deadline exceeded)",
        "transport",
        True,
        True,
    ),
    ("Connection refused by a:443", "network", True, True),
    ("Connection lost: a:443 closed the connection before the response was complete", "network", True, True),
    ("Connection error: cannot connect to a:443 (No route to host)", "network", True, True),
    ("Network error: the host of a:443 cannot be found (getaddrinfo ENOTFOUND)", "network", True, True),
    ("Connection error: the proxy refused to connect to a:443 (502 Bad Gateway)", "network", True, True),
    ("TLS connection to a:443 failed: certificate has expired", "unknown", True, False),
    ("No API key for provider: p", "auth", True, False),
    ("Provider finish_reason: galaxy_brain", "unknown", True, False),
    ("Response incomplete: content_filter", "refusal", False, True),
    ("The model refused to complete the request", "refusal", False, True),
    ("Provider stopped with: sensitive", "refusal", False, True),
    ("301: a redirects; base URLs have to be final", "unknown", True, False),
]
PROVIDERS: list[tuple[str, Kind, bool, bool]] = [
    (SPENT_QUOTA, "quota", True, False),
    (OPENAI_RATE_LIMIT, "rate_limit", True, True),
    (ANTHROPIC_RATE_LIMIT, "rate_limit", True, True),
    ("Your credit balance is too low to access the API", "quota", True, False),
    ("You have hit your usage limit", "quota", True, False),
    ("GoUsageLimitError", "quota", True, False),
    ("Your authentication token has been invalidated", "auth", True, False),
    ("Incorrect API key provided: sk-x", "auth", True, False),
    ("The model `gpt-4.1` does not exist", "model", True, False),
    ("502: <html><h1>Bad Gateway</h1></html>", "unavailable", True, True),
    ("503 The model is overloaded. Please try again later. UNAVAILABLE", "unavailable", True, True),
    ("500 unsupported value in upstream", "unavailable", True, True),
    ("500 authentication backend says unauthorized", "auth", True, False),
    ('{"error":{"code": 503,"status":"x"}}', "unavailable", True, True),
    ("Provider returned error (502)", "unavailable", True, True),
    ("Request failed with status code 422", "request", True, False),
    ("504 the upstream took too long to respond", "unavailable", True, True),
    ("upstream connect error or disconnect/reset before headers", "network", True, True),
    ("DNS lookup interrupted", "network", True, True),
    ("connect ECONNABORTED 10.0.0.1:443", "network", True, True),
    ("read ECONNRESET", "network", True, True),
    ("socket hang up", "network", True, True),
    ("zlib: incorrect header check", "transport", True, True),
    ("Unknown parameter: 'safety_identifier'", "request", True, False),
    ("The operation was aborted", "cancelled", False, False),
    ("Command failed: npm test", "task", False, False),
    ("ENOENT: no such file or directory", "task", False, False),
]


@pytest.mark.parametrize(("text", "kind", "falls_back", "retries"), SAMPLES + OURS + PROVIDERS)
def test_a_text_decides_what_is_tried_next(text: str, kind: Kind, falls_back: bool, retries: bool) -> None:
    message = failed(text)
    assert kind_of_error(text) == kind
    assert (is_fallbackable(message), is_retryable(message, WINDOW)) == (falls_back, retries)


@pytest.mark.parametrize("api", ["anthropic-messages", "openai-completions", "openai-responses"])
@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "request"),
        (401, "auth"),
        (403, "auth"),
        (404, "model"),
        (408, "network"),
        (413, "request"),
        (422, "request"),
        (429, "rate_limit"),
        (500, "unavailable"),
        (503, "unavailable"),
        (529, "unavailable"),
        (599, "unavailable"),
    ],
)
def test_the_status_is_read_in_the_words_of_every_dialect(api: str, status: int, kind: Kind) -> None:
    assert kind_of_error(http_error_text(api, status, b'{"error":{"message":"hm"}}')) == kind


@pytest.mark.parametrize("text", ["req_429x", "500000 things", "id (5299)", "4290", "code 5031"])
def test_digits_inside_of_other_words_are_no_status(text: str) -> None:
    assert kind_of_error(text) == "unknown"


@pytest.mark.parametrize("status", [400, 401, 403, 413, 422])
def test_a_request_that_a_filter_refused_is_not_sent_again_and_no_other_model_is_asked(status: int) -> None:
    message = failed(f"{status} The prompt was filtered due to the content management policy")
    assert not is_retryable(message, WINDOW)
    assert not is_fallbackable(message)


def test_a_refusal_is_told_by_its_stop_reason_whatever_the_explanation_says() -> None:
    message = failed("The quota on such questions was cancelled", raw_stop_reason="refusal")
    assert classify(message) == "refusal"
    assert is_retryable(message, WINDOW) and not is_fallbackable(message)


@pytest.mark.parametrize(
    "text",
    [
        "Post-tool context remains over the provider hard input limit after compaction (9 > 8 tokens); the next "
        "provider request was not sent.",
        "Post-tool context compaction failed before the next provider request: 529 overloaded",
        "Post-tool context compaction was cancelled before the next provider request.",
    ],
)
def test_nothing_follows_a_context_that_could_not_be_made_to_fit(text: str) -> None:
    message = failed(text)
    assert not is_retryable(message, WINDOW)
    assert not is_fallbackable(message)


VERDICTS: tuple[Kind, ...] = get_args(Kind)
WORDS = st.sampled_from([text for text, *_ in SAMPLES + OURS + PROVIDERS] + ["429", " ", ".", '"', "model ", "(503)"])


@settings(max_examples=150)
@given(st.one_of(st.text(), st.lists(WORDS, max_size=8).map("".join), st.text(st.characters(categories=["Cs"]))))
def test_every_text_has_a_verdict(text: str) -> None:
    assert classify(failed(text)) in VERDICTS
    is_retryable(failed(text), WINDOW)
    is_fallbackable(failed(text))


@pytest.mark.parametrize("piece", ["model ", "violat ", "api key ", "token ", "https://a ", '"code": ', "("])
def test_a_long_text_takes_no_longer_than_its_length(piece: str) -> None:
    """A pattern with a search inside of a search would not end on these; the test's time-out would."""
    assert classify(failed(piece * 1_000_000)) in VERDICTS
