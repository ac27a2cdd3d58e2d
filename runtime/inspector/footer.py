"""The two lines at the bottom: whose session this is and where, and which keys do something here.

Pure but for `git_branch`, which reads the names of files.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from runtime.inspector.records import Session
from runtime.inspector.texts import Line, cells, clip_start, clipped, one_line

Control = tuple[str, str]
"""A key's name and what it does."""
_PLAIN_KEYS = frozenset({"↑↓", "Enter", "Home/End", "PgUp/PgDn"})
"""They need no word where there is little room."""
_SHORT_KEYS = {"PgUp/PgDn": "PgUp/Dn"}


def facts(session: Session, branch: str | None, home: str, width: int) -> Line:
    """Model and level, then folder and branch."""
    parts = [one_line(session.model)] if isinstance(session.model, str) and session.model else []
    if isinstance(session.thinking_level, str) and session.thinking_level:
        parts.append(f"thinking {one_line(session.thinking_level)}")
    model = " · ".join(parts)
    room = width - cells(model) - 5
    folder = _folder(session.cwd, home)
    named = f" ({one_line(branch)})" if branch else ""
    where = clip_start(folder, max(room - cells(named), 12)) + named
    return clipped(((" " + "   ".join(filter(None, (model, where))), "dim"),), width)


def controls(offered: Sequence[Control], width: int) -> Line:
    """All of them if need be with shorter words; else as many as there is room for: the last one, which leads out, then
    the first ones."""
    if not offered:
        return ()
    plain = [(_SHORT_KEYS.get(key, key), "" if key in _PLAIN_KEYS else does) for key, does in offered]
    bare = [*plain[:-1], (plain[-1][0], "")]
    for fits, gap in ((list(offered), 3), (list(offered), 2), (plain, 2), (bare, 2)):
        if sum(map(_needs, fits)) + gap * (len(fits) - 1) < width:
            return _row(fits, gap)
    *others, out = plain
    room = width - 1 - _needs(out)
    kept: list[Control] = []
    for control in others:
        room -= _needs(control) + 2
        if room < 0:
            break
        kept.append(control)
    return clipped(_row([*kept, out], 2), width)


def _row(shown: Sequence[Control], gap: int) -> Line:
    spans = [
        ((f"{' ' * gap if place else ' '}{key}", "mark"), *(((f" {does}", "dim"),) if does else ()))
        for place, (key, does) in enumerate(shown)
    ]
    return tuple(span for pair in spans for span in pair)


def _needs(control: Control) -> int:
    key, does = control
    return cells(key) + (1 + cells(does) if does else 0)


def git_branch(folder: str) -> str | None:
    """The branch that is checked out where `folder` is, a short hash for a detached head; None outside of git."""
    while True:
        head = _head_file(os.path.join(folder, ".git"))
        if head is not None:
            return _branch_in(head)
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above


def _head_file(git: str) -> str | None:
    if os.path.isdir(git):
        return os.path.join(git, "HEAD")
    pointer = _first_line(git)  # a worktree or a submodule has a file that names the folder
    if pointer is None or not pointer.startswith("gitdir:"):
        return None
    target = pointer.removeprefix("gitdir:").strip()
    return os.path.join(os.path.dirname(git), target, "HEAD")


def _branch_in(head: str) -> str | None:
    line = _first_line(head)
    if not line:
        return None
    name = line.removeprefix("ref:").strip().removeprefix("refs/heads/")
    return name if line.startswith("ref:") else line[:8]


def _first_line(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.readline(4096).strip()
    except OSError:
        return None


def _folder(cwd: str, home: str) -> str:
    if home and (cwd == home or cwd.startswith(home.rstrip("/") + "/")):
        cwd = "~" + cwd[len(home.rstrip("/")) :]
    return one_line(cwd)
