"""The program that prepares a worktree before its agent begins: it installs what git does not hold.

Blocking: for pumps. It gets one JSON object on stdin and answers with one on stdout. Promises that it ends, and that a
worktree which it could not prepare is not used. Source: `tasks.md` 3.3.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from actors.shell.group import Leader
from actors.task.checkout import CheckoutPlan
from protocol.codec import BadJson, decode_any, encode

SHOWN = 200


class HookFailed(Exception):
    """`str()` of it is one line."""


class Hook(Struct, frozen=True):
    """`path` may be relative to the repository. `timeout_ms` of 0 is no limit."""

    path: str
    timeout_ms: int = 30_000


def run_hook(hook: Hook, plan: CheckoutPlan, environ: Mapping[str, str]) -> tuple[str, ...]:
    """The paths in the worktree that are none of its agent's changes. Raises `HookFailed`."""
    root = plan.root
    told = {"repository": root.repository, "worktree": plan.tree, "cwd": plan.cwd, "commit": root.base}
    path = os.path.join(root.repository, hook.path)
    try:
        return _ignored(_printed(path, plan.tree, encode(told), hook.timeout_ms / 1000 or None, environ))
    except (HookFailed, OSError) as error:
        raise HookFailed(f"worktree hook {hook.path}: {getattr(error, 'strerror', None) or error}") from None


def _printed(path: str, cwd: str, given: bytes, timeout: float | None, environ: Mapping[str, str]) -> bytes:
    pipe = subprocess.PIPE
    run = subprocess.Popen([path], cwd=cwd, env=environ, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True)
    leader = Leader(run.pid, run.poll)
    try:
        out, err = run.communicate(given, timeout)
    except subprocess.TimeoutExpired:
        leader.kill()
        run.communicate()
        raise HookFailed(f"it did not end within {timeout} seconds") from None
    if run.returncode:
        lines = err.decode(errors="replace").split("\n")
        raise HookFailed(f"it ended with {run.returncode}: {next(filter(str.strip, lines), '')[:SHOWN]}")
    return out


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
