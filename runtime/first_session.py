"""The first session of a process where flags ask for more than a new one or a known one: `--fork` and `--session-id`.

Source: sessions 1.9 and 8.1.
"""

from __future__ import annotations

import os

from msgspec.structs import replace

from actors.session.file import OpenedSession, SessionFileError, Stamps, new_session, open_session, read_session
from actors.session.forking import branch_lines
from actors.session.listing import list_sessions
from actors.session.naming import checked_session_id
from actors.session.opening import missing_cwd
from actors.session.tree import Entry, Tree
from protocol.entries import read_entry

CREATED = "There is no session with the id {}; a new one begins with it"


def open_fork(path: str, session_id: str | None, stamps: Stamps, cwd: str, directory: str) -> OpenedSession:
    """A new session in `cwd` that begins with the branch on which the session at `path` stands. The source is only
    read. Raises SessionFileError, JournalError, BadSessionId."""
    path = os.path.abspath(path)
    if not os.path.exists(path):
        raise SessionFileError(f"File not found: {path}")
    if session_id is not None and _existing(session_id, directory, None) is not None:
        raise SessionFileError(f"--session-id {session_id} names a session that exists; a fork needs a new id")
    tree = Tree(read_session(path, stamps.uuid4).entries)
    lines = branch_lines(tree, tree.leaf_id, stamps.uuid4)
    opened = new_session(stamps, cwd, directory, session_id=session_id, parent_session=path)
    opened.journal.append_all(lines)
    heads = ((line, read_entry(line)) for line in lines)
    return replace(opened, entries=[Entry(line, head) for line, head in heads if head is not None])


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
