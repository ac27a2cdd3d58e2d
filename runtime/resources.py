"""What a project and the user's agent directory bring to a session: context files, prompt files, and trust.

Owns the discovery of AGENTS.md and its kin, of SYSTEM.md and APPEND_SYSTEM.md, and the decision whether a project's
own files count. Promises that a file which cannot be read costs one line. Source: sessions 6.3, 7.1 and 7.2.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from actors.session.naming import expand_home, home_dir
from runtime.config_values import decode_document, is_unicode, shown
from runtime.regular_file import read_regular
from runtime.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

CONTEXT_NAMES = ("AGENTS.override.md", "AGENTS.md", "AGENTS.MD", "CLAUDE.md", "CLAUDE.MD")
PROJECT_DIRS = (".atomic", ".pi")


class ContextFile(Struct, frozen=True):
    """A file of instructions: its absolute path and its text, whatever its length."""

    path: str
    text: str


class Resources(Struct, frozen=True):
    """`context_files` in the order of the prompt. The prompt texts are None where no file says them."""

    context_files: tuple[ContextFile, ...]
    system_prompt: str | None
    append_system_prompt: str | None
    warnings: tuple[str, ...]


def load_resources(
    agent_dir: str, cwd: str, env: Mapping[str, str], *, trusted: bool, context_files: bool = True
) -> Resources:
    """Read them all. An untrusted project brings nothing; `context_files=False` is `--no-context-files`."""
    warnings: list[str] = []
    agent_dirs = _agent_dirs(agent_dir, env)
    found = _context_files(agent_dirs, cwd, trusted, warnings) if context_files else ()
    places = [os.path.join(cwd, name) for name in PROJECT_DIRS] if trusted else []
    places += reversed(agent_dirs)
    return Resources(
        context_files=tuple(found),
        system_prompt=_first_text(places, "SYSTEM.md", warnings),
        append_system_prompt=_first_text(places, "APPEND_SYSTEM.md", warnings),
        warnings=tuple(warnings),
    )


def is_trusted(agent_dir: str, cwd: str, env: Mapping[str, str], approve: bool | None) -> tuple[bool, list[str]]:
    """Whether the project at `cwd` may bring files and settings, and warnings about trust.json. Nobody can be asked, so
    that `ask` means no."""
    if approve is None and not has_trust_inputs(cwd, env):
        return True, []
    return decided_trust(agent_dir, cwd, env, approve)


def decided_trust(agent_dir: str, cwd: str, env: Mapping[str, str], approve: bool | None) -> tuple[bool, list[str]]:
    """What was decided about the project, whatever it holds: by the flag, in trust.json, or by the user's settings."""
    if approve is not None:
        return approve, []
    decision, warnings = recorded_trust(agent_dir, cwd, env)
    if decision is None:
        settings, _ = load_settings(agent_dir, cwd, env, trusted=False)
        decision = settings.default_project_trust == "always"
    return decision, warnings


def recorded_trust(agent_dir: str, cwd: str, env: Mapping[str, str]) -> tuple[bool | None, list[str]]:
    """What trust.json says, and what is wrong in it: true or false by directory, where the nearest one above `cwd`
    counts. A file or a value that makes no sense denies, since it may have been meant to."""
    path = os.path.join(agent_dir, "trust.json")
    try:
        document = decode_document(read_regular(path))
    except (FileNotFoundError, NotADirectoryError):
        return None, []
    except OSError as error:
        return False, [f"{path} cannot be read: {error.strerror or error}"]
    except ValueError as error:
        return False, [f"{path} is not valid JSON: {error}"]
    if not isinstance(document, dict):
        return False, [f"{path} must hold an object of directories and true or false"]
    decisions, faults = _decisions(document, home_dir(env, os.path.expanduser("~")))
    found = (decisions.get(folder) for folder in _upwards(os.path.realpath(cwd)))
    return next((decision for decision in found if decision is not None), None), [f"{path}: {text}" for text in faults]


def has_trust_inputs(cwd: str, env: Mapping[str, str]) -> bool:
    """Whether there is anything to trust: a project folder with something in it, a context file in `cwd` or above, or
    skills on the way up, those of the home directory apart."""
    if any(_has_entries(os.path.join(cwd, name)) for name in PROJECT_DIRS):
        return True
    home = os.path.normpath(home_dir(env, os.path.expanduser("~")))
    return any(
        _context_path(folder) is not None
        or (folder != home and os.path.isdir(os.path.join(folder, ".agents", "skills")))
        for folder in _upwards(cwd)
    )


