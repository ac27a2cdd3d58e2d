"""`atomic schema [NAME]`: the JSON Schema of the protocol on stdout, all of it or one part."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING

from protocol.schema.documents import NAMES, WHOLE, text
from protocol.schema.typescript import declarations
from runtime.stdio import complain, say

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TYPESCRIPT = "typescript"
ALLOWED = (*NAMES, TYPESCRIPT)
USAGE = f"""usage: atomic schema [NAME]

{fill(f"NAME is one of: {', '.join(ALLOWED)}.", 80)}

Print the JSON Schema (2020-12) of what goes over stdin and stdout and stands in
session files: everything, or one part. Each part is whole in itself.
`typescript` prints everything as a declaration file.
"""


def run(argv: Sequence[str], env: Mapping[str, str], cwd: str) -> int:
    """The exit code: 2 for a part that there is not."""
    if list(argv) in (["-h"], ["--help"]):
        say(USAGE, end="")
        return 0
    if len(argv) > 1:
        complain(f"schema takes one name at most, got {len(argv)}")
        return 2
    name = argv[0] if argv else WHOLE
    if name not in (*ALLOWED, WHOLE):
        complain(f"there is no schema {name[:80]!r}; allowed: {', '.join(ALLOWED)}, or none for everything")
        return 2
    say(declarations() if name == TYPESCRIPT else text(name), end="")
    return 0
