"""What a case found: one difference between what was awaited and what came, as data and as text for a reader.

Pure. Owns the search for the nearest record, which is what makes a missing record readable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from conformance.json_values import shorten
from conformance.matching import Difference
from conformance.names import Names
from conformance.shapes import match


class Fault(NamedTuple):
    """`line` is that of the case, 0 for a rule that holds in every case. `rule` names that rule."""

    what: str
    line: int = 0
    awaited: str = ""
    came: str = ""
    nearest: str = ""
    rule: str = ""

    def text(self) -> str:
        """Several lines, each short enough for a terminal."""
        head = f"line {self.line}: {self.what}" if self.line else f"rule {self.rule}: {self.what}"
        parts = [("awaited", self.awaited), ("came", self.came), ("nearest", self.nearest)]
        return "\n".join([head, *(f"  {name:8} {value}" for name, value in parts if value)])


class Unmet(Exception):
    """Ends the play of a case: what a step awaited did not happen."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.what)
        self.fault = fault


class KitError(Exception):
    """The case or the kit itself is at fault, not the agent."""


class NotStarted(KitError):
    """The command is no program that can be started: no case can be played."""

    def __init__(self, problem: OSError) -> None:
        super().__init__(f"the command does not start: {problem}")


def told(difference: Difference) -> tuple[str, str]:
    """Both sides of a difference, each with the path."""
    where = f"{difference.path}: " if difference.path else ""
    return f"{where}{difference.awaited}", f"{where}{difference.came}"


def compared(what: str, line: int, difference: Difference) -> Fault:
    awaited, came = told(difference)
    return Fault(what, line, awaited, came)


def missing_record(shape: Any, records: Iterable[Mapping[str, Any]], names: Names, line: int, why: str) -> Fault:
    """No record matched: tells the one that came nearest and its first difference."""
    best: tuple[int, Difference, Mapping[str, Any]] | None = None
    for record in records:
        found = match(shape, record, names)
        score = found.score + (100 if record.get("type") == _literal(shape, "type") else 0)
        score += 50 if "id" in record and record["id"] == _literal(shape, "id") else 0
        if found.difference and (best is None or score > best[0]):
            best = (score, found.difference, record)
    what = f"no record {shorten(shape, 200)} ({why})"
    if best is None or best[0] == 0:
        return Fault(what, line, came="no record like it")
    awaited, came = told(best[1])
    return Fault(what, line, awaited, came, shorten(dict(best[2]), 300))


def _literal(shape: Any, key: str) -> Any:
    value = shape.get(key) if isinstance(shape, dict) else None
    return value if isinstance(value, str | int) else None
