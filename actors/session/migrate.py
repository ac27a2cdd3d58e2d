"""Lines of old session files, brought to the version that is written today.

Version 1 had no ids: each entry gets one, and its predecessor as parent. Version 2 called an extension's message
`hookMessage`. Versions above `CURRENT` are left as they are. Pure. Only what is no JSON is dropped, and counted; a line
that needs no change, or that we cannot read (nested too deep, no entry), keeps its bytes, and so does every value of a
line that is changed. Source: `sessions.md` 1.7.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Raw

from actors.session.tree import fresh_id
from protocol.codec import BadJson, encode
from protocol.entry_head import read_entry
from protocol.json_text import decode_slowly, raw_members
from protocol.validation import shown

CURRENT = 3
_INDEX = "firstKeptEntryIndex"


class BadVersion(ValueError):
    """A header's `version` that is none. The text says what is allowed and what came."""


def version_of(header: dict[str, Any]) -> int:
    """The version that a header (decoded) tells; a header without one is of version 1. Raises `BadVersion`."""
    version = _whole(header.get("version", 1))
    if version is None or version < 1:
        raise BadVersion(f'"version" must be a whole number from 1 up, got {shown(header["version"])}')
    return version


def migrate(header: dict[str, Any], lines: Iterable[bytes], uuid4: Callable[[], str]) -> tuple[bytes, list[bytes], int]:
    """The new header and lines for a file below `CURRENT`, and how many lines were dropped because they are no JSON."""
    given = list(lines)
    kept = [line for line in given if _is_json(line)]
    new = _chained(kept, uuid4) if version_of(header) < 2 else kept
    return encode({**header, "version": CURRENT}), [_with_new_role(line) for line in new], len(given) - len(kept)


def _chained(lines: list[bytes], uuid4: Callable[[], str]) -> list[bytes]:
    """With ids and parents. A line that is no entry, even with an id, is no link of the chain: children of what no
    reader sees would lose their history."""
    new: list[bytes] = []
    ids: dict[str, int] = {}
    parent = None
    for at, line in enumerate(lines):
        entry_id = fresh_id(uuid4, ids)
        linked = _edited(line, {"id": entry_id, "parentId": parent})
        head = read_entry(linked)
        if head is None or head.id != entry_id or head.type == "session":
            new.append(line)
            continue
        new.append(linked)
        ids[entry_id] = at
        parent = entry_id
    return [_with_kept_id(line, ids) if _INDEX.encode() in line else line for line in new]


def _with_kept_id(line: bytes, ids: dict[str, int]) -> bytes:
    """`firstKeptEntryIndex` counts the header as 0. What it points at may be no entry: then the next one is meant."""
    members = _members(line)
    if _INDEX not in members:
        return line
    kept = _index(bytes(members[_INDEX]))
    found = None if kept is None or kept < 1 else next((each for each, at in ids.items() if at >= kept - 1), None)
    return _edited(line, {} if found is None else {"firstKeptEntryId": found}, without=_INDEX)


def _with_new_role(line: bytes) -> bytes:
    if b"hookMessage" not in line:
        return line
    members = _members(line)
    message = bytes(members.get("message", b""))
    if bytes(members.get("type", b"")) != b'"message"' or bytes(_members(message).get("role", b"")) != b'"hookMessage"':
        return line
    return _edited(line, {"message": Raw(_edited(message, {"role": "custom"}))})


def _edited(line: bytes, changes: dict[str, Any], without: str = "") -> bytes:
    """`line` itself if its members are out of reach."""
    members = _members(line)
    members.pop(without, None)
    return encode({**members, **changes}) if members else line


def _members(line: bytes) -> dict[str, Any]:
    """Of a line that is JSON. None for what is no object or is nested too deep."""
    try:
        return {key: Raw(raw) for key, raw in raw_members(line.decode()).items()} if line[:1] == b"{" else {}
    except RecursionError:
        return {}


def _is_json(line: bytes) -> bool:
    """Also of what is nested too deep to tell."""
    try:
        decode_slowly(line, float)
    except BadJson as error:
        return isinstance(error.__context__, RecursionError)
    return True


def _index(raw: bytes) -> int | None:
    try:
        return _whole(float(raw))
    except ValueError:
        return None


def _whole(number: Any) -> int | None:
    """2.0 is 2 in JSON; `true` is no number."""
    if isinstance(number, float) and number.is_integer():
        return int(number)
    return number if isinstance(number, int) and not isinstance(number, bool) else None
