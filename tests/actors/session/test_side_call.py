"""Requests outside a run: what is sent, what comes back to the owner, and that it comes once."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest

from actors.catalog_view import Defaults
from actors.mail import Arm, CancelCall, ModelRequest, ReplyEnded, Tick
from actors.probe import Probe
from actors.session.outbox import Outbox
from actors.session.retry import RetryPolicy
from actors.session.services import Services
from actors.session.setting import Setting
from actors.session.side_call import SideCall, SideCalls, SideOutcome, SideRequest
from actors.session.surroundings import Surroundings
from protocol.events import SummarizationRetryAttemptStart
from protocol.messages import AssistantMessage, StopReason, TextContent, ToolCall, Usage, UserMessage
from protocol.model import Model, ModelCost

MODEL = Model("m", "M", "scripted", "p", "", True, ("text",), ModelCost(), 1000, 100)
REQUEST = SideRequest(MODEL, "high", "be brief", "what was that?")
START = SummarizationRetryAttemptStart("compaction", "manual")
SCHEDULED, BEGUN, FINISHED = (
    "summarization_retry_scheduled",
    "summarization_retry_attempt_start",
    "summarization_retry_finished",
)


class Catalog:
    def authorize(self, model: Model) -> Any:
        raise ValueError("No API key for provider: p")


class Bench:
    """Side calls over probes. `outcomes` is what the owner heard."""

    def __init__(self) -> None:
        numbers = itertools.count(1)
        self.requests: list[ModelRequest] = []
        self.children: list[Probe[Any]] = []
        self.outcomes: list[SideOutcome] = []
        self.clock, self.writer, self.me = Probe[Any](), Probe[Any](), Probe[Any]()
        nobody: Probe[Any] = Probe()
        nothing: Callable[..., Any] = lambda *_: None  # noqa: E731
        services = Services(
            writer=self.writer,
            shells=nobody,
            desk=nobody,
            preferences=nobody,
            clock=self.clock,
            catalog_owner=nobody,
            start_queue=nothing,
            start_model_call=self._start,
            start_task_desk=nothing,
            start_tool_call=nothing,
            now=lambda: 7,
            uuid4=lambda: f"id-{next(numbers)}",
            catalog=Catalog(),  # type: ignore[arg-type]
            tools={},
            check_arguments=nothing,
            surroundings=Surroundings(nothing, retry=RetryPolicy(True, 2, 100), thinking_budgets={"high": 9}),
            load_surroundings=nothing,
            export=nothing,
            environment=nothing,
            complain=nothing,
            reread=nothing,
            make_answer=nothing,
            work=nothing,
            compaction_files=Probe,
        )
        self.setting = Setting(services)
        self.outbox = Outbox(self.writer)
        self.calls = SideCalls(services, self.setting, self.outbox, self.me, itertools.count(5).__next__)

    def _start(self, request: ModelRequest, session: Any) -> Probe[Any]:
        self.requests.append(request)
        self.children.append(Probe())
        return self.children[-1]

    def start(self, *, announced: bool = True) -> SideCall:
        return self.calls.start(REQUEST, self.outcomes.append, START if announced else None)

    def answer(self, text: str = "", stop: StopReason = "stop", error: str | None = None) -> bool:
        fields: dict[str, Any] = {} if error is None else {"error_message": error}
        content: list[Any] = [TextContent(text), ToolCall("c", "t", {}), TextContent("!")] if text else []
        message = AssistantMessage(content, "scripted", "p", "m", Usage(output=3), stop, 8, **fields)
        return self.calls.reply_ended(ReplyEnded(self.requests[-1].call, message))

    def fail(self, error: str = "terminated") -> bool:
        return self.answer(stop="error", error=error)

    def ring(self) -> bool:
        arm = self.clock.next()
        assert isinstance(arm, Arm)
        assert arm.to is self.me
        return self.calls.woke(Tick(arm.key))

    def events(self) -> list[str]:
        self.outbox.send()
        records = [record for write in self.writer.drain() for record in write.records]
        return [json.loads(record.line)["type"] for record in records]


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_the_request_stands_alone(bench: Bench) -> None:
    bench.start()
    bench.start()
    first, second = bench.requests
    assert first.model == MODEL
    assert (first.prompt.system, first.prompt.tools) == ("be brief", ())
    assert first.prompt.messages == (UserMessage([TextContent("what was that?")], 7),)
    assert (first.options.thinking_level, first.options.cache_retention) == ("high", "none")
    assert (first.options.max_tokens, first.options.thinking_budgets) == (None, {"high": 9})
    assert first.options.session_id != second.options.session_id
    assert first.call != second.call


def test_the_owner_hears_the_reply_once(bench: Bench) -> None:
    bench.start()
    assert bench.answer("all of it", "length")
    assert not bench.answer("again")
    (outcome,) = bench.outcomes
    assert (outcome.text, outcome.reply.stop_reason, outcome.reply.usage.output) == ("all of it!", "length", 3)
    assert (outcome.error, outcome.aborted, outcome.retries) == (None, False, 0)
    assert bench.events() == []


def test_a_missing_credential_is_an_outcome(bench: Bench) -> None:
    bench.start()
    with pytest.raises(ValueError) as raised:
        bench.requests[-1].authorize(MODEL)
    bench.fail(str(raised.value))
    (outcome,) = bench.outcomes
    assert outcome.error == "No API key for provider: p"
    assert bench.events() == []


def test_a_passing_failure_is_sent_again_and_the_client_hears_of_it(bench: Bench) -> None:
    bench.start()
    bench.fail()
    assert bench.events() == [SCHEDULED]
    assert bench.outcomes == []
    assert bench.ring()
    assert bench.events() == [BEGUN]
    assert len(bench.requests) == 2
    bench.answer("good")
    assert bench.events() == [FINISHED]
    assert [(outcome.text, outcome.retries) for outcome in bench.outcomes] == [("good!", 1)]


def test_retries_come_to_an_end(bench: Bench) -> None:
    bench.start()
    for _ in range(2):
        bench.fail()
        bench.ring()
    bench.fail("still terminated")
    assert bench.events() == [SCHEDULED, BEGUN, SCHEDULED, BEGUN, FINISHED]
    assert [(outcome.error, outcome.retries) for outcome in bench.outcomes] == [("still terminated", 2)]


def test_a_call_that_nobody_announces_retries_without_events(bench: Bench) -> None:
    bench.start(announced=False)
    bench.fail()
    bench.ring()
    bench.answer("good")
    assert bench.events() == []
    assert bench.outcomes[0].retries == 1


def test_switching_auto_retry_off_counts_at_once(bench: Bench) -> None:
    bench.start()
    bench.setting.defaults = Defaults(auto_retry=False)
    bench.fail()
    assert bench.outcomes[0].error == "terminated"


def test_a_cancel_ends_a_request_before_it_returns(bench: Bench) -> None:
    call = bench.start()
    call.cancel()
    assert [outcome.aborted for outcome in bench.outcomes] == [True]
    assert bench.outcomes[0].error is None
    assert isinstance(bench.children[0].next(), CancelCall)
    assert bench.calls.owed
    assert bench.answer("too late")
    assert not bench.calls.owed
    call.cancel()
    assert len(bench.outcomes) == 1


def test_a_cancelled_request_that_dies_owes_nothing(bench: Bench) -> None:
    bench.start().cancel()
    assert bench.calls.child_died(bench.requests[-1].call, "KeyError at x:1")
    assert not bench.calls.owed
    assert len(bench.outcomes) == 1


def test_a_cancel_ends_a_wait_and_its_tick_finds_nobody(bench: Bench) -> None:
    call = bench.start()
    bench.fail()
    call.cancel()
    assert bench.events() == [SCHEDULED, FINISHED]
    assert [outcome.aborted for outcome in bench.outcomes] == [True]
    assert bench.ring()
    assert len(bench.requests) == 1
    assert bench.events() == []


def test_a_cancel_reaches_the_retried_request(bench: Bench) -> None:
    call = bench.start()
    bench.fail()
    bench.ring()
    call.cancel()
    assert bench.events() == [SCHEDULED, BEGUN, FINISHED]
    assert isinstance(bench.children[1].next(), CancelCall)
    assert bench.outcomes[0].retries == 1


def test_a_request_that_dies_is_an_outcome(bench: Bench) -> None:
    bench.start()
    assert bench.calls.child_died(bench.requests[0].call, "KeyError at x:1")
    assert bench.outcomes[0].error == "the model request failed: KeyError at x:1"
    assert not bench.calls.child_died("queue", "x")


def test_an_owner_may_ask_the_next_one_from_its_outcome(bench: Bench) -> None:
    bench.calls.start(REQUEST, lambda _: bench.start() and None)
    bench.answer("first")
    bench.answer("second")
    assert [outcome.text for outcome in bench.outcomes] == ["second!"]


def test_what_is_not_about_a_side_call_is_told_so(bench: Bench) -> None:
    bench.start()
    assert not bench.calls.reply_ended(ReplyEnded(99, _message()))
    assert not bench.calls.woke(Tick("retry-5"))


def _message() -> AssistantMessage:
    return AssistantMessage([], "a", "p", "m", Usage(), "stop", 1)
