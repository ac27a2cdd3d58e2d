"""What a planner's reply amounts to: whatever it says, deletions that fit or one clear failure."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.session.compaction.outcome import MALFORMED, NO_RANGES, Overflowed, Ranked, Refused, Unusable, outcome_of
from actors.session.compaction.region import Region
from protocol.messages import AssistantMessage, StopReason, TextContent, ThinkingContent, Usage

REGION = Region(("x",) * 30, ((5, 6),))


def reply(*texts: str, stop: StopReason = "stop", error: str = "", **usage: Any) -> AssistantMessage:
    content: list[Any] = [ThinkingContent("1,30"), *map(TextContent, texts)]
    return AssistantMessage(content, "a", "p", "m", Usage(**usage), stop, 1, error_message=error)


def test_blocks_are_joined_before_they_are_read() -> None:
    assert outcome_of(reply("1,", "4"), REGION, 1000) == Ranked(((1, 4),))
    assert outcome_of(reply("1,4\n", "8,9\n"), REGION, 1000) == Ranked(((1, 4), (8, 9)))


def test_an_answer_that_was_cut_short_is_used_as_far_as_it_goes() -> None:
    assert outcome_of(reply("1,4\n8,9", stop="length", output=5), REGION, 1000) == Ranked(((1, 4),), recovered=True)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("5,6", "no_usable_ranges"),
        ("31,99", "no_usable_ranges"),
        ("0,0", "no_usable_ranges"),
        ("hello", "malformed_output"),
    ],
)
def test_nothing_to_delete_is_never_a_success(text: str, kind: Any) -> None:
    assert outcome_of(reply(text), REGION, 1000) == Unusable(kind)


def test_a_model_that_thought_until_nothing_was_left_starved() -> None:
    cut = {"stop": "length", "output": 9, "reasoning": 9}
    for text in ("", "1,", "5,6\n"):
        assert outcome_of(reply(text, **cut), REGION, 1000) == Unusable("starved")
    assert outcome_of(reply("", stop="length", output=9), REGION, 1000) == Unusable("malformed_output")
    assert (Unusable("starved").error, Unusable("malformed_output").error) == (NO_RANGES, MALFORMED)


def test_an_overflow_counts_before_what_the_text_says() -> None:
    assert outcome_of(reply("1,4", input=1001), REGION, 1000) == Overflowed()
    assert outcome_of(reply("", stop="error", error="prompt is too long"), REGION, 1000) == Overflowed()
    assert isinstance(outcome_of(reply("1,4", input=1001), REGION, 0), Ranked)


@pytest.mark.parametrize(
    ("error", "limit"),
    [
        ("You exceeded your current quota", "quota"),
        ("insufficient_quota", "quota"),
        ("Monthly usage limit reached", "quota"),
        ("billing hard limit", "quota"),
        ("429 Too Many Requests", "rate_limited"),
        ("529 overloaded_error", "rate_limited"),
        ("503", "rate_limited"),
        ("ResourceExhausted", "rate_limited"),
        ("Internal server error", "rate_limited"),
        ("401 Unauthorized", None),
        ("model 5021 not found", None),
    ],
)
def test_an_error_is_told_as_it_came_with_its_class(error: str, limit: Any) -> None:
    assert outcome_of(reply("1,4", stop="error", error=error), REGION, 1000) == Refused(error, limit)


@given(
    st.text(alphabet="0123456789,\n ab-", max_size=60),
    st.sampled_from(("stop", "length", "toolUse")),
    st.lists(st.tuples(st.integers(1, 12), st.integers(1, 12)).map(sorted), max_size=1),
)
def test_any_text_gives_deletions_inside_the_region_or_a_failure(text: str, stop: Any, kept: list[Any]) -> None:
    region = Region(("x",) * 12, tuple(map(tuple, kept)))
    outcome = outcome_of(reply(text, stop=stop), region, 1000)
    if isinstance(outcome, Ranked):
        assert outcome.deletions
        lines = [line for start, end in outcome.deletions for line in range(start, end + 1)]
        assert lines == sorted(set(lines)) and set(lines) <= set(range(1, 13))
        assert not any(start <= line <= end for line in lines for start, end in region.protected)
    else:
        assert isinstance(outcome, Unusable)
