"""The codec of the wire: lines to commands, values to lines.

Promises: whatever bytes come, `read_command` returns a command or a `Rejected` that says why, in our words. The hot
path reads the type and then decodes that one struct: a decoder of all commands took 4 % of a start to build. Only when
that fails is the line read again, untyped, to find and name the fault.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, get_origin

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import fields

from protocol.commands import COMMANDS, AbortBash, Command, ExtensionUiResponse, command_name
from protocol.json_text import BadJson, decode_any, decode_slowly, encode, raw_members, repair_utf8
from protocol.validation import Misfit, fitted, shorten, shown

__all__ = ["BadJson", "Rejected", "decode_any", "encode", "read_command", "repair_utf8"]

_OPENINGS = (b"[", b"{")


class _Typed(Struct):
    type: str


_TYPED = msgspec.json.Decoder(_Typed)


@cache
def _decoder(name: str) -> msgspec.json.Decoder[Command]:
    """Raises `KeyError` for a command that there is not."""
    return msgspec.json.Decoder(COMMANDS[name])


class Rejected(Struct, frozen=True):
    """A line that is no command. `id` is raw JSON, `b""` when there is none to echo; `command` is what the failed
    response names, `None` to leave the key out."""

    id: bytes
    command: str | None
    error: str


def read_command(line: bytes) -> Command | Rejected:
    """The command on `line` (no line feed), or why there is none. Never raises."""
    line = repair_utf8(line)
    try:
        command = _decoder(_TYPED.decode(line).type).decode(line)
    except RecursionError:
        return _unparsable("nested too deep")
    except Exception:
        return _read_slowly(line)
    return _checked(command)


def _checked(command: Command) -> Command | Rejected:
    """`command`, unless one of its raw scalars is none. They are well-formed JSON: the first byte tells."""
    raw_id = bytes(command.id)
    if raw_id[:1] in _OPENINGS:
        return _not_scalar(b"", command_name(command), "id", raw_id)
    if isinstance(command, AbortBash):
        target = bytes(command.request_id)
        if target[:1] in _OPENINGS:
            return _not_scalar(raw_id, "abort_bash", "requestId", target)
        return AbortBash(id=command.id) if target == b"null" else command
    if isinstance(command, ExtensionUiResponse) and raw_id[:1] != b'"':
        return Rejected(raw_id, "extension_ui_response", "Unknown command: extension_ui_response")
    return command


def _not_scalar(raw_id: bytes, name: str | None, field: str, value: bytes) -> Rejected:
    prefix = f"{shorten(name)}: " if name is not None else ""
    got = shorten(value.decode())
    return Rejected(raw_id, name, f'{prefix}"{field}" must be a string, a number, true, false or null, got {got}')


def _unparsable(reason: str) -> Rejected:
    return Rejected(b"", "parse", f"Failed to parse command: {reason}")


def _read_slowly(line: bytes) -> Command | Rejected:
    try:
        record = decode_slowly(line, float)
        if not isinstance(record, dict):
            return Rejected(b"", None, "Unknown command: undefined")
        return _read_object(record, raw_members(line.decode()))
    except BadJson as error:
        return _unparsable(str(error) if line.strip() else "the line is empty")
    except RecursionError:
        return _unparsable("nested too deep")


def _read_object(record: dict[str, Any], raw: dict[str, bytes]) -> Command | Rejected:
    raw_id, name = raw.get("id", b""), record.get("type")
    if raw_id[:1] in _OPENINGS:
        return _not_scalar(b"", name if isinstance(name, str) else None, "id", raw_id)
    if "type" not in record:
        return Rejected(raw_id, None, "Unknown command: undefined")
    if not isinstance(name, str):
        return Rejected(raw_id, None, f'"type" must be a string, got {shown(name)}')
    if name not in COMMANDS:
        return Rejected(raw_id, name, f"Unknown command: {shorten(name)}")
    try:
        return _checked(_built(COMMANDS[name], record, raw))
    except (Misfit, msgspec.ValidationError) as misfit:
        return Rejected(raw_id, name, f"{name}: {misfit}")


def _built(kind: type[Command], record: dict[str, Any], raw: dict[str, bytes]) -> Command:
    for each in fields(kind):
        key = each.encode_name
        if key in raw and each.type is Raw:
            record[key] = Raw(raw[key])
        elif key in raw and (each.type is Any or get_origin(each.type) is Annotated):
            record[key] = _finite_value(key, raw[key])
    return msgspec.convert(fitted(kind, record), kind)


def _finite_value(key: str, raw: bytes) -> Any:
    """A value that no field type checks: the place where an infinite number would enter."""
    try:
        return decode_any(raw)
    except BadJson:
        raise Misfit(f'"{key}" holds a number out of range') from None
