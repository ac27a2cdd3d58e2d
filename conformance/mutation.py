"""What a way to break an agent is: a mutation of the lines of its stdout, and how it is asked for.

Pure.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

Record = dict[str, Any]


class Choice(NamedTuple):
    """A mutation as it is asked for. `argument` is what the flag takes: a type, a command, a number, a text."""

    kind: str
    argument: str = ""


class Kind(NamedTuple):
    """`argument`: how the flag's argument is called in help, empty without; `text`: what the agent then does wrong."""

    make: Callable[[str], Mutation]
    argument: str
    text: str


class Mutation:
    """Overridden by each kind. `strikes` says whether a record can be struck, `struck` what stands in its place."""

    def __init__(self, argument: str) -> None:
        self.argument = argument

    def strikes(self, record: Record) -> bool:
        return record.get("type") == self.argument

    def struck(self, record: Record, line: bytes) -> list[bytes]:
        raise NotImplementedError

    def passed(self, record: Record | None, line: bytes) -> list[bytes]:
        """Every line that is not struck."""
        return [line]

    def ended(self) -> list[bytes]:
        """What was kept back."""
        return []


def is_response(record: Record, *commands: str) -> bool:
    return record.get("type") == "response" and (not commands or record.get("command") in commands)
