"""The throw-away folders of a case: their names, and which paths lie inside of them.

Pure.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

FOLDERS = ("home", "agent", "cwd", "sessions")
INSIDE = f"a path below one of {', '.join(FOLDERS)}, without .."


def is_inside(path: Any) -> bool:
    """Whether a path such as `cwd/a.txt`, or `{{cwd}}/a.txt`, stays below its folder as it is written."""
    if not isinstance(path, str) or "\0" in path:
        return False
    first, *rest = PurePosixPath(path).parts or ("",)
    folder = first.removeprefix("{{").removesuffix("}}") if first.startswith("{{") else first
    return folder in FOLDERS and bool(rest) and ".." not in rest


def check_files(value: Any) -> str | None:
    """What files that are written before the start need instead, or nothing."""
    if isinstance(value, dict) and all(map(is_inside, value)):
        return None
    return f"an object whose keys are paths that begin with one of {', '.join(FOLDERS)} and have no .."
