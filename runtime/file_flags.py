"""Flags whose values are files, seen from the folder in which the program was started: it may work in others later.

`--system-prompt` and `--append-system-prompt` are a text or the path of a file that holds it, `--skill` and
`--prompt-template` are paths. Source: sessions 7.1, 7.3 and 7.4.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from msgspec.structs import replace

if TYPE_CHECKING:
    from runtime.cli import Options


def resolved(options: Options, cwd: str) -> Options:
    """The same options with texts and absolute paths. A file that cannot be read counts as text, like a path that is
    none."""
    text = options.system_prompt
    return replace(
        options,
        system_prompt=None if text is None else text_or_file(text, cwd),
        append_system_prompt=tuple(text_or_file(text, cwd) for text in options.append_system_prompt),
        skill=tuple(absolute(path, cwd) for path in options.skill),
        prompt_template=tuple(absolute(path, cwd) for path in options.prompt_template),
    )


def text_or_file(value: str, cwd: str) -> str:
    path = absolute(value, cwd)
    try:
        if not os.path.isfile(path):
            return value
        with open(path, "rb") as file:
            return file.read().decode("utf-8-sig", "replace")
    except (OSError, ValueError):  # a text with a NUL is no path
        return value


def absolute(path: str, cwd: str) -> str:
    return os.path.join(cwd, os.path.expanduser(path))
