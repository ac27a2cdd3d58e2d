"""The command `atomic-conformance`: which subcommands there are, and what their flags mean.

Owns the command line of the kit. Each subcommand is a module with `add_arguments(parser)` and `run(options) -> int`,
imported when it is asked for. Exit codes: 0 all is well, 1 the program under test differs, 2 the call or the kit is
wrong.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from conformance.fault import KitError

# subcommand -> (module, what it does)
SUBCOMMANDS: dict[str, tuple[str, str]] = {
    "run": ("conformance.run_command", "play cases against a program and report"),
    "list": ("conformance.list_command", "list the cases"),
    "show": ("conformance.show_command", "show one case for a reader"),
    "replay": ("conformance.replay_command", "replay a recording against a program, and compare"),
    "compare": ("conformance.compare_command", "compare two recordings"),
    "convert": ("conformance.convert_command", "convert a recording of the older format"),
    "record": ("conformance.record_command", "stand between a client and an agent, and record both"),
    "mutate": ("conformance.mutate_command", "break an agent on purpose, to test clients"),
    "stress": ("conformance.stress_command", "put bounded load on an agent, and check what it promises"),
}


class Misuse(Exception):
    """The call is wrong; its text is one line for the user."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand; what follows `--` is the command of the program under test."""
    words = list(sys.argv[1:] if argv is None else argv)
    own, command = _split(words)
    wanted = next((word for word in own if not word.startswith("-")), None)
    parser = _parser(wanted)
    options = parser.parse_args(own)
    options.command = command
    try:
        module = importlib.import_module(SUBCOMMANDS[options.subcommand][0])
        return int(module.run(options))
    except (Misuse, ValueError, OSError, KitError) as problem:
        print(f"{parser.prog}: {problem}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def _split(words: list[str]) -> tuple[list[str], list[str]]:
    if "--" not in words:
        return words, []
    at = words.index("--")
    return words[:at], words[at + 1 :]


def _parser(wanted: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="atomic-conformance",
        allow_abbrev=False,
        description="Holds any program `<cmd> --mode rpc` to the protocol.",
    )
    subparsers = parser.add_subparsers(dest="subcommand", required=True, metavar="SUBCOMMAND")
    for name, (module, text) in SUBCOMMANDS.items():
        sub = subparsers.add_parser(name, help=text, description=text, allow_abbrev=False)
        if name == wanted:
            importlib.import_module(module).add_arguments(sub)
    return parser
