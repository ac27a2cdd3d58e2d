"""Checks the arguments of a call against the tool's JSON schema.

Owns nothing and keeps nothing. Knows the keywords that tool schemas use (type, enum, const, properties, required,
additionalProperties, items, anyOf, oneOf, and the limits of numbers, strings and arrays) and passes over others. The
walk follows the schema, not the value, so a deeply nested value cannot exhaust the stack. A plain walk instead of
fastjsonschema: that costs 15 ms of import and 1 to 3 ms a schema before the first call, this some microseconds a call.
Source: `tasks.md` 1.1.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

from actors.tool.table import Tool, ToolFailure

_NAMES = {
    "string": "a string",
    "number": "a number",
    "integer": "an integer",
    "boolean": "true or false",
    "object": "an object",
    "array": "an array",
    "null": "null",
}
_SHOWN = 80
_LARGEST = 2**53


def check_arguments(tool: Tool, arguments: dict[str, Any]) -> str | None:
    """`None` if `arguments` fit, else one sentence that names the field, what came and what is allowed.

    A number may come as a string of digits, and an optional property as null: null counts as left out, so a
    required one that is null is missing. Never raises.
    """
    try:
        if (told := tool.fault(arguments)) is not None:
            return told
        fault = next(_faults(arguments, tool.parameters, ""), None)
    except Exception as error:
        fault = f"arguments could not be checked: {type(error).__name__}"
    return fault and f"Invalid arguments for tool {shorten(tool.name)}: {fault}"


def shorten(value: Any) -> str:
    """`value` for an error text, at most 80 characters, containers by their size only."""
    if isinstance(value, dict):
        return f"an object of {len(value)}"
    if isinstance(value, list | tuple):
        return f"an array of {len(value)}"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = ascii(value[:_SHOWN]) if isinstance(value, str) else _number_text(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def shown_number(value: float) -> str:
    """`value` for an error text that tells its bound: every digit that counts, since one just past the bound must not
    read like it; no point in whole ones."""
    return repr(float(value)).removesuffix(".0")


def given(arguments: dict[str, Any]) -> dict[str, Any]:
    """Without what is null, which counts as left out."""
    return {name: value for name, value in arguments.items() if value is not None}


def text(arguments: dict[str, Any], name: str) -> str:
    """The string under `name`, for what is handed on to other actors: they trust it. Raises `ToolFailure`."""
    value = arguments.get(name)
    if not isinstance(value, str):
        raise ToolFailure(f"{name} must be a string, got {shorten(value)}")
    return value


def number(arguments: dict[str, Any], name: str) -> float | None:
    """The number under `name`, also if it came as a string; `None` if it is absent or null."""
    value = arguments.get(name)
    return None if value is None else as_number(value)


def whole(arguments: dict[str, Any], name: str) -> int | None:
    """The same as a whole number, which the schema has checked: down to it, and no more than what counts anything."""
    found = number(arguments, name)
    return None if found is None else int(min(found, _LARGEST))


def _number_text(value: Any) -> str:
    try:
        return str(value)
    except ValueError:  # an int of more digits than Python will print
        return "a number too long to show"


def as_number(value: Any) -> float | None:
    """The number that it is or that it holds as text; one too large for any is infinite."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except ValueError:
        return None
    except OverflowError:
        return math.inf if int(value) > 0 else -math.inf


def _is(value: Any, kind: str) -> bool:
    if kind == "number":
        return as_number(value) is not None
    if kind == "integer":
        found = as_number(value)
        return found is not None and (not math.isfinite(found) or found == int(found))
    if kind == "boolean":
        return isinstance(value, bool)
    if kind == "null":
        return value is None
    types: dict[str, type] = {"string": str, "object": dict, "array": list}
    return kind not in types or isinstance(value, types[kind])


def _faults(value: Any, schema: Any, at: str) -> Iterator[str]:
    if not isinstance(schema, dict):
        if schema is False:
            yield f"{at or 'the value'} is not allowed"
        return
    yield from _kind_faults(value, schema, at)
    yield from _choice_faults(value, schema, at)
    if isinstance(value, dict):
        yield from _object_faults(value, schema, at)
    elif isinstance(value, list):
        yield from _array_faults(value, schema, at)
    elif isinstance(value, str) and not _wants_number(schema):
        yield from _string_faults(value, schema, at)
    else:
        yield from _number_faults(value, schema, at)


