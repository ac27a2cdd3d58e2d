"""The session's compaction: one at a time, from the decision that it is due to the boundary in the file.

Part of the session actor. Every `compaction_start` is followed by exactly one `compaction_end`, and what the compaction
interrupted goes on after that. A boundary that is in the file is never taken back: a cancel that comes later finds
nothing to end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Raw, Struct

from actors.mail import CompactionWorked, Ticket
from actors.session.compaction.parameters import Wish
from actors.session.compaction.triggers import MID_TURN_CANCELLED, GivenUp, Trigger, hard_limit_error
from actors.session.context import context_message
from actors.session.fallback import Place
from actors.session.journal import JournalError
from actors.session.provider_view import shown_message
from protocol.compaction import CompactionReason
from protocol.events import CompactionEnd, CompactionStart

if TYPE_CHECKING:
    from actors.session.actor import Session
    from actors.session.compaction.boundary import Boundary
    from actors.session.compaction_run import CompactionRun, Found
    from protocol.model import Model

CANCELLED = "Compaction cancelled"


class Ended(Struct, frozen=True):
    """How a compaction ended. `goes_on`: the work that it interrupted is to be taken up again. `unresolved`: the
    context does not fit into this model. `mid_turn_error`: why the run that waits for it cannot go on."""

    goes_on: bool = False
    unresolved: bool = False
    mid_turn_error: str | None = None


class _Job(Struct):
    """The compaction under way. `known` counts the entries that it started from; `tickets` are answered at its end."""

    number: int
    trigger: Trigger
    model: Model
    known: int
    tickets: list[Ticket]
    then: Callable[[Ended], None]
    run: CompactionRun


class Compactor:
    """`working` counts the pumps that still run for it, also for compactions that are over."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._job: _Job | None = None
        self._last = 0
        self._waiting: list[Ticket] = []
        self._wish = Wish()
        self.working = 0

    @property
    def reason(self) -> CompactionReason | None:
        """Why one runs; None: none does."""
        return None if self._job is None else self._job.trigger.reason

    # -- what may be asked of it

    def request(self, ticket: Ticket, wish: Wish) -> None:
        """The command `compact`. What runs is ended first; of two commands the second joins."""
        job = self._job
        if job is not None and job.trigger.kind == "manual":
            job.tickets.append(ticket)
            return
        self._waiting.append(ticket)
        self._wish = wish
        self._session.background.cancel()
        self._session.navigation.cancel()
        if self._session.busy:
            self._session.interrupt()
        else:
            self.take_over(lambda: None)

    def take_over(self, then: Callable[[], None]) -> bool:
        """Starts what a command waits for, and calls `then` after it; whether one waits."""
        model = self._session.setting.model
        if not self._waiting or model is None:
            return False
        tickets, self._waiting = self._waiting, []
        self._start(Trigger("manual"), model, self._wish, lambda _: then(), tickets)
        return True

    def start(self, trigger: Trigger, then: Callable[[Ended], None]) -> None:
        """An automatic one. `then` is called in a later turn, or when it is cancelled."""
        model = self._session.setting.model
        assert model is not None
        self._start(trigger, model, Wish(), then, [])

    def cancel(self, *, manual: bool = True) -> bool:
        """Ends the one that runs (without `manual`: if it is automatic), and what waits to run."""
        if manual:
            for ticket in self._waiting:
                self._session.outbox.failed(ticket, CANCELLED)
            self._waiting = []
        job = self._job
        if job is None or (job.trigger.kind == "manual" and not manual):
            return False
        job.run.cancel()
        self._end(job, None, None, aborted=True)
        return True

    def tell_given_up(self, given_up: GivenUp, error: str) -> None:
        """No compaction runs, since it would not help: the client hears of its end alone."""
        end = CompactionEnd(given_up.reason, None, False, False, error, _flag(given_up.unresolved))
        self._session.outbox.event(end)

    # -- what happens to it

    def worked(self, mail: CompactionWorked) -> None:
        self.working -= 1
        job = self._job
        if job is not None and job.number == mail.job:
            job.run.worked(mail.value, mail.error)

    def _start(
        self, trigger: Trigger, model: Model, explicit: Wish, then: Callable[[Ended], None], tickets: list[Ticket]
    ) -> None:
        from actors.session.compaction_run import CompactionRun

        session, setting = self._session, self._session.setting
        self._last += 1
        run = CompactionRun(session, trigger, Place(model, setting.level), self._work, self._found)
        self._job = _Job(self._last, trigger, model, len(session.history.tree), tickets, then, run)
        session.outbox.event(CompactionStart(trigger.reason, _flag(trigger.kind == "mid-turn")))
        run.begin(setting.surroundings.compaction.wish(model, explicit))

    def _work(self, task: Callable[[], Any]) -> None:
        self.working += 1
        self._session.services.work(self._last, task, self._session.me)

    def _found(self, found: Found) -> None:
        from actors.session.compaction.ladder import NOTHING_LEFT, TOO_SMALL

        job = self._job
        assert job is not None
        if found.complaint:
            self._session.services.complain(found.complaint)
        if found.boundary is not None:
            self._commit(job, found.boundary)
        elif found.error is not None:
            self._end(job, None, found.error)
        elif found.cancelled:
            self._end(job, None, None, aborted=True)
        else:
            nothing = {"manual": TOO_SMALL, "overflow": NOTHING_LEFT}.get(job.trigger.kind)
            self._end(job, None, nothing, goes_on=job.trigger.kind == "length")

    def _commit(self, job: _Job, boundary: Boundary) -> None:
        boundary = self._with_late_entries(job, boundary)
        history, error = self._session.history, None
        try:
            history.compact(boundary.entry)
        except JournalError as failed:
            self._session.services.complain(str(failed))
            self._end(job, None, str(failed))
            return
        if job.trigger.kind == "mid-turn" and job.model.context_window > 0:
            error = hard_limit_error((each.message() for each in history.messages), job.model)
        self._end(job, boundary.encoded, error)

    def _with_late_entries(self, job: _Job, boundary: Boundary) -> Boundary:
        """What was recorded while the compaction ran belongs to its tail. If there is none, that is where it begins."""
        if boundary.result.first_kept_entry_id is not None:
            return boundary
        for entry in self._session.history.tree.entries[job.known :]:
            late = context_message(entry)
            if late is not None and shown_message(late.message()) is not None:
                return boundary.keeping_from(entry.head.id)
        return boundary

    # -- its end

    def _end(
        self, job: _Job, result: bytes | None, error: str | None, *, aborted: bool = False, goes_on: bool = False
    ) -> None:
        """`error` beside a `result` is the hard limit's, which is told as it stands."""
        from actors.session.compaction.ladder import TOO_SMALL

        self._job = None
        trigger = job.trigger
        told = error if error is None or result is not None else trigger.failure(error)
        goes_on = goes_on or (result is not None and trigger.will_retry)
        unresolved = trigger.kind == "overflow" and result is None and not aborted
        self._session.outbox.event(
            CompactionEnd(
                trigger.reason,
                None if result is None else Raw(result),
                aborted,
                goes_on,
                told or UNSET,
                _flag(unresolved),
                _flag(trigger.kind == "mid-turn"),
                _flag(aborted and bool(self._waiting)),
            )
        )
        for ticket in job.tickets:
            if result is not None:
                self._session.outbox.ok(ticket, result)
            else:
                self._session.outbox.failed(ticket, CANCELLED if aborted else error or TOO_SMALL)
        job.then(Ended(goes_on, unresolved, MID_TURN_CANCELLED if aborted else told))


def _flag(is_set: bool) -> Any:
    return True if is_set else UNSET
