"""Where the sockets for inspectors lie, and at which of them a program listens.

Each program has `t<pid>.sock` in `<tmp>/atomic-<uid>/`, or in `/tmp/atomic-<uid>/` where that path would be too long
for a socket. Whether somebody listens is asked of the socket itself: a pid says nothing about another container's
programs. A socket at which nobody listens is what a killed program left behind.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat

PATH_BYTES = 103
"""A socket's path may be no longer, on any system: 104 with the zero byte on macOS, 108 on Linux."""
SHORT_ROOT = "/tmp"
LARGEST_PID = 2**31 - 1
UNBORN_S = 60
CONNECT_S = 1.0
_NAME = re.compile(r"([tn])(\d+)\.sock")


class NoPlace(Exception):
    """Why there is no place for a socket, in words for the user."""


def known_sockets() -> list[tuple[int, str]]:
    """The pid and the socket's path of each program of this user that may be there for an inspector, by pid. Nobody is
    asked: a connection only for that would take the place of an inspector."""
    return sorted(found for folder in _folders() for found in _sockets(folder))


def is_live(path: str) -> bool:
    """Whether a program listens at `path`."""
    import socket

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(CONNECT_S)
        try:
            probe.connect(path)
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:  # it is busy, or it is not for us to know
            return True
    return True


def place_for(pid: int, uid: int) -> tuple[str, str]:
    """A private folder for the socket of this program, made if it is missing, and the socket's path. Raises `NoPlace`
    when the path is too long in each or the folder is a link, else `OSError` when it is not ours or cannot be."""
    name = f"t{pid}.sock"
    for root in _roots():
        path = os.path.join(root, f"atomic-{uid}", name)
        if len(os.fsencode(path)) <= PATH_BYTES:
            return _private(root, f"atomic-{uid}", uid), path
    raise NoPlace(f"the path of the temporary directory is too long for a socket: {path}")


def _private(root: str, name: str, uid: int) -> str:
    """The errors name the whole path."""
    from actors.shell.spill import private_directory

    folder = os.path.join(root, name)
    try:
        return private_directory(root, name, uid)
    except OSError as error:
        if os.path.islink(folder):
            raise NoPlace(f"{folder} is a link, and has to be a folder of its own") from None
        raise OSError(error.errno, error.strerror or str(error), folder) from None


def sweep(folder: str, now: float) -> None:
    """Removes what programs left that were killed. `now` is in seconds since the epoch: a socket is born under another
    name, and for a moment nobody listens."""
    for name in os.listdir(folder):
        found, path = _NAME.fullmatch(name), os.path.join(folder, name)
        with contextlib.suppress(OSError):
            is_unborn = found is not None and found[1] == "n" and now - os.lstat(path).st_mtime < UNBORN_S
            if found is not None and not is_unborn and not is_live(path):
                os.unlink(path)


def _folders() -> list[str]:
    """Those of this user that nobody else can write to. The short root counts only where it may have been needed, so
    that a temporary directory of one's own is a world of its own."""
    uid = os.getuid()
    found = []
    roots = _roots()
    longest = os.path.join(roots[0], f"atomic-{uid}", f"t{LARGEST_PID}.sock")
    for root in roots[:1] if len(os.fsencode(longest)) <= PATH_BYTES else roots:
        folder = os.path.join(root, f"atomic-{uid}")
        with contextlib.suppress(OSError):
            facts = os.lstat(folder)
            if stat.S_ISDIR(facts.st_mode) and facts.st_uid == uid and not facts.st_mode & 0o022:
                found.append(folder)
    return found


def _sockets(folder: str) -> list[tuple[int, str]]:
    names = [(found, name) for name in os.listdir(folder) if (found := _NAME.fullmatch(name)) and found[1] == "t"]
    return [(int(found[2]), os.path.join(folder, name)) for found, name in names]


def _roots() -> list[str]:
    import tempfile

    return list(dict.fromkeys((tempfile.gettempdir(), SHORT_ROOT)))