def _kinds(schema: dict[str, Any]) -> list[str]:
    kind = schema.get("type", [])
    return [kind] if isinstance(kind, str) else list(kind)


def _wants_number(schema: dict[str, Any]) -> bool:
    kinds = _kinds(schema)
    return "string" not in kinds and ("number" in kinds or "integer" in kinds)


def _kind_faults(value: Any, schema: dict[str, Any], at: str) -> Iterator[str]:
    kinds = _kinds(schema)
    if kinds and not any(_is(value, kind) for kind in kinds):
        allowed = " or ".join(_NAMES.get(kind, kind) for kind in kinds)
        yield f"{at or 'the value'} must be {allowed}, got {shorten(value)}"


def _choice_faults(value: Any, schema: dict[str, Any], at: str) -> Iterator[str]:
    choices = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if choices is not None and value not in choices:
        yield f"{at or 'the value'} must be one of {', '.join(map(shorten, choices))}, got {shorten(value)}"
    for keyword in ("anyOf", "oneOf"):
        branches = schema.get(keyword)
        if not branches:
            continue
        faults = [next(_faults(value, branch, at), None) for branch in branches]
        if all(faults):
            yield " or ".join(dict.fromkeys(filter(None, faults)))


def _object_faults(value: dict[str, Any], schema: dict[str, Any], at: str) -> Iterator[str]:
    properties = schema.get("properties", {})
    for name in schema.get("required", ()):
        if value.get(name) is None:
            yield f"{_join(at, name)} is missing"
    others = schema.get("additionalProperties", True)
    for name, inner in value.items():
        if name in properties:
            if inner is not None:
                yield from _faults(inner, properties[name], _join(at, name))
        elif others is False:
            known = ", ".join(properties) or "none"
            yield f"{_join(at, shorten(name))} is not a known property; known are {known}"
        else:
            yield from _faults(inner, others, _join(at, shorten(name)))


def _array_faults(value: list[Any], schema: dict[str, Any], at: str) -> Iterator[str]:
    low, high = schema.get("minItems", 0), schema.get("maxItems", math.inf)
    if not low <= len(value) <= high:
        yield f"{at or 'the array'} must have {_range(low, high)} entries, got {len(value)}"
    for index, inner in enumerate(value):
        yield from _faults(inner, schema.get("items", True), f"{at}[{index}]")


def _string_faults(value: str, schema: dict[str, Any], at: str) -> Iterator[str]:
    low, high = schema.get("minLength", 0), schema.get("maxLength", math.inf)
    if not low <= len(value) <= high:
        yield f"{at or 'the string'} must have {_range(low, high)} characters, got {len(value)}"
    pattern = schema.get("pattern")
    if pattern is not None and not re.search(pattern, value):
        yield f"{at or 'the string'} must match {shorten(pattern)}, got {shorten(value)}"


def _number_faults(value: Any, schema: dict[str, Any], at: str) -> Iterator[str]:
    found = as_number(value)
    if found is None:
        return
    if not math.isfinite(found):
        yield f"{at or 'the number'} must be finite, got {shorten(value)}"
    if "minimum" in schema and found < schema["minimum"]:
        yield f"{at or 'the number'} must be at least {schema['minimum']}, got {shorten(value)}"
    if "maximum" in schema and found > schema["maximum"]:
        yield f"{at or 'the number'} must be at most {schema['maximum']}, got {shorten(value)}"
    if "exclusiveMinimum" in schema and found <= schema["exclusiveMinimum"]:
        yield f"{at or 'the number'} must be more than {schema['exclusiveMinimum']}, got {shorten(value)}"
    if "exclusiveMaximum" in schema and found >= schema["exclusiveMaximum"]:
        yield f"{at or 'the number'} must be less than {schema['exclusiveMaximum']}, got {shorten(value)}"


def _range(low: float, high: float) -> str:
    return f"at least {low}" if high == math.inf else f"{low} to {high}"


def _join(at: str, name: str) -> str:
    return f"{at}.{name}" if at else name
