"""The `ls` tool: the names in one directory.

Sorted without regard to case, hidden ones included, directories with a closing slash. Source: `tasks.md` 1.7.
"""

from __future__ import annotations

import os
import stat
from typing import Any

from actors.tool import find, paths, textfile
from actors.tool.schema import whole
from actors.tool.table import ToolContext, ToolFailure, ToolOutput, text_output

DEFAULT_LIMIT = 500


def run(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    """Details: `entryLimitReached` and `truncated` when something was left out."""
    path = context.resolve(arguments.get("path") or ".")
    limit = whole(arguments, "limit") or DEFAULT_LIMIT
    names = _names(path)
    text, cut = find.capped(names[:limit])
    notices, details = [], {}
    if len(names) > limit:
        notices.append(f"{limit} entries limit reached. Use limit={2 * limit} for more")
        details["entryLimitReached"] = limit
    if cut:
        notices.append("50.0KB limit reached")
        details["truncated"] = True
    text = text or "(empty directory)"
    if notices:
        text += f"\n\n[{'. '.join(notices)}]"
    return text_output(text, details)


def _names(path: str) -> list[str]:
    try:
        if not stat.S_ISDIR(os.stat(path).st_mode):
            raise ToolFailure(f"ENOTDIR: not a directory, scandir '{path}'")
        with os.scandir(path) as found:
            entries = sorted(found, key=lambda entry: (entry.name.lower(), entry.name))
    except OSError as error:
        raise textfile.failure(error, "scandir", path) from None
    return [paths.printable(entry.name) + ("/" if find.is_directory(entry) else "") for entry in entries]
