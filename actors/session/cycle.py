"""One prompt cycle: the runs that follow from a prompt, until nothing more comes by itself.

Part of the session actor. The session is busy from the acceptance of a prompt to `agent_settled`, through waits for a
retry and from run to run. After each run it decides what comes next: the same model again, another one, what an abort
swallowed, what waits in the queue, or the end.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from actors.mail import Arm, QueueKind, TakeMessages, Tick
from actors.session.fallback import FallbackChain, Place
from actors.session.retry import Again, GiveUp, Retry, is_fallbackable, retry_text
from actors.session.turn import Injected, Run, Said, said
from protocol.events import AgentSettled, QueueUpdate
from protocol.messages import AssistantMessage, UserMessage

if TYPE_CHECKING:
    from msgspec import Struct

    from actors.mail import QueueView
    from actors.session.actor import Session
    from protocol.model import ThinkingLevel

RETRY_TICK = "retry-"


class PromptCycle:
    """Owns whether the session is busy, and what retries and fallbacks have been tried."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.busy = False
        self.between_runs = False
        self._last_injected: Said | None = None
        self._last_run: Run | None = None
        self._retry = Retry()
        self._chain = self._new_chain()

    # -- runs

    def start(self, prompt: UserMessage) -> None:
        self.busy = True
        self._session.headroom.recovery.user_said()
        self._session.background.cancel()
        self._chain = self._new_chain()
        self._session.loop.start((said(prompt),), poll=True)

    def replied(self, message: AssistantMessage) -> Struct | None:
        """What follows a reply's `message_end`: the good end of a series of retries."""
        self._session.headroom.recovery.replied(message)
        return self._retry.replied(message)

    def run_over(self, run: Run) -> None:
        session = self._session
        self._last_run = run
        self.answer_aborts()
        if session.leaving or run.is_broken:
            self._break_off_retries(run)
        if session.leaving:
            self._settle()
        elif run.is_broken or not (self._tries_again(run) or self._session.headroom.after_run(run)):
            self.go_on(run)

    def answer_aborts(self) -> None:
        """What was to end has ended; what comes next begins after the answer."""
        for ticket in self._session.aborts:
            self._session.outbox.ok(ticket)
        self._session.aborts.clear()

    def go_on(self, run: Run | None) -> None:
        """What the client wants next: a compaction that it asked for, then what an abort swallowed, then the queue."""
        session = self._session
        self.answer_aborts()
        swallowed = self._swallowed_message()
        if session.leaving:
            self._settle()
        elif session.compactor.take_over(partial(self._take_up, swallowed=swallowed)):
            return
        else:
            self._take_up(swallowed=swallowed)

    def _take_up(self, *, swallowed: bool) -> None:
        session = self._session
        if swallowed and not session.leaving:
            self._last_injected = None
            session.history.drop_reply()
            session.loop.start((), poll=False)
        elif session.leaving:
            self._settle()
        else:
            self._next_from_queue()

    def taken(self, injected: Injected, kind: QueueKind, view: QueueView) -> None:
        """The queue answered, in a run or between two."""
        session = self._session
        if injected:
            self._last_injected = injected[-1][1]
            self._session.headroom.recovery.user_said()
        if not self.between_runs:
            session.loop.taken((*session.notices.injected(), *injected))
        elif injected and not session.leaving:
            self.between_runs = False
            session.loop.start((), injected, poll=kind != "steering")
        elif session.waiting.owes and not injected:
            # something was queued since: it is asked for when the queue has answered that
            session.waiting.tell(TakeMessages("steering", next_run=True))
        else:
            self.between_runs = False
            if injected:  # taken just before the queue was emptied: they go with it
                session.outbox.event(QueueUpdate(list(view.steering), list(view.follow_up)))
            self._rest()

    def _next_from_queue(self) -> None:
        if self._session.waiting.is_empty:
            self._rest()
        else:
            self.between_runs = True
            self._session.waiting.tell(TakeMessages("steering", next_run=True))

    def _rest(self) -> None:
        """Nothing waits in the queue. What ended in the background meanwhile is still told to the model."""
        notices = self._session.notices
        if self._last_run is not None and self._last_run.is_broken:
            notices.is_stuck = True
            self._settle()
        elif notices.may_wake and (injected := notices.injected()):
            self._session.loop.start((), injected, poll=True)
        else:
            notices.say_quietly()
            self._settle()

    def tell_notices(self) -> None:
        """A background task is over. An idle session tells the model at once, a busy one with the next request."""
        session = self._session
        if session.busy or session.leaving or session.notices.is_stuck or session.handover.is_awaited:
            return
        if not session.notices.may_wake:
            session.notices.say_quietly()
        elif injected := session.notices.injected():
            self.busy = True
            session.headroom.recovery.user_said()
            session.background.cancel()
            self._chain = self._new_chain()
            session.loop.start((), injected, poll=True)

    def _swallowed_message(self) -> bool:
        """Whether an abort took a queued message with it: its reply is empty. Then the run goes on once."""
        messages = self._session.history.messages
        if self._last_injected is None or len(messages) < 2:
            return False
        question, reply = messages[-2].message(), messages[-1].message()
        return (
            question is self._last_injected.message
            and isinstance(reply, AssistantMessage)
            and reply.stop_reason == "aborted"
            and not reply.content
        )

    def _settle(self) -> None:
        self._go_home()
        self._session.history.settle()
        self.busy = False
        self._session.outbox.event(AgentSettled())
        self._session.background.begin()

    # -- again, on this model or on another

    def cancel_wait(self) -> bool:
        """Ends a wait for a retry; whether there was one. The cycle goes on with what waits in the queue."""
        cancelled = self._retry.cancelled()
        if cancelled is None:
            return False
        self._session.outbox.event(cancelled)
        self.go_on(None)
        return True

    def woke(self, mail: Tick) -> None:
        if self._retry.woke(int(mail.key.removeprefix(RETRY_TICK))):
            self._session.loop.start((), poll=True)

    def model_chosen(self) -> None:
        """A command chose a model: a fallback does not take it back."""
        self._chain.model_chosen()

    def level_chosen(self, level: ThinkingLevel) -> None:
        """A command chose a level: the model that a fallback replaced comes back with it."""
        self._chain.level_chosen(level)

    def will_retry(self, run: Run) -> bool:
        """What `run_over` is going to decide about this run, for its `agent_end`: whether a failed request is made
        again, on this model or on another."""
        setting, reply = self._session.setting, run.last_reply
        if self._session.leaving or run.is_broken or run.aborted or reply is None or setting.model is None:
            return False
        if self._retry.would_retry(reply, setting.model.context_window, setting.retry_policy):
            return True
        return is_fallbackable(reply) and self._chain.next_place(Place(setting.model, setting.level), reply) is not None

    def _tries_again(self, run: Run) -> bool:
        reply, model = run.last_reply, self._session.setting.model
        if reply is None or model is None:
            return False
        services = self._session.services
        policy = self._session.setting.retry_policy
        verdict = self._retry.run_ended(reply, model.context_window, policy.switched_off() if run.aborted else policy)
        if isinstance(verdict, Again):
            self._session.outbox.event(verdict.event)
            self._session.history.drop_last()
            services.clock.tell(Arm(f"{RETRY_TICK}{verdict.wait}", verdict.event.delay_ms, self._session.me))
            return True
        return verdict is not None and self._falls_back(verdict, reply, not run.aborted and is_fallbackable(reply))

    def _break_off_retries(self, run: Run) -> None:
        last = run.messages[-1].message if run.messages else None
        closing = self._retry.broken_off(last) if isinstance(last, AssistantMessage) else None
        if closing is not None:
            self._session.outbox.event(closing)

    def _falls_back(self, given_up: GiveUp, reply: AssistantMessage, may_help: bool) -> bool:
        session, setting = self._session, self._session.setting
        assert setting.model is not None
        here = Place(setting.model, setting.level)
        fallback = self._chain.advance(here, reply, given_up.error) if may_help else None
        closing = given_up.event(falls_back=fallback is not None)
        if closing is not None:
            session.outbox.event(closing)
        if fallback is None:
            return False
        session.outbox.event(fallback.event)
        session.use_model(fallback.place.model, fallback.place.level, "fallback")
        session.history.drop_reply()
        session.loop.start((), poll=True)
        return True

    def outgrows(self, reply: AssistantMessage) -> bool:
        """Whether another model takes over from one whose window is too small."""
        return reply.stop_reason == "error" and self._falls_back(GiveUp(0, retry_text(reply)), reply, may_help=True)

    # -- back to the model of the user

    def _go_home(self) -> None:
        """Back to the model that the user chose, if a fallback took its place."""
        restore = self._chain.finish(None if self._last_run is None else self._last_run.last_reply)
        if restore is None:
            return
        if restore.home is not None:
            self._session.use_model(restore.home.model, restore.home.level, "restore")
        self._session.outbox.event(restore.event)
        self._chain = self._new_chain()

    def _new_chain(self) -> FallbackChain:
        session = self._session
        told = session.setting.surroundings
        available = session.setting.catalog.available() if told.fallback_models else []
        return FallbackChain(told.fallback_models, available, lambda _: True, told.fallback_level)
