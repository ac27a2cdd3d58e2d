"""One comparison of a value with a shape: what agreed, the first difference, and the names that were bound.

Pure. Knows literals, partial objects and lists; every matcher comes from the table that it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from conformance.json_values import ABSENT, join, same, shorten
from conformance.names import Names, fill


class Difference(NamedTuple):
    """The first place where a value is not what a shape asks for; both sides as text for a reader."""

    path: str
    awaited: str
    came: str


class Match(NamedTuple):
    """`score` counts the leaves that agreed: the greater, the nearer."""

    difference: Difference | None
    score: int
    bound: dict[str, Any]


class Matcher(NamedTuple):
    """`problem` tells what is wrong with an argument, or nothing; it is given what checks a shape inside of it."""

    problem: Callable[[Any, str, CheckShape], str | None]
    compare: Callable[[Matching, Any, Any, str], bool]


CheckShape = Callable[[Any, str], None]


class Matching:
    """One comparison under way; `table` are the matchers that it knows."""

    def __init__(self, table: Mapping[str, Matcher], names: Names) -> None:
        self.table = table
        self.names = dict(names)
        self.bound: dict[str, Any] = {}
        self.first: Difference | None = None
        self.score = 0

    def bind(self, name: str, value: Any) -> None:
        self.bound[name] = self.names[name] = value

    def note(self, agreed: bool, path: str, awaited: str, value: Any) -> bool:
        if agreed:
            self.score += 1
        elif self.first is None:
            self.first = Difference(path, awaited, shorten(value, 160))
        return agreed

    def try_shape(self, shape: Any, value: Any) -> bool:
        """Whether a value matches, without a trace of it when it does not."""
        inner = Matching(self.table, self.names)
        if not inner.compare(shape, value, ""):
            return False
        for name, bound in inner.bound.items():
            self.bind(name, bound)
        return True

    def note_nearest(self, shape: Any, items: list[Any], path: str) -> bool:
        """No item matches: tells where the one that comes nearest differs, when one comes near at all."""
        tried = [(self.matched(shape, item), index) for index, item in enumerate(items)]
        best, index = max(tried, key=lambda one: one[0].score, default=(None, 0))
        if best is None or best.difference is None or best.score < 2:  # being an object alone is not near
            return self.note(False, path, f"an item {shorten(shape)}", items)
        where = join(join(path, str(index)), best.difference.path)
        return self.note_difference(best.difference._replace(path=where))

    def note_difference(self, difference: Difference) -> bool:
        self.first = self.first or difference
        return False

    def matched(self, shape: Any, value: Any) -> Match:
        """The outcome of a comparison of its own, with the names of this one."""
        inner = Matching(self.table, self.names)
        inner.compare(shape, value, "")
        return Match(inner.first, inner.score, inner.bound)

    def is_matcher(self, shape: Any) -> bool:
        return isinstance(shape, dict) and bool(shape) and all(key in self.table for key in shape)

    def compare(self, shape: Any, value: Any, path: str) -> bool:
        if self.is_matcher(shape):
            return all([self.table[key].compare(self, argument, value, path) for key, argument in shape.items()])
        if isinstance(shape, dict):
            return self.compare_object(shape, value, path)
        if isinstance(shape, list):
            return self.compare_list(shape, value, path)
        wanted = fill(shape, self.names) if isinstance(shape, str) else shape
        return self.note(value is not ABSENT and same(wanted, value), path, shorten(wanted, 160), value)

    def compare_object(self, shape: dict[str, Any], value: Any, path: str) -> bool:
        if not self.note(isinstance(value, dict), path, "an object", value):
            return False
        return all([self.compare(part, value.get(key, ABSENT), join(path, key)) for key, part in shape.items()])

    def compare_list(self, shape: list[Any], value: Any, path: str) -> bool:
        if not self.note(isinstance(value, list), path, "an array", value):
            return False
        pairs = zip(shape, value, strict=False)
        agreed = [self.compare(part, item, join(path, str(index))) for index, (part, item) in enumerate(pairs)]
        return all(agreed) and self.note(len(shape) == len(value), path, f"{len(shape)} items", value)
