"""`atomic agents`: the kinds of subagents that there are for this folder, and what one of them is.

Owns the columns. What is wrong with files and settings goes to stderr. Source: `tasks.md` 3.1.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import msgspec

from actors.session.naming import agent_dir
from actors.task.definition import by_name, fields_of
from protocol.codec import encode
from runtime.agent_definitions import known_agents
from runtime.stdio import complain, plain, say, say_json

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Mapping, Sequence

    from actors.task.definition import AgentDefinition

HEAD = ("agent", "whose", "model", "context", "description")
SHOWN = 80


def run(argv: Sequence[str], env: Mapping[str, str], cwd: str) -> int:
    """The exit code: 1 for an agent that is not there."""
    given = _parsed(argv)
    agent_folder = os.path.join(cwd, agent_dir(env, os.path.expanduser("~")))
    known = known_agents(agent_folder, cwd, env, given.approve)
    for warning in known.warnings:
        complain(warning)
    agents = by_name(known.definitions)
    if given.name is not None and given.name not in agents:
        complain(f"Unknown agent: {given.name[:SHOWN]}. There are {', '.join(agents)}")
        return 1
    wanted = [agents[given.name]] if given.name is not None else list(agents.values())
    if given.json:
        for agent in wanted:
            say_json(encode(fields_of(agent)))
    elif given.name is not None:
        say(_page(wanted[0]))
    else:
        say("\n".join(_table(wanted)))
    return 0


def _parsed(argv: Sequence[str]) -> Namespace:
    from runtime.command_parser import CommandParser

    parser = CommandParser("atomic agents", "List the agents that the model can hand tasks to in this folder.")
    parser.add_argument("name", metavar="NAME", nargs="?", help="show this one, with its instructions")
    parser.add_argument("--json", action="store_true", help="one JSON object a line, with everything about an agent")
    parser.add_argument("-a", "--approve", action="store_true", default=None, help="as if this project were trusted")
    parser.add_argument("-na", "--no-approve", action="store_false", dest="approve", help="or as if it were not")
    return parser.parse_args(list(argv))


def _page(agent: AgentDefinition) -> str:
    fields = {name: value for name, value in fields_of(agent).items() if value not in (None, [])}
    prompt = fields.pop("systemPrompt", "")
    lines = [f"{name}: {_shown(value)}" for name, value in fields.items()]
    return "\n".join([*lines, "", *(plain(line) for line in str(prompt).split("\n"))])


def _shown(value: Any) -> str:
    return plain(", ".join(value) if isinstance(value, list) else value if isinstance(value, str) else _json(value))


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _table(agents: list[AgentDefinition]) -> Iterator[str]:
    rows = [HEAD, *map(_row, agents)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _row(agent: AgentDefinition) -> tuple[str, ...]:
    description = agent.description if len(agent.description) <= SHOWN else agent.description[: SHOWN - 1] + "…"
    whose = f"{agent.source}, disabled" if agent.disabled else agent.source
    return (plain(agent.name), whose, plain(agent.model or "-"), agent.context, plain(description))
