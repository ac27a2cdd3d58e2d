"""Lines of old session files, brought to the version that is written today.

Version 1 had no ids: each entry gets one, and its predecessor as parent. Version 2 called an extension's message
`hookMessage`. Versions above `CURRENT` are left as they are. Pure; a line that needs no change keeps its bytes.
Source: `sessions.md` 1.7.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from actors.session.tree import fresh_id
from protocol.codec import BadJson, decode_any, encode

CURRENT = 3


def version_of(header: Any) -> int:
    """The version that a header (decoded) tells; a header without one is of version 1."""
    version = header.get("version", 1) if isinstance(header, dict) else 1
    return version if isinstance(version, int) else 1


def migrate(header: dict[str, Any], lines: Iterable[bytes], uuid4: Callable[[], str]) -> tuple[bytes, list[bytes]]:
    """The new header and entry lines for a file below `CURRENT`. Lines that are no JSON objects are dropped."""
    entries = [(line, entry) for line in lines if isinstance(entry := _decoded(line), dict)]
    if version_of(header) < 2:
        _chain([entry for _, entry in entries], uuid4)
        entries = [(b"", entry) for _, entry in entries]
    renamed = [b"" if _rename_role(entry) else line for line, entry in entries]
    new_lines = [line or encode(entry) for line, (_, entry) in zip(renamed, entries, strict=True)]
    return encode({**header, "version": CURRENT}), new_lines


def _chain(entries: list[dict[str, Any]], uuid4: Callable[[], str]) -> None:
    """Give ids and parents in place. `firstKeptEntryIndex` counts the header as 0."""
    taken: set[str] = set()
    parent = None
    for entry in entries:
        entry["id"] = fresh_id(uuid4, taken)
        entry["parentId"] = parent
        parent = entry["id"]
        taken.add(parent)
    for entry in entries:
        kept = entry.pop("firstKeptEntryIndex", None)
        if isinstance(kept, int) and 1 <= kept <= len(entries):
            entry["firstKeptEntryId"] = entries[kept - 1]["id"]


def _rename_role(entry: dict[str, Any]) -> bool:
    message = entry.get("message")
    if entry.get("type") != "message" or not isinstance(message, dict) or message.get("role") != "hookMessage":
        return False
    message["role"] = "custom"
    return True


def _decoded(line: bytes) -> Any:
    try:
        return decode_any(line)
    except BadJson:
        return None
