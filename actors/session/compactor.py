"""The session's compaction: one at a time, from the decision that it is due to the boundary in the file.

Part of the session actor. It has the heavy parts done in pumps and asks planners through side calls; what is told to
the client, and the append, happen in the session's own turn. Every `compaction_start` is followed by exactly one
`compaction_end`, and what the compaction interrupted goes on after that. A boundary that is in the file is never taken
back: a cancel that comes later finds nothing to end.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Raw, Struct

from actors.mail import CompactionWorked, Ticket
from actors.session.compaction.boundary import EMPTY_OVERRIDE, Boundary, Proposal
from actors.session.compaction.ladder import NOTHING_LEFT, TOO_SMALL, Ask, Ladder, NoPlan, Step
from actors.session.compaction.parameters import Wish
from actors.session.compaction.planner import SYSTEM, planner_text
from actors.session.compaction.preparation import Preparation, prepare
from actors.session.compaction.triggers import MID_TURN_CANCELLED, GivenUp, Trigger, hard_limit_error
from actors.session.compaction_work import Judged, Place, finish, judge, override
from actors.session.context import context_message
from actors.session.fallback import Place as ModelPlace
from actors.session.journal import JournalError
from actors.session.provider_view import is_blank, shown_message
from actors.session.side_call import SideCall, SideOutcome, SideRequest
from protocol.events import CompactionEnd, CompactionReason, CompactionStart, SummarizationRetryAttemptStart
from protocol.model import Model

if TYPE_CHECKING:
    from actors.session.actor import Session

CANCELLED = "Compaction cancelled"


class Ended(Struct, frozen=True):
    """How a compaction ended. `goes_on`: the work that it interrupted is to be taken up again. `unresolved`: the
    context does not fit into this model. `mid_turn_error`: why the run that waits for it cannot go on."""

    goes_on: bool = False
    unresolved: bool = False
    mid_turn_error: str | None = None


class _Job(Struct):
    """The compaction under way. `known` counts the entries that it started from; `next` takes what a pump worked
    out."""

    number: int
    trigger: Trigger
    home: ModelPlace
    wish: Wish
    then: Callable[[Ended], None]
    tickets: list[Ticket]
    known: int
    next: Callable[[Any], None]
    ladder: Ladder | None = None
    call: SideCall | None = None


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
        if job.call is not None:
            job.call.cancel()
        self._end(job, None, None, aborted=True)
        return True

    def tell_given_up(self, given_up: GivenUp, error: str) -> None:
        """No compaction runs, since it would not help: the client hears of its end alone."""
        end = CompactionEnd(given_up.reason, None, False, False, error, _flag(given_up.unresolved))
        self._session.outbox.event(end)

    # -- its steps

    def worked(self, mail: CompactionWorked) -> None:
        self.working -= 1
        job = self._job
        if job is None or job.number != mail.job:
            return
        if mail.error:
            self._fail(job, mail.error)
        else:
            job.next(mail.value)

    def _start(
        self, trigger: Trigger, model: Model, explicit: Wish, then: Callable[[Ended], None], tickets: list[Ticket]
    ) -> None:
        setting, tree = self._session.setting, self._session.history.tree
        self._last += 1
        wish = setting.surroundings.compaction.wish(model, explicit)
        home = ModelPlace(model, setting.level)
        job = _Job(self._last, trigger, home, wish, then, tickets, len(tree), lambda _: None)
        self._job = job
        self._session.outbox.event(CompactionStart(trigger.reason, _flag(trigger.kind == "mid-turn")))
        self._work(job, partial(prepare, tuple(tree.path(tree.leaf_id)), wish), partial(self._prepared, job))

    def _prepared(self, job: _Job, prepared: Preparation | None) -> None:
        small_too = job.trigger.must_succeed and job.trigger.takes_small
        if prepared is None or (prepared.region.is_small and not small_too):
            self._end_without_region(job)
        elif (propose := self._session.services.propose_compaction) is not None:
            job.next = partial(self._proposed, job, prepared)
            self.working += 1
            propose(job.number, job.trigger.reason, prepared, self._session.me)
        else:
            self._plan(job, prepared)

    def _proposed(self, job: _Job, prepared: Preparation, proposal: Proposal) -> None:
        """What an extension answered."""
        if proposal.cancel:
            self._end(job, None, None, aborted=True)
        elif proposal.text is None:
            self._plan(job, prepared)
        elif is_blank(proposal.text):
            self._fail(job, EMPTY_OVERRIDE)
        else:
            task = partial(override, prepared, proposal.text, job.trigger.label, self._place())
            self._work(job, task, partial(self._commit, job))

    def _plan(self, job: _Job, prepared: Preparation) -> None:
        setting = self._session.setting
        job.ladder = Ladder(
            prepared.region,
            job.home,
            setting.catalog.refusal(job.home.model),
            setting.surroundings.fallback_models,
            setting.catalog.available(),
            must_succeed=job.trigger.must_succeed,
        )
        self._step(job, prepared, job.ladder.begin())

    def _step(self, job: _Job, prepared: Preparation, step: Step) -> None:
        if isinstance(step, NoPlan):
            self._fail(job, step.error)
        elif isinstance(step, Ask):
            parameters = prepared.parameters
            task = partial(planner_text, step.view, parameters.compression_ratio, str(parameters.query))
            self._work(job, task, partial(self._ask, job, prepared, step))
        else:
            window = job.home.model.context_window
            task_of_end = partial(finish, prepared, step, window, job.trigger.label, self._place())
            self._work(job, task_of_end, partial(self._commit, job))

    def _ask(self, job: _Job, prepared: Preparation, step: Ask, text: str) -> None:
        request = SideRequest(step.planner.model, step.planner.level, SYSTEM, text)
        attempt = SummarizationRetryAttemptStart("compaction", job.trigger.reason)
        job.call = self._session.side_calls.start(request, partial(self._answered, job, prepared, step), attempt)

    def _answered(self, job: _Job, prepared: Preparation, step: Ask, outcome: SideOutcome) -> None:
        job.call = None
        if not outcome.aborted:
            retried = outcome.retries > 0
            task = partial(judge, outcome.reply, step.view, step.planner.model, retried, self._place())
            self._work(job, task, partial(self._judged, job, prepared))

    def _judged(self, job: _Job, prepared: Preparation, judged: Judged) -> None:
        assert job.ladder is not None
        self._step(job, prepared, job.ladder.answered(judged.outcome, judged.path))

    def _work(self, job: _Job, task: Callable[[], Any], then: Callable[[Any], None]) -> None:
        job.next = then
        self.working += 1
        self._session.services.work(job.number, task, self._session.me)

    def _place(self) -> Place:
        history = self._session.history
        path = history.path if history.journal.exists_on_disk else None
        return Place(self._session.services.compaction_files, path)

    # -- its end

    def _commit(self, job: _Job, found: tuple[Boundary, str]) -> None:
        boundary, complaint = found
        if complaint:
            self._session.services.complain(complaint)
        boundary = self._with_late_entries(job, boundary)
        history, model = self._session.history, job.home.model
        try:
            history.compact(boundary.entry)
        except JournalError as error:
            self._session.services.complain(str(error))
            self._fail(job, str(error))
            return
        gate = None
        if job.trigger.kind == "mid-turn" and model.context_window > 0:
            gate = hard_limit_error((each.message() for each in history.messages), model)
        self._end(job, boundary.encoded, gate)

    def _with_late_entries(self, job: _Job, boundary: Boundary) -> Boundary:
        """What was recorded while the compaction ran belongs to its tail. If there is none, that is where it begins."""
        if boundary.result.first_kept_entry_id is not None:
            return boundary
        for entry in self._session.history.tree.entries[job.known :]:
            late = context_message(entry)
            if late is not None and shown_message(late.message()) is not None:
                return boundary.keeping_from(entry.head.id)
        return boundary

    def _end_without_region(self, job: _Job) -> None:
        if job.trigger.kind == "manual":
            self._fail(job, TOO_SMALL)
        elif job.trigger.kind == "overflow":
            self._fail(job, NOTHING_LEFT)
        else:
            self._end(job, None, None, goes_on=job.trigger.kind == "length")

    def _fail(self, job: _Job, error: str) -> None:
        self._end(job, None, error)

    def _end(
        self, job: _Job, result: bytes | None, error: str | None, *, aborted: bool = False, goes_on: bool = False
    ) -> None:
        """`error` beside a `result` is the gate's, which is told as it stands."""
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
