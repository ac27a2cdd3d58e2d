"""The order of a burst: shapes that records must match one after another, with others allowed between them or not.

Pure: works on records as they come and remembers how far it is. A `many` element stands for any number of records, zero
included; it matters only when the sequence is tight, since otherwise anything may come between.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from conformance.json_values import shorten
from conformance.matching import Match
from conformance.names import Names
from conformance.shapes import match


class Element(NamedTuple):
    shape: Any
    label: str | None
    many: bool


def read_elements(items: Sequence[Any]) -> list[Element]:
    """`{"many": shape}`, `{"expect": shape, "as": label}`, or a shape."""
    return [_element(item) for item in items]


def _element(item: Any) -> Element:
    if isinstance(item, dict) and item.keys() == {"many"}:
        return Element(item["many"], None, True)
    if isinstance(item, dict) and "expect" in item and item.keys() <= {"expect", "as"}:
        return Element(item["expect"], item.get("as"), False)
    return Element(item, None, False)


class Burst:
    """`found` are the indexes of the records, one for each element that is no `many`; `wrong` tells what broke it."""

    def __init__(self, elements: Sequence[Element], ignore: Sequence[Any], tight: bool, names: Names) -> None:
        self._elements, self._ignore, self._tight = elements, ignore, tight
        self._next = 0
        self.names = dict(names)
        self.bound: dict[str, Any] = {}
        self.found: list[tuple[int, str | None]] = []
        self.wrong: str | None = None

    @property
    def awaited(self) -> Any:
        """The shape that has to come next, None when the sequence is whole."""
        left = [element.shape for element in self._elements[self._next :] if not element.many]
        return left[0] if left else None

    def feed(self, index: int, record: Mapping[str, Any]) -> None:
        if any(match(shape, record, self.names).difference is None for shape in self._ignore):
            return
        position = self._next
        while position < len(self._elements):
            element = self._elements[position]
            matched = match(element.shape, record, self.names)
            if matched.difference is None:
                return self._advance(position, index, matched)
            if not element.many:
                break
            position += 1
        if self._tight and self.found:
            self.wrong = shorten(dict(record), 300)

    def _advance(self, position: int, index: int, matched: Match) -> None:
        element = self._elements[position]
        self._next = position if element.many else position + 1
        if not element.many:
            self.found.append((index, element.label))
            self.bound |= matched.bound
            self.names |= matched.bound
