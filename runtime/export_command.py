"""`atomic export SESSION.jsonl [OUT]`: a stored session as one HTML page.

The file is only read. What the page shows and where it goes is `actors.session.export`'s. Source: sessions 9.
"""

from __future__ import annotations

import os
import uuid
from typing import TYPE_CHECKING

from actors.session.export import ExportError
from actors.session.exporting import ExportPlan, render_to
from actors.session.naming import expand_home, home_dir
from actors.session.reading import SessionFileError, read_session
from actors.session.tree import Tree
from runtime.stdio import complain, say

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping, Sequence


def run(argv: Sequence[str], env: Mapping[str, str], cwd: str) -> int:
    """Prints the path of the page. 1, with one line on stderr, when there is none."""
    given = _parsed(argv)
    home = home_dir(env, os.path.expanduser("~"))
    path = os.path.join(cwd, expand_home(given.session, home))
    try:
        if not os.path.exists(path):
            raise SessionFileError(f"File not found: {path}")
        stored = read_session(path, lambda: str(uuid.uuid4()))
        assert stored.header is not None
        tree = Tree(stored.entries)
        plan = ExportPlan(
            path, given.out, stored.header, tuple(stored.entries), tree.leaf_id, tree.name, None, None, given.theme
        )
        page = render_to(plan, cwd, home)
    except (SessionFileError, ExportError, OSError) as error:
        complain(str(error))
        return 1
    say(page)
    return 0


def _parsed(argv: Sequence[str]) -> Namespace:
    from runtime.command_parser import CommandParser

    parser = CommandParser("atomic export", "Writes a stored session as one HTML page.")
    parser.add_argument("session", metavar="SESSION.jsonl", help="the session file")
    parser.add_argument("out", nargs="?", metavar="OUT", help="the page; atomic-session-<name>.html without it")
    parser.add_argument("--theme", choices=("auto", "dark", "light"), default="auto", help="colours to begin with")
    return parser.parse_args(list(argv))
