"""The `write` tool: a file's whole content, as given.

Creates parents, follows symlinks, keeps mode and owner; all or nothing where the directory allows. The content stands
in the file byte for byte as the model sent it. Source: `tasks.md` 1.3.
"""

from __future__ import annotations

import os
from typing import Any

from actors.tool import textfile
from actors.tool.table import ToolContext, ToolFailure, ToolOutput, text_output


def run(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    """Details: `resolvedPath`, the real path written."""
    path = context.resolve(arguments["path"])
    data = encode(arguments["content"], "content")
    context.check()
    target = os.path.realpath(path)
    try:
        os.makedirs(os.path.dirname(target), exist_ok=True)
    except OSError as error:
        raise textfile.failure(error, "mkdir", os.path.dirname(target)) from None
    textfile.replace(path, data, "write")
    return text_output(
        f"Successfully wrote {len(data)} bytes to {arguments['path']}",
        {"resolvedPath": target},
    )


def encode(text: str, field: str) -> bytes:
    """UTF-8; a lone surrogate is refused, since writing something else in its place would lose it silently."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ToolFailure(f"{field} must be valid Unicode, got a lone surrogate at character {error.start}") from None
