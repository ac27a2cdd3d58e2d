"""The last resort against orphans: kills every process that this one started and that still lives.

The ordinary end has closed all that it knows before; this is for a deadline that passed, for a second signal, and for
what a command put into a session of its own (`setsid x &`): init adopts that, and only the environment still tells
whose it is.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time

MARK = "ATOMIC_RUN"
_MAX_ROUNDS = 8  # a fork bomb could give every round a new one


def mark_children() -> None:
    """Children inherit a variable that names this process."""
    os.environ[MARK] = f"{os.getpid()}-{time.monotonic_ns()}"


def kill_descendants() -> None:
    """SIGKILL to all processes that descend from this one or carry its mark, and to what they fork meanwhile."""
    _make_room()
    from actors.shell.group import descendants

    seen: set[int] = set()
    for _ in range(_MAX_ROUNDS):
        fresh = {*descendants([os.getpid()]), *_marked(os.environ.get(MARK))} - seen
        if not fresh:
            return
        for pid in fresh:
            try:
                os.kill(pid, signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL)
            except OSError:
                continue
        seen |= fresh


def _make_room() -> None:
    """The look needs a descriptor, and there may be none left: stdin's is free now, and the limit may be as high as the
    system lets it."""
    with contextlib.suppress(OSError):
        os.close(0)
    if sys.platform != "win32":
        import resource

        with contextlib.suppress(OSError, ValueError):
            hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _marked(mark: str | None) -> list[int]:
    """The pids whose environment has our mark, ours excepted."""
    if mark is None:
        return []
    if not os.path.isdir("/proc/self"):
        return _marked_without_proc(mark)
    wanted = f"{MARK}={mark}".encode()
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []
    return [pid for pid in pids if pid != os.getpid() and wanted in _environment(pid).split(b"\0")]


def _environment(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/environ", "rb") as environ:
            return environ.read()
    except OSError:
        return b""


def _marked_without_proc(mark: str) -> list[int]:
    import psutil

    found = []
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and process.environ().get(MARK) == mark:
                found.append(process.pid)
        except (psutil.Error, OSError):
            continue
    return found
