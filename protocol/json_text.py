"""JSON text: one fast path by msgspec, one slow path for what msgspec refuses.

Promises: `decode_any` gives a value or raises `BadJson`, whatever comes. No NaN or infinity enters, so that none is
ever encoded (msgspec would write `null`). Strings may hold lone surrogates: the slow path reads and writes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct

_ENCODER = msgspec.json.Encoder()
_ANY = msgspec.json.Decoder()
_NOTHING = Raw(b"")


class BadJson(ValueError):
    """The text is not JSON that can be taken: malformed, nested too deep, or a number beyond what a float holds."""


# ---- writing -----------------------------------------------------------------------------------------------------


def encode(value: Any) -> bytes:
    """`value` (structs, builtins, `Raw`) as JSON without a line feed. Lone surrogates become escapes, deep nesting is
    no limit. Raises `TypeError` for a type that JSON does not know."""
    try:
        return _ENCODER.encode(value)
    except (UnicodeEncodeError, RecursionError):
        return b"".join(_written(value))


def _written(value: Any) -> Iterator[bytes]:
    """The chunks of `value`. A stack instead of recursion: `Raw` items are text that is ready."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, Struct):
            item = dict(_members(item))
        if isinstance(item, Raw):
            yield bytes(item)
        elif isinstance(item, str):
            yield _ascii_string(item)
        elif isinstance(item, dict):
            stack.extend(_interleaved(b"{", item.items(), b"}"))
        elif isinstance(item, (list, tuple)):
            stack.extend(_interleaved(b"[", [(None, each) for each in item], b"]"))
        else:
            yield _ENCODER.encode(item)


def _ascii_string(text: str) -> bytes:
    from json.encoder import encode_basestring_ascii

    return encode_basestring_ascii(text).encode()


def _interleaved(opening: bytes, items: Any, closing: bytes) -> list[Any]:
    """The parts of an array or object, last one first: the order in which a stack takes them."""
    parts: list[Any] = [Raw(opening)]
    for key, item in items:
        if len(parts) > 1:
            parts.append(Raw(b","))
        if key is not None:
            parts.append(Raw(_ascii_string(str(key)) + b":"))
        parts.append(item)
    parts.append(Raw(closing))
    parts.reverse()
    return parts


def _members(struct: Struct) -> Iterator[tuple[str, Any]]:
    config = struct.__struct_config__
    if config.tag_field is not None:
        yield config.tag_field, config.tag
    for name, key in zip(struct.__struct_fields__, struct.__struct_encode_fields__, strict=True):
        value = getattr(struct, name)
        if value is not UNSET and value != _NOTHING:
            yield key, value


# ---- reading -----------------------------------------------------------------------------------------------------


def repair_utf8(line: bytes) -> bytes:
    """`line` itself when it is valid UTF-8, else a copy with U+FFFD for each invalid sequence. `Raw` slices and skipped
    fields are not checked by msgspec: do this before any is cut."""
    if line.isascii():
        return line
    try:
        line.decode()
    except UnicodeDecodeError:
        return line.decode(errors="replace").encode()
    return line


def decode_any(data: bytes | str) -> Any:
    """Any JSON value from a source that is not trusted. Invalid UTF-8 is repaired, of duplicate keys the last counts.
    Raises `BadJson`, never anything else."""
    try:
        return _ANY.decode(data)
    except RecursionError:
        raise BadJson("nested too deep") from None
    except Exception:
        return decode_slowly(data, finite)


def decode_slowly(data: bytes | str, read_float: Callable[[str], float]) -> Any:
    """`data` by the standard library. `read_float` says what becomes of a number that a float cannot hold."""
    import json

    try:
        text = data if isinstance(data, str) else data.decode(errors="replace")
        return json.loads(
            text,
            parse_float=read_float,
            # int() refuses more than 4300 digits
            parse_int=lambda digits: int(digits) if len(digits) < 4000 else read_float(digits),
            parse_constant=_refused,
        )
    except RecursionError:
        raise BadJson("nested too deep") from None
    except json.JSONDecodeError as error:
        raise BadJson(f"{error.msg} at character {error.pos}") from None
    except ValueError as error:
        raise BadJson(str(error)) from None


def finite(digits: str) -> float:
    """The float that `digits` stand for. Raises `BadJson` when it is infinite."""
    number = float(digits)
    if number - number != 0:
        raise BadJson("number out of range")
    return number


def _refused(name: str) -> None:
    raise BadJson(f"{name} is not JSON")


def raw_members(text: str) -> dict[str, bytes]:
    """The members of the JSON object `text`, which is known to be valid, each value as it stands there. Of duplicate
    keys the last counts."""
    from json import JSONDecoder

    decoder = JSONDecoder(parse_int=str, parse_float=str)
    members = {}
    at = _skip_space(text, _skip_space(text, 0) + 1)
    while text[at] != "}":
        key, at = decoder.raw_decode(text, at)
        start = _skip_space(text, _skip_space(text, at) + 1)
        _, end = decoder.raw_decode(text, start)
        members[key] = text[start:end].encode()
        at = _skip_space(text, end)
        if text[at] == ",":
            at = _skip_space(text, at + 1)
    return members


def _skip_space(text: str, at: int) -> int:
    while text[at] in " \t\r\n":
        at += 1
    return at
