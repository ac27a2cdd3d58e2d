"""Names in a case: `{{name}}` inside texts, `{"$ref": name}` for whole values, and `{"$bind": name}` that makes one.

Pure. Owns also `{"$times": [count, text]}`, which spares a writer of cases from long texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

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
