"""Which programs can be inspected: the sockets in the private folder of this user.

Only a folder that is ours and that nobody else can enter is looked at. Nothing is removed here: a socket of a dead
process is passed over.
"""

from __future__ import annotations

import os
import re
import socket
import stat
import tempfile
from collections.abc import Iterator
from typing import NamedTuple

_SOCKET = re.compile(r"t(\d+)\.sock\Z")


class Door(NamedTuple):
    """Where a program listens: the path of its socket, or the name of its pipe."""

    address: str
    pid: int


def doors() -> list[Door]:
    """All that there are, by pid. A program that has gone may be among them."""
    folder = os.path.join(tempfile.gettempdir(), f"atomic-{_uid()}")
    return sorted(_doors_in(folder), key=lambda door: door.pid)


def is_live(address: str) -> bool:
    """Whether anybody listens there."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(address)
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:
            return True
    return True


def _doors_in(folder: str) -> Iterator[Door]:
    if not _is_private(folder):
        return
    for name in os.listdir(folder):
        found = _SOCKET.match(name)
        if found:
            yield Door(os.path.join(folder, name), int(found[1]))


def _is_private(folder: str) -> bool:
    try:
        state = os.lstat(folder)
    except OSError:
        return False
    return stat.S_ISDIR(state.st_mode) and state.st_uid == _uid() and not state.st_mode & 0o077


def _uid() -> int:
    return os.getuid() if hasattr(os, "getuid") else 0
