"""The `kill` tool where nobody owns tasks: there is nothing to kill."""

from __future__ import annotations

from typing import Any

from actors.tool.shell_call import NO_OWNER
from actors.tool.table import ToolContext, ToolFailure, ToolOutput


def run(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    """Raises `ToolFailure`."""
    raise ToolFailure(NO_OWNER["kill"])
