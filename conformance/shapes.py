"""Shapes: what a record must look like, written as JSON. Literals, partial objects, and matchers such as `{"$min": 1}`.

Pure. `match` compares a value with a shape and tells the first difference, how much agreed, and which names were
bound. `check_shape` refuses a shape that cannot be meant, before anything runs.
"""

from __future__ import annotations

from typing import Any

from conformance.json_values import join
from conformance.matchers import MATCHERS
from conformance.matching import Match, Matching
from conformance.names import Names


class ShapeError(ValueError):
    """A shape that cannot be meant. `path` is where in it."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path or 'the shape'}: {problem}")


def match(shape: Any, value: Any, names: Names) -> Match:
    """Compare; `names` are those bound so far. `bound` counts only when there is no difference."""
    return Matching(MATCHERS, names).matched(shape, value)


def is_matcher(shape: Any) -> bool:
    return isinstance(shape, dict) and bool(shape) and all(key in MATCHERS for key in shape)


def check_shape(shape: Any, path: str = "") -> None:
    """Raises ShapeError for an unknown or misused matcher, at its place."""
    if isinstance(shape, list):
        for index, part in enumerate(shape):
            check_shape(part, join(path, str(index)))
    if not isinstance(shape, dict):
        return
    marked = [key for key in shape if key.startswith("$")]
    unknown = [key for key in marked if key not in MATCHERS]
    if unknown:
        raise ShapeError(join(path, unknown[0]), f"no such matcher; there are {', '.join(sorted(MATCHERS))}")
    if marked and len(marked) < len(shape):
        raise ShapeError(path, f"{marked[0]} stands beside plain keys; a matcher stands alone")
    for key, part in shape.items():
        inner = join(path, key)
        if not marked:
            check_shape(part, inner)
        elif problem := MATCHERS[key].problem(part, inner, check_shape):
            raise ShapeError(inner, problem)
