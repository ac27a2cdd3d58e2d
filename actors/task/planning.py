"""Reads what a call of `subagent` needs, in a pump: definitions are files, and a folder may be on a slow disk.

The call then gets its result at once (a list, a definition, a refusal), or what it is to launch.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from actors.base import Address, StartPump
from actors.mail import (
    AgentPlan,
    AgentRefusal,
    AgentsPlanned,
    ToolCallMail,
    ToolRequest,
    ToolReturned,
)
from actors.task.definition import AgentChange, AgentChanged, KnownAgents, by_name, fields_of, in_scope
from actors.task.delegation import plans
from actors.tool.paths import PathRefused, resolve
from actors.tool.schema import given
from actors.tool.table import ToolFailure, ToolOutput, text_output
from protocol.messages import TextContent

if TYPE_CHECKING:
    from actors.task.checkout import WorktreeRoot
    from actors.task.definition import AgentScope

LoadAgents = Callable[[str], KnownAgents]
"""What there is for a folder."""
ChangeAgent = Callable[[AgentChange], AgentChanged]
"""Writes or removes the file of a definition. Raises `ToolFailure`."""
Plans = tuple[AgentPlan | AgentRefusal, ...]
_DONE = {"create": "Created", "update": "Updated", "delete": "Deleted"}


class Planning:
    """A call that is being read; nothing of it has to be ended."""

    def cancel(self) -> None:
        pass


class AgentPlanner:
    """`new_run` gives a name that no other launch has, 8 hex digits; `worktree_root` looks at a working tree, or raises
    `ToolFailure`; `read_folder` reads what a folder brings to the sessions in it; `is_folder` looks whether there is
    such a one."""

    def __init__(
        self,
        start_pump: StartPump,
        load: LoadAgents,
        change: ChangeAgent,
        worktree_root: Callable[[str], WorktreeRoot],
        new_run: Callable[[], str],
        read_folder: Callable[[str], Any],
        is_folder: Callable[[str], bool] = os.path.isdir,
    ) -> None:
        self._start_pump = start_pump
        self._load = load
        self._change = change
        self._worktree_root = worktree_root
        self._new_run = new_run
        self._read_folder = read_folder
        self._is_folder = is_folder

    def start(self, request: ToolRequest, call: Address[ToolCallMail]) -> Planning:
        self._start_pump("subagent-plan", lambda: call.tell(self._planned(request)))
        return Planning()

    def _planned(self, request: ToolRequest) -> AgentsPlanned | ToolReturned:
        try:
            return self._plan(request)
        except ToolFailure as refused:
            return _failed(str(refused))
        except Exception as error:  # the call must not stay unanswered
            return _failed(f"the tool subagent failed: {type(error).__name__}")

    def _plan(self, request: ToolRequest) -> AgentsPlanned | ToolReturned:
        arguments = given(request.tool_call.arguments)
        action = arguments.get("action")
        if action in _DONE:
            return ToolReturned(self._changed(action, arguments, _folder(arguments, request.place.cwd)))
        if action is not None:
            return ToolReturned(look(self._load, arguments, request.place.cwd))
        known = _known(self._load, arguments, request.place.cwd)
        assert request.parent is not None
        run, cwd = self._new_run(), _folder(arguments, request.place.cwd)
        root = self._worktree_root(cwd) if arguments.get("worktree") else None
        planned = plans(arguments, known, request.parent, cwd, run, self._is_folder, root)
        return AgentsPlanned(run, self._with_folders(planned))

    def _with_folders(self, planned: Plans) -> Plans:
        """Each folder is read once for all agents of a call; that is 80 looks into the file system. A worktree is not
        there yet, and what cannot be read now is read again when its agent begins, which is then refused by itself."""
        read: dict[str, Any] = {}
        for plan in planned:
            if isinstance(plan, AgentPlan) and plan.checkout is None and plan.cwd not in read:
                try:
                    read[plan.cwd] = self._read_folder(plan.cwd)
                except Exception:
                    read[plan.cwd] = None
        return tuple(
            replace(plan, folder=read.get(plan.cwd)) if isinstance(plan, AgentPlan) else plan for plan in planned
        )

    def _changed(self, action: Any, arguments: dict[str, Any], cwd: str) -> ToolOutput:
        scope: AgentScope = arguments.get("agentScope") or "both"
        change = AgentChange(action, arguments.get("agent") or "", scope, cwd, arguments.get("config") or {})
        changed = self._change(change)
        counts = by_name(self._load(cwd).definitions).get(changed.name)
        told = f"{_DONE[action]} agent {changed.name} ({changed.source}): {changed.path}"
        if counts is not None and counts.path != changed.path:
            told += f"\nThe agent of that name that counts is now {counts.path}"
        return text_output(told, {"agent": changed.name, "source": changed.source, "path": changed.path})


def look(load: LoadAgents, arguments: dict[str, Any], cwd: str) -> ToolOutput:
    """What the actions list and get answer; `cwd` is the session's folder. Raises `ToolFailure`."""
    known = _known(load, arguments, cwd)
    return _listed(known) if arguments["action"] == "list" else _shown(arguments["agent"], known)


def _known(load: LoadAgents, arguments: dict[str, Any], cwd: str) -> KnownAgents:
    """Those in the scope of the call."""
    known = load(_folder(arguments, cwd))
    return replace(known, definitions=tuple(in_scope(known.definitions, arguments.get("agentScope") or "both")))


def _folder(arguments: dict[str, Any], cwd: str) -> str:
    try:
        return resolve(arguments.get("cwd") or ".", cwd)
    except PathRefused as refused:
        raise ToolFailure(f"Invalid params: cwd: {refused}") from None


def _listed(known: KnownAgents) -> ToolOutput:
    counting = by_name(known.definitions).values()
    agents = [agent for agent in counting if not agent.disabled]
    lines = [f"- {agent.name} ({agent.source}): {' '.join(agent.description.split())}" for agent in agents]
    if disabled := [agent.name for agent in counting if agent.disabled]:
        lines.append(f"Disabled by the settings: {', '.join(disabled)}")
    told = [{"name": agent.name, "description": agent.description, "source": agent.source} for agent in agents]
    warnings = list(known.warnings)
    return text_output("\n".join([*lines, *warnings]) or "(no agents)", {"agents": told, "warnings": warnings})


def _shown(name: str, known: KnownAgents) -> ToolOutput:
    agent = by_name(known.definitions).get(name)
    if agent is None:
        raise ToolFailure(f"Unknown agent: {name[:80]}")
    fields = fields_of(agent)
    told = [
        f"{key}: {_plain(value)}" for key, value in fields.items() if key != "systemPrompt" and value not in (None, [])
    ]
    return text_output("\n".join([*told, "", agent.prompt]), {"agent": fields})


def _plain(value: str | bool | list[str]) -> str:
    """As it stands in a file."""
    return str(value).lower() if isinstance(value, bool) else value if isinstance(value, str) else ", ".join(value)


def _failed(text: str) -> ToolReturned:
    return ToolReturned(ToolOutput([TextContent(text)], is_error=True))
