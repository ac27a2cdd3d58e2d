"""One request to a provider: what it tells its session, exactly one end, and a cancel that waits for nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from actors.mail import (
    Arm,
    CancelCall,
    ModelRequest,
    ReplyDelta,
    ReplyEnded,
    ReplyStarted,
    StreamBytes,
    StreamEnded,
    StreamHead,
    Tick,
)
from actors.model.actor import ERROR_BODY_BYTES, ModelCall
from actors.model.attempts import RequestLimits, RetryHint
from actors.model.dialects import reader_for
from actors.model.prompt import Credential, ModelPrompt, RequestOptions
from actors.probe import Probe
from actors.pump import Window
from protocol.events import TextDelta
from protocol.messages import AssistantMessage
from protocol.model import Model


def sse(*events: dict[str, Any]) -> bytes:
    return b"".join(b"event: %s\ndata: %s\n\n" % (e["type"].encode(), json.dumps(e).encode()) for e in events)


USAGE = {"input_tokens": 10, "output_tokens": 1}
START = sse(
    {"type": "message_start", "message": {"id": "r1", "model": "m", "usage": USAGE}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
)
HELLO = sse({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hello"}})
END = sse(
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}},
    {"type": "message_stop"},
)


NO_RETRIES = RequestLimits()


class Bench:
    """A call whose stream is told by hand; `stream` keeps what was asked of it."""

    def __init__(self, model: Model, limits: RequestLimits = NO_RETRIES) -> None:
        self.session, self.me, self.clock = Probe[Any](), Probe[Any](), Probe[Any]()
        self.stream: list[str] = []
        self.opened = 0
        request = ModelRequest(5, model, ModelPrompt("", (), ()), RequestOptions(), lambda model: Credential(), limits)
        self.call = ModelCall(
            request,
            self.session,
            self.open,
            lambda request: reader_for(request.model, 1000),
            lambda api, status, body: f"{api} {status} {len(body)} {body[:8].decode()}",
            self.clock,
            lambda: 1.0,
        )
        self.call.me = self.me
        self.call.begin()

    def open(self, request: ModelRequest, me: object) -> Bench:
        self.opened += 1
        return self

    def cut(self) -> None:
        self.stream.append("cut")

    def release(self) -> None:
        self.stream.append("release")

    def tell(self, *mails: Any) -> None:
        for mail in mails:
            self.call.receive(mail)

    def ended(self) -> AssistantMessage:
        """The one end, which is the last thing that the session hears."""
        mails = self.session.drain()
        assert [isinstance(mail, ReplyEnded) for mail in mails].count(True) == 1
        assert mails[-1].call == 5
        message = mails[-1].message
        assert isinstance(message, AssistantMessage)
        return message


@pytest.fixture
def bench(model_of: Callable[..., Model]) -> Bench:
    return Bench(model_of())


def test_a_reply_is_told_as_it_grows(bench: Bench) -> None:
    bench.tell(StreamHead(200), StreamBytes(START))
    started, *_ = bench.session.drain()
    assert isinstance(started, ReplyStarted)
    assert json.loads(started.message)["stopReason"] == "pending"
    bench.tell(StreamBytes(HELLO))
    (delta,) = bench.session.drain()
    assert isinstance(delta, ReplyDelta)
    assert [event.delta for event in delta.events if isinstance(event, TextDelta)] == ["hello"]
    assert json.loads(delta.usage)["input"] == 10
    assert bench.stream == []


def test_the_end_of_the_message_ends_the_call_before_the_body_does_and_frees_the_connection(bench: Bench) -> None:
    bench.tell(StreamHead(200), StreamBytes(START + HELLO + END))
    message = bench.ended()
    assert (message.stop_reason, message.usage.output) == ("stop", 5)
    assert bench.stream == ["release"]
    assert bench.me.stopped
    bench.tell(StreamEnded(), CancelCall())
    assert bench.session.drain() == []


def test_a_body_that_ends_before_the_message_does_is_an_error(bench: Bench) -> None:
    bench.tell(StreamHead(200), StreamBytes(START + HELLO), StreamEnded())
    assert bench.ended().stop_reason == "error"


def test_a_stream_that_fails_is_an_error_reply_with_what_came_before(bench: Bench) -> None:
    bench.tell(StreamHead(200), StreamBytes(START + HELLO), StreamEnded("connection reset"))
    message = bench.ended()
    assert (message.stop_reason, message.error_message) == ("error", "connection reset")
    assert [getattr(block, "text", None) for block in message.content] == ["hello"]


def test_a_request_that_never_got_an_answer_is_an_error_reply_without_a_start(bench: Bench) -> None:
    bench.tell(StreamEnded("no route to host"))
    (ended,) = bench.session.drain()
    assert ended.message.error_message == "no route to host"


# ---- errors of HTTP -----------------------------------------------------------------------------------------------


def test_an_error_status_is_worded_from_its_whole_body_and_nothing_of_it_is_a_reply(bench: Bench) -> None:
    bench.tell(StreamHead(529), StreamBytes(b'{"over'), StreamBytes(b'loaded"}'), StreamEnded())
    (ended,) = bench.session.drain()
    assert (ended.message.stop_reason, ended.message.error_message) == ("error", 'anthropic-messages 529 14 {"overlo')


def test_an_error_body_that_breaks_off_is_still_worded_from_what_came(bench: Bench) -> None:
    bench.tell(StreamHead(400), StreamBytes(b"bad"), StreamEnded("connection reset"))
    assert bench.ended().error_message == "anthropic-messages 400 3 bad"


def test_a_large_error_body_is_cut(bench: Bench) -> None:
    bench.tell(StreamHead(500), StreamBytes(b"x" * ERROR_BODY_BYTES), StreamBytes(b"y" * 10), StreamEnded())
    assert bench.ended().error_message == f"anthropic-messages 500 {ERROR_BODY_BYTES} xxxxxxxx"


# ---- cancel -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "before",
    [(), (StreamHead(200),), (StreamHead(200), StreamBytes(START + HELLO)), (StreamHead(500), StreamBytes(b"x"))],
    ids=["before the head", "before the body", "in the body", "in an error body"],
)
def test_a_cancel_cuts_the_stream_and_ends_the_reply_at_once(bench: Bench, before: tuple[Any, ...]) -> None:
    bench.tell(*before, CancelCall())
    message = bench.ended()
    assert (message.stop_reason, message.error_message) == ("aborted", "Request was aborted")
    assert bench.stream == ["cut"]
    assert bench.me.stopped
    bench.tell(StreamBytes(HELLO), StreamEnded("cut"), CancelCall())
    assert bench.session.drain() == []


# ---- acks ---------------------------------------------------------------------------------------------------------


def test_the_ack_travels_on_with_what_the_reply_grew_by(bench: Bench) -> None:
    ack = Window().admit(1)
    bench.tell(StreamHead(200), StreamBytes(START + HELLO, ack))
    assert bench.session.of(ReplyDelta).ack is ack


@pytest.mark.parametrize(
    "before",
    [(StreamHead(200),), (StreamHead(500),), (StreamHead(200), CancelCall())],
    ids=["nothing grew", "an error body", "after the end"],
)
def test_the_ack_of_bytes_that_go_no_further_is_settled_here(bench: Bench, before: tuple[Any, ...]) -> None:
    window = Window(max_messages=1)
    bench.tell(*before, StreamBytes(b": ping\n", window.admit(7)))
    assert window.admit(7) is not None


def test_the_last_words_let_go_of_the_stream(bench: Bench) -> None:
    bench.call.last_words([])
    assert bench.stream == ["cut"]


# ---- further attempts ---------------------------------------------------------------------------------------------


FAILED: dict[str, tuple[Any, ...]] = {
    "a 500": (StreamHead(500), StreamBytes(b"no"), StreamEnded()),
    "a 429 that broke off": (StreamHead(429), StreamEnded("connection reset")),
    "a 400 that asks for it": (StreamHead(400, RetryHint(may_help=True)), StreamEnded()),
    "no answer": (StreamEnded("refused", unanswered=True),),
}


@pytest.fixture
def patient(model_of: Callable[..., Model]) -> Bench:
    return Bench(model_of(), RequestLimits(max_retries=2, max_delay_ms=60_000))


def armed(bench: Bench) -> int:
    """The wait of the one tick that was armed."""
    (arm,) = bench.clock.drain()
    assert isinstance(arm, Arm) and arm.to is bench.me
    return arm.delay_ms


@pytest.mark.parametrize("failed", FAILED.values(), ids=FAILED)
def test_what_failed_before_a_reply_began_is_sent_again_and_the_session_hears_of_the_last_attempt_only(
    patient: Bench, failed: tuple[Any, ...]
) -> None:
    for attempt, wait in ((1, 375), (2, 750)):
        patient.tell(*failed)
        assert (patient.opened, patient.session.drain(), armed(patient)) == (attempt, [], wait)
        patient.tell(Tick("again"))
    patient.tell(StreamHead(200), StreamBytes(START + HELLO + END))
    message = patient.ended()
    assert (message.stop_reason, len(message.content), patient.opened) == ("stop", 1, 3)


@pytest.mark.parametrize("failed", FAILED.values(), ids=FAILED)
def test_when_the_attempts_are_spent_the_last_failure_is_told(patient: Bench, failed: tuple[Any, ...]) -> None:
    for _ in range(2):
        patient.tell(*failed, Tick("again"))
    patient.tell(*failed)
    assert patient.ended().stop_reason == "error"
    assert (patient.opened, patient.me.stopped) == (3, True)


@pytest.mark.parametrize(
    "failed",
    [
        (StreamHead(400), StreamEnded()),
        (StreamHead(401), StreamEnded()),
        (StreamHead(503, RetryHint(may_help=False)), StreamEnded()),
        (StreamEnded("No API key for provider: p"),),
        (StreamHead(200), StreamEnded("connection reset")),
        (StreamHead(200), StreamBytes(START + HELLO), StreamEnded("connection reset")),
        (StreamHead(200), StreamBytes(START + HELLO + END)),
    ],
    ids=["a 400", "a 401", "told not to", "never sent", "after a head", "in a reply", "a whole reply"],
)
def test_what_would_fail_again_and_what_has_begun_is_not_sent_again(patient: Bench, failed: tuple[Any, ...]) -> None:
    patient.tell(*failed)
    patient.ended()
    assert (patient.opened, patient.clock.drain()) == (1, [])


def test_without_the_setting_there_is_one_attempt(bench: Bench) -> None:
    bench.tell(*FAILED["a 500"])
    bench.ended()
    assert (bench.opened, bench.clock.drain()) == (1, [])


def test_the_wait_is_the_servers_if_it_names_one(patient: Bench) -> None:
    patient.tell(StreamHead(429, RetryHint(after_ms=60_000)), StreamEnded())
    assert armed(patient) == 60_000


def test_a_wait_longer_than_allowed_fails_at_once_with_the_answer(patient: Bench) -> None:
    patient.tell(StreamHead(429, RetryHint(after_ms=60_001)), StreamBytes(b"slow"), StreamEnded())
    text = "Server requested 61s retry delay (max: 60s). anthropic-messages 429 4 slow"
    assert patient.ended().error_message == text
    assert (patient.opened, patient.clock.drain(), patient.me.stopped) == (1, [], True)


def test_a_cancel_does_not_wait_for_the_next_attempt(patient: Bench) -> None:
    patient.tell(*FAILED["a 500"], CancelCall())
    assert patient.ended().stop_reason == "aborted"
    patient.tell(Tick("again"))
    assert (patient.opened, patient.me.stopped, patient.session.drain()) == (1, True, [])


def test_an_attempt_knows_nothing_of_the_answer_before_it(patient: Bench) -> None:
    patient.tell(*FAILED["a 500"], Tick("again"), StreamHead(400), StreamBytes(b"bad"), StreamEnded())
    assert patient.ended().error_message == "anthropic-messages 400 3 bad"
