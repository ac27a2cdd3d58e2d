"""The `intercom` tool where nobody owns tasks: there is nobody to talk with."""

from __future__ import annotations

from typing import Any

from actors.tool.table import ToolContext, ToolFailure, ToolOutput

NO_OWNER = "intercom requires a supported task owner"


def run(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    """Raises `ToolFailure`."""
    raise ToolFailure(NO_OWNER)
