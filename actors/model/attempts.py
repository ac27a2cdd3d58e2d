"""Whether a request that failed before anything of a reply had come is sent again, and after what wait.

Pure. These attempts lie below the session's own retries: no event tells of them, and each of the session's requests
may become 1 + `max_retries` of them. Source: `sessions.md` 3.7.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from msgspec import Struct

_TRANSIENT = (408, 409, 429)
_FIRST_WAIT_MS, _LONGEST_WAIT_MS, _JITTER = 500, 8000, 0.25
# Beyond this a timer of 32 bits would ring at once.
_FOREVER_MS = 2**31 - 1


class RequestLimits(Struct, frozen=True):
    """The settings `retry.provider.maxRetries` and `retry.provider.maxRetryDelayMs` (milliseconds, 0 is no limit)."""

    max_retries: int = 0
    max_delay_ms: int = 60_000


class RetryHint(Struct, frozen=True):
    """What an answer says of another attempt: the wait that it asks for in milliseconds, and whether one may help."""

    after_ms: int | None = None
    may_help: bool | None = None


class TooLong(Exception):
    """The server asks for a longer wait than is allowed; `str()` of it begins the error's text."""


NO_HINT = RetryHint()


def retry_hint(headers: Mapping[str, str], now_ms: int) -> RetryHint:
    """From lower-case headers; `now_ms` is since the epoch. What makes no sense counts as not said."""
    asked = _number(headers.get("retry-after-ms"))
    if asked is None and (told := headers.get("retry-after")) is not None:
        seconds = _number(told)
        asked = seconds * 1000 if seconds is not None else _until(told, now_ms)
    after_ms = min(math.ceil(asked), _FOREVER_MS) if asked is not None and asked > 0 else None
    word = headers.get("x-should-retry", "").strip().lower()
    return RetryHint(after_ms, {"true": True, "false": False}.get(word))


def may_help(status: int, hint: RetryHint) -> bool:
    """Whether another attempt may help after an answer with this error status."""
    return hint.may_help if hint.may_help is not None else status in _TRANSIENT or status >= 500


def wait_ms(retry: int, hint: RetryHint, limits: RequestLimits, chance: float) -> int:
    """The wait before retry number `retry`, counted from 1: what the server asks for, else a doubling one with up to a
    quarter taken off by `chance` (0 to 1). Raises TooLong."""
    if hint.after_ms is None:
        longest = min(_FIRST_WAIT_MS << min(retry - 1, 16), _LONGEST_WAIT_MS)
        return round(longest * (1 - _JITTER * chance))
    if 0 < limits.max_delay_ms < hint.after_ms:
        asked, allowed = math.ceil(hint.after_ms / 1000), limits.max_delay_ms / 1000
        raise TooLong(f"Server requested {asked}s retry delay (max: {allowed:.10g}s).")
    return hint.after_ms


def _number(told: str | None) -> float | None:
    """Digits alone: `float` would take `nan`, `1_0` and the digits of other scripts."""
    return float(told) if told is not None and re.fullmatch(r"(?a)\s*\d{1,15}(\.\d*)?\s*", told) else None


def _until(told: str, now_ms: int) -> float | None:
    from email.utils import parsedate_to_datetime

    try:
        return parsedate_to_datetime(told).timestamp() * 1000 - now_ms
    except (ValueError, OverflowError, IndexError, TypeError):
        return None
