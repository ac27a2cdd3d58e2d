"""The matchers: what each `{"$name": argument}` of a shape accepts. `docs/conformance/transcript.md` lists them.

Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from conformance.json_values import ABSENT, join, same, shorten
from conformance.matching import CheckShape, Matcher, Matching
from conformance.names import resolve, times_problem

Problem = Callable[[Any, str, CheckShape], str | None]
_TYPES: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "integer": lambda value: isinstance(value, int | float) and not isinstance(value, bool) and value == int(value),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}


def _plain(holds: Callable[[Any, Any], bool], words: str) -> Callable[[Matching, Any, Any, str], bool]:
    """A matcher that needs only the argument (names filled in) and the value."""

    def compare(matching: Matching, argument: Any, value: Any, path: str) -> bool:
        argument = resolve(argument, matching.names)
        agreed = value is not ABSENT and holds(argument, value)
        return matching.note(agreed, path, f"{words} {shorten(argument)}", value)

    return compare


def _needs(kind: str, holds: Callable[[Any], bool]) -> Problem:
    return lambda argument, path, check: None if holds(argument) else f"needs {kind}, not {shorten(argument)}"


def _shape_problem(argument: Any, path: str, check: CheckShape) -> str | None:
    check(argument, path)
    return None


def _shapes_problem(argument: Any, path: str, check: CheckShape) -> str | None:
    if not isinstance(argument, list) or not argument:
        return f"needs a list of shapes, not {shorten(argument)}"
    for index, part in enumerate(argument):
        check(part, join(path, str(index)))
    return None


def _bind_problem(argument: Any, path: str, check: CheckShape) -> str | None:
    name = argument[0] if isinstance(argument, list) and len(argument) == 2 else argument
    if not isinstance(name, str) or not name.isidentifier():
        return f"needs a name, or [name, shape], not {shorten(argument)}"
    if isinstance(argument, list):
        check(argument[1], path)
    return None


def _bind(matching: Matching, argument: Any, value: Any, path: str) -> bool:
    name, shape = argument if isinstance(argument, list) else (argument, {"$any": True})
    if not matching.compare(shape, value, path):
        return False
    matching.bind(name, value)
    return True


def _contains(matching: Matching, argument: Any, value: Any, path: str) -> bool:
    if isinstance(value, list):
        if any(matching.try_shape(argument, item) for item in value):
            return matching.note(True, path, "", value)
        return matching.note_nearest(argument, value, path)
    wanted = resolve(argument, matching.names)
    agreed = isinstance(value, str) and isinstance(wanted, str) and wanted in value
    return matching.note(agreed, path, f"text with {shorten(wanted)} in it", value)


def _ordered(matching: Matching, argument: Any, value: Any, path: str) -> bool:
    if not matching.note(isinstance(value, list), path, "an array", value):
        return False
    items = iter(enumerate(value))
    for number, shape in enumerate(argument):
        if not any(matching.try_shape(shape, item) for _, item in items):
            return matching.note(False, path, f"in this order, item {number} as {shorten(shape)}", value)
    return True


def _said(matching: Matching, argument: Any, value: Any, path: str) -> bool:
    """Some programs keep the system prompt in their lists of messages."""
    kept = [one for one in value if not _is_system(one)] if isinstance(value, list) else value
    return matching.compare(argument, kept, path)


def _is_system(message: Any) -> bool:
    return isinstance(message, dict) and message.get("role") in ("system", "developer")


def _each(matching: Matching, argument: Any, value: Any, path: str) -> bool:
    if not matching.note(isinstance(value, list), path, "an array", value):
        return False
    return all([matching.compare(argument, item, join(path, str(index))) for index, item in enumerate(value)])


def _exact(matching: Matching, argument: Any, value: Any, path: str) -> bool:
    if not matching.compare_object(argument, value, path):
        return False
    extra = sorted(value.keys() - argument.keys())
    return matching.note(not extra, path, "no other keys", dict.fromkeys(extra, "…"))


def _optional(matching: Matching, argument: Any, value: Any, path: str) -> bool:
    return value is ABSENT or value is None or matching.compare(argument, value, path)


def _not(matching: Matching, argument: Any, value: Any, path: str) -> bool:
    return matching.note(not matching.try_shape(argument, value), path, f"anything but {shorten(argument)}", value)


def _or(matching: Matching, argument: Any, value: Any, path: str) -> bool:
    agreed = any(matching.try_shape(shape, value) for shape in argument)
    return matching.note(agreed, path, f"one of {shorten(argument)}", value)


def _all(matching: Matching, argument: Any, value: Any, path: str) -> bool:
    return all([matching.compare(shape, value, path) for shape in argument])


def _len(matching: Matching, argument: Any, value: Any, path: str) -> bool:
    if not matching.note(isinstance(value, list | str | dict), path, "something with a length", value):
        return False
    return matching.compare(argument, len(value), join(path, "(length)"))


def _ref(matching: Matching, argument: Any, value: Any, path: str) -> bool:
    wanted = matching.names[argument]
    return matching.note(value is not ABSENT and same(wanted, value), path, shorten(wanted, 160), value)


def _json(matching: Matching, argument: Any, value: Any, path: str) -> bool:
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

MATCHERS: dict[str, Matcher] = {
    "$any": Matcher(_TRUE, lambda m, a, value, path: m.note(value is not ABSENT, path, "anything", value)),
    "$absent": Matcher(_TRUE, lambda m, a, value, path: m.note(value is ABSENT, path, "nothing", value)),
    "$type": Matcher(_TYPE, _plain(lambda a, value: any(_TYPES[one](value) for one in _type_names(a)), "type")),
    "$re": Matcher(
        _needs("a regular expression", _is_pattern),
        _plain(lambda a, value: isinstance(value, str) and re.search(a, value) is not None, "text like"),
    ),
    "$starts": Matcher(_TEXT, _plain(lambda a, value: isinstance(value, str) and value.startswith(a), "text from")),
    "$ends": Matcher(_TEXT, _plain(lambda a, value: isinstance(value, str) and value.endswith(a), "text up to")),
    "$in": Matcher(_LIST, _plain(lambda a, value: any(same(one, value) for one in a), "one of")),
    "$min": Matcher(_NUMBER, _plain(lambda a, value: _is_number(value) and value >= a, "at least")),
    "$max": Matcher(_NUMBER, _plain(lambda a, value: _is_number(value) and value <= a, "at most")),
    "$len": Matcher(_shape_problem, _len),
    "$contains": Matcher(_shape_problem, _contains),
    "$ordered": Matcher(_shapes_problem, _ordered),
    "$each": Matcher(_shape_problem, _each),
    "$said": Matcher(_shape_problem, _said),
    "$exact": Matcher(lambda a, path, check: _OBJECT(a, path, check) or _shape_problem(a, path, check), _exact),
    "$optional": Matcher(_shape_problem, _optional),
    "$not": Matcher(_shape_problem, _not),
    "$or": Matcher(_shapes_problem, _or),
    "$all": Matcher(_shapes_problem, _all),
    "$bind": Matcher(_bind_problem, _bind),
    "$ref": Matcher(_TEXT, _ref),
    "$times": Matcher(
        _needs("[count, text]", lambda a: times_problem(a) is None),
        lambda m, a, value, path: m.compare(resolve({"$times": a}, m.names), value, path),
    ),
    "$json": Matcher(_shape_problem, _json),
    "$literal": Matcher(lambda a, path, check: None, _plain(same, "exactly")),
}
