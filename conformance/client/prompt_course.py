"""The course of one prompt, from its command to the event that ends it. Flows only: both faces drive this.

Which events belong to a prompt is not on the wire; the order is. What counts is what comes after the prompt's own
response: an end that was already under way when the prompt was sent is not taken for its own. A prompt that was queued
ends with the run that it joined. An agent that goes silent is asked by `get_state` whether it still works: one that is
idle and never began a run had nothing to run (a slash command, a paused queue), one that is idle after a run broke its
promise to send the end.

Source: contract `rpc-protocol.md`, "prompt"; `agent_settled` is the reference's, beyond the contract.
"""

from __future__ import annotations

from typing import NamedTuple

from conformance.client.core import Core, Feed, Pending
from conformance.client.errors import EventsLost, ProtocolError
from conformance.client.flows import Deadline, Flow, Wait, call, until
from conformance.client.options import EndsOn, Options
from conformance.client.records import Event, Response, event_type, read_message
from conformance.client.shapes import read_data
from protocol.commands import Abort, GetState, Prompt
from protocol.events import AgentEnd, MessageEnd
from protocol.messages import AssistantMessage, TextContent
from protocol.responses import Accepted
from protocol.state import SessionState

FIRST_CHECK = 1.0  # seconds after the response without any event of a run

# What only a run sends: after the prompt's own response, any of these says that it runs.
_OF_A_RUN = frozenset({"agent_start", "turn_start", "message_start", "message_update", "message_end", "turn_end"})
_WAITS = frozenset({"auto_retry_start", "compaction_start"})
_WAIT_ENDS = frozenset({"auto_retry_end", "compaction_end", "agent_start", "agent_end", "agent_settled"})


class Outcome(NamedTuple):
    """How a prompt ended. `message` is the last answer of the model, `None` when there was none; `started` is false
    when nothing was run: a slash command, or a queue that is paused."""

    started: bool
    message: AssistantMessage | None

    @property
    def text(self) -> str:
        blocks = self.message.content if self.message else []
        return "".join(block.text for block in blocks if isinstance(block, TextContent))

    @property
    def stop_reason(self) -> str | None:
        """`stop`, `length`, `toolUse`, `error` or `aborted`."""
        return self.message.stop_reason if self.message else None

    @property
    def error_message(self) -> str | None:
        return (self.message.error_message or None) if self.message else None


