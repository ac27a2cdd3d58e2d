"""When a session compacts by itself, and how urgent that is.

After each run, before a prompt of an idle session, and between tool results and the next request. `Recovery` remembers
what was tried for the present user turn, so that one overflow leads to one compaction and one retry, never to a circle.
Pure. Source: `sessions.md` 2.10.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

from actors.session.overflow import is_overflow
from actors.session.tokens import estimate_tokens, usage_tokens
from protocol.compaction import CompactionReason
from protocol.messages import AssistantMessage, Message
from protocol.model import Model

OVERFLOW_GIVEN_UP = (
    "Context overflow recovery failed after one compact-and-retry attempt. "
    "Try reducing context or switching to a larger-context model."
)
LENGTH_GIVEN_UP = "Response truncation recovery stopped after one retry."
BUDGET_GIVEN_UP = (
    "Output-budget recovery stopped after a compact-and-retry attempt. "
    "Try reducing context or switching to a larger-context model."
)
TOO_FULL = (
    "Post-tool context remains over the provider hard input limit after compaction ({} > {} tokens); "
    "the next provider request was not sent."
)
MID_TURN_FAILED = "Post-tool context compaction failed before the next provider request: "
MID_TURN_CANCELLED = "Post-tool context compaction was cancelled before the next provider request."
# A compaction left so little room that the limit for the answer fell below what this api takes.
_UNDERFLOW = r"max_output_tokens.{0,80}(?:below (?:the )?minimum|>= ?16)"

Kind = Literal["manual", "threshold", "overflow", "length", "mid-turn"]

_PREFIXES: dict[Kind, str] = {
    "manual": "Compaction failed: ",
    "threshold": "Auto-compaction failed: ",
    "overflow": "Context overflow recovery failed: ",
    "length": "Response truncation recovery failed: ",
    "mid-turn": MID_TURN_FAILED,
}
_LABELS: dict[Kind, str] = {"manual": "compact", "overflow": "overflow-auto-compact"}


class Trigger(Struct, frozen=True):
    """Why a compaction runs. `will_retry`: the interrupted work goes on after it. `takes_small`: a region that is not
    worth a request may still be dropped as a whole, if the run must succeed."""

    kind: Kind
    will_retry: bool = False
    takes_small: bool = False

    @property
    def reason(self) -> CompactionReason:
        if self.kind == "manual":
            return "manual"
        return "overflow" if self.kind in ("overflow", "length") else "threshold"

    @property
    def must_succeed(self) -> bool:
        return self.kind in ("overflow", "mid-turn")

    @property
    def label(self) -> str:
        """What the backup file is called after."""
        return _LABELS.get(self.kind, "auto-compact")

    def failure(self, error: str) -> str:
        return _PREFIXES[self.kind] + error


class GivenUp(Struct, frozen=True):
    """No compaction runs: what one could do was done. `unresolved`: the context does not fit into this model, so
    another one may be tried. Without `error` nothing is told (automatic compaction is off)."""

    error: str | None
    unresolved: bool = False
    reason: CompactionReason = "overflow"


class Recovery:
    """What was tried since the user said something."""

    __slots__ = ("_tried",)

    def __init__(self) -> None:
        self._tried: set[str] = set()

    def user_said(self) -> None:
        self._tried.clear()

    def replied(self, reply: AssistantMessage) -> None:
        """A good answer that is whole: from here on things may be tried again."""
        if reply.stop_reason in ("stop", "toolUse"):
            self.user_said()

    def after_run(
        self, reply: AssistantMessage, model: Model, reserve: int, messages: Iterable[Message], *, enabled: bool
    ) -> Trigger | GivenUp | None:
        """`reply` is the last of a run that no retry follows, `messages` the context with it."""
        overflows = _is_of(reply, model) and is_overflow(reply, model.context_window)
        if not enabled:
            return GivenUp(None, unresolved=True) if overflows and reply.stop_reason == "error" else None
        if reply.stop_reason == "aborted":
            return None
        if overflows:
            return self._overflowed(reply)
        if _is_cut_short(reply, model):
            return self._once("length", Trigger("length", will_retry=True), GivenUp(LENGTH_GIVEN_UP))
        if not _is_over(reply, model, reserve, messages):
            return None
        if _is_underflow(reply):
            return self._once(
                "budget", Trigger("threshold", will_retry=True), GivenUp(BUDGET_GIVEN_UP, reason="threshold")
            )
        goes_on = reply.stop_reason == "length" and "cap" not in self._tried
        self._tried.add("cap")
        return Trigger("threshold", will_retry=goes_on)

    def before_prompt(
        self, reply: AssistantMessage, model: Model, reserve: int, messages: Iterable[Message]
    ) -> Trigger | None:
        """`reply` is the last one of an idle session. What follows is the prompt, never the old work."""
        self.user_said()
        if _is_of(reply, model) and is_overflow(reply, model.context_window):
            return Trigger("overflow", takes_small=True)
        return Trigger("threshold") if _is_over(reply, model, reserve, messages) else None

    def _overflowed(self, reply: AssistantMessage) -> Trigger | GivenUp:
        if reply.stop_reason == "stop":
            return Trigger("overflow", takes_small=True)
        again = Trigger("overflow", will_retry=True, takes_small=True)
        return self._once("overflow", again, GivenUp(OVERFLOW_GIVEN_UP, unresolved=True))

    def _once(self, what: str, first: Trigger, then: GivenUp) -> Trigger | GivenUp:
        if what in self._tried:
            return then
        self._tried.add(what)
        return first


def before_request(messages: Iterable[Message], model: Model, reserve: int) -> Trigger | None:
    """Between tool results and the next request: whether that would take more than the window leaves."""
    if model.context_window <= 0:
        return None
    tokens = estimate_tokens(messages)
    if tokens <= model.context_window - reserve:
        return None
    return Trigger("mid-turn", takes_small=tokens > model.context_window)


def hard_limit_error(messages: Iterable[Message], model: Model) -> str | None:
    """Why the next request cannot be sent even now; None if it can."""
    tokens = estimate_tokens(messages)
    return TOO_FULL.format(tokens, model.context_window) if tokens > model.context_window else None


def _is_of(reply: AssistantMessage, model: Model) -> bool:
    return (reply.provider, reply.model) == (model.provider, model.id)


def _is_cut_short(reply: AssistantMessage, model: Model) -> bool:
    """Whether the answer ended before the model's own limit: the context left it no more room."""
    return reply.stop_reason == "length" and reply.usage.output < model.max_tokens


def _is_over(reply: AssistantMessage, model: Model, reserve: int, messages: Iterable[Message]) -> bool:
    if model.context_window <= 0:
        return False
    tokens = 0 if reply.stop_reason == "error" else usage_tokens(reply.usage, reply.api)
    if not tokens:
        known = list(messages)
        tokens = estimate_tokens(known) if any(_tells_usage(message) for message in known) else 0
    return tokens > model.context_window - reserve


def _tells_usage(message: Message) -> bool:
    return (
        isinstance(message, AssistantMessage)
        and message.stop_reason not in ("error", "aborted")
        and usage_tokens(message.usage, message.api) > 0
    )


def _is_underflow(reply: AssistantMessage) -> bool:
    text = (reply.error_message or "").lower()
    return reply.api == "openai-responses" and reply.stop_reason == "error" and bool(re.search(_UNDERFLOW, text))
