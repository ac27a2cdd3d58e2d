"""The last resort against orphans: kills every process below this one.

The ordinary end has closed them all before; this is for a deadline that passed and for a second signal.
"""

from __future__ import annotations

import os
import signal
import sys

from actors.shell.group import descendants


def kill_descendants() -> None:
    """SIGKILL to all processes that descend from this one."""
    for pid in descendants([os.getpid()]):
        try:
            os.kill(pid, signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL)
        except OSError:
            continue
