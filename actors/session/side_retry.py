"""Which failed requests outside a run are sent again, how often, and what the client hears of it.

Pure. `SideSeries` decides for one call, its owner waits and sends. Promises at most 1 + `max_retries` requests, and
that a series which told of a retry ends with exactly one `summarization_retry_finished`. The failures are those that an
automatic retry sees as passing; a refusal, an overflow and a spent quota are for the owner to judge.
Source: contract `rpc-protocol.md`, "summarization_retry_scheduled"; `sessions.md` 2.8 and 3.5.
"""

from __future__ import annotations

from msgspec import Struct

from actors.session.overflow import is_overflow
from actors.session.provider_view import is_blank
from actors.session.retry import UNKNOWN_ERROR, RetryPolicy
from actors.session.retry_errors import kind_of_error
from protocol.events import SummarizationRetryAttemptStart, SummarizationRetryFinished, SummarizationRetryScheduled
from protocol.messages import AssistantMessage

_PASSING = ("transport", "rate_limit", "unavailable", "network")


class SideSeries:
    """The requests of one side call. `attempt_start` is the event that goes before each retry; None: the client hears
    nothing of them. `retries` counts those that were scheduled."""

    __slots__ = ("_attempt_start", "_finished", "retries")

    def __init__(self, attempt_start: SummarizationRetryAttemptStart | None) -> None:
        self._attempt_start = attempt_start
        self._finished = False
        self.retries = 0

    def retry_after(self, reply: AssistantMessage, policy: RetryPolicy) -> int | None:
        """Milliseconds to wait before `reply` is tried again; None: it stands."""
        if not policy.enabled or self.retries >= policy.max_retries or not is_passing(reply):
            return None
        self.retries += 1
        return policy.delay_ms(self.retries)

    def scheduled(self, reply: AssistantMessage, policy: RetryPolicy) -> tuple[Struct, ...]:
        """Events that follow `retry_after` when it told a wait."""
        if self._attempt_start is None:
            return ()
        told = reply.error_message or ""
        text = UNKNOWN_ERROR if is_blank(told) else told
        delay_ms = policy.delay_ms(self.retries)
        return (SummarizationRetryScheduled(self.retries, policy.max_retries, delay_ms, text),)

    def woke(self) -> tuple[Struct, ...]:
        """Events that go before the request of a retry."""
        return () if self._attempt_start is None else (self._attempt_start,)

    def over(self) -> tuple[Struct, ...]:
        """Events at the end of the call, whatever became of it."""
        if self._attempt_start is None or self.retries == 0 or self._finished:
            return ()
        self._finished = True
        return (SummarizationRetryFinished(),)


def is_passing(reply: AssistantMessage) -> bool:
    """Whether the same request may succeed when it is sent again."""
    if reply.stop_reason != "error" or is_overflow(reply, None):
        return False
    return kind_of_error(reply.error_message or "") in _PASSING
