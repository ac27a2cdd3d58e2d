"""The program that prepares a worktree before its agent begins: it installs what git does not hold.

Blocking: for pumps. It gets one JSON object on stdin and answers with one on stdout. Promises that it ends, soon after
somebody asked for that, and that a worktree which it could not prepare is not used. It reads and writes files: a pipe
would be open as long as anything lives that it started, and what it prints would fill our memory. Source: `tasks.md`
3.3.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Mapping
from typing import IO, Any

from msgspec import Struct

from actors.shell.group import Leader
from actors.task.checkout import CheckoutPlan
from protocol.codec import BadJson, decode_any, encode

SHOWN = 200
LIMIT_BYTES = 16 * 1024 * 1024
"""So much it may print, and so much it may complain."""
STEP_S = 0.02


class HookFailed(Exception):
    """`str()` of it is one line."""


class Hook(Struct, frozen=True):
    """`path` may be relative to the repository. `timeout_ms` of 0 is no limit."""

    path: str
    timeout_ms: int = 30_000


class Halt:
    """Called by any thread, once and for all; whoever prepares something looks at it."""

    def __init__(self) -> None:
        self.is_called = False

    def call(self) -> None:
        self.is_called = True


def run_hook(hook: Hook, plan: CheckoutPlan, environ: Mapping[str, str], halt: Halt) -> tuple[str, ...]:
    """The paths in the worktree that are none of its agent's changes. Raises `HookFailed`."""
    root = plan.root
    told = {"repository": root.repository, "worktree": plan.tree, "cwd": plan.cwd, "commit": root.base}
    path = os.path.join(root.repository, hook.path)
    try:
        return _ignored(_printed(path, plan.tree, encode(told), hook.timeout_ms / 1000, environ, halt))
    except (HookFailed, OSError) as error:
        raise HookFailed(f"worktree hook {hook.path}: {getattr(error, 'strerror', None) or error}") from None


def _printed(path: str, cwd: str, given: bytes, timeout: float, environ: Mapping[str, str], halt: Halt) -> bytes:
    with tempfile.TemporaryFile() as told, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        told.write(given)
        told.seek(0)
        run = subprocess.Popen([path], cwd=cwd, env=environ, stdin=told, stdout=out, stderr=err, start_new_session=True)
        _wait(run, timeout, (out, err), halt)
        for file in (out, err):
            file.seek(0)
        if run.returncode:
            lines = err.read(SHOWN * 100).decode(errors="replace").split("\n")
            raise HookFailed(f"it ended with {run.returncode}: {next(filter(str.strip, lines), '')[:SHOWN]}")
        return out.read(LIMIT_BYTES)


def _wait(run: subprocess.Popen[bytes], timeout: float, printed: tuple[IO[bytes], ...], halt: Halt) -> None:
    """Until it has ended. Kills it, and all that it started, when it may not go on: then raises `HookFailed`."""
    leader = Leader(run.pid, run.wait)
    began = time.monotonic()
    try:
        while _is_running(run):
            if halt.is_called:
                raise HookFailed("it was stopped")
            if timeout and time.monotonic() - began > timeout:
                raise HookFailed(f"it did not end within {timeout} seconds")
            if any(os.fstat(file.fileno()).st_size > LIMIT_BYTES for file in printed):
                raise HookFailed(f"it printed more than {LIMIT_BYTES} bytes")
    except BaseException:
        leader.kill()
        raise
    finally:
        leader.close()


def _is_running(run: subprocess.Popen[bytes]) -> bool:
    try:
        run.wait(STEP_S)
    except subprocess.TimeoutExpired:
        return True
    return False


def _ignored(printed: bytes) -> tuple[str, ...]:
    try:
        said: Any = decode_any(printed)
    except BadJson:
        said = None
    if not isinstance(said, dict):
        raise HookFailed(f"it must print a JSON object, got {printed[:80].decode(errors='replace')!a}")
    paths = said.get("ignore", [])
    if not isinstance(paths, list) or not all(isinstance(path, str) and _is_inside(path) for path in paths):
        raise HookFailed("ignore must be an array of paths in the worktree")
    return tuple(paths)


def _is_inside(path: str) -> bool:
    normal = os.path.normpath(path)
    return bool(path) and not os.path.isabs(path) and "\0" not in path and normal.split(os.sep)[0] not in (".", "..")
