"""Where a prompt begins and ends, decided from the order of records alone; a clock of the test's own, no process."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any, TypeVar

import pytest

from conformance.client.core import Core
from conformance.client.errors import AgentDied, CommandRefused, DeadlineExceeded, EventsLost, ProtocolError
from conformance.client.flows import Flow
from conformance.client.options import EndsOn, Options
from conformance.client.prompt_course import Course
from conformance.client.records import event_type
from protocol.commands import Prompt

T = TypeVar("T")
IDLE = {
    "model": None,
    "thinkingLevel": "off",
    "isStreaming": False,
    "isCompacting": False,
    "steeringMode": "all",
    "followUpMode": "all",
    "sessionId": "s",
    "autoCompactionEnabled": True,
    "messageCount": 0,
    "pendingMessageCount": 0,
}
RUN = ("agent_start", "turn_start", "agent_end")


class Blocked(Exception):
    """The flow waits for something that will not come by itself."""


class Bench:
    """A course, and an agent that says what the test says. Time passes only when a wait has an end."""

    def __init__(
        self, message: str = "go", *, ends_on: EndsOn = "agent_settled", seconds: float | None = None, **more: Any
    ) -> None:
        self.time = 0.0
        self.state: dict[str, Any] | None = dict(IDLE)  # what get_state tells; None: it is not answered
        self.core = Core(buffer_bytes=1 << 20, now=lambda: self.time)
        self.options = Options(idle_check=10.0, slow_deadline=600.0)
        self._command, self._ends_on, self._seconds = Prompt(message=message, **more), ends_on, seconds
        self.asked = 0

    def begin(self) -> Course:
        self.course = Course(self.core, self._command, self.options, self._ends_on, self._seconds)
        self.course.begin()
        (command,) = self.sent()
        self.id = command["id"]
        return self.course

    def sent(self) -> list[dict[str, Any]]:
        records = []
        while self.core.outbox.ready and (record := self.core.outbox.take()) is not None:
            records.append(json.loads(record))
        return records

    def say(self, *events: str, **fields: Any) -> None:
        for event in events:
            self.record(type=event, **({"messages": []} if event == "agent_end" else {}), **fields)

    def record(self, **record: Any) -> None:
        self.core.receive(json.dumps(record).encode() + b"\n")

    def respond(self, success: bool = True, **more: Any) -> None:
        self.record(id=self.id, type="response", command="prompt", success=success, **more)

    def drive(self, flow: Flow[T]) -> T:
        try:
            wait = next(flow)
            while True:
                self._answer_probe()
                if wait.ready():
                    wait = flow.send(True)
                elif wait.until is None:
                    raise Blocked
                else:
                    self.time = max(self.time, wait.until)
                    wait = flow.send(False)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        finally:
            flow.close()

    def _answer_probe(self) -> None:
        for command in self.sent():
            if command["type"] == "get_state" and self.state is not None:
                self.asked += 1
                self.record(id=command["id"], type="response", command="get_state", success=True, data=self.state)

    def next(self) -> str | None:
        event = self.drive(self.course.following())
        return None if event is None else event_type(event)

    def rest(self) -> list[str]:
        kinds = []
        while (kind := self.next()) is not None:
            kinds.append(kind)
        return kinds


def begun(*args: Any, **more: Any) -> Bench:
    bench = Bench(*args, **more)
    bench.begin()
    return bench


def test_a_prompt_gives_its_events_and_ends_with_the_settled_agent() -> None:
    bench = begun()
    bench.respond()
    bench.say(*RUN, "agent_settled", "noise")
    assert bench.rest() == [*RUN, "agent_settled"]
    assert bench.next() is None
    assert bench.course.outcome.started


def test_what_comes_before_the_response_is_told_too() -> None:
    bench = begun()
    bench.record(type="compaction_start", reason="threshold")
    bench.respond()
    bench.say(*RUN, "agent_settled")
    assert bench.rest() == ["compaction_start", *RUN, "agent_settled"]


def test_a_refusal_raises_each_time_it_is_asked_for() -> None:
    bench = begun()
    bench.respond(False, error="busy")
    for _ in range(2):
        with pytest.raises(CommandRefused, match="busy"):
            bench.next()


def test_an_end_that_was_under_way_before_the_response_is_not_the_prompts_own() -> None:
    bench = Bench()
    bench.say("agent_start")
    bench.begin()
    bench.say("agent_end", "agent_settled")
    bench.respond()
    bench.say(*RUN, "agent_settled")
    assert bench.rest() == ["agent_end", "agent_settled", *RUN, "agent_settled"]


def test_an_end_of_an_aborted_run_that_comes_after_the_response_is_not_the_prompts_own() -> None:
    bench = begun()
    bench.respond()
    bench.say("agent_settled")
    bench.say(*RUN, "agent_settled")
    assert bench.rest() == ["agent_settled", *RUN, "agent_settled"]


def test_retries_compactions_and_further_runs_are_inside() -> None:
    bench = begun()
    bench.respond()
    retry = {"attempt": 1, "maxAttempts": 3, "delayMs": 60_000, "errorMessage": "529"}
    bench.say(*RUN)
    bench.record(type="auto_retry_start", **retry)
    bench.say(*RUN)
    bench.record(type="compaction_start", reason="overflow")
    bench.record(type="compaction_end", reason="overflow", result=None, aborted=False, willRetry=True)
    bench.say(*RUN, "agent_settled")
    kinds = bench.rest()
    assert kinds.count("agent_end") == 3 and kinds[-1] == "agent_settled"


def test_a_queued_prompt_ends_with_the_run_that_it_joined() -> None:
    bench = Bench(streaming_behavior="steer")
    bench.say("agent_start")
    bench.begin()
    bench.say("queue_update", steering=["go"], followUp=[])
    bench.respond()
    bench.say("agent_settled")
    assert bench.rest() == ["queue_update", "agent_settled"]


def test_what_the_agent_says_of_a_prompts_place_counts_more_than_what_can_be_guessed() -> None:
    bench = Bench(streaming_behavior="steer")
    bench.say("agent_start")
    bench.begin()
    bench.respond(data={"disposition": "started"})
    bench.say("agent_settled", *RUN, "agent_settled")
    assert bench.rest() == ["agent_settled", *RUN, "agent_settled"]
    handled = begun("/command")
    handled.respond(data={"disposition": "handled"})
    assert handled.rest() == [] and not handled.course.outcome.started


def test_without_agent_settled_the_end_is_agent_end_unless_it_says_that_it_retries() -> None:
    bench = begun(ends_on="agent_end")
    bench.respond()
    bench.say("agent_start")
    bench.say("agent_end", willRetry=True)
    bench.say(*RUN, "agent_settled")
    assert bench.rest() == ["agent_start", "agent_end", *RUN]


def test_a_prompt_that_nothing_came_of_ends_when_the_agent_says_that_it_is_idle() -> None:
    bench = begun("/reload-skills")
    bench.respond()
    assert bench.rest() == []
    assert (bench.time, bench.course.outcome.started, bench.asked) == (1.0, False, 1)


def test_other_work_does_not_keep_a_prompt_that_nothing_came_of() -> None:
    bench = begun("/command")
    bench.respond()
    for _ in range(3):
        bench.record(type="bash_execution_update", id="b", channel="stdout", delta="x")
        bench.record(type="noise")
    assert bench.rest() == ["bash_execution_update", "noise"] * 3
    assert bench.time == 1.0


def test_an_agent_that_is_busy_is_asked_ever_more_seldom_and_waited_for() -> None:
    bench = begun()
    bench.respond()
    bench.say("agent_start")
    assert bench.next() == "agent_start"
    bench.state = IDLE | {"isStreaming": True}
    flow = bench.course.following()
    wait = next(flow)
    times = []
    for _ in range(4):
        while wait.until is not None and not wait.ready():
            times.append(bench.time)
            bench.time = wait.until
            wait = flow.send(False)
        bench._answer_probe()
        wait = flow.send(True)
    assert [later - earlier for earlier, later in pairwise(times)] == [10.0, 20.0, 30.0]
    bench.say("agent_end", "agent_settled")
    flow.close()
    assert bench.rest() == ["agent_end", "agent_settled"]


def test_an_agent_that_is_idle_after_a_run_but_never_said_so_is_an_error_with_a_hint() -> None:
    bench = begun()
    bench.respond()
    bench.say(*RUN)
    assert [bench.next() for _ in RUN] == list(RUN)
    with pytest.raises(ProtocolError, match=r'never sent agent_settled.*ends_on="agent_end"'):
        bench.next()
    assert bench.next() is None


def test_queued_messages_that_wait_for_a_pause_to_end_do_not_make_a_run() -> None:
    bench = begun()
    bench.respond()
    bench.state = IDLE | {"pendingMessageCount": 1, "queuedMessagesPaused": True}
    assert bench.rest() == []


@pytest.mark.parametrize(
    "waits",
    [
        {"type": "auto_retry_start", "attempt": 1, "maxAttempts": 3, "delayMs": 60_000, "errorMessage": "529"},
        {"type": "compaction_start", "reason": "threshold"},
    ],
)
def test_an_agent_that_said_that_it_waits_is_not_asked(waits: dict[str, Any]) -> None:
    bench = begun()
    bench.respond()
    bench.say(*RUN)
    bench.record(**waits)
    for _ in range(4):
        bench.next()
    with pytest.raises(Blocked):
        bench.next()
    assert bench.asked == 0


def test_an_event_that_comes_before_the_answer_to_the_question_counts_more() -> None:
    bench = begun()
    bench.respond()
    bench.state = None
    flow = bench.course.following()
    wait = next(flow)
    bench.time = wait.until or 0.0
    flow.send(False)
    (asked,) = bench.sent()
    bench.say("agent_start")
    bench.record(id=asked["id"], type="response", command="get_state", success=True, data=IDLE)
    flow.close()
    bench.say("turn_start", "agent_end", "agent_settled")
    assert bench.rest() == [*RUN, "agent_settled"]


def test_a_deadline_holds_for_the_whole_prompt() -> None:
    bench = begun(seconds=5.0)
    bench.respond()
    bench.say("agent_start")
    assert bench.next() == "agent_start"
    with pytest.raises(DeadlineExceeded, match="end of the prompt: nothing within 5 s"):
        bench.next()
    unanswered = begun(seconds=5.0)
    with pytest.raises(DeadlineExceeded):
        unanswered.next()
    assert unanswered.time == 5.0


def test_a_run_that_came_and_went_without_the_response_is_an_error_but_not_for_a_slash_command() -> None:
    bench = begun()
    bench.say(*RUN, "agent_settled")
    with pytest.raises(ProtocolError, match="the response to its prompt never came"):
        bench.next()
    assert bench.time == 10.0
    slash = begun("/run")
    slash.say(*RUN, "agent_settled")
    with pytest.raises(DeadlineExceeded):
        slash.next()
    assert slash.time == 600.0


def test_a_dead_agent_ends_the_prompt_after_what_it_still_said() -> None:
    bench = begun()
    bench.respond()
    bench.say("agent_start")
    bench.core.exited(3)
    bench.core.conclude()
    assert bench.next() == "agent_start"
    with pytest.raises(AgentDied, match="exit code 3"):
        bench.next()


def test_lost_events_end_the_prompt_since_its_end_may_be_among_them() -> None:
    bench = begun()
    bench.respond()
    for _ in range(3000):
        bench.say("noise")
    with pytest.raises(EventsLost):
        bench.rest()
    assert bench.next() is None


def test_leaving_lets_go_and_aborts_only_what_is_not_over() -> None:
    bench = begun()
    bench.respond()
    bench.say("agent_start")
    assert bench.next() == "agent_start"
    flow = bench.course.left(abort=True)
    next(flow)
    assert [command["type"] for command in bench.sent()] == ["abort"]
    flow.close()
    assert bench.next() is None
    over = begun()
    over.respond()
    over.say(*RUN, "agent_settled")
    over.rest()
    over.drive(over.course.left(abort=True))
    assert over.sent() == []


def test_the_outcome_is_the_last_answer_of_the_model() -> None:
    bench = begun()
    bench.respond()
    bench.say("agent_start")
    for role, text, stop in (("user", "go", None), ("assistant", "first", "toolUse"), ("assistant", "last", "error")):
        message = {"role": role, "content": [{"type": "text", "text": text}], "timestamp": 1}
        if stop:
            message |= {"api": "a", "provider": "p", "model": "m", "usage": {}, "stopReason": stop, "errorMessage": "e"}
        bench.record(type="message_end", message=message)
    bench.say("agent_end", "agent_settled")
    bench.rest()
    outcome = bench.course.outcome
    assert (outcome.text, outcome.stop_reason, outcome.error_message) == ("last", "error", "e")
