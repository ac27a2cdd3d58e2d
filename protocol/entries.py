"""Entries: the lines of a session file behind its header, typed for writing (`entry_head` reads them).

The legacy `context_compaction` is read and kept, never written, so it has no struct.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

from protocol.compaction import CompactionParameters, CompactionStats, PlannerModel
from protocol.messages import Message, Usage, UserContent
from protocol.model import ThinkingLevel


class _Entry(Struct, rename="camel", tag_field="type", frozen=True):
    id: str
    parent_id: str | None
    timestamp: str


class MessageEntry(_Entry, tag="message", frozen=True):
    """A message of the conversation."""

    message: Message


class ThinkingLevelChange(_Entry, tag="thinking_level_change", frozen=True):
    """From here on the session has this level."""

    thinking_level: ThinkingLevel


class ModelChange(_Entry, tag="model_change", frozen=True):
    """From here on the session has this model."""

    provider: str
    model_id: str


class CompactionDetails(Struct, rename="camel", frozen=True):
    """How a boundary came about. `retried_entry_ids` are replies among the kept messages that were asked for again, so
    that the context is without them."""

    prompt_version: int
    parameters: CompactionParameters
    stats: CompactionStats
    rung: Literal["planned", "extension", "fresh"]
    strategy: Literal["verbatim-lines"] = "verbatim-lines"
    planner_model: PlannerModel | UnsetType = UNSET
    backup_path: str | UnsetType = UNSET
    retried_entry_ids: list[str] | UnsetType = UNSET


class CompactionEntry(_Entry, tag="compaction", frozen=True):
    """`first_kept_entry_id` is `None` when no message stays outside. `from_hook` is only ever `True`. Without `details`
    it is a record of an older program, which changes nothing."""

    summary: str
    first_kept_entry_id: str | None
    tokens_before: int
    details: CompactionDetails | UnsetType = UNSET
    from_hook: bool | UnsetType = UNSET


class BranchSummaryDetails(Struct, rename="camel", frozen=True):
    """Files that were read and changed on the branch."""

    read_files: list[str]
    modified_files: list[str]


class BranchSummaryEntry(_Entry, tag="branch_summary", frozen=True):
    """`from_id` is an entry id, or `root`."""

    from_id: str
    summary: str
    details: BranchSummaryDetails | UnsetType = UNSET
    usage: Usage | UnsetType = UNSET
    from_hook: bool | UnsetType = UNSET


class CustomEntry(_Entry, tag="custom", frozen=True):
    """Data of an extension; the model does not see it."""

    custom_type: str
    data: Any = UNSET


class ReconciliationDelivery(Struct, frozen=True):
    """How a message that must not be lost is delivered."""

    delivery: Literal["steer", "followUp"]


class CustomMessageEntry(_Entry, tag="custom_message", frozen=True):
    """`exclude_from_context` is only ever `True`."""

    custom_type: str
    content: str | list[UserContent]
    display: bool
    details: Any = UNSET
    exclude_from_context: bool | UnsetType = UNSET
    stage_admission_key: str | UnsetType = UNSET
    protected_reconciliation: ReconciliationDelivery | UnsetType = UNSET


class LabelEntry(_Entry, tag="label", frozen=True):
    """Without `label` the target's label is cleared."""

    target_id: str
    label: str | UnsetType = UNSET


class SessionInfoEntry(_Entry, tag="session_info", frozen=True):
    """The session's name, trimmed; `""` clears it."""

    name: str


class SessionSummaryEntry(_Entry, tag="session_summary", frozen=True):
    """What the session was about up to an entry."""

    summary: str
    summarized_through_id: str
    usage: Usage | UnsetType = UNSET


Entry = (
    MessageEntry
    | ThinkingLevelChange
    | ModelChange
    | CompactionEntry
    | BranchSummaryEntry
    | CustomEntry
    | CustomMessageEntry
    | LabelEntry
    | SessionInfoEntry
    | SessionSummaryEntry
)