def _agent_dirs(agent_dir: str, env: Mapping[str, str]) -> list[str]:
    """The agent directory, before it the older one that the default agent directory stands on."""
    home = home_dir(env, os.path.expanduser("~"))
    if os.path.normpath(agent_dir) == os.path.join(home, ".atomic", "agent"):
        return [os.path.join(home, ".pi", "agent"), agent_dir]
    return [agent_dir]


def _context_files(agent_dirs: list[str], cwd: str, trusted: bool, warnings: list[str]) -> Iterator[ContextFile]:
    folders = [*agent_dirs, *(reversed(_project_folders(cwd)) if trusted else ())]
    seen: set[str] = set()
    for folder in folders:
        path = _context_path(folder)
        if path is None or path in seen:
            continue
        seen.add(path)
        text = _read_text(path, warnings)
        if text is not None:
            yield ContextFile(path, text)


def _project_folders(cwd: str) -> list[str]:
    """`cwd` and what is above it. From a git worktree that lies inside its main checkout, the checkout's own folder is
    left out when the worktree has a context file: it is the same file of another branch."""
    folders = list(_upwards(cwd))
    worktree = next((folder for folder in folders if os.path.isfile(os.path.join(folder, ".git"))), None)
    if worktree is None or _context_path(worktree) is None:
        return folders
    above = folders[folders.index(worktree) + 1 :]
    main = next((folder for folder in above if os.path.isdir(os.path.join(folder, ".git"))), None)
    return [folder for folder in folders if folder != main] if main and _is_worktree(worktree, main) else folders


def _is_worktree(folder: str, main: str) -> bool:
    """A worktree's `.git` is a file that points into the main checkout's `.git/worktrees`; a submodule's does not."""
    try:
        with open(os.path.join(folder, ".git"), encoding="utf-8", errors="replace") as file:
            target = file.read(4096).removeprefix("gitdir:").strip()
    except OSError:
        return False
    inside = os.path.join(os.path.realpath(main), ".git", "worktrees", "")
    return os.path.realpath(os.path.join(folder, target)).startswith(inside)


def _upwards(cwd: str) -> Iterator[str]:
    folder = os.path.normpath(cwd)
    while True:
        yield folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return
        folder = parent


def _context_path(folder: str) -> str | None:
    """The first candidate that is a regular file: a directory of that name is passed over, a FIFO would block."""
    for name in CONTEXT_NAMES:
        path = os.path.join(folder, name)
        try:
            if stat.S_ISREG(os.stat(path).st_mode):
                return path
        except OSError:
            continue
    return None


def _first_text(folders: list[str], name: str, warnings: list[str]) -> str | None:
    for folder in folders:
        path = os.path.join(folder, name)
        if os.path.isfile(path) and (text := _read_text(path, warnings)) is not None:
            return text
    return None


def _read_text(path: str, warnings: list[str]) -> str | None:
    try:
        return read_regular(path).decode("utf-8-sig", "replace")
    except OSError as error:
        warnings.append(f"{path} cannot be read: {error.strerror or error}")
        return None


def _has_entries(folder: str) -> bool:
    try:
        with os.scandir(folder) as entries:
            return any(entry.name != "agent" for entry in entries)  # ~/.atomic/agent is the user's own
    except OSError:
        return False


def _decisions(document: dict[str, Any], home: str) -> tuple[dict[str, bool], list[str]]:
    """By the folders that the keys lead to, through links and however they are spelt. Of two for one, the denial."""
    decisions: dict[str, bool] = {}
    faults: list[str] = []
    for key, value in document.items():
        folder = expand_home(key, home)
        if not os.path.isabs(folder) or "\0" in folder or not is_unicode(folder):
            faults.append(f"{shown(key)} is no absolute path; it is ignored")
            continue
        if not isinstance(value, bool):
            faults.append(f"{shown(key)} is {shown(value)}; allowed: true or false; it counts as false")
        folder = os.path.realpath(folder)
        decisions[folder] = value is True and decisions.get(folder, True)
    return decisions, faults