class Course:
    """One prompt. `begin`, then `accepted`, then `following` until it gives `None`; `left` at the end, always."""

    def __init__(self, core: Core, prompt: Prompt, options: Options, ends_on: EndsOn, seconds: float | None) -> None:
        self._core, self._prompt, self._options, self._ends_on = core, prompt, options, ends_on
        self._seconds = seconds
        self._feed: Feed[Event | Response] | None = None
        self._pending: Pending | None = None
        self._deadline = Deadline("prompt", None, None)
        self._probe: Pending | None = None
        self._was_active = False
        self._joined = False  # it may have been queued behind a run that was under way
        self._in_response = False  # the response has been met among the events
        self._waits = False  # between auto_retry_start or compaction_start and their end
        self._quiet_since = self._asked_at = 0.0
        self._patience = FIRST_CHECK
        self._last_answer: AssistantMessage | None = None
        self.started = False
        self.over = False

    @property
    def outcome(self) -> Outcome:
        return Outcome(self.started, self._last_answer)

    # ---- the steps ---------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Send the prompt. Raises when the connection is over."""
        core = self._core
        self._was_active = core.run_is_active
        feed: Feed[Event | Response] = core.listen()
        self._pending = core.request(self._prompt, feed)
        self._feed = feed
        self._deadline = Deadline.set(core, "end of the prompt", self._seconds)

    def accepted(self) -> Flow[None]:
        """Until the response. Raises `CommandRefused`, and `ProtocolError` when a run came and went without it."""
        core, pending = self._core, self._sent()
        if self._in_response:
            return
        deadline = self._sooner(Deadline.set(core, "response to prompt", self._options.slow_deadline))
        yield from until(core, pending, lambda: pending.done or self._seems_lost(pending), deadline)
        if not pending.done:
            grace = Deadline.set(core, "", self._options.idle_check)
            if not (yield Wait(pending, lambda: pending.done, grace.at)):
                self.over = True
                raise ProtocolError("a run began and settled, but the response to its prompt never came", core.stderr)
        try:
            pending.answer()
        except Exception:
            self.over = True
            raise

    def following(self) -> Flow[Event | None]:
        """The next event, `None` after the end. Raises `EventsLost` (and knows no more, so it is over then),
        `DeadlineExceeded`, `TransportError`."""
        yield from self.accepted()
        feed = self._feed
        while feed is not None and not self.over:
            if feed.ready:
                item = self._take(feed)
                if item is not None:
                    return item
            elif not (yield Wait(feed, lambda: feed.ready, self._next_look())):
                self._look()
        return None

    def left(self, abort: bool) -> Flow[None]:
        """Let go. With `abort` a prompt that is not over is aborted, and the end of that waited for."""
        sent, over = self._pending, self.over or self._core.over
        self.over = True
        self._feed = None
        for pending in (self._pending, self._probe):
            if pending is not None:
                pending.echo = None
                self._core.abandon(pending)
        if abort and sent is not None and not over and not self._core.closing:
            yield from call(self._core, Abort(), self._options.slow_deadline)

    # ---- what an event means -----------------------------------------------------------------------------------

    def _take(self, feed: Feed[Event | Response]) -> Event | None:
        """The next of the feed, `None` for what is not for the user."""
        try:
            item = feed.take()
        except EventsLost:
            self.over = True  # the end may be among what was lost
            raise
        if item is None:
            raise self._core.failure.again() if self._core.failure else AssertionError("the feed ended by itself")
        if isinstance(item, Response):
            self._take_response(item)
            return None
        self._note(item, event_type(item))
        return item

    def _take_response(self, response: Response) -> None:
        if not self._in_response:
            self._in_response = True
            self._quiet_since = self._core.now()
            if self._disposition(response) == "handled":
                self.over = True
            self._joined = self._may_have_joined(response)
        elif self._probe is not None:
            self._probe = None
            self._judge(response)

    def _disposition(self, response: Response) -> str | None:
        try:
            told: Accepted | None = read_data(response.data, Accepted | None, "prompt")
        except ProtocolError:
            return None
        return told.disposition if told else None

    def _may_have_joined(self, response: Response) -> bool:
        """Whether the end of a run that was under way is the prompt's own end too."""
        told = self._disposition(response)
        if told is not None:
            return told == "queued"
        return self._prompt.streaming_behavior is not None and self._was_active

    def _note(self, event: Event, kind: str) -> None:
        if kind in _WAIT_ENDS or kind in _WAITS:
            self._waits = kind in _WAITS
        if self._in_response and kind in _OF_A_RUN:
            self.started = True
        if self.started and kind != "bash_execution_update":  # other work does not show that the run goes on
            self._quiet_since, self._patience = self._core.now(), self._options.idle_check
        if isinstance(event, MessageEnd):
            message = read_message(event.message)
            self._last_answer = message if isinstance(message, AssistantMessage) else self._last_answer
        if self._in_response and (self.started or self._joined) and self._is_end(event, kind):
            self.started = True
            self.over = True

    def _is_end(self, event: Event, kind: str) -> bool:
        if self._ends_on == "agent_settled":
            return kind == "agent_settled"
        return kind == "agent_end" and not (isinstance(event, AgentEnd) and event.will_retry is True)

    # ---- a silent agent ----------------------------------------------------------------------------------------

    def _seems_lost(self, pending: Pending) -> bool:
        """A slash command may run the model by itself before it is answered; nothing else may."""
        return pending.saw_settled and not self._prompt.message.startswith("/")

    def _next_look(self) -> float | None:
        at = [] if self._deadline.at is None else [self._deadline.at]
        if self._probe is None and not self._waits:
            at.append(self._quiet_since + self._patience)
        return min(at) if at else None

    def _look(self) -> None:
        """It has been silent until `_next_look`."""
        if self._deadline.at is not None and self._core.now() >= self._deadline.at:
            raise self._deadline.passed(self._core)
        self._probe = self._core.request(GetState(), self._feed)
        self._asked_at = self._quiet_since

    def _judge(self, response: Response) -> None:
        self._patience = min(2 * self._patience, max(30.0, self._options.idle_check))
        spoke_since = self._quiet_since != self._asked_at
        self._quiet_since = self._core.now()
        if spoke_since or self._waits or not response.success:
            return
        try:
            state: SessionState = read_data(response.data, SessionState, "get_state")
        except ProtocolError:
            return
        if state.is_streaming or state.is_compacting:
            return
        if not self.started:
            self.over = True
        elif not state.pending_message_count or state.queued_messages_paused:
            self.over = True
            hint = "" if self._ends_on == "agent_end" else ' (one that never sends it needs ends_on="agent_end")'
            raise ProtocolError(f"the agent is idle, but never sent {self._ends_on}{hint}", self._core.stderr)

    # ---- the rest ----------------------------------------------------------------------------------------------

    def _sent(self) -> Pending:
        if self._pending is None:
            self.begin()
        assert self._pending is not None
        return self._pending

    def _sooner(self, deadline: Deadline) -> Deadline:
        mine = self._deadline
        return mine if mine.at is not None and (deadline.at is None or mine.at < deadline.at) else deadline
