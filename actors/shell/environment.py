"""The environment of a shell command: the program's own, the agent's tools first, and which session it serves.

Source: contract, direct bash ("Environment"). Values of another session, inherited by chance, never leak.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

_PREFIXES = ("ATOMIC_", "PI_")
_NAMES = ("SESSION_ID", "SESSION_FILE", "PROVIDER", "MODEL", "REASONING_LEVEL")
SESSION_VARIABLES = frozenset(prefix + name for prefix in _PREFIXES for name in _NAMES)


def shell_environment(
    base: Mapping[str, str],
    *,
    agent_bin: str,
    session_id: str | None,
    session_file: str | None,
    provider: str | None,
    model: str | None,
    level: str | None,
    windows: bool = os.name == "nt",
) -> dict[str, str]:
    """`base` without stale session variables, with those of this session (None leaves one out, as `session_file` of a
    session without a file), `AI_AGENT=atomic`, and `agent_bin` first in PATH unless it is in there. On Windows names
    are compared without case."""
    same = str.upper if windows else str
    environment = {name: value for name, value in base.items() if same(name) not in SESSION_VARIABLES}
    for name, value in zip(_NAMES, (session_id, session_file, provider, model, level), strict=True):
        if value is not None:
            environment.update((prefix + name, value) for prefix in _PREFIXES)
    environment["AI_AGENT"] = "atomic"
    path_name = next((name for name in environment if same(name) == "PATH"), "PATH")
    environment[path_name] = _first_in_path(agent_bin, environment.get(path_name, ""), ";" if windows else ":")
    return environment


def _first_in_path(folder: str, path: str, separator: str) -> str:
    # With our folder alone in it the shell would find no command any more; without PATH it has a default.
    folders = path or os.defpath
    if not folder or folder in folders.split(separator):
        return folders
    return folder + separator + folders
