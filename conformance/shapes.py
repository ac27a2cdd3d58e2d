"""Shapes: what a record must look like, written as JSON. Literals, partial objects, and matchers such as `{"$min": 1}`.

Pure. `match` compares a value with a shape and tells the first difference, how much agreed, and which names were
bound. `check_shape` refuses a shape that cannot be meant, before anything runs. `docs/conformance/transcript.md` lists
them all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from conformance.names import Names, fill, resolve

ABSENT = type("Absent", (), {"__repr__": lambda self: "nothing"})()
_TYPES: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "integer": lambda value: isinstance(value, int | float) and not isinstance(value, bool) and value == int(value),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}


class ShapeError(ValueError):
    """A shape that cannot be meant. `path` is where in it."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path or 'the shape'}: {problem}")


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


def shorten(value: Any, limit: int = 80) -> str:
    """A value as one line of JSON, cut in its middle when it is longer than `limit`."""
    text = "nothing" if value is ABSENT else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= limit else f"{text[: limit - 21]}…{text[-20:]}"


def same(one: Any, other: Any) -> bool:
    """Equal as JSON: 0 and 0.0 are, 1 and true are not."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


# ---- matching ------------------------------------------------------------------------------------------------------


class _Matching:
    def __init__(self, names: Names) -> None:
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
        inner = _Matching(self.names)
        if not inner.compare(shape, value, ""):
            return False
        for name, bound in inner.bound.items():
            self.bind(name, bound)
        return True

    def note_nearest(self, shape: Any, items: list[Any], path: str) -> bool:
        """No item matches: tells where the one that comes nearest differs, when one comes near at all."""
        tried = [(match(shape, item, self.names), index) for index, item in enumerate(items)]
        best, index = max(tried, key=lambda one: one[0].score, default=(None, 0))
        if best is None or best.difference is None or best.score < 2:  # being an object alone is not near
            return self.note(False, path, f"an item {shorten(shape)}", items)
        where = join(join(path, str(index)), best.difference.path)
        return self.note_difference(best.difference._replace(path=where))

    def note_difference(self, difference: Difference) -> bool:
        self.first = self.first or difference
        return False

    def compare(self, shape: Any, value: Any, path: str) -> bool:
        if is_matcher(shape):
            return all([_MATCHERS[key].compare(self, argument, value, path) for key, argument in shape.items()])
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


def join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def match(shape: Any, value: Any, names: Names) -> Match:
    """Compare; `names` are those bound so far. `bound` counts only when there is no difference."""
    matching = _Matching(names)
    matching.compare(shape, value, "")
    return Match(matching.first, matching.score, matching.bound)


# ---- the matchers --------------------------------------------------------------------------------------------------


class _Matcher(NamedTuple):
    """`problem` tells what is wrong with an argument, or nothing."""

    problem: Callable[[Any, str], str | None]
    compare: Callable[[_Matching, Any, Any, str], bool]


def _plain(holds: Callable[[Any, Any], bool], words: str) -> Callable[[_Matching, Any, Any, str], bool]:
    """A matcher that needs only the argument (names filled in) and the value."""

    def compare(matching: _Matching, argument: Any, value: Any, path: str) -> bool:
        argument = resolve(argument, matching.names)
        agreed = value is not ABSENT and holds(argument, value)
        return matching.note(agreed, path, f"{words} {shorten(argument)}", value)

    return compare


def _needs(kind: str, holds: Callable[[Any], bool]) -> Callable[[Any, str], str | None]:
    return lambda argument, path: None if holds(argument) else f"needs {kind}, not {shorten(argument)}"


def _shape_problem(argument: Any, path: str) -> str | None:
    check_shape(argument, path)
    return None


def _shapes_problem(argument: Any, path: str) -> str | None:
    if not isinstance(argument, list) or not argument:
        return f"needs a list of shapes, not {shorten(argument)}"
    for index, part in enumerate(argument):
        check_shape(part, join(path, str(index)))
    return None


def _bind_problem(argument: Any, path: str) -> str | None:
    name = argument[0] if isinstance(argument, list) and len(argument) == 2 else argument
    if not isinstance(name, str) or not name.isidentifier():
        return f"needs a name, or [name, shape], not {shorten(argument)}"
    if isinstance(argument, list):
        check_shape(argument[1], path)
    return None


def _bind(matching: _Matching, argument: Any, value: Any, path: str) -> bool:
    name, shape = argument if isinstance(argument, list) else (argument, {"$any": True})
    if not matching.compare(shape, value, path):
        return False
    matching.bind(name, value)
    return True


def _contains(matching: _Matching, argument: Any, value: Any, path: str) -> bool:
    if isinstance(value, list):
        if any(matching.try_shape(argument, item) for item in value):
            return matching.note(True, path, "", value)
        return matching.note_nearest(argument, value, path)
    wanted = resolve(argument, matching.names)
    agreed = isinstance(value, str) and isinstance(wanted, str) and wanted in value
    return matching.note(agreed, path, f"text with {shorten(wanted)} in it", value)


def _ordered(matching: _Matching, argument: Any, value: Any, path: str) -> bool:
    if not matching.note(isinstance(value, list), path, "an array", value):
        return False
    items = iter(enumerate(value))
    for number, shape in enumerate(argument):
        if not any(matching.try_shape(shape, item) for _, item in items):
            return matching.note(False, path, f"in this order, item {number} as {shorten(shape)}", value)
    return True


def _said(matching: _Matching, argument: Any, value: Any, path: str) -> bool:
    """Some programs keep the system prompt in their lists of messages."""
    kept = [one for one in value if not _is_system(one)] if isinstance(value, list) else value
    return matching.compare(argument, kept, path)


def _is_system(message: Any) -> bool:
    return isinstance(message, dict) and message.get("role") in ("system", "developer")


def _each(matching: _Matching, argument: Any, value: Any, path: str) -> bool:
    if not matching.note(isinstance(value, list), path, "an array", value):
        return False
    return all([matching.compare(argument, item, join(path, str(index))) for index, item in enumerate(value)])


def _exact(matching: _Matching, argument: Any, value: Any, path: str) -> bool:
    if not matching.compare_object(argument, value, path):
        return False
    extra = sorted(value.keys() - argument.keys())
    return matching.note(not extra, path, "no other keys", dict.fromkeys(extra, "…"))


def _optional(matching: _Matching, argument: Any, value: Any, path: str) -> bool:
    return value is ABSENT or value is None or matching.compare(argument, value, path)


def _not(matching: _Matching, argument: Any, value: Any, path: str) -> bool:
    return matching.note(not matching.try_shape(argument, value), path, f"anything but {shorten(argument)}", value)


def _or(matching: _Matching, argument: Any, value: Any, path: str) -> bool:
    agreed = any(matching.try_shape(shape, value) for shape in argument)
    return matching.note(agreed, path, f"one of {shorten(argument)}", value)


def _all(matching: _Matching, argument: Any, value: Any, path: str) -> bool:
    return all([matching.compare(shape, value, path) for shape in argument])


def _len(matching: _Matching, argument: Any, value: Any, path: str) -> bool:
    if not matching.note(isinstance(value, list | str | dict), path, "something with a length", value):
        return False
    return matching.compare(argument, len(value), join(path, "(length)"))


def _ref(matching: _Matching, argument: Any, value: Any, path: str) -> bool:
    wanted = matching.names[argument]
    return matching.note(value is not ABSENT and same(wanted, value), path, shorten(wanted, 160), value)


def _json(matching: _Matching, argument: Any, value: Any, path: str) -> bool:
    try:
        inner = json.loads(value)
    except (TypeError, ValueError):
        return matching.note(False, path, "JSON as text", value)
    return matching.compare(argument, inner, path)


def _is_number(value: Any) -> bool:
    return _TYPES["number"](value)


def _type_names(argument: Any) -> list[Any]:
    return argument if isinstance(argument, list) else [argument]


def _is_pattern(argument: Any) -> bool:
    try:
        re.compile(argument)
    except (re.error, TypeError):
        return False
    return True


_TRUE = _needs("true", lambda argument: argument is True)
_NUMBER = _needs("a number", _is_number)
_TEXT = _needs("a string", lambda argument: isinstance(argument, str))
_OBJECT = _needs("an object", lambda argument: isinstance(argument, dict))
_LIST = _needs("a list", lambda argument: isinstance(argument, list))
_TYPE = _needs(
    f"one of {', '.join(_TYPES)} or a list of them",
    lambda argument: bool(argument) and all(isinstance(one, str) and one in _TYPES for one in _type_names(argument)),
)

_MATCHERS: dict[str, _Matcher] = {
    "$any": _Matcher(_TRUE, lambda m, a, value, path: m.note(value is not ABSENT, path, "anything", value)),
    "$absent": _Matcher(_TRUE, lambda m, a, value, path: m.note(value is ABSENT, path, "nothing", value)),
    "$type": _Matcher(_TYPE, _plain(lambda a, value: any(_TYPES[one](value) for one in _type_names(a)), "type")),
    "$re": _Matcher(
        _needs("a regular expression", _is_pattern),
        _plain(lambda a, value: isinstance(value, str) and re.search(a, value) is not None, "text like"),
    ),
    "$starts": _Matcher(_TEXT, _plain(lambda a, value: isinstance(value, str) and value.startswith(a), "text from")),
    "$ends": _Matcher(_TEXT, _plain(lambda a, value: isinstance(value, str) and value.endswith(a), "text up to")),
    "$in": _Matcher(_LIST, _plain(lambda a, value: any(same(one, value) for one in a), "one of")),
    "$min": _Matcher(_NUMBER, _plain(lambda a, value: _is_number(value) and value >= a, "at least")),
    "$max": _Matcher(_NUMBER, _plain(lambda a, value: _is_number(value) and value <= a, "at most")),
    "$len": _Matcher(_shape_problem, _len),
    "$contains": _Matcher(_shape_problem, _contains),
    "$ordered": _Matcher(_shapes_problem, _ordered),
    "$each": _Matcher(_shape_problem, _each),
    "$said": _Matcher(_shape_problem, _said),
    "$exact": _Matcher(lambda a, path: _OBJECT(a, path) or _shape_problem(a, path), _exact),
    "$optional": _Matcher(_shape_problem, _optional),
    "$not": _Matcher(_shape_problem, _not),
    "$or": _Matcher(_shapes_problem, _or),
    "$all": _Matcher(_shapes_problem, _all),
    "$bind": _Matcher(_bind_problem, _bind),
    "$ref": _Matcher(_TEXT, _ref),
    "$times": _Matcher(
        _needs("[count, text]", lambda a: isinstance(a, list) and len(a) == 2 and isinstance(a[0], int)),
        lambda m, a, value, path: m.compare(resolve({"$times": a}, m.names), value, path),
    ),
    "$json": _Matcher(_shape_problem, _json),
    "$literal": _Matcher(lambda a, path: None, _plain(same, "exactly")),
}
MATCHERS = frozenset(_MATCHERS)


def is_matcher(shape: Any) -> bool:
    return isinstance(shape, dict) and bool(shape) and all(key in _MATCHERS for key in shape)


def check_shape(shape: Any, path: str = "") -> None:
    """Raises ShapeError for an unknown or misused matcher, at its place."""
    if isinstance(shape, list):
        for index, part in enumerate(shape):
            check_shape(part, join(path, str(index)))
    if not isinstance(shape, dict):
        return
    marked = [key for key in shape if key.startswith("$")]
    unknown = [key for key in marked if key not in _MATCHERS]
    if unknown:
        raise ShapeError(join(path, unknown[0]), f"no such matcher; there are {', '.join(sorted(_MATCHERS))}")
    if marked and len(marked) < len(shape):
        raise ShapeError(path, f"{marked[0]} stands beside plain keys; a matcher stands alone")
    for key, part in shape.items():
        inner = join(path, key)
        if not marked:
            check_shape(part, inner)
        elif problem := _MATCHERS[key].problem(part, inner):
            raise ShapeError(inner, problem)
