"""Files that a compaction leaves beside the session's: a copy from before, and what planners answered.

For pumps alone. Every file is its owner's alone (mode 0600) and new: nothing is overwritten. Neither file is needed to
read the session. Source: `sessions.md` 1.5 and the end of 2.8.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable
from typing import Any, Literal, Protocol

from actors.session.naming import iso_time
from protocol.codec import encode

Category = Literal["diagnostic", "recovery", "success"]
_CHUNK = 1 << 20


class CompactionFiles(Protocol):
    def back_up(self, session_path: str, label: str) -> str:
        """Copies the session's file and returns the path of the copy. Raises `OSError`."""

    def keep_answer(self, session_path: str, category: Category, facts: dict[str, Any]) -> str | None:
        """Writes what a planner answered; the path, or None if that is not possible."""


class DiskFiles:
    """`now` is in milliseconds, `uuid7` gives ids."""

    def __init__(self, now: Callable[[], int], uuid7: Callable[[], str]) -> None:
        self._now = now
        self._uuid7 = uuid7

    def back_up(self, session_path: str, label: str) -> str:
        stamp = iso_time(self._now()).replace(":", "-").replace(".", "-")
        path = f"{session_path}.{stamp}.{safe_label(label)}.bak"
        with open(session_path, "rb") as source, _new_file(path) as copy:
            try:
                while chunk := source.read(_CHUNK):
                    copy.write(chunk)
                copy.flush()
            except OSError:
                _remove(path)
                raise
        return path

    def keep_answer(self, session_path: str, category: Category, facts: dict[str, Any]) -> str | None:
        base = session_path.removesuffix(".jsonl")
        path = f"{base}-compaction-{category}-{self._now()}-{self._uuid7()}.json"
        told = {"version": 1, "timestamp": iso_time(self._now()), "category": category, **facts}
        try:
            file = _new_file(path)
        except OSError:
            return None
        try:
            with file:
                file.write(encode(told) + b"\n")
        except OSError:
            _remove(path)
            return None
        return path


def safe_label(label: str) -> str:
    return re.sub(r"-+", "-", re.sub(r"[^A-Za-z0-9_-]", "-", label)).strip("-") or "backup"


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)


def _new_file(path: str) -> Any:
    return open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600), "wb")
