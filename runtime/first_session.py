"""The first session of a process where flags name one: `--session`, `--fork` and `--session-id`.

Source: sessions 1.9 and 8.1.
"""

from __future__ import annotations

import os

from msgspec.structs import replace

from actors.session.file import OpenedSession, SessionFileError, Stamps, new_session, open_session, read_session
from actors.session.listing import Listed, find_everywhere, find_sessions, list_sessions
from actors.session.naming import checked_session_id
from actors.session.opening import missing_cwd
from actors.session.reading import NotASession

CREATED = "There is no session with the id {}; a new one begins with it"
NO_SESSION = "No session found matching '{}'"
ELSEWHERE = (
    "The session {} belongs to {}; open it by its path (--session {}), or go on from a copy of it here (--fork {})"
)
AMBIGUOUS = "{} sessions begin with '{}'; give more of the id: {}"
SHOWN_IDS = 5
EMPTY_SOURCE = "Cannot fork: source session file is empty or invalid: {}"


def named_session(wanted: str, cwd: str, directory: str, chosen: bool, *, from_others: bool) -> str:
    """The absolute path that `wanted` means: a path, an id or the beginning of one. Ids are looked for in this project
    first, then in all; one of another project counts only with `from_others`, since the session would work in that
    project's folder. A beginning that several share is refused. `chosen`: all projects share `directory`. Raises
    SessionFileError."""
    if "/" in wanted or "\\" in wanted or wanted.endswith(".jsonl"):
        return os.path.join(cwd, os.path.expanduser(wanted))
    own = _the_one(find_sessions(directory, wanted, cwd if chosen else None), wanted)
    if own is not None:
        return own.path
    others = find_sessions(directory, wanted) if chosen else find_everywhere(os.path.dirname(directory), wanted)
    other = _the_one(others, wanted)
    if other is None:
        raise SessionFileError(NO_SESSION.format(wanted))
    if not from_others:
        raise SessionFileError(ELSEWHERE.format(other.id, other.cwd or "another folder", other.path, wanted))
    return other.path


def _the_one(found: list[Listed], wanted: str) -> Listed | None:
    if len(found) > 1:
        ids = ", ".join(each.id for each in found[:SHOWN_IDS]) + (", ..." if len(found) > SHOWN_IDS else "")
        raise SessionFileError(AMBIGUOUS.format(len(found), wanted, ids))
    return found[0] if found else None


def open_fork(path: str, session_id: str | None, stamps: Stamps, cwd: str, directory: str) -> OpenedSession:
    """A new session in `cwd` that begins with all branches of the session at `path`, and stands where that one stands.
    The source is only read. Raises SessionFileError, JournalError, BadSessionId."""
    path = os.path.abspath(path)
    if not os.path.exists(path):
        raise SessionFileError(f"File not found: {path}")
    if session_id is not None and _existing(session_id, directory, None) is not None:
        raise SessionFileError(f"--session-id {session_id} names a session that exists; a fork needs a new id")
    try:
        entries = read_session(path, stamps.uuid4).entries
    except NotASession:
        raise SessionFileError(EMPTY_SOURCE.format(path)) from None
    opened = new_session(stamps, cwd, directory, session_id=session_id, parent_session=path)
    opened.journal.append_all([entry.raw for entry in entries])
    return replace(opened, entries=entries)


def open_by_id(session_id: str, stamps: Stamps, cwd: str, directory: str, project: str | None) -> OpenedSession:
    """The session with exactly this id, or a new one. `project` narrows a folder that holds the sessions of all.
    Raises SessionFileError, JournalError, BadSessionId."""
    path = _existing(checked_session_id(session_id), directory, project)
    if path is None:
        opened = new_session(stamps, cwd, directory, session_id=session_id)
        return replace(opened, notes=(*opened.notes, CREATED.format(session_id)))
    opened = open_session(path, stamps, cwd)
    if opened.header.cwd and not os.path.isdir(opened.header.cwd):
        opened.journal.close()
        raise SessionFileError(missing_cwd(opened.header.cwd, path, cwd))
    return opened


def _existing(session_id: str, directory: str, project: str | None) -> str | None:
    listed = (each for each in list_sessions(directory) if project is None or each.cwd == project)
    return next((each.path for each in listed if each.id == session_id), None)
