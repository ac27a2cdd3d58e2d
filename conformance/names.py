"""Names in a case: `{{name}}` inside texts, `{"$ref": name}` for whole values, and `{"$bind": name}` that makes one.

Pure. Owns also `{"$times": [count, text]}`, which spares a writer of cases from long texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from conformance.json_values import shorten

Names = Mapping[str, Any]
_HOLE = re.compile(r"\{\{([A-Za-z_]\w*)\}\}")


def fill(text: str, names: Names) -> str:
    """The text with each `{{name}}` replaced. KeyError for a name that is not known."""
    return _HOLE.sub(lambda hole: str(names[hole[1]]), text)


def resolve(value: Any, names: Names) -> Any:
    """A value to be sent: names filled in, `{"$ref": name}` and `{"$times": [count, text]}` worked out."""
    if isinstance(value, str):
        return fill(value, names)
    if isinstance(value, list):
        return [resolve(part, names) for part in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"$ref"}:
        return names[value["$ref"]]
    if value.keys() == {"$times"}:
        count, text = value["$times"]
        return resolve(text, names) * count
    return {fill(key, names): resolve(part, names) for key, part in value.items()}


def value_problem(value: Any) -> str | None:
    """What is wrong with a `$ref` or `$times` in a value that `resolve` is to work out, or nothing."""
    if isinstance(value, list):
        return next(filter(None, map(value_problem, value)), None)
    if not isinstance(value, dict):
        return None
    if value.keys() == {"$ref"} and not isinstance(value["$ref"], str):
        return f"$ref needs a name, not {shorten(value['$ref'])}"
    if value.keys() == {"$times"} and (problem := times_problem(value["$times"])):
        return problem
    return next(filter(None, map(value_problem, value.values())), None)


def times_problem(argument: Any) -> str | None:
    """What is wrong with the argument of `$times`, or nothing."""
    pair = argument if isinstance(argument, list) and len(argument) == 2 else [None, None]
    if type(pair[0]) is int and pair[0] >= 0 and isinstance(pair[1], str):
        return None
    return f"$times needs [count, text], not {shorten(argument)}"


def used_names(value: Any) -> Iterator[str]:
    """Every name that a value or shape refers to."""
    if isinstance(value, str):
        yield from _HOLE.findall(value)
    elif isinstance(value, list):
        for part in value:
            yield from used_names(part)
    elif isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for key, part in value.items():
            yield from _HOLE.findall(key)
            yield from used_names(part)


def bound_names(shape: Any) -> Iterator[str]:
    """Every name that a shape binds."""
    for part in shape.values() if isinstance(shape, dict) else shape if isinstance(shape, list) else ():
        yield from bound_names(part)
    if isinstance(shape, dict) and "$bind" in shape:
        bind = shape["$bind"]
        yield bind if isinstance(bind, str) else bind[0]
