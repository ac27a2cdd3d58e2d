"""What a finished compaction leaves: the text, its figures, and the entry that stands for both in the file.

Everything is encoded here, so that the session only has to append it. Pure. Source: contract, "Compaction reference",
Persistence and resume; `sessions.md` 2.7 and 2.8.
"""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, Raw, Struct
from msgspec.structs import replace

from actors.session.compaction.ladder import Plan
from actors.session.compaction.planner import PROMPT_VERSION
from actors.session.compaction.preparation import Preparation
from actors.session.compaction.ranges import fitted
from actors.session.compaction.rebuild import rebuild, stats_of, stats_of_override
from actors.session.context import STRATEGY
from protocol.codec import encode
from protocol.compaction import CompactionParameters, CompactionStats, PlannerModel
from protocol.responses import CompactionResult

EMPTY_OVERRIDE = "No compacted text provided by extension"

Rung = Literal["planned", "extension", "fresh"]


class Proposal(Struct, frozen=True):
    """What an extension says to a compaction: a `text` in the region's place, `cancel`, or neither."""

    text: str | None = None
    cancel: bool = False


class _Details(Struct, rename="camel"):
    strategy: str
    prompt_version: int
    parameters: CompactionParameters
    stats: CompactionStats
    rung: Rung
    planner_model: PlannerModel | object = UNSET
    backup_path: str | object = UNSET
    retried_entry_ids: tuple[str, ...] | object = UNSET


class Boundary(Struct, frozen=True):
    """`result` is the data of `compact`, `encoded` its JSON; `summary` and `details` are JSON for the entry."""

    result: CompactionResult
    encoded: bytes
    summary: bytes
    details: bytes

    def keeping_from(self, entry_id: str) -> Boundary:
        """The same, with a tail that begins at this entry."""
        result = replace(self.result, first_kept_entry_id=entry_id)
        return replace(self, result=result, encoded=encode(result))

    @property
    def entry(self) -> dict[str, object]:
        """The fields of the entry, by their names in the file."""
        extra = {"fromHook": True} if self.result.rung == "extension" else {}
        return {
            "summary": Raw(self.summary),
            "firstKeptEntryId": self.result.first_kept_entry_id,
            "tokensBefore": self.result.tokens_before,
            "details": Raw(self.details),
            **extra,
        }


def planned_boundary(prepared: Preparation, plan: Plan, context_window: int, backup_path: str | None) -> Boundary:
    """For lines that a planner, or nobody, ranked. A run that drops everything also drops the lines of a tail that
    would not fit; what is protected there stays, like in the region."""
    if plan.fresh and 0 < context_window < prepared.tail_tokens:
        region = prepared.whole
        deletions = tuple(fitted([(1, len(region))], len(region), region.protected))
        prepared = replace(prepared, region=region, first_kept=None, tail_tokens=0, tail=(), retried=())
        plan = replace(plan, deletions=deletions)
    rebuilt = rebuild(prepared.region, plan.deletions)
    stats = stats_of(prepared.region, rebuilt, prepared.tokens_before, prepared.tail_tokens)
    rung: Rung = "fresh" if plan.fresh else "planned"
    return _boundary(prepared, rebuilt.text, stats, rung, plan.planner, backup_path)


def extension_boundary(prepared: Preparation, text: str, backup_path: str | None) -> Boundary:
    """For a text that an extension gives in the region's place."""
    stats = stats_of_override(prepared.region, text, prepared.tokens_before, prepared.tail_tokens)
    return _boundary(prepared, text, stats, "extension", None, backup_path)


def _boundary(
    prepared: Preparation,
    text: str,
    stats: CompactionStats,
    rung: Rung,
    planner: PlannerModel | None,
    backup_path: str | None,
) -> Boundary:
    planner_model, path, retried = planner or UNSET, backup_path or UNSET, prepared.retried or UNSET
    result = CompactionResult(
        text,
        prepared.first_kept,
        prepared.tokens_before,
        PROMPT_VERSION,
        prepared.parameters,
        rung,
        stats,
        planner_model,
        path,
    )
    details = _Details(STRATEGY, PROMPT_VERSION, prepared.parameters, stats, rung, planner_model, path, retried)
    return Boundary(result, encode(result), encode(text), encode(details))
