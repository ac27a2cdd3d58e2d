"""The `powershell` tool of Windows where nobody owns tasks: `bash` with another shell."""

from __future__ import annotations

from typing import Any

from actors.tool import bash
from actors.tool.table import ToolContext, ToolOutput


def run(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    """As `bash.run`."""
    return bash.run(context, arguments, powershell=True)
