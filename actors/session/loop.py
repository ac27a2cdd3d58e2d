"""Drives a `Run`: carries out what it decides, and feeds it what comes back.

Part of the session actor. It owns the run and its model request; tools are `tool_calls`. A message that cannot be
journaled ends the run with an `error` reply (design law 4).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, assert_never

from msgspec import UNSET, Raw, Struct

from actors.base import Address, Child
from actors.mail import (
    CancelCall,
    ModelCallMail,
    ModelRequest,
    QueueKind,
    ReplyDelta,
    ReplyEnded,
    ReplyStarted,
    SessionMail,
    ToolEnded,
    ToolProgress,
)
from actors.model.prompt import ModelPrompt, RequestOptions
from actors.session.context import provider_messages
from actors.session.history import History
from actors.session.journal import JournalError
from actors.session.outbox import Outbox
from actors.session.services import Services
from actors.session.setting import Setting
from actors.session.tool_calls import ToolCalls
from actors.session.turn import (
    ABORTED,
    CallModel,
    CancelWork,
    Effects,
    Emit,
    Finish,
    Injected,
    Keep,
    Poll,
    Replied,
    Run,
    RunTools,
    Said,
    failure,
    result_of,
    said,
)
from protocol.codec import encode
from protocol.events import AgentEnd, QueueUpdate, ToolExecutionUpdate
from protocol.messages import AssistantMessage, CustomMessage, Usage


class AgentLoop:
    """`before_request` tells whether a request that follows tool results has to wait for `go_on`, and `cancel_wait`
    ends that wait, if there is one. `poll` asks the queue; `replied` tells what event follows a reply's `message_end`;
    `will_retry` whether a run that ends is tried again; `finished` hears that it is over, after its `agent_end` has
    been told. `next_number` gives numbers for requests that nothing else in the session has. `said_custom` hears of
    each custom message that is in the file."""

    def __init__(
        self,
        services: Services,
        history: History,
        setting: Setting,
        outbox: Outbox,
        tools: ToolCalls,
        me: Address[SessionMail],
        poll: Callable[[QueueKind], None],
        replied: Callable[[AssistantMessage], Struct | None],
        will_retry: Callable[[Run], bool],
        finished: Callable[[Run], None],
        next_number: Callable[[], int],
        before_request: Callable[[], bool],
        cancel_wait: Callable[[], bool],
        said_custom: Callable[[CustomMessage], None],
    ) -> None:
        self._services = services
        self._history = history
        self._setting = setting
        self._outbox = outbox
        self.tools = tools
        self._me = me
        self._poll = poll
        self._replied = replied
        self._will_retry = will_retry
        self._finished = finished
        self.run: Run | None = None
        self._next_number = next_number
        self._before_request = before_request
        self._cancel_wait = cancel_wait
        self._said_custom = said_custom
        self._reply_call: tuple[int, Child[ModelCallMail]] | None = None

    # -- what happened

    def start(self, prompts: tuple[Said, ...], injected: Injected = (), *, poll: bool) -> None:
        self.run = Run(self.tools.fault, self._blank_reply, self._services.now, self.tools.one_by_one)
        self._do(self.run.start(prompts, injected, poll=poll))

    def taken(self, injected: Injected) -> None:
        if self.run is not None and self.run.phase == "polling":
            self._do(self.run.taken(injected))

    def reply_started(self, mail: ReplyStarted) -> None:
        if self._is_current(mail.call):
            self._do(self._active().reply_started(mail.message))

    def reply_grew(self, mail: ReplyDelta) -> None:
        """The hot path: some 20,000 times in a long answer."""
        if not self._is_current(mail.call):
            self._outbox.send(ack=mail.ack)
            return
        head = b'{"type":"message_update","usage":' + mail.usage + b',"assistantMessageEvent":'
        self._outbox.lines(b"".join([head + encode(event) + b"}\n" for event in mail.events]))
        self._outbox.send(ack=mail.ack)

    def reply_ended(self, mail: ReplyEnded) -> None:
        if self._is_current(mail.call):
            self._reply_call = None
            self._do(self._active().reply_ended(said(mail.message)))

    def tool_progressed(self, mail: ToolProgress) -> None:
        call = self.tools.call(mail.call)
        if call is not None:
            self._outbox.event(ToolExecutionUpdate(call.id, call.name, call.arguments, result_of(mail.partial)))

    def tool_ended(self, mail: ToolEnded) -> None:
        if mail.call in self.tools:
            self._do(self._active().tool_ended(self.tools.end(mail.call), mail.output))

    def child_died(self, call: int, error: str) -> None:
        """A model request or a tool call died of an exception: the run sees an error in its place."""
        if self._is_current(call):
            self._reply_call = None
            self._do(self._active().reply_ended(said(self._blank_reply("error", f"the model request failed: {error}"))))
        elif call in self.tools:
            self.tool_ended(ToolEnded(call, failure(f"the tool failed: {error}")))

    def abort(self) -> None:
        if self.run is not None:
            self._do(self.run.abort())

    def abandon(self) -> None:
        """What works for the run is asked to end, whether or not the session lives to hear of it."""
        if self._reply_call is not None:
            self._reply_call[1].tell(CancelCall())
        self.tools.cancel()

    def go_on(self, error: str | None) -> None:
        """The request that waited may be sent, with what was queued meanwhile, unless there is an `error`, which ends
        the run."""
        run = self._active()
        if run.aborted:
            self._do(run.reply_ended(said(self._blank_reply("aborted", ABORTED))))
        elif error is not None:
            self._do(run.reply_ended(said(self._blank_reply("error", error))))
        else:
            self._do(run.resume())

    # -- what is to be done

    def _do(self, effects: Effects) -> None:
        run = self._active()
        for place, effect in enumerate(effects):
            match effect:
                case Emit(event):
                    self._outbox.event(event)
                case Keep(message):
                    if not self._keep(run, message, effects[place:]):
                        return
                case Replied(reply):
                    self._tell_replied(reply)
                case CallModel(has_waited):
                    if has_waited or not run.follows_tools or not self._before_request():
                        self._call_model(run)
                case RunTools(calls):
                    for place, call in calls:
                        self.tools.start(place, call)
                case Poll(kind):
                    self._poll(kind)
                case CancelWork():
                    self._cancel_work()
                case Finish():
                    self._finish(run)
                case _:
                    assert_never(effect)

    def _tell_replied(self, message: AssistantMessage) -> None:
        event = self._replied(message)
        if event is not None:
            self._outbox.event(event)

    def _keep(self, run: Run, message: Said, rest: Effects) -> bool:
        """`rest` is dropped if the message cannot be journaled, and queued messages in it are lost with the run: the
        client hears that they have left the queue."""
        try:
            self._history.say(message)
        except JournalError as error:
            self._services.complain(str(error))
            updates = [effect for effect in rest if isinstance(effect, Emit) and isinstance(effect.event, QueueUpdate)]
            for update in updates[-1:]:
                self._outbox.event(update.event)
            self._do(run.broken(str(error)))
            return False
        run.kept(message)
        if isinstance(message.message, CustomMessage):
            self._said_custom(message.message)
        return True

    def _call_model(self, run: Run) -> None:
        model = self._setting.model
        assert model is not None
        prompt = ModelPrompt(
            self._setting.surroundings.system_prompt(model, self._setting.level),
            provider_messages(
                self._history.messages, reopened=True, block_images=self._setting.surroundings.block_images
            ),
            self.tools.specs,
        )
        options = RequestOptions(
            thinking_level=self._setting.level,
            session_id=self._history.session_id,
            cache_retention=self._setting.surroundings.cache_retention,
            thinking_budgets=self._setting.surroundings.thinking_budgets,
        )
        number = self._next_number()
        limits = self._setting.surroundings.request_limits
        request = ModelRequest(number, model, prompt, options, self._setting.catalog.authorize, limits)
        self._reply_call = (number, self._services.start_model_call(request, self._me))

    def _cancel_work(self) -> None:
        if not self._cancel_wait():
            self.abandon()

    def _finish(self, run: Run) -> None:
        will_retry = self._will_retry(run) if self._services.pi_compat else UNSET
        self._outbox.event(AgentEnd([Raw(message.raw) for message in run.messages], will_retry))
        # Some clients take the last record of a read chunk for the end, so `agent_settled` must not share it.
        self._outbox.send(boundary=True)
        self.run = None
        self._reply_call = None
        self.tools.clear()
        self._finished(run)

    # -- what a run asks for

    def _blank_reply(self, stop: Literal["error", "aborted"], error: str) -> AssistantMessage:
        model = self._setting.model
        api, provider, model_id = (model.api, model.provider, model.id) if model else ("", "", "")
        return AssistantMessage([], api, provider, model_id, Usage(), stop, self._services.now(), error_message=error)

    def _is_current(self, call: int) -> bool:
        return self._reply_call is not None and self._reply_call[0] == call

    def _active(self) -> Run:
        assert self.run is not None
        return self.run
