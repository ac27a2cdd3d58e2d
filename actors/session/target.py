"""What a command that replaces the session leads to: a file that is opened, or a session that lives already.

Knows no actors. There is one live session for a file, so a path is looked for among those first.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from actors.session.file import OpenedSession
from protocol import commands as c


class Target(Struct, frozen=True):
    """What to open. `new`: an empty session; `file`: the one at `path`; `import`: a copy of the one at `path`, put at
    `destination`; `fork`: one that begins with `lines`."""

    kind: Literal["new", "file", "import", "fork"]
    beside: OpenedSession
    path: str = ""
    destination: str = ""
    cwd: str | None = None
    parent_session: str | None = None
    lines: tuple[bytes, ...] = ()


class Living(Struct, frozen=True):
    """The session with this key has the file open."""

    key: int


class Refusal(Struct, frozen=True):
    error: str


LiveAt = Callable[[str], int | None]
"""The key of the live session whose file is at a path."""


def destination_of(command: c.Command, beside: OpenedSession, live_at: LiveAt) -> Target | Living | Refusal:
    """`beside` is the session that is current."""
    wrong = _wrong_path(command)
    if wrong is not None:
        return Refusal(wrong)
    match command:
        case c.NewSession(parent_session=parent):
            return Target("new", beside, parent_session=parent or None)
        case c.SwitchSession(session_path=path):
            return _switched(path, beside, live_at)
        case c.ImportSession(input_path=path, cwd_override=cwd):
            return _imported(path, cwd, beside, live_at)
        case _:
            return Refusal(f"{c.command_name(command)} replaces no session")


def _switched(path: str, beside: OpenedSession, live_at: LiveAt) -> Target | Living:
    live = live_at(path)
    return Target("file", beside, path=path) if live is None else Living(live)


def _imported(path: str, cwd: str | None, beside: OpenedSession, live_at: LiveAt) -> Target | Living | Refusal:
    here = beside.journal.path
    destination = os.path.join(os.path.dirname(here), os.path.basename(path)) if here is not None else ""
    live = live_at(destination) if destination else None
    if live is None:
        return Target("import", beside, path=path, destination=destination, cwd=cwd)
    if same_file(path, destination):
        return Living(live)
    return Refusal(f"import_session: the session at {destination} is open here, so it cannot be overwritten")


def same_file(one: str, other: str) -> bool:
    """Also by another name; a file that is not there yet is known by its path alone."""
    try:
        return os.path.samefile(one, other)
    except OSError:
        pass
    try:
        return os.path.realpath(one) == os.path.realpath(other)
    except OSError:  # a relative path, and the folder that it starts from is gone
        return False


def _wrong_path(command: c.Command) -> str | None:
    """Why no path of `command` can be one: the system takes neither NUL nor half of a surrogate pair."""
    match command:
        case c.SwitchSession(session_path=path):
            paths = {"sessionPath": path}
        case c.ImportSession(input_path=path, cwd_override=cwd):
            paths = {"inputPath": path, "cwdOverride": cwd or ""}
        case _:
            return None
    for field, path in paths.items():
        shown = ascii(path if len(path) <= 80 else path[:79] + "\u2026")
        if "\0" in path:
            return f"Invalid {field} {shown}: it must not contain a NUL character"
        if any("\ud800" <= letter <= "\udfff" for letter in path):
            return f"Invalid {field} {shown}: it must not contain a lone surrogate"
    return None
