"""What is told of a compaction in several places: in the file, in a response and in events."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from protocol.model import ThinkingLevel

CompactionReason = Literal["manual", "threshold", "overflow"]


class CompactionStats(Struct, rename="camel"):
    """Lines and estimated tokens; `percent_reduction` is of tokens, 0 to 100."""

    lines_before: int
    lines_deleted: int
    lines_kept: int
    range_count: int
    tokens_before: int
    tokens_after: int
    percent_reduction: float


class CompactionParameters(Struct):
    """The wire's names are snake case here."""

    compression_ratio: float
    preserve_recent: int
    query: str | UnsetType = UNSET


class PlannerModel(Struct, rename="camel"):
    """The model that planned a compaction, when it was not the session's own."""

    provider: str
    id: str
    thinking_level: ThinkingLevel | UnsetType = UNSET
