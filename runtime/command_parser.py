"""The argument parser of a subcommand: one line on stderr and code 2 for a call that makes no sense."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any, NoReturn

from runtime.stdio import complain, say


class CommandParser(ArgumentParser):
    """Its help goes the way of all that is said on stdout."""

    def __init__(self, prog: str, description: str) -> None:
        super().__init__(prog=prog, description=description, allow_abbrev=False)

    def print_help(self, file: Any = None) -> None:
        say(self.format_help(), end="")

    def error(self, message: str) -> NoReturn:
        complain(message[:1].upper() + message[1:])
        raise SystemExit(2)
