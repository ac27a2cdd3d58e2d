"""`atomic sessions`: the stored sessions, those used last first.

Reads the beginning and the end of each file and nothing between, so that a long history is listed as fast as a short
one. Owns the columns. Source: sessions 1.9 (listing).
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from actors.session.listing import Listed, list_sessions
from actors.session.naming import agent_dir, session_dir
from protocol.codec import BadJson, decode_any, encode
from runtime.resources import is_trusted
from runtime.settings import load_settings
from runtime.stdio import complain, plain, say, say_json

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Mapping, Sequence

EDGE_BYTES = 64 * 1024
NONE_HERE = "No sessions in {}"


class Shown(NamedTuple):
    """One row. `text` is the name, else the beginning of the first prompt."""

    id: str
    modified: float
    cwd: str
    path: str
    text: str


def run(argv: Sequence[str], env: Mapping[str, str], cwd: str) -> int:
    """The exit code."""
    given = _parsed(argv)
    folders = _folders(given, env, cwd)
    listed = [each for folder in folders for each in list_sessions(folder) if given.all or _is_here(each, given, cwd)]
    listed = sorted((each for each in listed if not each.internal), key=lambda each: each.modified, reverse=True)
    shown = [_shown(each) for each in listed[: given.limit or None]]
    if given.json:
        for row in shown:
            say_json(encode({**row._asdict(), "modified": round(row.modified * 1000)}))
    elif shown:
        say("\n".join(_table(shown, with_folder=given.all)))
    else:
        complain(NONE_HERE.format(", ".join(folders)))
    return 0


def _parsed(argv: Sequence[str]) -> Namespace:
    from runtime.command_parser import CommandParser

    parser = CommandParser(
        "atomic sessions", "List this project's sessions, those used last first. Open one with atomic --session ID."
    )
    parser.add_argument("--all", action="store_true", help="the sessions of all projects")
    parser.add_argument("--session-dir", metavar="DIR", help="look in DIR, as with atomic --session-dir")
    parser.add_argument("--limit", metavar="N", type=int, default=20, help="so many at most; 0 for all (default 20)")
    parser.add_argument("--json", action="store_true", help="one JSON object a line; times in milliseconds")
    given = parser.parse_args(list(argv))
    if given.limit < 0:
        parser.error(f"--limit must be 0 or more, got {given.limit}")
    return given


def _folders(given: Namespace, env: Mapping[str, str], cwd: str) -> list[str]:
    home = os.path.expanduser("~")
    agent = os.path.join(cwd, agent_dir(env, home))
    trusted, _ = is_trusted(agent, cwd, env, None)
    settings, _ = load_settings(agent, cwd, env, trusted)
    folder, given.chosen = session_dir(env, home, cwd, flag=given.session_dir, setting=settings.session_dir)
    if not given.all or given.chosen:
        return [folder]
    root = os.path.dirname(folder)
    return sorted(entry.path for entry in os.scandir(root) if entry.is_dir()) if os.path.isdir(root) else [folder]


def _is_here(listed: Listed, given: Namespace, cwd: str) -> bool:
    """A folder that somebody chose holds the sessions of all projects."""
    return not given.chosen or given.session_dir is not None or listed.cwd == cwd


def _shown(listed: Listed) -> Shown:
    head, tail = _edges(listed.path)
    text = _last_name(tail) or _last_name(head) or _first_prompt(head)
    return Shown(listed.id, listed.modified / 1e9, listed.cwd, listed.path, " ".join(text.split()))


def _edges(path: str) -> tuple[list[bytes], list[bytes]]:
    """The first and the last lines. Broken ones at the cuts are no JSON, and passed over."""
    try:
        with open(path, "rb") as file:
            head = file.read(EDGE_BYTES)
            size = file.seek(0, os.SEEK_END)
            file.seek(max(len(head), size - EDGE_BYTES))
            return head.split(b"\n"), file.read().split(b"\n")
    except OSError:
        return [], []


def _last_name(lines: list[bytes]) -> str:
    for entry in _entries(reversed(lines), b'"session_info"'):
        if entry.get("type") == "session_info" and isinstance(entry.get("name"), str):
            return str(entry["name"])
    return ""


def _first_prompt(lines: list[bytes]) -> str:
    for entry in _entries(iter(lines), b'"user"'):
        message = entry.get("message")
        if isinstance(message, dict) and message.get("role") == "user":
            content = message.get("content")
            if isinstance(content, str):
                return content
            blocks = content if isinstance(content, list) else ()
            texts = (block.get("text") for block in blocks if isinstance(block, dict))
            return next((text for text in texts if isinstance(text, str)), "")
    return ""


def _entries(lines: Iterator[bytes], needle: bytes) -> Iterator[dict[str, Any]]:
    for line in lines:
        if needle in line:
            try:
                entry = decode_any(line)
            except BadJson:
                continue
            if isinstance(entry, dict):
                yield entry


def _table(rows: list[Shown], *, with_folder: bool) -> Iterator[str]:
    for row in rows:
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(row.modified))
        text = row.text if len(row.text) <= 60 else row.text[:59] + "…"
        shown = (when, row.id, row.cwd if with_folder else "", text or "(empty)")
        yield plain("  ".join(filter(None, shown)))
