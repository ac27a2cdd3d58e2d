"""The published schemas are schemas, whole in themselves, and say what the parser takes and the types send."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from jsonschema import Draft202012Validator
from msgspec import Struct

from conformance.schema_check import check_of, check_record
from protocol import events
from protocol.codec import Rejected, encode, read_command
from protocol.commands import COMMAND_NAMES, REPLIES
from protocol.envelope import failed, ok
from protocol.responses import DATA
from protocol.schema.documents import DOCUMENTS, NAMES, WHOLE, document, text
from tests.e2e import contract_examples as contract
from tests.house import reference_examples as examples
from tests.protocol.schema.instances import Instances

DEFINITIONS: dict[str, Any] = document(WHOLE)["$defs"]


def references(schema: Any) -> Iterator[str]:
    for key, value in schema.items() if isinstance(schema, dict) else enumerate(schema):
        if key == "$ref":
            yield value
        elif isinstance(value, dict | list):
            yield from references(value)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_is_a_schema_and_holds_all_that_it_needs(name: str) -> None:
    whole = msgspec.json.decode(text(name))
    Draft202012Validator.check_schema(whole)
    used = {ref.removeprefix("#/$defs/") for ref in references(whole)}
    assert used <= set(whole["$defs"])
    assert name == WHOLE or used == set(whole["$defs"])


def test_a_definition_is_the_same_in_every_document() -> None:
    for name in NAMES:
        found = document(name)["$defs"]
        assert {each: DEFINITIONS[each] for each in found} == found


def test_every_command_has_its_definitions() -> None:
    told = {tags(DEFINITIONS[part["$ref"].rpartition("/")[2]])["type"] for part in DEFINITIONS["Command"]["anyOf"]}
    assert told == COMMAND_NAMES - REPLIES
    for name in told:
        kind = "".join(word.capitalize() for word in name.split("_"))
        assert tags(DEFINITIONS[f"{kind}Success"]) == {"type": "response", "command": name, "success": True}
        assert tags(DEFINITIONS[f"{kind}Failure"]) == {"type": "response", "command": name, "success": False}
    assert set(DATA) <= told


def tags(schema: dict[str, Any]) -> dict[str, Any]:
    return {name: part["const"] for name, part in schema["properties"].items() if "const" in part}


def test_every_event_is_one_of_the_union() -> None:
    structs = {kind for kind in vars(events).values() if isinstance(kind, type) and issubclass(kind, Struct)}
    told = {kind for kind in structs if kind.__module__ == events.__name__ and kind.__struct_config__.tag}
    assert told == set(get_args(events.Event)) | set(get_args(events.AssistantMessageEvent))


# ---- commands: what the parser takes -----------------------------------------------------------------------------


def taken(value: Any) -> bool:
    return not isinstance(read_command(encode(value)), Rejected)


@given(Instances(document(WHOLE), faulty=True).of("ClientRecord"))
def test_the_parser_takes_a_command_exactly_when_the_schema_allows_it(value: Any) -> None:
    assert taken(value) == (check_of("ClientRecord")(value) == [])


@pytest.mark.parametrize("name", sorted(COMMAND_NAMES - REPLIES))
def test_null_and_unknown_fields_do_not_matter_but_in_what_is_required(name: str) -> None:
    schema = DEFINITIONS["".join(word.capitalize() for word in name.split("_")) + "Command"]
    for field in schema["properties"]:
        record = {**smallest(schema), field: None, "unknown": [1]}
        allowed = field not in schema["required"]
        assert (taken(record), check_of("Command")(record) == []) == (allowed, allowed), field


def smallest(schema: dict[str, Any]) -> dict[str, Any]:
    values = {"string": "x", "boolean": True, "object": {}, "integer": 1}
    named = {"ThinkingLevel": "off", "QueueMode": "all"}
    return {
        name: part["const"]
        if "const" in part
        else named[part["$ref"].rpartition("/")[2]]
        if "$ref" in part
        else values[part["type"]]
        for name in schema["required"]
        for part in [schema["properties"][name]]
    }


# ---- records: what the types send, and what the contract shows ---------------------------------------------------


@pytest.mark.parametrize(
    "event", [*examples.EVENTS, *map(examples.update, examples.GROWTH)], ids=lambda e: type(e).__name__
)
def test_an_event_of_the_reference_page_is_allowed(event: Struct) -> None:
    assert check_record(msgspec.json.decode(encode(event))) == []


@pytest.mark.parametrize("name", sorted(COMMAND_NAMES - REPLIES))
def test_a_response_as_it_is_written_is_allowed(name: str) -> None:
    data = encode(examples.DATA[name]) if name in examples.DATA else None
    if name == "login_provider":
        data = b'{"provider":"p","cancelled":true}'
    for id_ in (b"", b'"x"', b"7", b"null"):
        assert check_record(msgspec.json.decode(ok(id_, name, data))) == []
        assert check_record(msgspec.json.decode(failed(id_, name, "no"))) == []
    assert check_record(msgspec.json.decode(failed(b"", name, "no", "code", {"a": "b"}))) == []


@pytest.mark.parametrize("command", [None, "parse", "context_compact"])
def test_a_refusal_of_what_is_no_command_is_allowed(command: str | None) -> None:
    assert check_record(msgspec.json.decode(failed(b"1", command, "no"))) == []


@pytest.mark.parametrize("record", [*contract.RESPONSES, *contract.EVENTS], ids=lambda r: r.get("command", r["type"]))
def test_a_record_of_the_contract_is_allowed(record: dict[str, Any]) -> None:
    assert check_record(record) == []


@pytest.mark.parametrize("record", contract.COMMANDS, ids=lambda record: record["type"])
def test_a_command_of_the_contract_is_allowed(record: dict[str, Any]) -> None:
    assert check_of("Command")(record) == []


@pytest.mark.parametrize("message", contract.MESSAGES, ids=lambda message: message["role"])
def test_a_message_of_the_contract_is_allowed(message: dict[str, Any]) -> None:
    assert check_of("Message")(message) == []


# ---- descriptions ------------------------------------------------------------------------------------------------


def test_descriptions_name_fields_as_the_wire_does() -> None:
    assert DEFINITIONS["BashResult"]["description"].startswith("Data of `bash` and `user_bash`. `exitCode` is absent")
    said = [schema["description"] for schema in DEFINITIONS.values() if "description" in schema]
    assert [text for text in said if "UNSET" in text or "None" in text or "Raw(" in text] == []
