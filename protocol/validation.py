"""Why a decoded record is not the struct that it should be, in words for the client.

msgspec tells neither the value nor what is allowed; this walks the struct's field types beside the value, only after
the typed decode has failed. Values of fields marked `Meta(extra={"secret": True})` are never shown, only their JSON
type. `null` for an optional field counts as absent.
"""

from __future__ import annotations

import sys
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from msgspec import Meta, Struct, UnsetType
from msgspec.structs import fields

from protocol.json_text import encode

SHOWN_VALUE = 80


class Misfit(ValueError):
    """Names the field, what is allowed and what came."""


def shorten(text: str) -> str:
    """`text`, cut to `SHOWN_VALUE` characters for an error that users read."""
    return text if len(text) <= SHOWN_VALUE else text[: SHOWN_VALUE - 3] + "..."


def fitted(kind: type[Struct], record: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """The fields of `record` that `kind` knows, nulls of optional ones left out. Raises `Misfit` at the first fault."""
    kept = {}
    for each in fields(kind):
        path = prefix + each.encode_name
        value = record.get(each.encode_name)
        if each.required and each.encode_name not in record:
            raise Misfit(f'"{path}" is required ({allowed(each.type)})')
        if each.required or value is not None:
            kept[each.encode_name] = _fitted_value(each.type, value, path)
    return kept


def _fitted_value(kind: Any, value: Any, path: str) -> Any:
    kind = _said(kind) if value is not None else kind
    origin = get_origin(kind)
    if origin is Annotated:
        return _fitted_secret(kind, value, path)
    if origin is tuple and isinstance(value, list):
        return [_fitted_value(get_args(kind)[0], item, f"{path}[{at}]") for at, item in enumerate(value)]
    if isinstance(kind, type) and issubclass(kind, Struct) and isinstance(value, dict):
        _check_tag(kind, value, path)
        return fitted(kind, value, path + ".")
    if not _fits(kind, value):
        raise Misfit(f'"{path}" must be {allowed(kind)}, got {shown(value)}')
    return value


def _said(kind: Any) -> Any:
    """What an optional field is when it is there, if that is one thing."""
    options = [option for option in get_args(kind) if option not in (NoneType, UnsetType)]
    return options[0] if get_origin(kind) in (Union, UnionType) and len(options) == 1 else kind


def _fitted_secret(kind: Any, value: Any, path: str) -> Any:
    inner, meta = get_args(kind)[:2]
    if _bounds(meta) and not _fits(kind, value):
        raise Misfit(f'"{path}" must be {allowed(kind)}, got {shown(value)}')
    if (meta.extra or {}).get("secret") and not _fits(inner, value):
        raise Misfit(f'"{path}" must be {allowed(inner)}, got {json_type(value)}')
    return _fitted_value(inner, value, path)


def _check_tag(kind: type[Struct], value: dict[str, Any], path: str) -> None:
    config = kind.__struct_config__
    if config.tag_field is not None and value.get(config.tag_field, config.tag) != config.tag:
        got = shown(value[config.tag_field])
        raise Misfit(f'"{path}.{config.tag_field}" must be "{config.tag}", got {got}')


def _fits(kind: Any, value: Any) -> bool:
    origin = get_origin(kind)
    if kind is Any:
        return True
    if origin is Annotated:
        inner, meta = get_args(kind)[:2]
        return _fits(inner, value) and (not _bounds(meta) or _is_within(meta, value))
    if origin is Literal:
        return isinstance(value, str) and value in get_args(kind)
    if kind is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if origin is tuple:
        return isinstance(value, list)
    if origin is None or origin is dict:
        return isinstance(value, origin or kind)
    return any(_fits(option, value) for option in get_args(kind))


def _is_within(meta: Meta, number: Any) -> bool:
    return (meta.ge is None or number >= meta.ge) and (meta.le is None or number <= meta.le)


def _bounds(meta: Meta) -> str:
    """Which numbers are allowed, in words; empty if all are."""
    match meta.ge, meta.le:
        case None, None:
            return ""
        case least, None:
            return f" of {least} or more"
        case None, most:
            return f" of {most} or less"
        case least, most:
            return f" from {least} to {most}"
    return ""


def allowed(kind: Any) -> str:
    """What values of the type `kind` look like in JSON."""
    origin = get_origin(kind)
    if origin is Annotated:
        inner, meta = get_args(kind)[:2]
        return allowed(inner) + _bounds(meta)
    if origin is Literal:
        return _listed([f'"{word}"' for word in get_args(kind)])
    if origin is tuple:
        return "an array"
    if origin is not None and origin is not dict:
        return _listed([allowed(option) for option in get_args(kind) if option is not NoneType])
    return {str: "a string", bool: "true or false", float: "a number", int: "an integer"}.get(kind, "an object")


def _listed(words: list[str]) -> str:
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def shown(value: Any) -> str:
    """`value` as JSON, shortened."""
    if isinstance(value, (int, float)) and not abs(value) <= sys.float_info.max:
        return "a number out of range"
    return shorten(encode(value).decode())


def json_type(value: Any) -> str:
    """The JSON type of `value`, with its article."""
    names = {NoneType: "null", bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "an array"}
    return names.get(type(value), "an object")
