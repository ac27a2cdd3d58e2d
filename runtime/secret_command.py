"""Running the shell command that a config value names, for its output.

Promises an end after ten seconds, children included, and that nothing of the output is told elsewhere.
Source: sessions 4.3.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

COMMAND_TIMEOUT_S = 10


def run_command(command: str, env: Mapping[str, str] | None = None, timeout_s: float = COMMAND_TIMEOUT_S) -> str | None:
    """Standard output of a shell command, None when it fails or takes longer than `timeout_s`. Its whole process group
    ends with it; its standard error is dropped, since nothing says that it holds no secret."""
    import subprocess

    process = subprocess.Popen(
        command,
        shell=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=dict(env) if env is not None else None,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        _kill_group(process)
        return None
    return output.decode("utf-8", "replace") if process.returncode == 0 else None


def _kill_group(process: Any) -> None:
    import signal

    if os.name == "nt":
        process.kill()
    else:
        os.killpg(process.pid, signal.SIGKILL)
    process.stdout.close()
    process.wait()
