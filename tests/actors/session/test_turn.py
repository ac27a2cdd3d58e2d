"""The loop of an agent run: which events, calls and polls come of what happens, in every phase."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.mail import QueueKind
from actors.session.turn import (
    ABORTED,
    NOT_EXECUTED,
    CallModel,
    CancelWork,
    Effects,
    Emit,
    Finish,
    Injected,
    Keep,
    Poll,
    Run,
    RunTools,
    Said,
    failure,
    said,
)
from actors.tool.table import ToolOutput, text_output
from protocol.codec import encode
from protocol.events import QueueUpdate
from protocol.messages import AssistantMessage, Message, StopReason, TextContent, ToolCall, Usage, UserMessage


def user(text: str) -> Said:
    return said(UserMessage(text, 1))


def queued(*texts: str) -> Injected:
    return tuple((QueueUpdate(list(texts[place + 1 :]), []), user(text)) for place, text in enumerate(texts))


def reply(*calls: str, stop: StopReason | None = None, text: str = "hello") -> Said:
    """An answer that calls the named tools; the id of each call is its name and place."""
    tools = [ToolCall(f"{name}{place}", name, {}) for place, name in enumerate(calls)]
    reason: StopReason = stop or ("toolUse" if calls else "stop")
    return said(AssistantMessage([TextContent(text), *tools], "api", "p", "m", Usage(), reason, 2))


class Bench:
    """Carries out a run's effects as the session does, and writes down in `log` what came of them, one word each.
    Messages from number `breaks_at` on cannot be kept."""

    def __init__(self, sequential: bool = False, breaks_at: int | None = None) -> None:
        self.run = Run(self._prepare, self._blank, lambda: 3, lambda calls: sequential)
        self.log: list[str] = []
        self.events: list[dict[str, Any]] = []
        self.kept: list[Message] = []
        self.running: list[int] = []
        self._breaks_at = breaks_at

    def _prepare(self, call: ToolCall) -> str | None:
        return "Tool bad not found" if call.name == "bad" else None

    def _blank(self, stop: Any, error: str) -> AssistantMessage:
        return AssistantMessage([], "api", "p", "m", Usage(), stop, 4, error_message=error)

    def start(self, *texts: str, injected: Injected = (), poll: bool = True) -> list[str]:
        return self.do(self.run.start(tuple(user(text) for text in texts), injected, poll=poll))

    def taken(self, *texts: str) -> list[str]:
        return self.do(self.run.taken(queued(*texts)))

    def partial(self) -> list[str]:
        return self.do(self.run.reply_started(encode(self._blank("pending", ""))))

    def replied(self, message: Said) -> list[str]:
        return self.do(self.run.reply_ended(message))

    def returned(self, place: int, output: ToolOutput | None = None) -> list[str]:
        self.running.remove(place)
        return self.do(self.run.tool_ended(place, output or text_output("done")))

    def abort(self) -> list[str]:
        return self.do(self.run.abort())

    def do(self, effects: Effects) -> list[str]:
        """What is new in the log."""
        before = len(self.log)
        for effect in effects:
            if not self._carry_out(effect):
                break
        return self.log[before:]

    def _carry_out(self, effect: Any) -> bool:
        match effect:
            case Emit(event):
                self._emit(json.loads(encode(event)))
            case Keep(message):
                return self._keep(message)
            case CallModel():
                self.log.append("model")
            case RunTools(calls):
                self.running += [place for place, _ in calls]
                self.log.append("run " + " ".join(call.id for _, call in calls))
            case Poll(kind):
                self.log.append(f"poll {kind}")
            case CancelWork():
                self.log.append("cancel")
            case Finish():
                self.log.append("finish")
        return True

    def _keep(self, message: Said) -> bool:
        if self._breaks_at is not None and len(self.kept) >= self._breaks_at:
            self.do(self.run.broken("disk full"))
            return False
        self.kept.append(message.message)
        self.run.kept(message)
        return True

    def _emit(self, event: dict[str, Any]) -> None:
        self.events.append(event)
        message = event.get("message", {})
        words = [event["type"].replace("message_", "").replace("tool_execution_", "tool_")]
        words += [event[key] for key in ("toolCallId",) if key in event]
        words += [message["role"]] if "role" in message and event["type"] != "turn_end" else []
        self.log.append(" ".join(words))


def said_pair(role: str) -> list[str]:
    return [f"start {role}", f"end {role}"]


USER, ASSISTANT, RESULT = said_pair("user"), said_pair("assistant"), said_pair("toolResult")


def working(*calls: str, sequential: bool = False) -> Bench:
    """A run whose model has just called these tools."""
    bench = Bench(sequential)
    bench.start("go")
    bench.taken()
    bench.replied(reply(*calls))
    return bench


def test_a_prompt_opens_the_run_and_polls_steering_before_the_first_model_call() -> None:
    bench = Bench()
    assert bench.start("hi") == ["agent_start", "turn_start", *USER, "poll steering"]
    assert bench.taken() == ["model"]


def test_a_run_that_began_from_the_steering_queue_does_not_poll_it_at_the_start() -> None:
    bench = Bench()
    started = bench.start(injected=queued("s"), poll=False)
    assert started == ["agent_start", "turn_start", "queue_update", *USER, "model"]


def test_a_text_reply_ends_its_turn_and_polls_steering_then_follow_up_then_ends() -> None:
    bench = Bench()
    bench.start("hi")
    bench.taken()
    assert bench.partial() == ["start assistant"]
    assert bench.replied(reply()) == ["end assistant", "turn_end", "poll steering"]
    assert bench.taken() == ["poll followUp"]
    assert bench.taken() == ["finish"]
    assert bench.run.phase == "over"
    assert [message.message for message in bench.run.messages] == bench.kept


def test_a_reply_without_a_start_gets_one() -> None:
    bench = Bench()
    bench.start("hi")
    bench.taken()
    assert bench.replied(reply()) == [*ASSISTANT, "turn_end", "poll steering"]


def test_steering_that_came_at_the_start_shares_the_first_turn() -> None:
    bench = Bench()
    bench.start("hi")
    assert bench.taken("s1", "s2") == ["queue_update", *USER, "queue_update", *USER, "model"]


@pytest.mark.parametrize("texts", [(), ("s",)])
def test_a_request_that_was_held_back_goes_with_what_was_queued_meanwhile(texts: tuple[str, ...]) -> None:
    bench = working("read")
    bench.returned(0)
    assert bench.taken() == ["turn_start", "model"]
    assert bench.do(bench.run.resume()) == ["poll steering"]
    effects = bench.run.taken(queued(*texts))
    assert effects[-1] == CallModel(has_waited=True)
    assert bench.do(effects) == [*(["queue_update", *USER] if texts else []), "model"]
    bench.replied(reply("read"))
    bench.returned(0)
    assert bench.run.taken(())[-1] == CallModel(), "the next request may be held back again"


def test_an_abort_while_the_queue_is_asked_again_ends_the_run() -> None:
    bench = working("read")
    bench.returned(0)
    bench.taken()
    bench.do(bench.run.resume())
    assert bench.abort() == []
    assert bench.taken("s") == ["queue_update", *USER, *ASSISTANT, "turn_end", "finish"]


@pytest.mark.parametrize("polls", [1, 2], ids=["steering", "follow-up"])
def test_queued_messages_after_a_reply_begin_the_next_turn_of_the_same_run(polls: int) -> None:
    bench = Bench()
    bench.start("hi")
    bench.taken()
    bench.replied(reply())
    for _ in range(polls - 1):
        bench.taken()
    assert bench.taken("more") == ["turn_start", "queue_update", *USER, "model"]


def test_the_queue_update_precedes_the_message_that_left_the_queue() -> None:
    bench = Bench()
    bench.start("hi")
    bench.taken("a", "b")
    updates = [event["steering"] for event in bench.events if event["type"] == "queue_update"]
    assert updates == [["b"], []]


@pytest.mark.parametrize("stop", ["error", "aborted"])
def test_a_failed_reply_ends_the_run_without_running_its_tools_or_polling(stop: StopReason) -> None:
    bench = Bench()
    bench.start("hi")
    bench.taken()
    assert bench.replied(reply("read", stop=stop)) == [*ASSISTANT, "turn_end", "finish"]
    assert bench.events[-1]["toolResults"] == []


def test_parallel_tools_start_together_and_their_results_come_in_call_order() -> None:
    bench = Bench()
    bench.start("go")
    bench.taken()
    begun = bench.replied(reply("read", "grep"))
    assert begun == [*ASSISTANT, "tool_start read0", "tool_start grep1", "run read0 grep1"]
    assert bench.run.phase == "working"
    assert bench.returned(1) == ["tool_end grep1"]
    assert bench.returned(0) == ["tool_end read0", *RESULT, *RESULT, "turn_end", "poll steering"]
    assert [result["toolCallId"] for result in bench.events[-1]["toolResults"]] == ["read0", "grep1"]


def test_sequential_tools_run_one_after_the_other_each_with_its_result() -> None:
    bench = Bench(sequential=True)
    bench.start("go")
    bench.taken()
    assert bench.replied(reply("a", "b")) == [*ASSISTANT, "tool_start a0", "run a0"]
    assert bench.returned(0) == ["tool_end a0", *RESULT, "tool_start b1", "run b1"]
    assert bench.returned(1) == ["tool_end b1", *RESULT, "turn_end", "poll steering"]


def test_after_tools_the_model_is_asked_again_in_a_new_turn() -> None:
    bench = working("read")
    bench.returned(0)
    assert bench.taken() == ["turn_start", "model"]


def test_a_refused_call_is_reported_at_once_and_the_others_still_run() -> None:
    bench = working("bad", "read")
    assert bench.log[-4:] == ["tool_start bad0", "tool_end bad0", "tool_start read1", "run read1"]
    refusal = bench.events[-2]
    assert (refusal["isError"], refusal["result"]["content"][0]["text"]) == (True, "Tool bad not found")
    assert bench.returned(1) == ["tool_end read1", *RESULT, *RESULT, "turn_end", "poll steering"]


@pytest.mark.parametrize("sequential", [False, True])
def test_a_batch_in_which_every_call_is_refused_goes_on_without_running_anything(sequential: bool) -> None:
    bench = working("bad", "bad", sequential=sequential)
    assert bench.running == []
    assert bench.log[-2:] == ["turn_end", "poll steering"]
    assert bench.log.count("start toolResult") == 2
    assert bench.taken() == ["turn_start", "model"]


def test_a_sequential_batch_passes_over_a_refused_call() -> None:
    bench = working("bad", "read", sequential=True)
    assert bench.log[-6:] == ["tool_start bad0", "tool_end bad0", *RESULT, "tool_start read1", "run read1"]


def test_calls_of_a_reply_that_hit_the_output_limit_are_not_executed() -> None:
    bench = Bench()
    bench.start("go")
    bench.taken()
    told = bench.replied(reply("a", "b", stop="length"))
    each = [["tool_start " + name, "tool_end " + name, *RESULT] for name in ("a0", "b1")]
    assert told == [*ASSISTANT, *each[0], *each[1], "turn_end", "poll steering"]
    texts = [result["content"][0]["text"] for result in bench.events[-1]["toolResults"]]
    assert texts == [NOT_EXECUTED.format(name="a"), NOT_EXECUTED.format(name="b")]
    assert bench.taken() == ["turn_start", "model"]


def test_the_model_is_not_asked_again_only_if_every_tool_said_that_this_is_the_end() -> None:
    stop = ToolOutput([TextContent("x")], terminate=True)
    ended, continued = working("a", "b"), working("a", "b")
    ended.returned(0, stop)
    ended.returned(1, stop)
    assert ended.taken() == ["poll followUp"]
    assert ended.taken() == ["finish"]
    continued.returned(0, stop)
    continued.returned(1)
    assert continued.taken() == ["turn_start", "model"]


def test_a_terminated_batch_still_answers_what_was_queued() -> None:
    bench = working("a")
    bench.returned(0, ToolOutput([TextContent("x")], terminate=True))
    assert bench.taken("s") == ["turn_start", "queue_update", *USER, "model"]


def test_an_abort_while_the_model_replies_cancels_it_and_the_partial_reply_ends_the_run() -> None:
    bench = Bench()
    bench.start("hi")
    bench.taken()
    bench.partial()
    assert bench.abort() == ["cancel"]
    assert bench.replied(reply(stop="aborted")) == ["end assistant", "turn_end", "finish"]


def test_an_abort_before_the_first_model_call_gives_an_aborted_reply_instead_of_it() -> None:
    bench = Bench()
    bench.start("hi")
    assert bench.abort() == []
    assert bench.taken() == [*ASSISTANT, "turn_end", "finish"]
    last = bench.kept[-1]
    assert isinstance(last, AssistantMessage)
    assert (last.stop_reason, last.error_message, last.content) == ("aborted", ABORTED, [])


def test_an_abort_while_tools_run_reports_their_results_takes_a_steer_and_ends_with_an_aborted_reply() -> None:
    bench = working("a", "b")
    assert bench.abort() == ["cancel"]
    bench.returned(0)
    assert bench.returned(1) == ["tool_end b1", *RESULT, *RESULT, "turn_end", "poll steering"]
    assert bench.taken("Q") == ["turn_start", "queue_update", *USER, *ASSISTANT, "turn_end", "finish"]


def test_an_abort_in_a_sequential_batch_skips_the_calls_that_are_left_without_a_word() -> None:
    bench = working("a", "b", "c", sequential=True)
    bench.abort()
    assert bench.returned(0) == ["tool_end a0", *RESULT, "turn_end", "poll steering"]
    assert bench.taken() == ["turn_start", *ASSISTANT, "turn_end", "finish"]


@pytest.mark.parametrize("sequential", [False, True])
def test_tools_of_a_reply_that_crossed_the_abort_on_its_way_never_start(sequential: bool) -> None:
    bench = Bench(sequential)
    bench.start("hi")
    bench.taken()
    bench.abort()
    assert bench.replied(reply("a", "b")) == [*ASSISTANT, "turn_end", "poll steering"]
    assert bench.taken() == ["turn_start", *ASSISTANT, "turn_end", "finish"]


def test_an_abort_during_the_last_poll_ends_a_run_that_owes_nothing() -> None:
    bench = Bench()
    bench.start("hi")
    bench.taken()
    bench.replied(reply())
    bench.abort()
    assert bench.taken() == ["poll followUp"]
    assert bench.taken() == ["finish"]


@pytest.mark.parametrize("breaks_at", range(6))
def test_a_message_that_cannot_be_journaled_ends_the_run_with_an_error_reply(breaks_at: int) -> None:
    bench = Bench(sequential=True, breaks_at=breaks_at)
    bench.start("hi")
    steps: list[Callable[[], object]] = [
        lambda: bench.taken("steer"),
        bench.partial,
        lambda: bench.replied(reply("a", "b")),
        lambda: bench.returned(0),
        lambda: bench.returned(1),
        lambda: bench.taken("more"),
    ]
    for step in steps:
        if bench.run.phase != "over":
            step()
    assert bench.log[-3:] == ["end assistant", "turn_end", "finish"]
    last = bench.run.messages[-1].message
    assert isinstance(last, AssistantMessage)
    assert (last.stop_reason, last.error_message) == ("error", "disk full")
    assert len(bench.kept) == breaks_at
    assert_well_nested(bench)


def test_a_reply_that_cannot_be_kept_is_ended_as_the_one_error_reply_of_its_turn() -> None:
    bench = Bench(breaks_at=1)
    bench.start("hi")
    bench.taken()
    bench.partial()
    assert bench.replied(reply()) == ["end assistant", "turn_end", "finish"]
    assert bench.events[-2]["message"]["errorMessage"] == "disk full"


def test_a_tool_result_shows_details_only_if_it_has_some() -> None:
    bench = working("a", "b")
    bench.returned(0, text_output("x", {"lines": 3}))
    assert bench.events[-1]["result"] == {"content": [{"type": "text", "text": "x"}], "details": {"lines": 3}}
    bench.returned(1, failure("no"))
    ended = next(event for event in bench.events if event["type"] == "tool_execution_end" and event["isError"])
    assert ended["result"] == {"content": [{"type": "text", "text": "no"}]}


# ---- whatever happens ---------------------------------------------------------------------------------------------


def assert_well_nested(bench: Bench) -> None:
    """One message is open at a time, inside a turn, inside the run; a tool that began in a turn ends in it."""
    message, turn, tools, results = "", False, set[str](), list[str]()
    assert bench.events[0]["type"] == "agent_start"
    for event in bench.events[1:]:
        kind = event["type"]
        role = event.get("message", {}).get("role", "")
        match kind:
            case "turn_start":
                assert not turn
                turn, results = True, []
            case "turn_end":
                assert turn and not message and not tools
                turn = False
            case "message_start":
                assert turn and not message
                message = role
            case "message_end":
                assert message == role
                message = ""
                results += [event["message"]["toolCallId"]] if role == "toolResult" else []
            case "tool_execution_start":
                assert turn and not message
                tools.add(event["toolCallId"])
            case "tool_execution_end":
                tools.remove(event["toolCallId"])
            case _:
                assert kind == "queue_update"
    assert not message and not turn and not tools


@st.composite
def histories(draw: st.DrawFn) -> Bench:
    """A run driven to its end by anything that may legally happen to it."""
    broken = draw(st.none() | st.integers(0, 12))
    bench = Bench(draw(st.booleans()), broken)
    texts = st.lists(st.just("q"), max_size=2)
    injected = draw(texts)
    bench.start("hi", injected=queued(*injected), poll=draw(st.booleans()))
    for step in range(60):
        if bench.run.phase == "over":
            break
        if step > 40 or (not bench.run.aborted and draw(st.integers(0, 7)) == 0):
            bench.abort()
        happen(bench, draw, draw(texts) if step < 30 else [])
    return bench


def happen(bench: Bench, draw: st.DrawFn, waiting: list[str]) -> None:
    match bench.run.phase:
        case "polling":
            bench.taken(*waiting)
        case "replying":
            if draw(st.booleans()):
                bench.partial()
            stops = ("aborted",) if bench.run.aborted and draw(st.booleans()) else ("stop", "length", "error")
            calls = draw(st.lists(st.sampled_from(["a", "b", "bad"]), max_size=3))
            stop: Any = draw(st.sampled_from(stops))
            bench.replied(reply(*calls, stop="toolUse" if calls and stop == "stop" else stop))
        case "working":
            output = ToolOutput([TextContent("x")], terminate=draw(st.booleans()))
            bench.returned(draw(st.sampled_from(bench.running)), output)


@settings(max_examples=150)
@given(histories())
def test_events_are_well_nested_and_the_run_ends_whatever_happens(bench: Bench) -> None:
    assert bench.run.phase == "over"
    assert bench.log.count("finish") == 1 and bench.log[-1] == "finish"
    assert_well_nested(bench)
    ended = [event["message"] for event in bench.events if event["type"] == "message_end"]
    assert ended == [json.loads(message.raw) for message in bench.run.messages]


def polls(kind: QueueKind, bench: Bench) -> int:
    return bench.log.count(f"poll {kind}")


@settings(max_examples=50)
@given(histories())
def test_follow_ups_are_polled_only_after_a_steering_poll(bench: Bench) -> None:
    assert polls("followUp", bench) <= polls("steering", bench)
    for place, word in enumerate(bench.log):
        if word == "poll followUp":
            assert bench.log[place - 1] == "poll steering"
