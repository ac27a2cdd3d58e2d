"""When a session compacts by itself, and that no fault leads to a circle."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.session.compaction.triggers import (
    BUDGET_GIVEN_UP,
    LENGTH_GIVEN_UP,
    OVERFLOW_GIVEN_UP,
    GivenUp,
    Recovery,
    Trigger,
    before_request,
    hard_limit_error,
)
from protocol.messages import AssistantMessage, Message, StopReason, TextContent, ToolResultMessage, Usage, UserMessage
from protocol.model import Model, ModelCost

MODEL = Model("m", "m", "openai-responses", "p", "http://x", False, ("text",), ModelCost(), 1000, 100)
RESERVE = 200


def reply(stop: StopReason = "stop", error: str = "", model: str = "m", **usage: int) -> AssistantMessage:
    return AssistantMessage([], "openai-responses", "p", model, Usage(**usage), stop, 1, error_message=error)


TOO_LONG = reply("error", "prompt is too long")
FULL = reply(input=790, output=11)
UNDERFLOW = "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got 1 instead."


def after(message: AssistantMessage, recovery: Recovery | None = None, *, enabled: bool = True, **known: Any) -> Any:
    messages: tuple[Message, ...] = (*known.get("before", ()), message)
    return (recovery or Recovery()).after_run(message, MODEL, RESERVE, messages, enabled=enabled)


@pytest.mark.parametrize(("output", "trigger"), [(10, None), (11, Trigger("threshold"))])
def test_the_threshold_is_the_window_without_the_reserve(output: int, trigger: Trigger | None) -> None:
    assert after(reply(input=790, output=output)) == trigger


def test_an_overflow_compacts_and_retries_once_a_user_turn() -> None:
    recovery = Recovery()
    first = Trigger("overflow", will_retry=True, takes_small=True)
    assert after(TOO_LONG, recovery) == first
    assert after(TOO_LONG, recovery) == GivenUp(OVERFLOW_GIVEN_UP, unresolved=True)
    recovery.replied(reply("length"))
    assert after(TOO_LONG, recovery) == GivenUp(OVERFLOW_GIVEN_UP, unresolved=True)
    recovery.replied(reply("toolUse"))
    assert after(TOO_LONG, recovery) == first
    recovery.user_said()
    assert after(TOO_LONG, recovery) == first


def test_an_overflow_of_another_model_is_not_this_ones() -> None:
    assert after(reply("error", "prompt is too long", model="other")) is None


def test_a_good_answer_over_the_window_is_compacted_and_not_asked_again() -> None:
    assert after(reply(input=1001)) == Trigger("overflow", takes_small=True)


def test_switched_off_nothing_runs_but_an_overflow_is_unresolved() -> None:
    assert after(TOO_LONG, enabled=False) == GivenUp(None, unresolved=True)
    assert after(FULL, enabled=False) is None
    assert after(reply(input=1001), enabled=False) is None


def test_an_answer_cut_short_below_the_cap_is_tried_once_more() -> None:
    recovery = Recovery()
    short = reply("length", input=10, output=99)
    assert after(short, recovery) == Trigger("length", will_retry=True)
    assert after(short, recovery) == GivenUp(LENGTH_GIVEN_UP)


def test_an_answer_cut_at_the_cap_over_the_threshold_goes_on_once() -> None:
    recovery = Recovery()
    capped = reply("length", input=750, output=100)
    assert after(capped, recovery) == Trigger("threshold", will_retry=True)
    assert after(capped, recovery) == Trigger("threshold")
    assert after(reply("length", input=10, output=100)) is None


def test_an_output_budget_that_fell_below_the_minimum_goes_on_once() -> None:
    recovery = Recovery()
    failed = reply("error", UNDERFLOW)
    assert after(failed, recovery, before=(FULL,)) == Trigger("threshold", will_retry=True)
    assert after(failed, recovery, before=(FULL,)) == GivenUp(BUDGET_GIVEN_UP, reason="threshold")


def test_an_error_counts_what_was_told_before_it_and_nothing_without_that() -> None:
    failed = reply("error", "529 overloaded")
    assert after(failed, before=(FULL,)) == Trigger("threshold")
    assert after(failed, before=(UserMessage("x" * 10_000, 1),)) is None
    assert after(reply("aborted", input=5000), before=(FULL,)) is None


def test_before_a_prompt_nothing_of_the_old_work_goes_on() -> None:
    def before(message: AssistantMessage, *known: Message) -> Trigger | None:
        return Recovery().before_prompt(message, MODEL, RESERVE, (*known, message))

    assert before(FULL) == Trigger("threshold")
    assert before(reply("aborted"), FULL) == Trigger("threshold")
    assert before(reply("aborted", input=5000)) == Trigger("threshold")
    assert before(TOO_LONG) == Trigger("overflow", takes_small=True)
    assert before(reply("length", output=5)) is None


def test_before_a_request_that_follows_tool_results_the_estimate_counts() -> None:
    def result(size: int) -> ToolResultMessage:
        return ToolResultMessage("t", "read", [TextContent("x" * size)], False, 2)

    asked = reply("toolUse", input=700, output=10)
    assert before_request((asked, result(360)), MODEL, RESERVE) is None
    assert before_request((asked, result(361)), MODEL, RESERVE) == Trigger("mid-turn")
    assert before_request((asked, result(1161)), MODEL, RESERVE) == Trigger("mid-turn", takes_small=True)
    assert hard_limit_error((asked, result(1160)), MODEL) is None
    assert hard_limit_error((asked, result(1161)), MODEL) == (
        "Post-tool context remains over the provider hard input limit after compaction (1001 > 1000 tokens); "
        "the next provider request was not sent."
    )


@pytest.mark.parametrize(
    ("trigger", "reason", "must_succeed", "label", "failure"),
    [
        (Trigger("manual"), "manual", False, "compact", "Compaction failed: x"),
        (Trigger("threshold"), "threshold", False, "auto-compact", "Auto-compaction failed: x"),
        (Trigger("overflow"), "overflow", True, "overflow-auto-compact", "Context overflow recovery failed: x"),
        (Trigger("length"), "overflow", False, "auto-compact", "Response truncation recovery failed: x"),
        (
            Trigger("mid-turn"),
            "threshold",
            True,
            "auto-compact",
            "Post-tool context compaction failed before the next provider request: x",
        ),
    ],
)
def test_what_a_trigger_is_called(trigger: Trigger, reason: str, must_succeed: bool, label: str, failure: str) -> None:
    assert (trigger.reason, trigger.must_succeed, trigger.label, trigger.failure("x")) == (
        reason,
        must_succeed,
        label,
        failure,
    )


REPLIES = [TOO_LONG, FULL, reply("length", output=3), reply("length", input=900, output=100), reply("error", UNDERFLOW)]


@given(st.lists(st.sampled_from(REPLIES), max_size=30))
def test_without_a_good_answer_or_a_user_the_work_goes_on_a_few_times_at_most(replies: list[AssistantMessage]) -> None:
    recovery = Recovery()
    verdicts = [after(message, recovery, before=(FULL,)) for message in replies]
    assert sum(isinstance(verdict, Trigger) and verdict.will_retry for verdict in verdicts) <= 4
