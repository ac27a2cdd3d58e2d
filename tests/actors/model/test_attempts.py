"""Which attempts follow a failed one, what a server may ask for, and how long the wait is."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.model.attempts import RequestLimits, RetryHint, TooLong, may_help, retry_hint, wait_ms

NOW = 1_000_000_000_000  # Sun, 09 Sep 2001 01:46:40 GMT


@pytest.mark.parametrize(
    ("headers", "after_ms"),
    [
        ({}, None),
        ({"retry-after-ms": "250"}, 250),
        ({"retry-after-ms": "0.5"}, 1),
        ({"retry-after-ms": "250", "retry-after": "9"}, 250),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9000),
        ({"retry-after": "2"}, 2000),
        ({"retry-after": "1.5"}, 1500),
        ({"retry-after": "Sun, 09 Sep 2001 01:46:45 GMT"}, 5000),
        ({"retry-after": "Sun, 09 Sep 2001 01:46:39 GMT"}, None),
        ({"retry-after": "0"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "tomorrow"}, None),
        ({"retry-after": "Mon, 99 Foo 99999999999 99:99:99 GMT"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "999999999999999"}, 2**31 - 1),
    ],
)
def test_the_wait_that_a_server_asks_for(headers: Mapping[str, str], after_ms: int | None) -> None:
    assert retry_hint(headers, NOW) == RetryHint(after_ms)


@given(st.dictionaries(st.sampled_from(("retry-after-ms", "retry-after", "x-should-retry")), st.text(max_size=40)))
def test_no_header_whatever_stops_the_reading(headers: dict[str, str]) -> None:
    hint = retry_hint(headers, NOW)
    assert hint.after_ms is None or 0 < hint.after_ms < 2**31


@pytest.mark.parametrize(("word", "told"), [("true", True), (" FALSE ", False), ("perhaps", None), ("", None)])
def test_a_server_may_say_whether_another_attempt_helps(word: str, told: bool | None) -> None:
    assert retry_hint({"x-should-retry": word}, NOW).may_help is told


def test_without_its_word_the_status_decides() -> None:
    assert [status for status in range(400, 600) if may_help(status, RetryHint())] == [408, 409, 429, *range(500, 600)]
    assert may_help(400, RetryHint(may_help=True)) and not may_help(503, RetryHint(may_help=False))


def test_the_own_wait_doubles_up_to_eight_seconds_and_chance_takes_up_to_a_quarter_off() -> None:
    full = [wait_ms(retry, RetryHint(), RequestLimits(), 0.0) for retry in range(1, 8)]
    assert full == [500, 1000, 2000, 4000, 8000, 8000, 8000]
    assert [wait_ms(retry, RetryHint(), RequestLimits(), 1.0) for retry in (1, 5)] == [375, 6000]
    assert wait_ms(10_000, RetryHint(), RequestLimits(), 0.0) == 8000


@pytest.mark.parametrize(
    ("after_ms", "allowed_ms", "text"),
    [
        (120_000, 60_000, "Server requested 120s retry delay (max: 60s)."),
        (60_001, 60_000, "Server requested 61s retry delay (max: 60s)."),
        (900, 500, "Server requested 1s retry delay (max: 0.5s)."),
        (2**31 - 1, 86_400_000, "Server requested 2147484s retry delay (max: 86400s)."),
    ],
)
def test_a_wait_beyond_the_limit_is_refused(after_ms: int, allowed_ms: int, text: str) -> None:
    with pytest.raises(TooLong) as refused:
        wait_ms(1, RetryHint(after_ms), RequestLimits(3, allowed_ms), 0.0)
    assert str(refused.value) == text


def test_a_wait_at_the_limit_and_any_without_one_is_kept() -> None:
    assert wait_ms(1, RetryHint(60_000), RequestLimits(), 0.5) == 60_000
    assert wait_ms(1, RetryHint(999_999_999), RequestLimits(3, 0), 0.5) == 999_999_999
