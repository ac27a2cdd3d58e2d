"""Subagent definitions on disk: those that come with the program, the user's and the project's, and those of packages.

Owns the places and their order, which is that of precedence from weak to strong. Promises that a file which cannot be
used costs one warning and never its neighbours, and that absent folders cost nothing. Source: `tasks.md` 3.1.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from actors.task.definition import AgentDefinition, KnownAgents, read_definition
from runtime.front_matter import read_document
from runtime.resources import PROJECT_DIRS, decided_trust, is_trusted
from runtime.settings import load_settings
from runtime.templates import package_folders, user_dirs, user_home

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from actors.task.definition import AgentSource
    from runtime.templates import SettingPath

FOLDER = "agents"
BUILT_IN = os.path.join(os.path.dirname(os.path.abspath(__file__)), FOLDER)


def known_agents(agent_dir: str, cwd: str, env: Mapping[str, str], approve: bool | None) -> KnownAgents:
    """What subagents there are for a folder. A project's own lie in places that no other trust is asked for, so they
    count only if the project was trusted by somebody. What is wrong in the settings is told by whoever reads them
    first."""
    trusted, _ = is_trusted(agent_dir, cwd, env, approve)
    settings, _ = load_settings(agent_dir, cwd, env, trusted)
    decided, _ = decided_trust(agent_dir, cwd, env, approve)
    packages, faults = package_folders(settings.documents, cwd, env)
    found, warnings = load_agents(
        agent_dir, cwd, env, trusted=decided, overrides=settings.agent_overrides, packages=packages
    )
    return KnownAgents(tuple(found), tuple([*faults, *warnings]), settings.max_subagents)


def load_agents(
    agent_dir: str,
    cwd: str,
    env: Mapping[str, str],
    *,
    trusted: bool,
    overrides: Mapping[str, Mapping[str, Any]] | None = None,
    packages: Sequence[SettingPath] = (),
) -> tuple[list[AgentDefinition], list[str]]:
    """All definitions, weakest first, and warnings. `agent_dir` and `cwd` are absolute; an untrusted project brings
    none. `overrides` are fields by the name of an agent that comes with the program."""
    warnings: list[str] = []
    found = [
        definition
        for source, folder in _places(agent_dir, cwd, env, trusted, packages)
        for path in _files(folder, warnings)
        if (definition := _read(path, source, overrides or {}, warnings)) is not None
    ]
    return found, warnings


def _places(
    agent_dir: str, cwd: str, env: Mapping[str, str], trusted: bool, packages: Sequence[SettingPath]
) -> Iterator[tuple[AgentSource, str]]:
    """What somebody wrote for himself is stronger than the packages that he named."""
    yield "builtin", BUILT_IN
    for package in packages:
        if package.scope == "user":
            yield "user", os.path.join(package.path, FOLDER)
    for folder in reversed(user_dirs(agent_dir, env)):
        yield "user", os.path.join(folder, FOLDER)
    home = user_home(env)
    yield "user", os.path.join(home, ".agents")
    for package in packages:
        if package.scope == "project" and trusted:
            yield "project", os.path.join(package.path, FOLDER)
    project = project_of(cwd, home) if trusted else None
    if project is not None:
        for name in (".agents", *(os.path.join(name, FOLDER) for name in reversed(PROJECT_DIRS))):
            yield "project", os.path.join(project, name)


def project_of(cwd: str, home: str) -> str | None:
    """The nearest folder, from `cwd` upwards, that has anything of a project's own; the home directory is none."""
    folder = os.path.normpath(cwd)
    while folder != home:
        if any(os.path.isdir(os.path.join(folder, name)) for name in (*PROJECT_DIRS, ".agents")):
            return folder
        parent = os.path.dirname(folder)
        if parent == folder:
            break
        folder = parent
    return None


def _files(top: str, warnings: list[str]) -> Iterator[str]:
    """Every `.md` file at any depth, by name; folders behind links are not entered, skills are none of ours."""
    for folder, folders, names in os.walk(top, onerror=lambda error: _told(error, warnings)):
        folders[:] = sorted(name for name in folders if name[0] != "." and name not in ("node_modules", "skills"))
        yield from (
            os.path.join(folder, name) for name in sorted(names) if name.endswith(".md") and not name.startswith(".")
        )


def _told(error: OSError, warnings: list[str]) -> None:
    if not isinstance(error, (FileNotFoundError, NotADirectoryError)):
        warnings.append(f"{error.filename} cannot be searched for agents: {error.strerror or error}")


def _read(
    path: str, source: AgentSource, overrides: Mapping[str, Mapping[str, Any]], warnings: list[str]
) -> AgentDefinition | None:
    document = read_document(path, warnings)
    if document is None or document.fields is None:
        return None
    said = overrides.get(document.fields.get("name", ""), {}) if source == "builtin" else {}
    body = said.get("systemPrompt", document.body)
    definition, faults = read_definition({**document.fields, **said}, body, source, path)
    warnings += [f"{path}: {fault}" for fault in faults]
    return definition
