"""`--system-prompt` and `--append-system-prompt`: each is a text, or the path of a file that holds it. Source: sessions
7.1.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from msgspec.structs import replace

if TYPE_CHECKING:
    from runtime.cli import Options


def resolved(options: Options, cwd: str) -> Options:
    """The same options with texts alone. A file that cannot be read counts as text, like a path that is none."""
    text = options.system_prompt
    return replace(
        options,
        system_prompt=None if text is None else text_or_file(text, cwd),
        append_system_prompt=tuple(text_or_file(text, cwd) for text in options.append_system_prompt),
    )


def text_or_file(value: str, cwd: str) -> str:
    path = os.path.join(cwd, os.path.expanduser(value))
    try:
        if not os.path.isfile(path):
            return value
        with open(path, "rb") as file:
            return file.read().decode("utf-8-sig", "replace")
    except (OSError, ValueError):  # a text with a NUL is no path
        return value
