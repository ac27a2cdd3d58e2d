"""Reads what a call of `subagent` needs, in a pump: definitions are files, and a folder may be on a slow disk.

The call then gets its result at once (a list, a definition, a refusal), or what it is to launch.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from actors.base import Address, StartPump
from actors.mail import (
    AgentsPlanned,
    ToolCallMail,
    ToolRequest,
    ToolReturned,
)
from actors.task.definition import by_name, in_scope
from actors.task.delegation import plans
from actors.tool.table import ToolFailure, ToolOutput, text_output
from protocol.messages import TextContent

if TYPE_CHECKING:
    from actors.task.definition import AgentDefinition

LoadAgents = Callable[[str], tuple[list["AgentDefinition"], list[str]]]
"""The definitions for a folder, weakest first, and warnings."""


class Planning:
    """A call that is being read; nothing of it has to be ended."""

    def cancel(self) -> None:
        pass


class AgentPlanner:
    """`new_run` gives a name that no other launch has."""

    def __init__(self, start_pump: StartPump, load: LoadAgents, new_run: Callable[[], str]) -> None:
        self._start_pump = start_pump
        self._load = load
        self._new_run = new_run

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
        arguments = request.tool_call.arguments
        definitions, warnings = self._definitions(request)
        match arguments.get("action"):
            case "list":
                return ToolReturned(_listed(definitions, warnings))
            case "get":
                return ToolReturned(_shown(arguments["agent"], definitions))
        assert request.parent is not None
        run = self._new_run()
        return AgentsPlanned(run, plans(arguments, definitions, request.parent, request.place.cwd, run, os.path.isdir))

    def _definitions(self, request: ToolRequest) -> tuple[list[AgentDefinition], list[str]]:
        """Those in the scope of the call, weakest first."""
        arguments = request.tool_call.arguments
        cwd = os.path.normpath(os.path.join(request.place.cwd, arguments.get("cwd") or "."))
        found, warnings = self._load(cwd)
        return in_scope(found, arguments.get("agentScope") or "both"), warnings


def _listed(definitions: list[AgentDefinition], warnings: list[str]) -> ToolOutput:
    known = by_name(definitions)
    lines = [f"- {name} ({agent.source}): {agent.description}" for name, agent in known.items()]
    agents = [{"name": name, "description": agent.description, "source": agent.source} for name, agent in known.items()]
    return text_output("\n".join([*lines, *warnings]) or "(no agents)", {"agents": agents, "warnings": warnings})


def _shown(name: str, definitions: list[AgentDefinition]) -> ToolOutput:
    agent = by_name(definitions).get(name)
    if agent is None:
        raise ToolFailure(f"Unknown agent: {name[:80]}")
    fields: dict[str, Any] = msgspec.to_builtins(agent)
    told = [f"{key}: {value}" for key, value in fields.items() if key != "prompt" and value not in (None, [], ())]
    return text_output("\n".join([*told, "", agent.prompt]), {"agent": fields})


def _failed(text: str) -> ToolReturned:
    return ToolReturned(ToolOutput([TextContent(text)], is_error=True))
