"""The sessions of a folder: whose they are, which was used last, and which one an id means.

Reads the first line of each `*.jsonl` file; everything else in the folder, and what is no session, is passed over.
Source: `sessions.md` 1.2, 1.9 (listing) and 8.1.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from protocol.codec import BadJson, decode_any

_CHUNK = 1 << 16
_WORKFLOW = ("runId", "stageId", "stageName")


class Listed(Struct, frozen=True):
    """One session file. `modified` is the file's own time, in nanoseconds. `internal` ones belong to a workflow and are
    no part of the ordinary history."""

    path: str
    id: str
    cwd: str
    timestamp: str
    modified: int
    internal: bool


def list_sessions(directory: str) -> list[Listed]:
    """All sessions of the folder, the latest modified first. A folder that is missing or unreadable has none."""
    try:
        names = [name for name in os.listdir(directory) if name.endswith(".jsonl")]
    except OSError:
        return []
    found = [listed for name in sorted(names) if (listed := read_listed(os.path.join(directory, name)))]
    return sorted(found, key=lambda listed: listed.modified, reverse=True)


def read_listed(path: str) -> Listed | None:
    """What the header of the file says; `None` for what is no session."""
    try:
        status = os.stat(path)
        line = _first_line(path) if stat.S_ISREG(status.st_mode) else b""
        header = decode_any(line)
    except (OSError, BadJson):
        return None
    if not isinstance(header, dict) or header.get("type") != "session" or not isinstance(header.get("id"), str):
        return None
    cwd, timestamp = (value if isinstance(value := header.get(key), str) else "" for key in ("cwd", "timestamp"))
    return Listed(path, header["id"], cwd, timestamp, status.st_mtime_ns, is_internal(header))


def is_internal(header: dict[str, Any]) -> bool:
    """Whether a header marks a workflow's session: exactly `true`, with the workflow complete."""
    workflow = header.get("workflow")
    if header.get("internal") is not True or not isinstance(workflow, dict):
        return False
    return all(isinstance(workflow.get(key), str) and workflow[key].strip() for key in _WORKFLOW)


def most_recent(directory: str, cwd: str | None = None) -> Listed | None:
    """The session that `--continue` means. `cwd` narrows to one project: for a folder that holds those of all."""
    for listed in list_sessions(directory):
        if not listed.internal and (cwd is None or listed.cwd == cwd):
            return listed
    return None


def find_sessions(directory: str, wanted: str, cwd: str | None = None) -> list[Listed]:
    """The sessions that `wanted` can mean, the latest modified first: the one with exactly this id, else all whose ids
    begin with it. Ids of one minute share their first digits, so a short beginning may well mean several."""
    return _meant([each for each in list_sessions(directory) if cwd is None or each.cwd == cwd], wanted)


def find_everywhere(sessions_root: str, wanted: str) -> list[Listed]:
    """Like `find_sessions`, over the folders of all projects."""
    try:
        folders = sorted(os.listdir(sessions_root))
    except OSError:
        return []
    return _meant([each for folder in folders for each in list_sessions(os.path.join(sessions_root, folder))], wanted)


def _meant(listed: list[Listed], wanted: str) -> list[Listed]:
    exact = [each for each in listed if each.id == wanted]
    return exact[:1] or [each for each in listed if each.id.startswith(wanted)]


def _first_line(path: str) -> bytes:
    return b"".join(_until_line_feed(path))


def _until_line_feed(path: str) -> Iterator[bytes]:
    with open(path, "rb", buffering=0) as file:
        while chunk := file.read(_CHUNK):
            head, end, _ = chunk.partition(b"\n")
            yield head
            if end:
                return
