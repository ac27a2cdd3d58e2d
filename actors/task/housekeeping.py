"""What is kept for a while and then removed: logs of commands after 30 days, files about subagents after 7.

Blocking: for pumps, and not before there is a task. Looks at a folder at most once a day, and a file in it says when.
Promises that only what has exactly a name of ours goes, that links are not followed, and that a log which a process
still holds stays. What cannot be removed stays, and nobody hears of it. Source: `tasks.md` 1.1, 2.8 and 3.4.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator

from actors.session.journal import lock

DAY_S = 86_400
LOGS_S, ARTIFACTS_S = 30 * DAY_S, 7 * DAY_S
LOOKED = ".cleaned"
_LOG = r"atomic-(?:bash|powershell)-[0-9a-f]{16}\.log"
_ARTIFACT = r"[0-9a-f]{8}_[\w.-]+_(?:input\.md|output\.md|meta\.json|changes\.patch)"


def sweep_logs(root: str, uid: int, now: float) -> None:
    """`root` is the temp directory, `now` seconds since 1970."""
    top = os.path.join(root, f"atomic-{uid}")
    with contextlib.suppress(OSError):
        is_ours = os.name != "posix" or os.lstat(top).st_uid == uid
        if not is_ours or os.path.islink(top) or not _is_due(top, now):
            return
        for folder in _entries(top):
            if folder.is_dir(follow_symlinks=False):
                _sweep_session(folder, now - LOGS_S)


def clean_artifacts(folder: str, now: float) -> None:
    """`folder` holds what is kept of subagents."""
    with contextlib.suppress(OSError):
        if os.path.isdir(folder) and _is_due(folder, now):
            for path in _old(folder, _ARTIFACT, now - ARTIFACTS_S):
                os.unlink(path)


def _sweep_session(folder: os.DirEntry[str], before: float) -> None:
    with contextlib.suppress(OSError):
        for path in _old(folder.path, _LOG, before):
            _remove_unheld(path)
        if folder.stat(follow_symlinks=False).st_mtime < before:
            os.rmdir(folder.path)  # fails while something lies there


def _remove_unheld(path: str) -> None:
    with contextlib.suppress(OSError):
        fd = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        try:
            is_free = lock(fd)
        finally:
            os.close(fd)
        if is_free:
            os.unlink(path)


def _old(folder: str, name: str, before: float) -> Iterator[str]:
    for entry in _entries(folder):
        is_one = re.fullmatch(name, entry.name) and entry.is_file(follow_symlinks=False)
        if is_one and entry.stat(follow_symlinks=False).st_mtime < before:
            yield entry.path


def _entries(folder: str) -> list[os.DirEntry[str]]:
    """All at once: some of them go meanwhile."""
    with os.scandir(folder) as found:
        return list(found)


def _is_due(folder: str, now: float) -> bool:
    """Whether a day has passed since somebody asked, who then looks."""
    mark = os.path.join(folder, LOOKED)
    with contextlib.suppress(OSError):
        if abs(now - os.lstat(mark).st_mtime) < DAY_S:
            return False
    flags = os.O_WRONLY | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    os.close(os.open(mark, flags, 0o600))
    os.utime(mark, (now, now))
    return True
