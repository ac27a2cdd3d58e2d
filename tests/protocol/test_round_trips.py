"""Every struct of the wire and of session files reads back as it was written, with and without its optional fields."""

from __future__ import annotations

from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec
import pytest
from msgspec import Raw, Struct, UnsetType
from msgspec.structs import fields

from protocol import commands, entries, events, responses, ui
from protocol.codec import encode
from protocol.messages import Usage

SCALARS: dict[Any, Any] = {str: "é\u2028", int: 7, float: 0.5, bool: True, Any: [1, None], Raw: Raw(b'{"a":1e400}')}


def sample(kind: Any, full: bool) -> Any:
    """A value of the type `kind`; with `full` its optional fields are set too."""
    if kind in SCALARS:
        return SCALARS[kind]
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Literal:
        return arguments[-1]
    if origin is Annotated:
        return sample(arguments[0], full)
    if origin in (list, tuple):
        return origin([sample(arguments[0], full)])
    if origin is dict:
        return {"k": sample(arguments[1], full)}
    if origin is not None:
        return sample(next(each for each in arguments if each not in (NoneType, UnsetType)), full)
    return kind(**{each.name: sample(each.type, full) for each in fields(kind) if full or each.required})


def structs_of(module: Any) -> list[Any]:
    found = [each for each in vars(module).values() if isinstance(each, type) and issubclass(each, Struct)]
    return [each for each in found if each.__module__ == module.__name__ and not each.__name__.startswith("_")]


MODULES = (commands, entries, events, responses, ui)
EVERY = [each for module in MODULES for each in structs_of(module)]


@pytest.mark.parametrize("kind", EVERY, ids=lambda kind: f"{kind.__module__}.{kind.__name__}")
def test_it_reads_back_as_it_was_written(kind: type[Struct]) -> None:
    for full in (False, True):
        value = sample(kind, full)
        assert msgspec.json.decode(encode(value), type=kind) == value


@pytest.mark.parametrize("kind", get_args(events.AssistantMessageEvent), ids=lambda kind: str(kind.__name__))
def test_a_message_update_carries_each_kind_of_delta(kind: type[Struct]) -> None:
    update = events.MessageUpdate(Usage(), sample(kind, True))
    assert msgspec.json.decode(encode(update), type=events.MessageUpdate) == update


@pytest.mark.parametrize("result", [b"null", b'{"tokensBefore":1e3}'])
def test_a_compaction_end_carries_its_result_as_it_was_encoded(result: bytes) -> None:
    event = events.CompactionEnd("manual", None if result == b"null" else Raw(result), False, False)
    assert encode(event) == (
        b'{"type":"compaction_end","reason":"manual","result":' + result + b',"aborted":false,"willRetry":false}'
    )


def test_wire_names_are_camel_case_and_types_are_unique() -> None:
    tags = [each.__struct_config__.tag for each in structs_of(events) if each.__struct_config__.tag]
    assert len(tags) == len(set(tags))
    assert b'"toolCallId"' in encode(events.ToolExecutionEnd("a", "b", None, False))
