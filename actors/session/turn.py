"""One run of the agent loop, as decisions without effects.

A `Run` takes what happened (a reply started, a tool ended, the queue answered, somebody aborted) and returns what is to
be done, in order. It neither waits nor writes nor reads a clock: the session does, and tells it what came of it.
The order of events is the contract's ("Events") and that of `spec/rpc.md` 3.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from msgspec import Raw, Struct

from actors.mail import QueueKind
from actors.tool.table import ToolOutput
from protocol.codec import encode
from protocol.events import (
    AgentStart,
    MessageEnd,
    MessageStart,
    QueueUpdate,
    ToolExecutionEnd,
    ToolExecutionResult,
    ToolExecutionStart,
    TurnEnd,
    TurnStart,
)
from protocol.messages import AssistantMessage, Message, TextContent, ToolCall, ToolResultMessage

ABORTED = "Request was aborted"
NOT_EXECUTED = (
    'Tool call "{name}" was not executed: the response hit the output token limit, so its arguments may be '
    "truncated. Re-issue the tool call with complete arguments."
)


class Said(Struct, frozen=True):
    """A whole message and its JSON, encoded once for the file and for every event that carries it."""

    message: Message
    raw: bytes


def said(message: Message) -> Said:
    return Said(message, encode(message))


# ---- what is to be done ------------------------------------------------------------------------------------------


class Emit(Struct, frozen=True):
    """Tell the client."""

    event: Struct


class Keep(Struct, frozen=True):
    """Journal the message, then call `Run.kept`. If that fails, drop the effects after it and call `Run.broken`.
    It stands before the events of a whole message, so that a message that fails has never begun."""

    said: Said


class Replied(Struct, frozen=True):
    """A whole reply is kept and told. It may end a series of retries; one that could not be kept does not."""

    message: AssistantMessage


class CallModel(Struct, frozen=True):
    """Ask the model. `has_waited`: this request was held back for room in the context, and is not held back again."""

    has_waited: bool = False


class RunTools(Struct, frozen=True):
    """Start these calls together; each is answered by `Run.tool_ended` with its place."""

    calls: tuple[tuple[int, ToolCall], ...]


class Poll(Struct, frozen=True):
    """Ask the queue; answered by `Run.taken`."""

    kind: QueueKind


class CancelWork(Struct, frozen=True):
    """Cancel the model request or the tools that run."""


class Finish(Struct, frozen=True):
    """The run is over: tell `agent_end` with the messages that were kept."""


Effect = Emit | Keep | Replied | CallModel | RunTools | Poll | CancelWork | Finish
Effects = list[Effect]
Injected = tuple[tuple[QueueUpdate | None, Said], ...]
"""Messages that join a run, each with what is left of the queue then; None: it was not in the queue."""
Phase = Literal["polling", "replying", "working", "over"]


class Run:
    """`prepare` checks a tool call and returns why it cannot run, or None; `blank_reply` makes an assistant message
    without content; `now` gives milliseconds; `one_by_one` tells whether a batch of calls must run in
    sequence."""

    def __init__(
        self,
        prepare: Callable[[ToolCall], str | None],
        blank_reply: Callable[[Literal["error", "aborted"], str], AssistantMessage],
        now: Callable[[], int],
        one_by_one: Callable[[list[ToolCall]], bool],
    ) -> None:
        self._prepare = prepare
        self._blank_reply = blank_reply
        self._now = now
        self._one_by_one = one_by_one
        self.phase: Phase = "polling"
        self.aborted = False
        self.is_broken = False
        self.messages: list[Said] = []
        self._first_turn = True
        self._owes_reply = False
        self._has_waited = False
        self._polled: QueueKind = "steering"
        self._message_open = False
        self._reply: Said | None = None
        self._calls: list[ToolCall] = []
        self._next_call = 0
        self._sequential = False
        self._outputs: dict[int, ToolOutput] = {}
        self._results: list[Said] = []

    # -- what happened

    def start(self, prompts: tuple[Said, ...], injected: Injected = (), *, poll: bool) -> Effects:
        """`injected` are prompts that waited in the queue. Without any message the run goes on from the context."""
        effects: Effects = [Emit(AgentStart()), Emit(TurnStart())]
        for prompt in prompts:
            effects += _say(prompt)
        effects += _inject(injected)
        self._owes_reply = True
        return effects + (self._poll("steering") if poll else self._call_model())

    def taken(self, injected: Injected) -> Effects:
        """The queue answered the last `Poll`."""
        if not injected and not self._owes_reply:
            return self._poll("followUp") if self._polled == "steering" else self._finish()
        effects: Effects = [] if self._first_turn or self._has_waited else [Emit(TurnStart())]
        return effects + _inject(injected) + self._call_model()

    def resume(self) -> Effects:
        """The request that was held back may be sent, with what was queued meanwhile. Its turn has begun already."""
        self._owes_reply = self._has_waited = True
        return self._poll("steering")

    def reply_started(self, partial: bytes) -> Effects:
        self._message_open = True
        return [Emit(MessageStart(Raw(partial)))]

    def reply_ended(self, reply: Said) -> Effects:
        assert isinstance(reply.message, AssistantMessage)
        effects = self._close_reply(reply)
        stop, calls = reply.message.stop_reason, reply.message.tool_calls
        self._reply, self._calls, self._results = reply, calls, []
        if stop in ("error", "aborted"):
            return effects + self._end_turn() + self._finish()
        if not calls:
            self._owes_reply = False
            return effects + self._end_turn() + self._poll("steering")
        if stop == "length":
            return effects + self._refuse_calls() + self._after_tools()
        return effects + self._begin_tools()

    def tool_ended(self, place: int, output: ToolOutput) -> Effects:
        effects = self._report(place, output)
        if self._sequential:
            return effects + self._say_result(place) + self._next_in_sequence()
        if len(self._outputs) < len(self._calls):
            return effects
        for done in range(len(self._calls)):
            effects += self._say_result(done)
        return effects + self._after_tools()

    def abort(self) -> Effects:
        """Ends the run as soon as what runs has ended."""
        self.aborted = True
        return [CancelWork()] if self.phase in ("replying", "working") else []

    def broken(self, why: str) -> Effects:
        """A message could not be journaled, or the loop itself failed: the run ends with an `error` reply."""
        self.is_broken = True
        reply = said(self._blank_reply("error", why))
        ending: Effects = [] if self._message_open else [Emit(MessageStart(Raw(reply.raw)))]
        ending += [Emit(MessageEnd(Raw(reply.raw))), Emit(TurnEnd(Raw(reply.raw), []))]
        cancel: Effects = [CancelWork()] if self.phase in ("replying", "working") else []
        self.messages.append(reply)
        return cancel + ending + self._finish()

    @property
    def last_reply(self) -> AssistantMessage | None:
        message = self._reply.message if self._reply is not None else None
        return message if isinstance(message, AssistantMessage) else None

    @property
    def follows_tools(self) -> bool:
        """Whether the next request answers tool results of this run."""
        return bool(self._results)

    def kept(self, message: Said) -> None:
        self._message_open = False
        self.messages.append(message)

    # -- replies

    def _call_model(self) -> Effects:
        self._owes_reply = False
        if self.aborted:
            return self.reply_ended(said(self._blank_reply("aborted", ABORTED)))
        self.phase = "replying"
        has_waited, self._has_waited = self._has_waited, False
        return [CallModel(has_waited)]

    def _close_reply(self, reply: Said) -> Effects:
        opening: Effects = [] if self._message_open else [Emit(MessageStart(Raw(reply.raw)))]
        assert isinstance(reply.message, AssistantMessage)
        return [Keep(reply), *opening, Emit(MessageEnd(Raw(reply.raw))), Replied(reply.message)]

    def _end_turn(self) -> Effects:
        assert self._reply is not None
        self._first_turn = False
        return [Emit(TurnEnd(Raw(self._reply.raw), [Raw(result.raw) for result in self._results]))]

    def _poll(self, kind: QueueKind) -> Effects:
        self.phase = "polling"
        self._polled = kind
        return [Poll(kind)]

    def _finish(self) -> Effects:
        self.phase = "over"
        return [Finish()]

    # -- tools

    def _begin_tools(self) -> Effects:
        self.phase = "working"
        self._outputs = {}
        self._sequential = self.aborted or self._one_by_one(self._calls)
        if self._sequential:
            self._next_call = 0
            return self._next_in_sequence()
        effects: Effects = []
        ready = []
        for place, call in enumerate(self._calls):
            effects.append(_started(call))
            refusal = self._prepare(call)
            if refusal is None:
                ready.append((place, call))
            else:
                effects += self._report(place, failure(refusal))
        if ready:
            return [*effects, RunTools(tuple(ready))]
        for place in range(len(self._calls)):
            effects += self._say_result(place)
        return effects + self._after_tools()

    def _next_in_sequence(self) -> Effects:
        """After an abort the calls that are left are skipped without a word."""
        effects: Effects = []
        while self._next_call < len(self._calls) and not self.aborted:
            place, call = self._next_call, self._calls[self._next_call]
            self._next_call += 1
            effects.append(_started(call))
            refusal = self._prepare(call)
            if refusal is None:
                return [*effects, RunTools(((place, call),))]
            effects += self._report(place, failure(refusal)) + self._say_result(place)
        return effects + self._after_tools()

    def _refuse_calls(self) -> Effects:
        self._outputs = {}
        effects: Effects = []
        for place, call in enumerate(self._calls):
            output = failure(NOT_EXECUTED.format(name=call.name))
            effects += [_started(call), *self._report(place, output), *self._say_result(place)]
        return effects

    def _report(self, place: int, output: ToolOutput) -> Effects:
        self._outputs[place] = output
        call = self._calls[place]
        return [Emit(ToolExecutionEnd(call.id, call.name, result_of(output), output.is_error))]

    def _say_result(self, place: int) -> Effects:
        call, output = self._calls[place], self._outputs[place]
        message = ToolResultMessage(call.id, call.name, output.content, output.is_error, self._now(), output.details)
        result = said(message)
        self._results.append(result)
        return _say(result)

    def _after_tools(self) -> Effects:
        """The model is asked again, unless every tool said that this is the end."""
        self._owes_reply = not self._outputs or not all(output.terminate for output in self._outputs.values())
        return self._end_turn() + self._poll("steering")


def result_of(output: ToolOutput) -> ToolExecutionResult:
    """A tool's result as `tool_execution_update` and `tool_execution_end` show it."""
    return ToolExecutionResult(output.content, output.details)


def failure(text: str) -> ToolOutput:
    return ToolOutput([TextContent(text)], is_error=True)


def _say(message: Said) -> Effects:
    return [Keep(message), Emit(MessageStart(Raw(message.raw))), Emit(MessageEnd(Raw(message.raw)))]


def _inject(injected: Injected) -> Effects:
    effects: Effects = []
    for update, message in injected:
        effects += [*([] if update is None else [Emit(update)]), *_say(message)]
    return effects


def _started(call: ToolCall) -> Effect:
    return Emit(ToolExecutionStart(call.id, call.name, call.arguments))
