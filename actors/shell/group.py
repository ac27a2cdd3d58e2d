"""Who belongs to a child of ours: the processes of its session, and what they started in other sessions.

A group signal alone does not reach `timeout 9 x`, the jobs of `set -m`, or a foreground `setsid x`: they leave the
group, but not the session, or not the family. A leader's number stays reserved as long as it is not reaped, so every
question here is asked, and every signal sent, before that: `Leader` sees to it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterable

# A fork bomb could give every round a new member; then the group signal has to do.
_MAX_ROUNDS = 8


class Leader:
    """The child that leads the session, not yet reaped. Any thread may kill, at any time, beside the one that reaps.

    No lock: a killer announces itself before it looks whether it came too late, and whoever leaves last reaps."""

    __slots__ = ("_closed", "_killers", "_reap", "pid")

    def __init__(self, pid: int, reap: Callable[[], object]) -> None:
        self.pid = pid
        self._reap = reap
        self._killers: list[None] = []
        self._closed = False

    def kill(self) -> None:
        """Kills the whole family; nobody once `close` was called."""
        self._killers.append(None)
        try:
            if not self._closed:
                kill_family(self.pid)
        finally:
            self._killers.pop()
            if self._closed:
                self.close()

    def close(self) -> None:
        """Reaps, at the latest when the killers at work have finished."""
        self._closed = True
        if not self._killers:
            self._reap()


if sys.platform == "win32":

    def live_members(leader: int) -> list[int]:
        """Nothing: a job object would be needed to tell."""
        return []

    def descendants(roots: Iterable[int]) -> list[int]:
        """The pids below `roots`."""
        import psutil

        found: list[int] = []
        for root in roots:
            with contextlib.suppress(psutil.Error):
                found += [child.pid for child in psutil.Process(root).children(recursive=True)]
        return found

    def kill_family(leader: int) -> None:
        """Ends `leader` and its descendants, as far as their parents live to be asked."""
        import psutil

        with contextlib.suppress(psutil.Error):
            root = psutil.Process(leader)
            for process in [*root.children(recursive=True), root]:
                with contextlib.suppress(psutil.Error):
                    process.kill()

else:

    def live_members(leader: int) -> list[int]:
        """The pids of the session of `leader` that still run, without the leader itself. Zombies do not count."""
        return [pid for pid in _session(leader) if pid != leader and not _is_zombie(pid)]

    def kill_family(leader: int) -> None:
        """SIGKILL to the group, the session and the descendants of the unreaped child `leader`. Nothing survives to
        ignore it, and what is forked meanwhile is looked for again."""
        family = _family(leader)
        _send(os.killpg, leader)
        seen: set[int] = set()
        for _ in range(_MAX_ROUNDS):
            fresh = family - seen
            if not fresh:
                return
            for pid in fresh:
                _send(os.kill, pid)
            seen |= fresh
            family = _family(leader)

    def _send(send: Callable[[int, int], None], pid: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            send(pid, signal.SIGKILL)

    def _family(leader: int) -> set[int]:
        members = _session(leader)
        return {leader, *members, *descendants([leader, *members])}

    def _session(leader: int) -> list[int]:
        return [pid for pid in _all_pids() if _session_of(pid) == leader]

    def _session_of(pid: int) -> int:
        try:
            return os.getsid(pid)
        except OSError:
            return -1

    if sys.platform == "linux":

        def _all_pids() -> Iterable[int]:
            return [int(name) for name in os.listdir("/proc") if name.isdigit()]

        def descendants(roots: Iterable[int]) -> list[int]:
            """The pids below `roots`, from the process table: not every kernel lists the children of a process."""
            children: dict[int, list[int]] = {}
            for pid in _all_pids():
                children.setdefault(_parent(pid), []).append(pid)
            waiting = list(roots)
            seen = set(waiting)
            found: list[int] = []
            while waiting:
                below = [pid for pid in children.get(waiting.pop(), ()) if pid not in seen]
                seen.update(below)
                found += below
                waiting += below
            return found

        def _parent(pid: int) -> int:
            fields = _after_name(pid).split()
            return int(fields[1]) if len(fields) > 1 else 0

        def _is_zombie(pid: int) -> bool:
            return _after_name(pid).lstrip()[:1] in (b"Z", b"X", b"")

        def _after_name(pid: int) -> bytes:
            """The fields from the state on. The name before them may hold anything, brackets too."""
            return _read(f"/proc/{pid}/stat").rpartition(b")")[2]

        def _read(path: str) -> bytes:
            try:
                with open(path, "rb", buffering=0) as file:
                    return file.readall()
            except OSError:
                return b""

    else:

        def _all_pids() -> Iterable[int]:
            import psutil

            return psutil.pids()

        def descendants(roots: Iterable[int]) -> list[int]:
            """The pids below `roots`."""
            import psutil

            found: list[int] = []
            for root in roots:
                with contextlib.suppress(psutil.Error):
                    found += [child.pid for child in psutil.Process(root).children(recursive=True)]
            return found

        def _is_zombie(pid: int) -> bool:
            import psutil

            try:
                return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
            except psutil.Error:
                return True
