"""The agent as a child process: its pipes, its process group, its end. POSIX.

The child leads a session of its own, so that Ctrl-C at the terminal does not reach it, and signals go to its whole
group. A thread waits for its exit and, before the dead leader's id may be used again, ends what it left in its group.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from conformance.client.errors import SpawnFailed

KILL_GRACE = 10.0  # seconds that the kernel gets to end a killed process


class Child:
    """`stdin`, `stdout` and `stderr` are the numbers of our ends of the pipes; whoever takes them closes them."""

    def __init__(
        self,
        command: Sequence[str],
        cwd: str | Path | None,
        env: Mapping[str, str] | None,
        exited: Callable[[int], None],
    ) -> None:
        pipe = subprocess.PIPE
        try:
            self._process = subprocess.Popen(
                list(command), stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0, cwd=cwd, env=env, start_new_session=True
            )
        except (OSError, ValueError) as error:
            raise SpawnFailed(f"{' '.join(command)!r} could not be started: {error}") from error
        streams = (self._process.stdin, self._process.stdout, self._process.stderr)
        self.stdin, self.stdout, self.stderr = (os.dup(stream.fileno()) for stream in streams if stream is not None)
        for stream in streams:
            if stream is not None:
                stream.close()
        self.pid = self._process.pid
        self._exited = exited
        threading.Thread(target=self._reap, name=f"reaper of {self.pid}", daemon=True).start()

    def signal_group(self, number: int) -> None:
        """Signal the child and what it started in its group; a group that is gone is no error."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    def _reap(self) -> None:
        if hasattr(os, "waitid"):  # not on macOS before Python 3.13
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)  # it stays a zombie: its id is not used again yet
            self.signal_group(signal.SIGKILL)
        self._exited(self._process.wait())
