"""Who belongs to a child of ours: the processes of its session, and what they started in other sessions.

A group signal alone does not reach `timeout 9 x`, the jobs of `set -m`, or a foreground `setsid x`: they leave the
group, but not the session, or not the family. A leader's number stays reserved as long as it is not reaped, so every
question here is asked, and every signal sent, before that: `Leader` sees to it.

Hundreds may be killed at once, each from its own thread, and threads that all want the interpreter get little done:
300 that each listed the processes took 4.6 s. So they share a look (`Census`, 0.4 s), which asks each process only for
its session (1 us; its status takes 20), and beside that open files of their own family alone.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from queue import SimpleQueue
from typing import Protocol

# A fork bomb could give every round a new member; then the group signal has to do.
_MAX_ROUNDS = 8


Sessions = Mapping[int, Sequence[int]]
"""The pids of each session, zombies too."""

Beside = Callable[[Callable[[], None]], None]
"""Does something beside its caller, who does not wait for it."""


class Census:
    """Looks at the sessions of all processes, once for everybody who asked before the look began. Any thread may ask;
    it waits for one look that is under way, and for its own."""

    __slots__ = ("_asked", "_look", "_turn")

    def __init__(self, look: Callable[[], Sessions] | None = None) -> None:
        self._look = look or _sessions
        self._asked: SimpleQueue[SimpleQueue[Sessions]] = SimpleQueue()
        self._turn: SimpleQueue[None] = SimpleQueue()
        self._turn.put(None)

    def sessions(self) -> Sessions:
        """What is true at some time after the call."""
        answer: SimpleQueue[Sessions] = SimpleQueue()
        self._asked.put(answer)
        self._turn.get()
        try:
            if answer.empty():
                self._answer_all()
        finally:
            self._turn.put(None)
        return answer.get()

    def _answer_all(self) -> None:
        # Nobody else takes from the queue meanwhile, so that it holds at least what it says.
        waiting = [self._asked.get_nowait() for _ in range(self._asked.qsize())]
        sessions: Sessions = {}
        try:
            sessions = self._look()
        finally:
            for answer in waiting:
                answer.put(sessions)


class Job(Protocol):
    """A job object of Windows, in which a command and all that it starts live."""

    def members(self) -> list[int]: ...
    def terminate(self) -> None: ...
    def close(self) -> None: ...


class Leader:
    """The child that leads the session, not yet reaped. Any thread may kill, at any time, beside the one that reaps.
    With a `job` that one tells who belongs to it.

    No lock: a killer announces itself before it looks whether it came too late, and whoever leaves last reaps. What is
    to be done `beside` is announced at once, and done even if the leader is closed meanwhile: its number is kept."""

    __slots__ = ("_census", "_closed", "_job", "_killers", "_reap", "pid")

    def __init__(
        self, pid: int, reap: Callable[[], object], census: Census | None = None, job: Job | None = None
    ) -> None:
        self.pid = pid
        self._reap = reap
        self._census = census or Census()
        self._job = job
        self._killers: list[None] = []
        self._closed = False

    @property
    def closed(self) -> bool:
        return self._closed

    def kill(self, beside: Beside | None = None) -> None:
        """Kills the whole family; nobody once `close` was called. With `beside` it is done there: to find a family
        takes 1 ms, and more the more processes there are."""
        self._signal(
            lambda: kill_family(self.pid, self._census) if self._job is None else self._job.terminate(), beside
        )

    def terminate(self) -> None:
        """Asks the group to end, with SIGTERM (Windows knows none: there it is killed); nobody once `close` was
        called."""
        self._signal(lambda: ask_group(self.pid, self._census) if self._job is None else self._job.terminate())

    def members(self) -> list[int]:
        """The pids of the session that still run, without the leader; none once `close` was called."""
        if self._closed:
            return []
        if self._job is None:
            return live_members(self.pid, self._census)
        return [pid for pid in self._job.members() if pid != self.pid]

    def has(self, pid: int) -> bool:
        """Whether it is one of `members`, asked about it alone."""
        return is_live_member(pid, self.pid) if self._job is None else pid in self.members()

    def _signal(self, send: Callable[[], None], beside: Beside | None = None) -> None:
        self._killers.append(None)
        if self._closed:
            self._leave()
        elif beside is None:
            self._send(send)
        else:
            beside(lambda: self._send(send))

    def _send(self, send: Callable[[], None]) -> None:
        try:
            send()
        finally:
            self._leave()

    def _leave(self) -> None:
        self._killers.pop()
        if self._closed:
            self.close()

    def close(self) -> None:
        """Reaps, at the latest when the killers at work have finished."""
        self._closed = True
        if not self._killers:
            self._reap()
            if self._job is not None:
                self._job.close()


if sys.platform == "win32":

    def _sessions() -> Sessions:
        return {}

    def live_members(leader: int, census: Census | None = None) -> list[int]:
        """Nothing: its job would have to tell."""
        return []

    def is_live_member(pid: int, leader: int) -> bool:
        return False

    def ask_group(leader: int, census: Census) -> None:
        kill_family(leader, census)

    def kill_family(leader: int, census: Census) -> None:
        """Ends `leader` and its descendants, as far as their parents live to be asked."""
        import psutil

        with contextlib.suppress(psutil.Error):
            root = psutil.Process(leader)
            for process in [*root.children(recursive=True), root]:
                with contextlib.suppress(psutil.Error):
                    process.kill()

else:

    def live_members(leader: int, census: Census | None = None) -> list[int]:
        """The pids of the session of `leader` that still run, without the leader itself. Zombies do not count."""
        return [pid for pid in _others(leader, census or Census()) if not _is_zombie(pid)]

    def is_live_member(pid: int, leader: int) -> bool:
        """Whether `pid` is one of `live_members(leader)`, without a look at any other process."""
        return pid != leader and _session_of(pid) == leader and not _is_zombie(pid)

    def ask_group(leader: int, census: Census) -> None:
        """SIGTERM to the group, and to what was started below it in other sessions; that list is taken first, since
        orphans are init's."""
        strays = [pid for pid in _below([leader]) if _session_of(pid) != leader]
        _send(os.killpg, leader, signal.SIGTERM)
        for pid in strays:
            _send(os.kill, pid, signal.SIGTERM)

    def kill_family(leader: int, census: Census) -> None:
        """SIGKILL to the group, the session and the descendants of the unreaped child `leader`: nothing survives to
        ignore it.

        The group is stopped first. What is stopped neither forks nor reaps, so that its children are all found (once
        it were dead, init would have adopted them), and no number of theirs passes to a stranger meanwhile."""
        _send(os.killpg, leader, signal.SIGSTOP)
        try:
            for pid in _stop_relatives(leader, census):
                _send(os.kill, pid, signal.SIGKILL)
        finally:
            _send(os.killpg, leader, signal.SIGKILL)

    def _stop_relatives(leader: int, census: Census) -> list[int]:
        """Stops everybody else in the session and below, and looks again for what they forked before that. The last
        found comes first: a parent killed before its child would give it to init, which wakes what is stopped."""
        relatives: list[int] = []
        for _ in range(_MAX_ROUNDS):
            members = _others(leader, census)
            found = dict.fromkeys([*members, *_below([leader, *members, *relatives])])
            fresh = [pid for pid in found if pid not in relatives]
            if not fresh:
                break
            for pid in fresh:
                _send(os.kill, pid, signal.SIGSTOP)
            relatives += fresh
        return relatives[::-1]

    def _send(send: Callable[[int, int], None], pid: int, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            send(pid, number)

    def _others(leader: int, census: Census) -> list[int]:
        return [pid for pid in census.sessions().get(leader, ()) if pid != leader]

    def _sessions() -> Sessions:
        sessions: dict[int, list[int]] = {}
        for pid in _all_pids():
            sessions.setdefault(_session_of(pid), []).append(pid)
        return sessions

    def _session_of(pid: int) -> int:
        try:
            return os.getsid(pid)
        except OSError:
            return -1


if sys.platform == "linux":

    def descendants(roots: Iterable[int]) -> list[int]:
        """The pids below `roots`, from the status of every process: 20 us each."""
        children: dict[int, list[int]] = {}
        for pid in _all_pids():
            children.setdefault(int(_status(pid)[1]), []).append(pid)
        return _spread(roots, lambda pid: children.get(pid, ()))

    def _below(roots: Iterable[int]) -> list[int]:
        """As `descendants`, where the kernel lists the children of a process; complete if the roots are stopped."""
        if not os.path.exists("/proc/thread-self/children"):
            return descendants(roots)
        return _spread(roots, _listed_children)

    def _spread(roots: Iterable[int], children_of: Callable[[int], Iterable[int]]) -> list[int]:
        waiting = list(roots)
        seen = set(waiting)
        found: list[int] = []
        while waiting:
            below = [pid for pid in children_of(waiting.pop()) if pid not in seen]
            seen.update(below)
            found += below
            waiting += below
        return found

    def _listed_children(pid: int) -> list[int]:
        """Each thread has a list of those that it started."""
        found: list[int] = []
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{pid}/task"):
                found += map(int, _read(f"/proc/{pid}/task/{thread}/children").split())
        return found

    def _all_pids() -> Iterable[int]:
        """None at all when this process has no descriptor left for the look: then the group signal has to do."""
        with contextlib.suppress(OSError):
            return [int(name) for name in os.listdir("/proc") if name.isdigit()]
        return []

    def _is_zombie(pid: int) -> bool:
        return _status(pid)[0] in (b"Z", b"X")

    def _status(pid: int) -> list[bytes]:
        """State, parent and more. The name before them may hold anything, brackets too."""
        return _read(f"/proc/{pid}/stat").rpartition(b")")[2].split() or [b"X", b"0"]

    def _read(path: str) -> bytes:
        with contextlib.suppress(OSError), open(path, "rb", buffering=0) as file:
            return file.readall()
        return b""

else:

    def descendants(roots: Iterable[int]) -> list[int]:
        """The pids below `roots`."""
        import psutil

        found: list[int] = []
        for root in roots:
            with contextlib.suppress(psutil.Error):
                found += [child.pid for child in psutil.Process(root).children(recursive=True)]
        return found

    _below = descendants

    def _all_pids() -> Iterable[int]:
        import psutil

        return psutil.pids()

    def _is_zombie(pid: int) -> bool:
        import psutil

        with contextlib.suppress(psutil.Error):
            return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
        return True
