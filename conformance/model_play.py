"""The model's part in a case: `reply` lines read into what the model server answers, and the gates that steps open.

Owns the named gates of one case. Whose turn a reply is, `model_turns` decides.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from conformance.json_values import is_hex, shorten
from conformance.model_scripts import (
    Control,
    Delta,
    Gate,
    Part,
    Reply,
    Step,
    StreamError,
    Text,
    Thinking,
    ToolUse,
    Usage,
    error,
    pieces,
    raw,
    text,
    words,
)

Json = Mapping[str, Any]
_CONTROLS = {"cut": Control.CUT, "hang": Control.HANG, "garbage": Control.GARBAGE}
_STEPS = ("gate", "pause", *_CONTROLS)
_PARTS = ("text", "thinking", "tool", "stream_error", *_STEPS)
_REPLY = ("text", "thinking", "tool", "tools", "parts", "error", "raw", "silent")
_OPTIONS = ("stop", "usage", "when", "asked", "times", "headers", "message", "body", "status", "signature")
_STOPS = ("stop", "length", "tool", "refusal")


_TYPES: Mapping[str, tuple[type | tuple[type, ...], str]] = {
    "tools": (list, "a list of calls"),
    "parts": (list, "a list of parts"),
    "error": (int, "a status such as 529"),
    "status": (int, "a status such as 200"),
    "headers": (dict, "an object"),
    "message": (str, "a string"),
    "body": ((str, dict), "a string or an object"),
    "signature": (str, "a string"),
    "usage": (dict, "an object"),
}


class ScriptError(ValueError):
    """A `reply` that cannot be read."""


def _only(value: Any, allowed: Sequence[str], what: str) -> Json:
    if not isinstance(value, dict):
        raise ScriptError(f"{what} needs an object, not {shorten(value)}")
    unknown = sorted(value.keys() - set(allowed))
    if unknown:
        raise ScriptError(f"{what} has no field {unknown[0]!r}; allowed are {', '.join(allowed)}")
    return value


class Gates:
    """The gates of a case by their names; each is made on first use."""

    def __init__(self) -> None:
        self._gates: dict[str, Gate] = {}

    def __getitem__(self, name: str) -> Gate:
        return self._gates.setdefault(name, Gate())

    def __contains__(self, name: str) -> bool:
        return name in self._gates

    def open_all(self) -> None:
        for gate in self._gates.values():
            gate.open()

    def give_up(self) -> None:
        """Nobody waits any more until the model is somewhere."""
        for gate in list(self._gates.values()):
            gate.reached.set()


def _step(value: Json, gates: Gates) -> Step:
    fields = _only(value, _STEPS, "a step of a stream")
    ((kind, argument),) = fields.items() if len(fields) == 1 else [("", None)]
    if kind == "gate" and isinstance(argument, str):
        return gates[argument]
    if kind == "pause" and isinstance(argument, int | float):
        return float(argument)
    if kind in _CONTROLS and argument is True:
        return _CONTROLS[kind]
    raise ScriptError(f"a step is one of {', '.join(_STEPS)} with its value, not {shorten(value)}")


def _deltas(value: Any, gates: Gates) -> tuple[Delta, ...]:
    """A string gives a delta a word, a list the deltas as they are, with steps between them."""
    if isinstance(value, str):
        return words(value)
    if not isinstance(value, list):
        raise ScriptError(f"a text is a string, or a list of strings and steps, not {shorten(value)}")
    return tuple(one if isinstance(one, str) else _step(one, gates) for one in value)


def _tool(value: Any, gates: Gates) -> ToolUse:
    fields = _only(value, ("name", "args", "deltas", "id"), "a tool call")
    if not isinstance(fields.get("name"), str):
        raise ScriptError(f"a tool call needs a name, not {shorten(fields.get('name'))}")
    if "deltas" in fields:
        return ToolUse(fields["name"], _deltas(fields["deltas"], gates), fields.get("id"))
    args = fields.get("args", {})
    whole = args if isinstance(args, str) else json.dumps(args, ensure_ascii=False)
    return ToolUse(fields["name"], pieces(whole, 2), fields.get("id"))


def _part(value: Any, gates: Gates) -> Part:
    fields = _only(value, (*_PARTS, "signature"), "a part")
    if "text" in fields:
        return Text(_deltas(fields["text"], gates))
    if "thinking" in fields:
        return Thinking(_deltas(fields["thinking"], gates), fields.get("signature", "c2lnbmF0dXJl"))
    if "tool" in fields:
        return _tool(fields["tool"], gates)
    if "stream_error" in fields:
        return StreamError(str(fields["stream_error"]))
    return _step(fields, gates)


def _parts(fields: Json, gates: Gates) -> tuple[Part, ...]:
    parts: list[Part] = [_part(one, gates) for one in fields.get("parts", ())]
    if "thinking" in fields:
        parts.append(_part({key: fields[key] for key in ("thinking", "signature") if key in fields}, gates))
    if "text" in fields:
        parts.append(_part({"text": fields["text"]}, gates))
    calls = fields.get("tools", []) + ([fields["tool"]] if "tool" in fields else [])
    return (*parts, *(_tool(call, gates) for call in calls))


def _raw(fields: Json, gates: Gates) -> Reply:
    pieces_: list[bytes | Step] = []
    for one in fields["raw"] if isinstance(fields["raw"], list) else [fields["raw"]]:
        if isinstance(one, str):
            pieces_.append(one.encode("utf-8", "surrogatepass"))
        elif isinstance(one, dict) and one.keys() == {"hex"}:
            if not is_hex(one["hex"]):
                raise ScriptError(f"hex is {shorten(one['hex'])}; allowed are pairs of hexadecimal digits")
            pieces_.append(bytes.fromhex(one["hex"]))
        else:
            pieces_.append(_step(one, gates))
    return raw(*pieces_, status=fields.get("status", 200), headers=fields.get("headers"))


def _error(fields: Json) -> Reply:
    return error(fields["error"], fields.get("body"), fields.get("headers"), message=fields.get("message", ""))


def _usage(value: Any) -> Usage:
    fields = _only(value, Usage._fields, "usage")
    if wrong := [name for name, number in fields.items() if type(number) is not int]:
        raise ScriptError(f"usage: {wrong[0]} is {shorten(fields[wrong[0]])}; allowed is a whole number")
    return Usage(**fields)


def read_reply(value: Any, gates: Gates) -> Reply:
    """What a `reply` line says. ScriptError names the field and what is allowed."""
    if isinstance(value, str):
        return text(value)
    fields = _only(value, (*_REPLY, *_OPTIONS), "a reply")
    if not fields.keys() & set(_REPLY):
        raise ScriptError(f"a reply needs one of {', '.join(_REPLY)}")
    if fields.get("stop", "stop") not in _STOPS:
        raise ScriptError(f"stop is {shorten(fields['stop'])}; allowed are {', '.join(_STOPS)}")
    for name, (type_, what) in _TYPES.items():
        if name in fields and (not isinstance(fields[name], type_) or isinstance(fields[name], bool)):
            raise ScriptError(f"{name} is {shorten(fields[name])}; allowed is {what}")
    if "raw" in fields:
        return _raw(fields, gates)
    if "error" in fields:
        return _error(fields)
    if "silent" in fields:
        return Reply(answers=False)
    usage = _usage(fields["usage"]) if "usage" in fields else None
    return Reply(_parts(fields, gates), stop=fields.get("stop"), usage=usage, headers=fields.get("headers"))
