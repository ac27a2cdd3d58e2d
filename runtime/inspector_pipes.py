"""How the pipes for inspectors are called on Windows, who may open them, and which programs have one.

Each program has `\\\\.\\pipe\\atomic-<user>-t<pid>`; the user stands there as a security identifier. A pipe goes with
its process, so nothing is ever left over. No folder is looked through (Wine 8 lists no pipes): of each process it is
asked whether somebody listens at the pipe that it would have, and no connection is made for that.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable

PATIENCE_MS = 100
"""So long a program is waited for whose instances are all taken; it has made the next one much sooner."""


def pipe_name(user: str, pid: int) -> str:
    """The pipe of the program with this pid; `user` is a security identifier in words, like S-1-5-21-7-7-7-1001."""
    return rf"\\.\pipe\atomic-{user}-t{pid}"


def descriptor_of(user: str) -> str:
    """In SDDL: the pipe belongs to the user; the user and the system may do all with it, and nobody else anything. It
    does not shut out the group of network logons, which everybody is in who has come over OpenSSH."""
    return f"O:{user}D:P(A;;FA;;;{user})(A;;FA;;;SY)"


def listening(user: str, pids: Iterable[int], has_listener: Callable[[str], bool]) -> list[tuple[int, str]]:
    """Those of the processes that somebody can connect to, by pid, each with the name of its pipe."""
    named = [(pid, pipe_name(user, pid)) for pid in sorted(set(pids))]
    return [(pid, name) for pid, name in named if has_listener(name)]


if sys.platform == "win32":
    from runtime.named_pipe import current_user, has_listener

    def known_pipes() -> list[tuple[int, str]]:
        """The pid and the pipe's name of each program of this user that is there for an inspector, by pid."""
        import psutil

        return listening(current_user(), psutil.pids(), is_live)

    def is_live(name: str) -> bool:
        """Whether a program listens at the pipe."""
        return has_listener(name, PATIENCE_MS)
