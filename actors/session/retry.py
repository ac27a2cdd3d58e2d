"""Which replies are tried again on the same model, and how often.

Pure. `Retry` decides, the session waits. Promises that one model call leads to at most 1 + `max_retries` requests, and
that every series of `auto_retry_start` is closed by exactly one `auto_retry_end`.
Source: contract `rpc-protocol.md`, "auto_retry_start / auto_retry_end"; `sessions.md` 3.1 to 3.4.
"""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct

from actors.session.overflow import is_overflow
from actors.session.provider_view import is_blank
from actors.session.retry_errors import Kind, kind_of_error, refuses_request
from actors.session.tokens import utf16_length
from protocol.events import AutoRetryEnd, AutoRetryStart
from protocol.messages import AssistantContent, AssistantMessage, TextContent, ThinkingContent

EMPTY_COMPLETION = "Provider returned an empty completion"
CANNED_REFUSAL = "Provider returned a canned safety refusal"
RETRY_CANCELLED = "Retry cancelled"
UNKNOWN_ERROR = "Unknown error"

Verdict = Literal["whole", "aborted", "empty", "canned"] | Kind

_RETRYABLE: frozenset[Verdict] = frozenset(
    ("empty", "canned", "refusal", "transport", "rate_limit", "unavailable", "network")
)
_FALLBACKABLE: frozenset[Verdict] = frozenset(
    ("empty", "auth", "quota", "request", "transport", "model", "rate_limit", "unavailable", "network", "unknown")
)
_REFUSING_STOPS = ("refusal", "sensitive", "content_filter", "safety")
# The session's own sentences about a context that compaction could not make fit: nothing is tried after them.
_PREFLIGHT = "Post-tool context "
_CANNED_UNITS = 120
# Of a text in lower case with plain apostrophes.
_CANNED = (
    r"^(?:(?:i'm |i am )?(?:really |very |so )?sorry|i apologi[sz]e|unfortunately)?[,.!;:]?\s*(?:but )?"
    r"i(?:'m| am)? (?:can't|cannot|can not|unable to|not able to|won't|will not) (?:\w+ ){0,2}"
    r"(?:answer|assist|complete|comply|continue|discuss|do that|engage|fulfil|help|process|provide|respond)"
)
# Beyond this a timer of 32 bits would ring at once.
_LONGEST_DELAY_MS = 2**31 - 1


class RetryPolicy(Struct, frozen=True):
    """The settings `retry.enabled`, `retry.maxRetries` and `retry.baseDelayMs` (milliseconds)."""

    enabled: bool = True
    max_retries: int = 3
    base_delay_ms: int = 2000

    def switched_off(self) -> RetryPolicy:
        return RetryPolicy(False, self.max_retries, self.base_delay_ms)

    def delay_ms(self, attempt: int) -> int:
        """The wait before retry `attempt`, from 1 on; it doubles each time."""
        return min(self.base_delay_ms << min(attempt - 1, 31), _LONGEST_DELAY_MS)


class Again(Struct, frozen=True):
    """Tell `event`, drop the failed reply from the live context, wait `event.delay_ms`, then `Retry.woke(wait)`."""

    event: AutoRetryStart
    wait: int


class GiveUp(Struct, frozen=True):
    """The same model is not asked again. `attempt` counts the retries that were made."""

    attempt: int
    error: str

    def event(self, *, falls_back: bool) -> AutoRetryEnd | None:
        """What closes the series, None if none was begun. A fallback model that takes over makes it a success."""
        if self.attempt == 0:
            return None
        return AutoRetryEnd(True, self.attempt) if falls_back else AutoRetryEnd(False, self.attempt, self.error)


