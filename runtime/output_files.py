"""The files that the output of commands goes into, in the system's folder for temporary files.

A first call of a tool that needs none of them should not wait for what makes them: that is loaded in the functions.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from actors.shell.spill import Spill


def spill(session_id: str) -> Spill:
    """For what does not fit into an answer. The file is made with the first write."""
    from tempfile import gettempdir

    from actors.shell.spill import Spill

    return Spill(gettempdir(), session_id, _user(), lambda: os.urandom(8).hex())


def open_log(session_id: str, shell: str) -> tuple[int, str]:
    """The file of a task's whole output, open, and its path. Raises `OSError`."""
    from tempfile import gettempdir

    from actors.shell.spill import directory_name, open_private

    user, root = _user(), gettempdir()
    folders = (f"atomic-{user}", directory_name(session_id))
    name = f"atomic-{shell}-{os.urandom(8).hex()}.log"
    return open_private(root, folders, name, user), os.path.join(root, *folders, name)


def sweep_old_logs() -> None:
    """Blocking: for a pump."""
    from tempfile import gettempdir

    from actors.task.housekeeping import sweep_logs

    sweep_logs(gettempdir(), _user(), time.time())


def _user() -> int:
    return os.getuid() if hasattr(os, "getuid") else 0
