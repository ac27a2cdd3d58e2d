"""Where the page of a session goes: its path, the reasons against it, and the file itself.

Promises: the file is whole or not there (written beside its place and renamed), and the session is never overwritten.
Source: `sessions.md` 9, `rpc.md` 2.6.
"""

from __future__ import annotations

import os

from actors.session.naming import expand_home
from actors.tool.textfile import replace

IN_MEMORY = "Cannot export in-memory session to HTML"
NOTHING_YET = "Nothing to export yet - start a conversation first"


class ExportError(Exception):
    """The page cannot be written. Its text is one sentence for the user."""


def export_path(session_path: str | None, wanted: str | None, cwd: str, home: str) -> str:
    """Where the page of the session in `session_path` (`None` for one in memory) goes: `wanted`, with `~` and `file://`
    understood, else a name in `cwd`, the folder of the process. It may be relative, as `write_export` takes it; the
    client is told this path. Raises `ExportError`."""
    if session_path is None:
        raise ExportError(IN_MEMORY)
    source = os.path.join(cwd, session_path)
    if not os.path.exists(source):
        raise ExportError(NOTHING_YET)
    path = _path_of(wanted, home) if wanted else _usual_name(session_path)
    if _is_same_file(os.path.join(cwd, path), source):
        raise ExportError(f"Cannot export to {path}: it is the file of the session itself")
    return path


def write_export(path: str, page: str, cwd: str) -> None:
    """Put `page` at `path`; its folder must exist. A file that is there is replaced and keeps its mode; what other hard
    links name stays as it was. Blocks for as long as the disk does. Raises `ExportError`."""
    from actors.tool.table import ToolFailure

    try:
        replace(os.path.join(cwd, path), page.encode(), "export to", keep_links=False)
    except ToolFailure as failure:
        raise ExportError(str(failure)) from None


def _is_same_file(path: str, source: str) -> bool:
    """By the file and not by its name: hard links, symlinks and other spellings are the session too."""
    try:
        return os.path.samefile(path, source)
    except OSError:
        return os.path.realpath(path) == os.path.realpath(source)


def _usual_name(session_path: str) -> str:
    stem, _ = os.path.splitext(os.path.basename(session_path))
    return f"atomic-session-{stem}.html"


def _path_of(wanted: str, home: str) -> str:
    path = expand_home(_without_scheme(wanted), home)
    _demand_usable(path, wanted)
    return path


def _without_scheme(wanted: str) -> str:
    if not wanted.startswith("file://"):
        return wanted
    from urllib.parse import unquote

    path = unquote(wanted.removeprefix("file://").removeprefix("localhost"))
    # On Windows `file:///C:/x` names `C:/x`.
    return path[1:] if os.name == "nt" and path[2:3] == ":" else path


def _demand_usable(path: str, wanted: str) -> None:
    shown = ascii(wanted[:80])
    if not path:
        raise ExportError(f"outputPath names no file, got {shown}")
    if "\0" in path or any("\ud800" <= character <= "\udfff" for character in path):
        raise ExportError(f"outputPath must hold neither NUL characters nor lone surrogates, got {shown}")
