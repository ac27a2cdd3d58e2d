"""The command `atomic-conformance`: which subcommands there are, and what their flags mean.

Owns the command line of the kit. Each subcommand is a module with `add_arguments(parser)` and `run(options) -> int`,
imported when it is asked for. Exit codes: 0 all is well, 1 the program under test differs, 2 the call or the kit is
wrong, 128 + N ended by the signal N.
"""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import sys
from collections.abc import Sequence

from conformance.fault import KitError

PROG = "atomic-conformance"
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
    try:
        code = _subcommand(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # whoever reads has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter flushes once more at its end
        return 128 + signal.SIGPIPE
    except (Misuse, ValueError, OSError, KitError) as problem:
        print(f"{PROG}: {problem}", file=sys.stderr)
        return 2
    except RecursionError:
        print(f"{PROG}: a value is nested too deep to be read", file=sys.stderr)
        return 2
    except KeyboardInterrupt as stopped:
        return 128 + int(getattr(stopped, "number", signal.SIGINT))


def _subcommand(words: list[str]) -> int:
    own, command = _split(words)
    wanted = next((word for word in own if not word.startswith("-")), None)
    options = _parser(wanted).parse_args(own)
    options.command = command
    return int(importlib.import_module(SUBCOMMANDS[options.subcommand][0]).run(options))


def _split(words: list[str]) -> tuple[list[str], list[str]]:
    if "--" not in words:
        return words, []
    at = words.index("--")
    return words[:at], words[at + 1 :]


def _parser(wanted: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROG,
        allow_abbrev=False,
        description="Holds any program `<cmd> --mode rpc` to the protocol.",
    )
    subparsers = parser.add_subparsers(dest="subcommand", required=True, metavar="SUBCOMMAND")
    for name, (module, text) in SUBCOMMANDS.items():
        sub = subparsers.add_parser(name, help=text, description=text, allow_abbrev=False)
        if name == wanted:
            importlib.import_module(module).add_arguments(sub)
    return parser
