"""Requests to a model that the session makes outside a run: for a compaction, a branch summary, a session summary.

Part of the session actor. A side call has a system text and one user text of its own, no tools, no cache and its own
session id at the provider, so that it neither uses nor spoils what the conversation has there. What fails in passing is
sent again inside the call. Each call ends with exactly one outcome, told to its owner: a failure of the model, of the
credential or of our own request is an outcome too, never an exception.
Source: `sessions.md` 2.5, 2.8 and 2.12.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from actors.base import Address, Child
from actors.mail import Arm, CancelCall, ModelCallMail, ModelRequest, ReplyEnded, SessionMail, Tick
from actors.session.outbox import Outbox
from actors.session.services import Services
from actors.session.setting import Setting
from protocol.events import SummarizationRetryAttemptStart
from protocol.messages import AssistantMessage, TextContent, Usage, UserMessage
from protocol.model import Model, ThinkingLevel

if TYPE_CHECKING:
    from actors.session.side_retry import SideSeries

SIDE_TICK = "side-"


class SideRequest(Struct, frozen=True):
    """What is asked of whom. `level` is sent as it stands; at `off`, or to a model that cannot think, none is."""

    model: Model
    level: ThinkingLevel
    system: str
    text: str


class SideOutcome(Struct, frozen=True):
    """How a call ended: the last reply (content, stop reason, usage, error), and how many retries were scheduled."""

    reply: AssistantMessage
    retries: int = 0

    @property
    def text(self) -> str:
        """The text blocks with nothing between them."""
        return "".join(block.text for block in self.reply.content if isinstance(block, TextContent))

    @property
    def aborted(self) -> bool:
        return self.reply.stop_reason == "aborted"

    @property
    def error(self) -> str | None:
        """What went wrong, in words for the user; None for a reply that the model ended itself, and for an abort."""
        if self.reply.stop_reason != "error":
            return None
        return self.reply.error_message or "Unknown error"


class SideCall:
    """One call under way, as its owner holds it."""

    def __init__(
        self,
        calls: SideCalls,
        request: SideRequest,
        ended: Callable[[SideOutcome], None],
        series: SideSeries,
    ) -> None:
        self._calls = calls
        self.request = request
        self.ended = ended
        self.series = series
        self.number = 0
        self.child: Child[ModelCallMail] | None = None

    def cancel(self) -> None:
        """Ends the call in any phase: the owner has its outcome, an aborted one, before this returns. After the end it
        does nothing."""
        self._calls.cancel(self)


class SideCalls:
    """All side calls of one session. `next_number` gives numbers that its other requests do not have."""

    def __init__(
        self,
        services: Services,
        setting: Setting,
        outbox: Outbox,
        me: Address[SessionMail],
        next_number: Callable[[], int],
    ) -> None:
        self._services = services
        self._setting = setting
        self._outbox = outbox
        self._me = me
        self._next_number = next_number
        self._open: dict[int, SideCall] = {}
        self._cut: set[int] = set()

    @property
    def owed(self) -> bool:
        """Whether a request was cancelled and has not said its last word: the session must live to hear it."""
        return bool(self._cut)

    def start(
        self,
        request: SideRequest,
        ended: Callable[[SideOutcome], None],
        attempt_start: SummarizationRetryAttemptStart | None = None,
    ) -> SideCall:
        """Asks. `ended` hears the outcome, once, in a later mail or in `cancel`. `attempt_start` is the event that goes
        before each retry; without it the client hears nothing of retries."""
        from actors.session.side_retry import SideSeries

        call = SideCall(self, request, ended, SideSeries(attempt_start))
        self._ask(call)
        return call

    # -- what happened: each tells whether it was about a side call

    def reply_ended(self, mail: ReplyEnded) -> bool:
        call = self._asking(mail.call)
        if call is not None:
            self._judge(call, mail.message)
        return call is not None or self._heard_last(mail.call)

    def child_died(self, number: object, error: str) -> bool:
        """The request died of an exception."""
        call = self._asking(number)
        if call is not None:
            self._end(call, self._blank(call, "error", f"the model request failed: {error}"))
        return call is not None or self._heard_last(number)

    def woke(self, mail: Tick) -> bool:
        """The clock rang: a wait is over, unless its call is."""
        if not mail.key.startswith(SIDE_TICK):
            return False
        call = self._open.pop(int(mail.key.removeprefix(SIDE_TICK)), None)
        if call is not None:
            self._tell(call.series.woke())
            self._ask(call)
        return True

    def cancel(self, call: SideCall) -> None:
        if self._open.get(call.number) is not call:
            return
        if call.child is not None:
            call.child.tell(CancelCall())
            self._cut.add(call.number)
        self._end(call, self._blank(call, "aborted", "Request was aborted"))

    def abandon(self) -> None:
        """The session dies: nobody will hear of these."""
        for call in self._open.values():
            if call.child is not None:
                call.child.tell(CancelCall())

    # -- what is to be done

    def _ask(self, call: SideCall) -> None:
        from actors.model.prompt import ModelPrompt, RequestOptions

        request = call.request
        message = UserMessage([TextContent(request.text)], self._services.now())
        options = RequestOptions(
            thinking_level=request.level,
            session_id=self._services.uuid4(),
            cache_retention="none",
            thinking_budgets=self._setting.surroundings.thinking_budgets,
        )
        self._enter(call)
        asked = ModelRequest(
            call.number,
            request.model,
            ModelPrompt(request.system, (message,), ()),
            options,
            self._setting.catalog.authorize,
            self._setting.surroundings.request_limits,
        )
        call.child = self._services.start_model_call(asked, self._me)

    def _judge(self, call: SideCall, reply: AssistantMessage) -> None:
        policy = self._setting.retry_policy
        delay_ms = call.series.retry_after(reply, policy)
        if delay_ms is None:
            self._end(call, reply)
            return
        del self._open[call.number]
        self._enter(call)
        self._tell(call.series.scheduled(reply, policy))
        self._services.clock.tell(Arm(f"{SIDE_TICK}{call.number}", delay_ms, self._me))

    def _enter(self, call: SideCall) -> None:
        """Each request and each wait has a number of its own, so that what comes late finds nobody."""
        call.number, call.child = self._next_number(), None
        self._open[call.number] = call

    def _end(self, call: SideCall, reply: AssistantMessage) -> None:
        del self._open[call.number]
        self._tell(call.series.over())
        call.ended(SideOutcome(reply, call.series.retries))

    def _heard_last(self, number: object) -> bool:
        """The end of a request that was cancelled: its owner has had the outcome."""
        was_cut = number in self._cut
        self._cut -= {number}
        return was_cut

    def _tell(self, events: tuple[Struct, ...]) -> None:
        for event in events:
            self._outbox.event(event)

    def _asking(self, number: object) -> SideCall | None:
        call = self._open.get(number) if isinstance(number, int) else None
        return call if call is not None and call.child is not None else None

    def _blank(self, call: SideCall, stop: Literal["error", "aborted"], error: str) -> AssistantMessage:
        model = call.request.model
        return AssistantMessage(
            [], model.api, model.provider, model.id, Usage(), stop, self._services.now(), error_message=error
        )
