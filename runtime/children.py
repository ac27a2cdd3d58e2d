"""The last resort against orphans: kills every process below this one.

The ordinary end has closed them all before; this is for a deadline that passed and for a second signal.
"""

from __future__ import annotations

import os
import signal
import sys


def kill_descendants() -> None:
    """SIGKILL to all processes that descend from this one."""
    for pid in descendants(os.getpid()):
        try:
            os.kill(pid, signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL)
        except OSError:
            continue


def descendants(root: int) -> list[int]:
    """The pids below `root`, parents before their children."""
    if not os.path.isdir("/proc/self"):
        import psutil

        return [child.pid for child in psutil.Process(root).children(recursive=True)]
    children = _children_by_parent()
    found: list[int] = []
    waiting = [root]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def _children_by_parent() -> dict[int, list[int]]:
    """From the process table: not every kernel lists the children of a process."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            parent = _parent(name)
            if parent:
                children.setdefault(parent, []).append(int(name))
    return children


def _parent(pid: str) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            # the name before the last bracket may hold anything
            return int(stat.read().rpartition(b")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return 0
