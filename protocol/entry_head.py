"""What reading and opening a session needs of its lines: the header, one head for any line, and the tolerant reader.

The first line is the header, every other line an entry of the session's tree. Ids are strings, `parent_id` is `None`
for a root, timestamps are ISO 8601. `Raw` fields of the head are JSON as it stands in the file. The entries themselves,
typed for writing and for the schema, are in `entries`; no start loads those.
"""

from __future__ import annotations

from functools import cache
from typing import Any, get_args

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import fields

from protocol.json_text import BadJson, decode_slowly, encode, raw_members, repair_utf8

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


@cache
def _decoder() -> msgspec.json.Decoder[EntryHead]:
    """Made for the first line that is read: a start without a session file reads none."""
    return msgspec.json.Decoder(EntryHead)


def head_of(header: SessionHeader) -> EntryHead:
    """What reading the line of `header` gives."""
    return EntryHead(
        type="session",
        id=header.id,
        timestamp=header.timestamp,
        version=header.version,
        cwd=header.cwd,
        parent_session=header.parent_session or None,
        internal=header.internal or None,
        workflow=UNSET if header.workflow is UNSET else Raw(encode(header.workflow)),
    )


def read_entry(line: bytes) -> EntryHead | None:
    """The head of one stored line (no line feed). `None` for a line that is blank, unparsable, nested too deep, or no
    object with string `type` and `id`. Never raises."""
    line = repair_utf8(line)
    try:
        return _decoder().decode(line)
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
