"""Names of the session store: its folders, its files, the ids of sessions, and the two notations of time.

Pure: environment, home and working directory come in as parameters. Source: `sessions.md` 1.1.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

AGENT_DIR = "CODING_AGENT_DIR"
SESSION_DIR = "CODING_AGENT_SESSION_DIR"
BAD_SESSION_ID = (
    "Session id must be non-empty, contain only alphanumeric characters, '-', '_', and '.', "
    "and start and end with an alphanumeric character"
)
_SESSION_ID = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_FLATTENED = str.maketrans("/\\:", "---")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


class BadSessionId(ValueError):
    """An id that cannot name a session; its text is the answer to the user."""


# ---- folders -----------------------------------------------------------------------------------------------------


def home_dir(env: Mapping[str, str], os_home: str) -> str:
    """`HOME`, else `USERPROFILE`, else what the operating system says."""
    return env.get("HOME") or env.get("USERPROFILE") or os_home


def expand_home(path: str, home: str) -> str:
    """`path` with a leading `~` (alone or before a separator) replaced."""
    if path == "~" or path.startswith(("~/", "~\\")):
        return home + path[1:]
    return path


def agent_dir(env: Mapping[str, str], os_home: str) -> str:
    """The folder of settings, credentials and sessions. An empty variable counts as unset."""
    home = home_dir(env, os_home)
    named = env.get("ATOMIC_" + AGENT_DIR) or env.get("PI_" + AGENT_DIR)
    return expand_home(named, home) if named else os.path.join(home, ".atomic", "agent")


def default_session_dir(agent: str, cwd: str) -> str:
    """The folder for sessions of the absolute `cwd`. The name is lossy: read the header's `cwd`, never decode it."""
    resolved = os.path.normpath(cwd)
    if resolved.startswith("//"):
        resolved = resolved[1:]
    inner = resolved[1:] if resolved[:1] in ("/", "\\") else resolved
    return os.path.join(agent, "sessions", f"--{inner.translate(_FLATTENED)}--")


def session_dir(
    env: Mapping[str, str], os_home: str, cwd: str, *, flag: str | None = None, setting: str | None = None
) -> tuple[str, bool]:
    """The folder for sessions, absolute, and whether it was chosen: then it is flat and holds those of all projects.

    Order: the flag, the environment, the setting, the default for `cwd`.
    """
    chosen = flag or env.get("ATOMIC_" + SESSION_DIR) or env.get("PI_" + SESSION_DIR) or setting
    if chosen:
        return os.path.join(cwd, expand_home(chosen, home_dir(env, os_home))), True
    return default_session_dir(os.path.join(cwd, agent_dir(env, os_home)), cwd), False


# ---- files and ids -----------------------------------------------------------------------------------------------


def session_file_name(timestamp: str, session_id: str) -> str:
    """`timestamp` is the header's."""
    return f"{timestamp.replace(':', '-').replace('.', '-')}_{session_id}.jsonl"


def checked_session_id(session_id: str) -> str:
    """`session_id` itself. Raises `BadSessionId`."""
    if not _SESSION_ID.fullmatch(session_id):
        raise BadSessionId(BAD_SESSION_ID)
    return session_id


# ---- time --------------------------------------------------------------------------------------------------------


def iso_time(milliseconds: int) -> str:
    """UTC with milliseconds and `Z`, as entries carry it."""
    return (_EPOCH + milliseconds * _MILLISECOND).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def epoch_ms(timestamp: str) -> int:
    """Milliseconds since the epoch, as messages carry it; 0 for what is no time."""
    try:
        moment = datetime.fromisoformat(timestamp)
    except ValueError:
        return 0
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH) // _MILLISECOND
