"""One compaction on its way from the branch to a boundary: the region, who plans, and the text that is left.

Part of the session actor. The heavy parts are done in pumps, planners are asked through side calls. It changes nothing
and tells the client nothing but retries: exactly one `Found` comes of it, unless it is cancelled.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from actors.session.compaction.boundary import EMPTY_OVERRIDE, Boundary
from actors.session.compaction.ladder import Ask, Ladder, NoPlan, Step
from actors.session.compaction.planner import SYSTEM, planner_text
from actors.session.compaction.preparation import Interrupted, prepare
from actors.session.compaction_work import Place, finish, judge, override
from actors.session.fallback import Place as ModelPlace
from actors.session.provider_view import is_blank
from actors.session.side_call import SideCall, SideOutcome, SideRequest
from protocol.events import SummarizationRetryAttemptStart

if TYPE_CHECKING:
    from actors.session.actor import Session
    from actors.session.compaction.boundary import Proposal
    from actors.session.compaction.parameters import Wish
    from actors.session.compaction.preparation import Preparation
    from actors.session.compaction.triggers import Trigger
    from actors.session.compaction_work import Judged


class Found(Struct, frozen=True):
    """What came of it: a `boundary`, an `error`, or neither, since there is nothing to compact. `complaint` is a line
    for stderr; `cancelled`: an extension does not want it."""

    boundary: Boundary | None = None
    error: str | None = None
    cancelled: bool = False
    complaint: str = ""


class CompactionRun:
    """`work` has a task done in a pump, whose result comes to `worked`. `done` hears what came of it, once."""

    def __init__(
        self,
        session: Session,
        trigger: Trigger,
        home: ModelPlace,
        work: Callable[[Callable[[], Any]], None],
        done: Callable[[Found], None],
    ) -> None:
        self._session = session
        self._trigger = trigger
        self._home = home
        self._start_work = work
        self._done = done
        self._next: Callable[[Any], None] = lambda _: None
        self._call: SideCall | None = None

    def begin(self, wish: Wish) -> None:
        history = self._session.history
        interrupted = Interrupted(history.dropped, history.reply_id if self._trigger.will_retry else None)
        path = tuple(history.tree.path(history.tree.leaf_id))
        self._work(partial(prepare, path, wish, interrupted), self._prepared)

    def worked(self, value: Any, error: str) -> None:
        """A pump is done with the task that was given last."""
        if error:
            self._done(Found(error=error))
        else:
            self._next(value)

    def cancel(self) -> None:
        """Nothing more comes of it."""
        self._done = lambda _: None
        if self._call is not None:
            self._call.cancel()

    # -- its steps

    def _prepared(self, prepared: Preparation | None) -> None:
        small_too = self._trigger.must_succeed and self._trigger.takes_small
        propose = self._session.services.propose_compaction
        if prepared is None or (prepared.region.is_small and not small_too):
            self._done(Found())
        elif propose is not None:
            self._work(partial(propose, self._trigger.reason, prepared), partial(self._proposed, prepared))
        else:
            self._plan(prepared)

    def _proposed(self, prepared: Preparation, proposal: Proposal) -> None:
        """What an extension answered."""
        if proposal.cancel:
            self._done(Found(cancelled=True))
        elif proposal.text is None:
            self._plan(prepared)
        elif is_blank(proposal.text):
            self._done(Found(error=EMPTY_OVERRIDE))
        else:
            self._work(partial(override, prepared, proposal.text, self._trigger.label, self._place()), self._finished)

    def _plan(self, prepared: Preparation) -> None:
        setting = self._session.setting
        ladder = Ladder(
            prepared.region,
            self._home,
            setting.catalog.refusal(self._home.model),
            setting.surroundings.fallback_models,
            setting.catalog.available(),
            must_succeed=self._trigger.must_succeed,
        )
        self._step(ladder, prepared, ladder.begin())

    def _step(self, ladder: Ladder, prepared: Preparation, step: Step) -> None:
        if isinstance(step, NoPlan):
            self._done(Found(error=step.error))
        elif isinstance(step, Ask):
            parameters = prepared.parameters
            task = partial(planner_text, step.view, parameters.compression_ratio, str(parameters.query))
            self._work(task, partial(self._ask, ladder, prepared, step))
        else:
            window = self._home.model.context_window
            self._work(partial(finish, prepared, step, window, self._trigger.label, self._place()), self._finished)

    def _ask(self, ladder: Ladder, prepared: Preparation, step: Ask, text: str) -> None:
        request = SideRequest(step.planner.model, step.planner.level, SYSTEM, text)
        attempt = SummarizationRetryAttemptStart("compaction", self._trigger.reason)
        ended = partial(self._answered, ladder, prepared, step)
        self._call = self._session.side_calls.start(request, ended, attempt)

    def _answered(self, ladder: Ladder, prepared: Preparation, step: Ask, outcome: SideOutcome) -> None:
        self._call = None
        if not outcome.aborted:  # only `cancel` aborts it
            retried = outcome.retries > 0
            task = partial(judge, outcome.reply, step.view, step.planner.model, retried, self._place())
            self._work(task, partial(self._judged, ladder, prepared))

    def _judged(self, ladder: Ladder, prepared: Preparation, judged: Judged) -> None:
        self._step(ladder, prepared, ladder.answered(judged.outcome, judged.path))

    def _finished(self, found: tuple[Boundary, str]) -> None:
        boundary, complaint = found
        self._done(Found(boundary, complaint=complaint))

    def _work(self, task: Callable[[], Any], then: Callable[[Any], None]) -> None:
        self._next = then
        self._start_work(task)

    def _place(self) -> Place:
        history = self._session.history
        path = history.path if history.journal.exists_on_disk else None
        return Place(self._session.services.compaction_files(), path)
