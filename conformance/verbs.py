"""The verbs of a case: which steps there are, what value each takes and which options may stand beside it.

Pure. A checker gets a value and tells what it needs instead, or nothing. Reference: `docs/conformance/transcript.md`.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from conformance.folders import INSIDE, is_inside
from conformance.json_values import is_hex, shorten
from conformance.names import times_problem
from conformance.shapes import ShapeError, check_shape, is_matcher

Checker = Callable[[Any], str | None]


def _needs(what: str, holds: Callable[[Any], bool]) -> Checker:
    return lambda value: None if holds(value) else what


def is_shape(value: Any) -> str | None:
    try:
        check_shape(value)
    except ShapeError as problem:
        return f"a shape ({problem})"
    return None


def is_record_shape(value: Any) -> str | None:
    if not isinstance(value, dict) or (is_matcher(value) and not value.keys() & {"$or", "$all", "$exact", "$not"}):
        return 'the shape of a record, such as {"type": "agent_start"}'
    return is_shape(value)


def _is_sequence(value: Any) -> str | None:
    if not isinstance(value, list) or not value:
        return "a list of shapes"
    for item in value:
        inner = item
        if isinstance(item, dict) and item.keys() <= {"expect", "as"} and "expect" in item:
            inner = item["expect"]
        elif isinstance(item, dict) and item.keys() == {"many"}:
            inner = item["many"]
        if problem := is_record_shape(inner):
            return problem
    return None


def _is_bytes(value: Any) -> bool:
    if isinstance(value, dict):
        return value.keys() == {"hex"} and is_hex(value["hex"])
    return isinstance(value, str)


def _is_commands(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and all(isinstance(one, dict) for one in value))


_CONTENT: Mapping[str, Callable[[Any], bool]] = {
    "text": lambda value: isinstance(value, str),
    "hex": is_hex,
    "json": lambda value: True,
    "lines": lambda value: isinstance(value, list),
    "$times": lambda value: times_problem(value) is None,
}


def content_problem(value: Any) -> str | None:
    """What the content of a file needs instead, or nothing."""
    if isinstance(value, str | list):
        return None
    if isinstance(value, dict) and len(value) == 1:
        ((key, inner),) = value.items()
        if key in _CONTENT and _CONTENT[key](inner):
            return None
    return f"as content a string, a list of lines, or an object with one of {', '.join(_CONTENT)}, not {shorten(value)}"


is_object = _needs("an object", lambda value: isinstance(value, dict))
is_text = _needs("a string", lambda value: isinstance(value, str))
is_texts = _needs("a list of strings", lambda value: isinstance(value, list) and all(isinstance(x, str) for x in value))
is_flag = _needs("true or false", lambda value: isinstance(value, bool))
is_true = _needs("true", lambda value: value is True)
is_name = _needs("a name (letters, digits, _)", lambda value: isinstance(value, str) and value.isidentifier())
is_names = _needs(
    "a name or a list of names",
    lambda value: isinstance(value, str) or (isinstance(value, list) and all(isinstance(x, str) for x in value)),
)
is_count = _needs("a whole number above 0", lambda value: type(value) is int and value > 0)
_is_index = _needs("a number from 1, or -1 for the last", lambda value: type(value) is int and value != 0)
_is_seconds = _needs("seconds", lambda value: type(value) in (int, float) and value > 0)
is_signal = _needs("a signal such as TERM", lambda value: isinstance(value, str) and hasattr(signal, f"SIG{value}"))
_is_stop = _needs("true or a number of bytes", lambda value: value is True or (type(value) is int and value >= 0))
_commands = _needs("a command or a list of commands", _is_commands)
_bytes = _needs(
    'a string, {"hex": "…"}, or a list of them',
    lambda value: all(map(_is_bytes, value if isinstance(value, list) else [value])),
)

_RANGE: Mapping[str, Checker] = {"after": is_name, "before": is_name}
_WAIT: Mapping[str, Checker] = {"deadline": _is_seconds}


class Verb(NamedTuple):
    """`options` are allowed beside the value, `required` are those that must be there."""

    value: Checker
    options: Mapping[str, Checker] = {}
    required: tuple[str, ...] = ()


VERBS: dict[str, Verb] = {
    # what the client does
    "send": Verb(_commands, {"repeat": is_count}),
    "raw": Verb(_bytes),
    "close_stdin": Verb(is_true, {"lossy": is_flag}),
    "stop_reading": Verb(_is_stop),
    "resume_reading": Verb(is_true),
    "close_stdout": Verb(is_true),
    "signal": Verb(is_signal, {"lossy": is_flag}),
    "kill": Verb(is_true),
    "restart": Verb(is_object),
    # what the world does
    "open": Verb(is_name),
    "write": Verb(_needs(INSIDE, is_inside), {"content": content_problem, "append": is_flag}, ("content",)),
    "shell": Verb(is_text, {"is": is_shape}),
    "let": Verb(is_object),
    "note": Verb(is_text),
    # what is awaited
    "expect": Verb(is_record_shape, {"as": is_name, "since": is_name, "after": is_names, "before": is_names, **_WAIT}),
    "sequence": Verb(
        _is_sequence, {"as": is_name, "since": is_name, "tight": is_flag, "ignore": _is_sequence, **_WAIT}
    ),
    "reached": Verb(is_name, _WAIT),
    "request": Verb(_is_index, {"is": is_shape, **_WAIT}),
    "exit": Verb(is_shape, _WAIT),
    "wait_stderr": Verb(is_text, _WAIT),
    "file": Verb(is_text, {"is": is_shape, "exists": is_flag, "eventually": is_flag, **_WAIT}),
    "entries": Verb(is_shape, {"of": is_text, "header": is_shape, "eventually": is_flag, **_WAIT}),
    "no_survivors": Verb(is_true, _WAIT),
    # what holds of the whole
    "order": Verb(is_texts),
    "none": Verb(is_record_shape, _RANGE),
    "count": Verb(is_record_shape, {"is": is_shape, **_RANGE}, ("is",)),
    "deltas": Verb(is_shape, {"is": is_shape, "channel": is_text, **_RANGE}, ("is",)),
    "requests": Verb(is_shape),
    "stderr": Verb(is_shape),
    "peak_memory": Verb(is_shape),
}
# Checked when the process has ended and every record is there, wherever the line stands.
AT_THE_END = frozenset({"order", "none", "count", "deltas", "requests", "stderr"})
