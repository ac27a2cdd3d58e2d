"""What became of a planner request: deletions, or why there are none.

Every answer is exactly one of these. An answer that overflowed the planner's window is an overflow, however well it
reads. Pure. Source: `sessions.md` 2.6 and 2.8.
"""

from __future__ import annotations

import re
from typing import Literal

from msgspec import UNSET, Struct

from actors.session.compaction.ranges import Range, fitted, read_ranges
from actors.session.compaction.region import Region
from actors.session.overflow import is_overflow
from protocol.messages import AssistantMessage, TextContent

OVERFLOWED = "Compaction range planning exceeded the model context window"
MALFORMED = "Compaction range planning returned malformed output"
NO_RANGES = "Compaction range planning produced no usable deleted ranges"
UNKNOWN_ERROR = "Unknown error"

_QUOTA = r"quota|billing|usage ?limit|available balance|out of budget|payment|credit"
_LIMITED = (
    r"overloaded|rate.?limit|too many requests|service.?unavailable|server.?error|internal.?error|resource.?exhausted"
    r"|\b(?:429|5\d\d)\b"
)


class Ranked(Struct, frozen=True):
    """Deletions that fit the region. `recovered`: the answer was cut short, and they are its whole lines."""

    deletions: tuple[Range, ...]
    recovered: bool = False


class Overflowed(Struct, frozen=True):
    error: str = OVERFLOWED


class Unusable(Struct, frozen=True):
    """`starved`: the model thought until its output was used up."""

    kind: Literal["malformed_output", "no_usable_ranges", "starved"]

    @property
    def error(self) -> str:
        return MALFORMED if self.kind == "malformed_output" else NO_RANGES


class Refused(Struct, frozen=True):
    """The provider's error; `limit` tells that it was about an account's limits or the provider's load."""

    error: str
    limit: Literal["quota", "rate_limited"] | None = None


Failure = Overflowed | Unusable | Refused
Outcome = Ranked | Failure


def outcome_of(reply: AssistantMessage, region: Region, context_window: int) -> Outcome:
    """What `reply` says about `region`. It is no reply that was aborted."""
    if is_overflow(reply, context_window):
        return Overflowed()
    if reply.stop_reason == "error":
        return _refused(reply.error_message or UNKNOWN_ERROR)
    cut_short = reply.stop_reason == "length"
    text = "".join(block.text for block in reply.content if isinstance(block, TextContent))
    ranges = read_ranges(text, cut_short=cut_short)
    deletions = fitted(ranges or (), len(region), region.protected)
    if deletions:
        return Ranked(tuple(deletions), cut_short)
    if cut_short and reply.usage.reasoning is not UNSET and reply.usage.reasoning > 0:
        return Unusable("starved")
    return Unusable("malformed_output" if ranges is None else "no_usable_ranges")


def _refused(error: str) -> Refused:
    shown = error.lower()
    if re.search(_QUOTA, shown):
        return Refused(error, "quota")
    return Refused(error, "rate_limited" if re.search(_LIMITED, shown) else None)
