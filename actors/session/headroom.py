"""Room in the context: a compaction before a prompt, between tool results and the next request, or after a run.

Part of the session actor. It decides when one is due and says what goes on after it: the prompt that waits, the run,
the failed request once more, another model, or the cycle's own course.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from actors.session.compaction.triggers import Recovery, Trigger, before_request
from actors.session.retry import is_preflight_error
from actors.session.turn import Run
from protocol.messages import AssistantMessage, Message

if TYPE_CHECKING:
    from actors.mail import Ticket
    from actors.session.actor import Session
    from actors.session.compactor import Ended
    from protocol.model import Model


class Headroom:
    """`recovery` remembers what was tried since the user said something."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._admission: tuple[Ticket, Callable[[], None]] | None = None
        self.recovery = Recovery()

    # -- before a prompt

    def admit(self, ticket: Ticket, start: Callable[[], None]) -> None:
        """A prompt for the idle session: `start` accepts it, at once or after the compaction that is due before it."""
        trigger = self._due_before_prompt()
        if trigger is None:
            start()
            return
        self._session.background.cancel()
        self._admission = (ticket, start)
        self._session.compactor.start(trigger, lambda _: self._admit())

    def refuse_admission(self, why: str) -> None:
        """The prompt that waits for a compaction, if there is one, is not started."""
        if self._admission is not None:
            self._session.outbox.failed(self._admission[0], why)
            self._admission = None

    def _admit(self) -> None:
        if self._admission is not None and not self._session.compactor.take_over(self._admit):
            (_, start), self._admission = self._admission, None
            start()

    def _due_before_prompt(self) -> Trigger | None:
        setting = self._session.setting
        if setting.model is None or not setting.defaults.auto_compaction:
            return None
        backwards = (each.message() for each in reversed(self._session.history.messages))
        reply = next((each for each in backwards if isinstance(each, AssistantMessage)), None)
        if reply is None:
            return None
        return self.recovery.before_prompt(reply, setting.model, self._reserve(setting.model), self._context())

    # -- in mid-turn

    def before_request(self) -> bool:
        """Whether a request that follows tool results has to wait for a compaction."""
        session, setting = self._session, self._session.setting
        if setting.model is None or not setting.defaults.auto_compaction:
            return False
        trigger = before_request(self._context(), setting.model, self._reserve(setting.model))
        if trigger is None:
            return False
        session.compactor.start(trigger, lambda ended: session.loop.go_on(ended.mid_turn_error))
        return True

    def cancel_mid_turn(self) -> bool:
        """Ends the compaction that the run waits for; whether there was one."""
        return self._session.loop.run is not None and self._session.compactor.cancel(manual=False)

    # -- after a run

    def after_run(self, run: Run) -> bool:
        """After a run that is not tried again: whether a compaction, or a model with a larger window, comes next."""
        setting, reply = self._session.setting, run.last_reply
        if reply is None or setting.model is None or run.aborted or is_preflight_error(reply):
            return False
        reserve, enabled = self._reserve(setting.model), setting.defaults.auto_compaction
        due = self.recovery.after_run(reply, setting.model, reserve, self._context(), enabled=enabled)
        if isinstance(due, Trigger):
            self._session.compactor.start(due, partial(self._compacted, run, reply))
            return True
        if due is not None and due.error is not None:
            self._session.compactor.tell_given_up(due, due.error)
        return due is not None and due.unresolved and self._session.cycle.outgrows(reply)

    def _compacted(self, run: Run, reply: AssistantMessage, ended: Ended) -> None:
        session = self._session
        if ended.goes_on and not session.leaving:
            session.history.drop_reply()
            session.loop.start((), poll=True)
        elif session.leaving or not (ended.unresolved and session.cycle.outgrows(reply)):
            session.cycle.go_on(run)

    def _reserve(self, model: Model) -> int:
        return self._session.setting.surroundings.compaction.reserve_of(model)

    def _context(self) -> Iterator[Message]:
        return (each.message() for each in self._session.history.messages)
