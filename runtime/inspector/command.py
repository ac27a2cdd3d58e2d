"""`atomic tasks [PID|SESSION-ID]`: looks at the tasks of a session that runs in another process.

Exit code 0; 1, with one line on stderr, when there is nothing to look at or no terminal to show it; 2 for a call that
makes no sense.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from runtime.inspector.listing import print_tasks
from runtime.inspector.sessions import NO_SESSION, Found, NotFound, choose, find_sessions
from runtime.stdio import complain

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping, Sequence

NO_TEXTUAL = "atomic tasks needs textual: pip install 'atomic-runtime[tui]' (atomic tasks --list works without it)"
NO_TERMINAL = (
    "atomic tasks needs a terminal on stdin, stdout and stderr, and there is none on {}; "
    "atomic tasks --list prints the tasks anywhere"
)


def run(argv: Sequence[str], env: Mapping[str, str], cwd: str) -> int:
    """The exit code."""
    given = _parsed(argv)
    is_list = given.list or given.json
    elsewhere = [name for number, name in enumerate(("stdin", "stdout", "stderr")) if not os.isatty(number)]
    if elsewhere and not is_list:
        complain(NO_TERMINAL.format(", ".join(elsewhere)))
        return 1
    try:
        return asyncio.run(_print(given)) if is_list else _show(given, env, cwd)
    except NotFound as error:
        complain(str(error))
        return 1
    except KeyboardInterrupt:
        return 130


async def _print(given: Namespace) -> int:
    found = await find_sessions(keep=True)
    try:
        return await _print_found(found, given)
    finally:
        for live in found.lives:
            if live.link is not None:
                live.link.close()


async def _print_found(found: Found, given: Namespace) -> int:
    if given.session is not None:
        meant = choose(found, given.session)
        return await print_tasks([meant] if meant else [], as_json=given.json)
    if not found.lives and not found.silent:
        complain(NO_SESSION)
    for silent in found.silent:
        complain(str(silent))
    code = await print_tasks(found.lives, as_json=given.json)
    return 1 if found.silent else code


def _show(given: Namespace, env: Mapping[str, str], cwd: str) -> int:
    found = asyncio.run(find_sessions())
    meant = choose(found, given.session)
    for silent in found.silent if given.session is None else ():
        complain(str(silent))  # seen once the screen is left
    try:
        from runtime.inspector.app import InspectorApp
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("textual", "rich"):
            raise
        complain(NO_TEXTUAL)
        return 1
    keys = _keys(env, cwd)
    return InspectorApp(meant or found.lives, keys, os.path.expanduser("~")).start()


def _keys(env: Mapping[str, str], cwd: str) -> Mapping[str, tuple[str, ...]]:
    from actors.session.naming import agent_dir
    from runtime.resources import is_trusted
    from runtime.settings import load_settings

    agent = os.path.join(cwd, agent_dir(env, os.path.expanduser("~")))
    trusted, _ = is_trusted(agent, cwd, env, None)
    settings, warnings = load_settings(agent, cwd, env, trusted)
    for warning in warnings:
        if "tasks" in warning:
            complain(warning)
    return settings.task_keys


def _parsed(argv: Sequence[str]) -> Namespace:
    from runtime.command_parser import CommandParser

    parser = CommandParser("atomic tasks", "Look at the background tasks of a running session, and steer them.")
    parser.add_argument("session", nargs="?", metavar="PID|SESSION-ID", help="whose tasks; an id may be cut")
    parser.add_argument("--list", action="store_true", help="print the tasks and exit")
    parser.add_argument("--json", action="store_true", help="print one JSON object a session, with its tasks, and exit")
    return parser.parse_args(list(argv))
