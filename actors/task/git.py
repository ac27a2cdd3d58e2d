"""Runs git for a pump, and says in one line why it failed.

Promises that a command ends: it cannot ask, runs no hook, and is killed when it takes too long. Variables that point
git to another repository are not handed on.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from typing import IO

LIMIT_S = 600
"""Of a checkout of a large repository on a slow disk; everything else takes seconds."""
_QUIET = ("-c", f"core.hooksPath={os.devnull}", "-c", "core.fsmonitor=false", "-c", "gc.auto=0")
_SHOWN = 200


class GitFailed(Exception):
    """`str()` of it is one line."""


class Git:
    """`environ` is the environment; `inherited` what others who work in the repository are given of it."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.inherited = {name: value for name, value in environ.items() if not name.startswith("GIT_")}
        self._environ = {**self.inherited, "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}

    def run(
        self,
        cwd: str,
        *words: str,
        to: IO[bytes] | int = subprocess.PIPE,
        given: bytes = b"",
        fine: tuple[int, ...] = (0,),
    ) -> str:
        """What it printed, unless that goes into the file `to`. `given` is its stdin, `fine` are the exit codes
        that are no failure. Raises `GitFailed`."""
        try:
            done = subprocess.run(
                ["git", *_QUIET, *words],
                cwd=cwd,
                env=self._environ,
                input=given,
                stdout=to,
                stderr=subprocess.PIPE,
                timeout=LIMIT_S,
            )
        except FileNotFoundError as error:
            missing = "git is not installed" if error.filename == "git" else f"{cwd} is not there"
            raise GitFailed(missing) from None
        except subprocess.TimeoutExpired:
            raise GitFailed(f"git {words[0]} did not end within {LIMIT_S} seconds") from None
        except (OSError, ValueError) as error:
            raise GitFailed(f"git {words[0]}: {error}") from None
        if done.returncode not in fine:
            raise GitFailed(f"git {words[0]}: {_first_line(done.stderr)}")
        return (done.stdout or b"").decode(errors="surrogateescape")


def _first_line(told: bytes) -> str:
    lines = [line for line in told.decode(errors="replace").splitlines() if line.strip()]
    fatal = [line for line in lines if line.startswith(("fatal:", "error:"))]
    return (fatal or lines or ["failed without a word"])[0][:_SHOWN]