class Retry:
    """The retries of one session, one series at a time: a model call that fails, and what is tried after it. `waiting`
    is true from `Again` until `woke` or `cancelled`; `attempt` is 0 outside a series."""

    __slots__ = ("_waits", "attempt", "waiting")

    def __init__(self) -> None:
        self.attempt = 0
        self.waiting = False
        self._waits = 0

    def replied(self, message: AssistantMessage) -> AutoRetryEnd | None:
        """At each assistant `message_end`: the event that follows it, if it is the good reply that ends a series."""
        if self.attempt == 0 or classify(message) != "whole":
            return None
        return AutoRetryEnd(True, self._close())

    def run_ended(
        self, message: AssistantMessage, context_window: int | None, policy: RetryPolicy
    ) -> Again | GiveUp | None:
        """After each `agent_end`, with the run's last reply; None if that is whole."""
        if classify(message) == "whole":
            return None
        if not self.would_retry(message, context_window, policy):
            return GiveUp(self._close(), retry_text(message))
        self.attempt += 1
        self._waits += 1
        self.waiting = True
        delay_ms = policy.delay_ms(self.attempt)
        return Again(AutoRetryStart(self.attempt, policy.max_retries, delay_ms, retry_text(message)), self._waits)

    def would_retry(self, message: AssistantMessage, context_window: int | None, policy: RetryPolicy) -> bool:
        """What `run_ended` is going to decide; nothing changes."""
        may_retry = policy.enabled and self.attempt < policy.max_retries
        return may_retry and is_retryable(message, context_window)

    def woke(self, wait: int) -> bool:
        """The clock rang for `Again.wait`: whether the run is to go on. False for a wait that was cancelled, whatever
        was begun since."""
        if not self.waiting or wait != self._waits:
            return False
        self.waiting = False
        return True

    def cancelled(self) -> AutoRetryEnd | None:
        """`abort_retry`, `abort` or a replacement: ends a wait. None, and nothing changes, when there is no wait."""
        return AutoRetryEnd(False, self._close(), RETRY_CANCELLED) if self.waiting else None

    def broken_off(self, message: AssistantMessage) -> AutoRetryEnd | None:
        """The run was not left to decide what comes next: ends the series that is open. `message` is its last reply."""
        return AutoRetryEnd(False, self._close(), retry_text(message)) if self.attempt else None

    def _close(self) -> int:
        attempt, self.attempt, self.waiting = self.attempt, 0, False
        return attempt


def classify(message: AssistantMessage) -> Verdict:
    """What became of a reply: whole, aborted, one of the two shapes that only look whole, or the kind of its error."""
    if message.stop_reason == "aborted":
        return "aborted"
    if message.stop_reason == "error":
        return _kind(message)
    if _is_empty(message):
        return "empty"
    return "canned" if _is_canned(message) else "whole"


def is_retryable(message: AssistantMessage, context_window: int | None) -> bool:
    """Whether the same request may succeed when it is sent again. An overflow is for compaction to answer."""
    return classify(message) in _RETRYABLE and not is_overflow(message, context_window)


def is_fallbackable(message: AssistantMessage) -> bool:
    """Whether another model may do better. An overflow that is told in words has to go through compaction first."""
    return classify(message) in _FALLBACKABLE and not is_overflow(message, None)


def retry_text(message: AssistantMessage) -> str:
    """The error as the events tell it."""
    told = message.error_message or ""
    if not is_blank(told):
        return told
    return {"empty": EMPTY_COMPLETION, "canned": CANNED_REFUSAL}.get(classify(message), UNKNOWN_ERROR)


def is_preflight_error(message: AssistantMessage) -> bool:
    """Whether the reply is ours: the request was not sent, since its context could not be made to fit."""
    return message.stop_reason == "error" and (message.error_message or "").startswith(_PREFLIGHT)


def _kind(message: AssistantMessage) -> Kind:
    text = message.error_message or ""
    if text.startswith(_PREFLIGHT):
        return "task"
    is_refusal = str(message.raw_stop_reason or "").lower() in _REFUSING_STOPS
    kind: Kind = "refusal" if is_refusal else kind_of_error(text)
    # A request that was refused as such is refused again, and no other model is to be talked into it.
    return "task" if kind == "refusal" and refuses_request(text) else kind


def _is_empty(message: AssistantMessage) -> bool:
    return (
        message.stop_reason in ("stop", "toolUse")
        and message.usage.output == 0
        and not any(_is_content(block) for block in message.content)
    )


def _is_content(block: AssistantContent) -> bool:
    if isinstance(block, TextContent):
        return not is_blank(block.text)
    return not isinstance(block, ThinkingContent) or bool(block.redacted) or not is_blank(block.thinking)


def _is_canned(message: AssistantMessage) -> bool:
    if message.usage.output != 0 or message.stop_reason not in ("stop", "length", "toolUse"):
        return False
    texts = [block.text for block in message.content if isinstance(block, TextContent)]
    text = "".join(texts).strip()
    return (
        len(texts) == len(message.content)
        and utf16_length(text) <= _CANNED_UNITS
        and re.search(_CANNED, text.lower().replace("\u2019", "'")) is not None
    )
