"""The `subagent` tool of a subagent, and where nobody owns tasks: it looks at what agents there are and starts none.

An agent has it only if its definition names it. Source: `tasks.md` 3.2.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from actors.tool.subagent_schema import LOOKING, LOOKING_SNIPPET, looking_parameters
from actors.tool.table import Tool, ToolContext, ToolFailure, ToolOutput, text_output

if TYPE_CHECKING:
    from actors.task.planning import LoadAgents

REFUSED = "Subagent delegation is not available inside a subagent."
ACTIONS = ("list", "get", "status")


def run(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    """Raises `ToolFailure`."""
    raise ToolFailure(REFUSED)


def looking_tool(load: LoadAgents) -> Tool:
    """`load` tells what there is for a folder."""
    look: Callable[[ToolContext, dict[str, Any]], ToolOutput] = partial(_look, load)
    return Tool("subagent", LOOKING, LOOKING_SNIPPET, looking_parameters(), look, _nothing, fault=_fault)


def _look(load: LoadAgents, context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    from actors.task.planning import look

    if arguments["action"] == "status":
        return text_output('{"kind":"status","tasks":[]}', {"taskResponse": {"kind": "status", "tasks": []}})
    return look(load, arguments, context.cwd)


def _fault(arguments: dict[str, Any]) -> str | None:
    """What starts, stops or changes anything is refused whatever else it says."""
    if arguments.get("action") not in ACTIONS:
        return REFUSED
    from actors.tool.subagent_call import fault

    return fault(arguments)


def _nothing(arguments: dict[str, Any], cwd: str) -> str | None:
    return None
