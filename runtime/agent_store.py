"""Definitions of subagents as the tool writes them: new files, changed ones, and files that go.

Blocking: for a pump. Owns where a new file lies and which names it may have. Promises that a file is there whole or as
it was, that fields which nobody named stay as they are, and that nothing is written outside the folders of definitions.
Source: `tasks.md` 3.1 and 3.2.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from actors.task.definition import AgentChanged, by_name, in_scope, read_definition
from actors.tool import textfile
from actors.tool.schema import shorten
from actors.tool.table import ToolFailure
from runtime.agent_definitions import FOLDER, load_agents, project_of
from runtime.config_values import is_writable
from runtime.front_matter import FrontMatterError, split_front_matter
from runtime.front_matter_edit import edited
from runtime.resources import PROJECT_DIRS
from runtime.templates import user_home

if TYPE_CHECKING:
    from collections.abc import Mapping

    from actors.task.definition import AgentChange, AgentDefinition, AgentSource

_NAME = r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}"
_PACKAGE = rf"{_NAME}(\.{_NAME})*"
_ALLOWED = "letters, digits, - and _, at most 64, the first a letter or digit"
PROMPT = "systemPrompt"


def change_agent(change: AgentChange, agent_dir: str, env: Mapping[str, str], *, trusted: bool) -> AgentChanged:
    """Carries it out. Raises `ToolFailure`."""
    if change.scope == "project" and not trusted:
        raise ToolFailure(f"The project of {change.cwd} is not trusted, so it brings no agents of its own")
    found, _ = load_agents(agent_dir, change.cwd, env, trusted=trusted)
    if change.action == "create":
        return _create(change, found, _new_folder(change, agent_dir, env))
    agent = _existing(change, found)
    if change.action == "delete":
        _remove(agent.path)
        return AgentChanged(agent.name, agent.source, agent.path)
    for name in ("name", "package"):
        if name in change.config:
            raise ToolFailure(f"config.{name} cannot be changed: create another agent, and delete this one")
    _write(agent.path, _text_of(agent.path), change.config)
    return AgentChanged(agent.name, agent.source, agent.path)


def _create(change: AgentChange, found: list[AgentDefinition], folder: str) -> AgentChanged:
    name = _checked_name(change.config)
    source: AgentSource = "project" if change.scope == "project" else "user"
    there = by_name(each for each in found if each.source == source).get(name)
    path = os.path.join(folder, f"{name}.md")
    if there is not None:
        raise ToolFailure(f"Agent {name} exists already: {there.path}. Use action update")
    if os.path.lexists(path):
        raise ToolFailure(f"{path} exists already, and is no agent of that name")
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise textfile.failure(error, "mkdir", folder) from None
    _write(path, "", change.config)
    return AgentChanged(name, source, path)


def _existing(change: AgentChange, found: list[AgentDefinition]) -> AgentDefinition:
    """The one that counts in the scope; those that come with the program are not for changing."""
    own = [each for each in in_scope(found, change.scope) if each.source != "builtin"]
    agent = by_name(own).get(change.name)
    if agent is not None:
        return agent
    if change.name in by_name(each for each in found if each.source == "builtin"):
        other = "create one of that name to take its place, or set subagents.agentOverrides in the settings"
        raise ToolFailure(
            f"Agent {change.name} comes with the program, and action {change.action} is not for it: {other}"
        )
    raise ToolFailure(f"Unknown agent: {change.name[:80]}")


def _new_folder(change: AgentChange, agent_dir: str, env: Mapping[str, str]) -> str:
    if change.scope != "project":
        return os.path.join(agent_dir, FOLDER)
    home = user_home(env)
    if os.path.normpath(change.cwd) == home:
        raise ToolFailure(f"{home} is the home directory and no project")
    return os.path.join(project_of(change.cwd, home) or change.cwd, PROJECT_DIRS[0], FOLDER)


def _checked_name(config: Mapping[str, Any]) -> str:
    name, package = config["name"], config.get("package")
    if not re.fullmatch(_NAME, name):
        raise ToolFailure(f"config.name must be {_ALLOWED}, got {shorten(name)}")
    if package is not None and not re.fullmatch(_PACKAGE, package):
        raise ToolFailure(f"config.package must be {_ALLOWED}, and dots between such, got {shorten(package)}")
    return name if package is None else f"{package}.{name}"


def _text_of(path: str) -> str:
    return textfile.load(path, "change").decode("utf-8", "surrogateescape")


def _write(path: str, text: str, config: Mapping[str, Any]) -> None:
    if bad := [name for name, value in config.items() if not is_writable(value)]:
        raise ToolFailure(f"config.{bad[0]} must be valid Unicode, got a lone surrogate")
    fields = {name: _field(name, value) for name, value in config.items() if name != PROMPT}
    try:
        made = edited(text, fields, config.get(PROMPT))
        document = split_front_matter(made.removeprefix("\ufeff"))
        data = made.encode("utf-8", "surrogateescape")
    except FrontMatterError as error:
        raise ToolFailure(f"{path} cannot be changed: its front matter {error}") from None
    definition, faults = read_definition(document.fields or {}, document.body, "user", path)
    if definition is None or faults:
        raise ToolFailure("; ".join(faults) or "config.name and config.description must not be blank")
    textfile.replace(path, data, "change")


def _field(name: str, value: Any) -> Any:
    """Lists are written with commas, which every reader of such files understands."""
    if not isinstance(value, list):
        return value
    if bad := [entry for entry in value if "," in entry]:
        raise ToolFailure(f"config.{name} must hold names without commas, got {shorten(bad[0])}")
    return ", ".join(value) or None


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError as error:
        raise textfile.failure(error, "unlink", path) from None
