"""The data of a response as a typed value.

Agents differ in whether they leave a field out or write `null`; both count as the same. Unknown fields are ignored.
What still does not fit raises `ProtocolError` with the data.
"""

from __future__ import annotations

from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import fields

from conformance.client.errors import ProtocolError
from conformance.client.records import any_value
from protocol.json_text import BadJson, encode

T = TypeVar("T")


def read_data(data: Raw | UnsetType, kind: Any, command: str) -> Any:
    """The value of type `kind` (a struct, or `Struct | None`) that `data` holds. Absent data are `null`."""
    raw = b"null" if data is UNSET else bytes(data)
    try:
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return _read_slowly(raw, kind, command)


def _read_slowly(raw: bytes, kind: Any, command: str) -> Any:
    try:
        value = any_value(raw)
        return msgspec.convert(_levelled(value, kind), kind)
    except BadJson as error:
        why = str(error)
    except (msgspec.ValidationError, RecursionError) as error:
        why = str(error)
    raise ProtocolError(f"the data of {command} have another shape than the contract's ({why})", line=raw)


def _levelled(value: Any, kind: Any) -> Any:
    """`value` with `null` left out where `kind` wants it absent, and put in where `kind` wants it told."""
    if kind is Raw:
        return Raw(encode(value))
    if isinstance(value, list):
        inner = next((get_args(option)[0] for option in _options(kind) if get_origin(option) in (list, tuple)), Any)
        return [_levelled(item, inner) for item in value]
    struct = next((each for each in _options(kind) if isinstance(each, type) and issubclass(each, Struct)), None)
    return _levelled_fields(value, struct) if isinstance(value, dict) and struct is not None else value


def _levelled_fields(value: dict[str, Any], struct: type[Struct]) -> dict[str, Any]:
    kept = {}
    for each in fields(struct):
        key, options = each.encode_name, _options(each.type)
        item = value.get(key)
        if item is not None:
            kept[key] = _levelled(item, each.type)
        elif type(None) in options and (each.required or key in value):
            kept[key] = None
    return kept


def _options(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
