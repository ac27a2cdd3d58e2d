"""The `subagent` tool where nobody owns tasks: inside a subagent, or where it was switched on by hand."""

from __future__ import annotations

from typing import Any

from actors.tool.table import ToolContext, ToolFailure, ToolOutput

REFUSED = "Subagent delegation is not available inside a subagent."


def run(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    """Raises `ToolFailure`."""
    raise ToolFailure(REFUSED)
