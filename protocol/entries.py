"""Entries: the lines of a session file, typed for writing, and one head for reading any of them.

The first line is the header, every other line an entry of the session's tree. Ids are strings, `parent_id` is `None`
for a root, timestamps are ISO 8601. The legacy `context_compaction` is read and kept, never written, so it has no
struct. `Raw` fields of the head are JSON as it stands in the file.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import fields

from protocol.json_text import BadJson, decode_slowly, encode, raw_members, repair_utf8
from protocol.messages import Message, Usage, UserContent
from protocol.model import ThinkingLevel
from protocol.responses import CompactionParameters, CompactionStats, PlannerModel

SESSION_VERSION = 3


class WorkflowStage(Struct, rename="camel", frozen=True):
    """Which stage of which workflow run a session belongs to."""

    run_id: str
    stage_id: str
    stage_name: str


class SessionHeader(Struct, rename="camel", tag_field="type", tag="session", frozen=True, kw_only=True):
    """`cwd` and `parent_session` are absolute paths. `internal` and `workflow` are written both or neither."""

    version: int = SESSION_VERSION
    id: str
    timestamp: str
    cwd: str
    parent_session: str | UnsetType = UNSET
    internal: bool | UnsetType = UNSET
    workflow: WorkflowStage | UnsetType = UNSET


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


def message_line(id: str, parent_id: str | None, timestamp: str, message: bytes) -> bytes:
    """A `message` entry around a message that is encoded already; no line feed."""
    base = encode({"type": "message", "id": id, "parentId": parent_id, "timestamp": timestamp})
    return base[:-1] + b',"message":' + message + b"}"


# ---- reading -----------------------------------------------------------------------------------------------------


class EntryHead(Struct, rename="camel", frozen=True, gc=False):
    """What readers need of any line, header included. A field that is absent, `null` or of the wrong type is `None`
    (a `Raw` one: `UNSET` when absent, else the JSON as it stands); `timestamp` is `""` then."""

    type: str
    id: str
    parent_id: str | None = None
    timestamp: str = ""
    message: Raw | UnsetType = UNSET
    provider: str | None = None
    model_id: str | None = None
    thinking_level: str | None = None
    summary: str | None = None
    first_kept_entry_id: str | None = None
    tokens_before: float | None = None
    details: Raw | UnsetType = UNSET
    from_hook: bool | None = None
    from_id: str | None = None
    usage: Raw | UnsetType = UNSET
    custom_type: str | None = None
    data: Raw | UnsetType = UNSET
    content: Raw | UnsetType = UNSET
    display: bool | None = None
    exclude_from_context: bool | None = None
    target_id: str | None = None
    label: str | None = None
    name: str | None = None
    summarized_through_id: str | None = None
    version: int | None = None
    cwd: str | None = None
    parent_session: str | None = None
    internal: bool | None = None
    workflow: Raw | UnsetType = UNSET


_HEAD = msgspec.json.Decoder(EntryHead)


def read_entry(line: bytes) -> EntryHead | None:
    """The head of one stored line (no line feed). `None` for a line that is blank, unparsable, nested too deep, or no
    object with string `type` and `id`. Never raises."""
    line = repair_utf8(line)
    try:
        return _HEAD.decode(line)
    except RecursionError:
        return None
    except Exception:
        return _read_tolerantly(line)


def _read_tolerantly(line: bytes) -> EntryHead | None:
    """For lines with lone surrogates, or with a field of the wrong type: that field alone is dropped."""
    try:
        record = decode_slowly(line, float)
        if not isinstance(record, dict):
            return None
        return _head_of(record, raw_members(line.decode()))
    except (BadJson, RecursionError):
        return None


def _head_of(record: dict[str, Any], raw: dict[str, bytes]) -> EntryHead | None:
    if not isinstance(record.get("type"), str) or not isinstance(record.get("id"), str):
        return None
    kept: dict[str, Any] = {}
    for each in fields(EntryHead):
        key = each.encode_name
        if key not in raw:
            continue
        if Raw in get_args(each.type):
            kept[each.name] = Raw(raw[key])
        elif _is_of(each.type, record[key]):
            kept[each.name] = record[key]
    return EntryHead(**kept)


def _is_of(kind: Any, value: Any) -> bool:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True
