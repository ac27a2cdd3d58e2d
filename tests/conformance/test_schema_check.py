"""The schema check finds every fault, says where it is and what is allowed, and is not afraid of depth."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from jsonschema import Draft202012Validator

from conformance.schema_check import check_line, check_of, check_record
from conformance.schema_compiler import compile_schema
from protocol.schema.documents import WHOLE, document
from tests.protocol.schema.instances import ANYTHING, Instances

ROOTS = ("AgentRecord", "ClientRecord", "SessionLine")
USAGE = {"input": 1, "output": 1, "cacheRead": 0, "cacheWrite": 0}
COST = {"input": 0, "output": 0.5, "cacheRead": 0, "cacheWrite": 0, "total": 0.5}


def update(**change: Any) -> dict[str, Any]:
    return {"type": "message_update", "usage": {**USAGE, "cost": COST}, "assistantMessageEvent": change}


@pytest.mark.parametrize(
    ("record", "faults"),
    [
        (update(type="text_delta", contentIndex=0, delta="x"), []),
        (update(type="text_delta", contentIndex=0.0, delta="x", more=1), []),
        (
            update(type="text_delta", contentIndex=True, delta=None),
            [
                "/assistantMessageEvent/contentIndex: must be an integer, got true",
                "/assistantMessageEvent/delta: must be a string, got null",
            ],
        ),
        (
            update(type="text_delta", contentIndex=0.5, delta="x"),
            ["/assistantMessageEvent/contentIndex: must be an integer, got 0.5"],
        ),
        (update(type="text_start"), ['/assistantMessageEvent: "contentIndex" is required (an integer)']),
        ({"type": "queue_update", "steering": ["a", 1], "followUp": []}, ["/steering/1: must be a string, got 1"]),
        ({"type": "agent_start", "~/": 1}, []),
        (
            {"type": "thinking_level_changed", "level": "x" * 200},
            [
                '/level: must be "high", "low", "max", "medium", "minimal", "off", "xhigh", got "' + "x" * 76 + "...",
            ],
        ),
        (5, ["the record: must be an object, got 5"]),
        ({"type": "response", "command": "abort", "success": True}, []),
        (
            {"type": "response", "command": "abort", "success": 1},
            ["/success: must be false, true, got 1"],
        ),
        (
            {"type": "response", "command": "get_tree", "success": True},
            ['the record: "data" is required (an object)'],
        ),
        (
            {"type": "response", "id": {"a": 1}, "command": "cycle_model", "success": True, "data": None},
            ['/id: must be a string or a number or a boolean or null, got {"a":1}'],
        ),
    ],
)
def test_a_fault_is_told_with_its_place_what_is_there_and_what_is_allowed(record: Any, faults: list[str]) -> None:
    assert sorted(check_record(record)) == sorted(faults)


@pytest.mark.parametrize(
    ("record", "told"),
    [
        ({"type": "agent_stopped"}, '/type: "agent_stopped" is unknown; known are "agent_continue_error"'),
        (update(type="text"), '/assistantMessageEvent/type: "text" is unknown; known are "done"'),
        ({"id": "1"}, 'the record: "type" is required ("agent_continue_error"'),
    ],
)
def test_an_unknown_kind_is_told_as_such(record: Any, told: str) -> None:
    (fault,) = check_record(record)
    assert fault.startswith(told)


def test_a_key_is_escaped_in_a_pointer() -> None:
    check = compile_schema(
        {"$ref": "#/$defs/A", "$defs": {"A": {"type": "object", "additionalProperties": {"type": "string"}}}}
    )
    assert check({"a/b~c": 1}) == ["/a~1b~0c: must be a string, got 1"]


def test_no_more_than_twenty_faults_are_told() -> None:
    assert len(check_record({"type": "queue_update", "steering": [1] * 100, "followUp": []})) == 20


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "pattern": "x"},
        {
            "anyOf": [
                {"type": "array"},
                {"type": "array", "items": {"type": "null"}},
                {"type": "array", "items": {"type": "string"}},
            ]
        },
        {"enum": [1], "type": "number"},
    ],
)
def test_a_schema_beyond_ours_is_refused(schema: dict[str, Any]) -> None:
    if "anyOf" in schema:
        schema["anyOf"].pop(0)
    with pytest.raises(ValueError):
        compile_schema({"$ref": "#/$defs/A", "$defs": {"A": schema}})


def test_a_name_that_there_is_not_is_told() -> None:
    with pytest.raises(KeyError):
        check_of("Nothing")


# ---- lines, and depth --------------------------------------------------------------------------------------------


def tree_line(depth: int, id_: bytes) -> bytes:
    """The answer to `get_tree` of a conversation `depth` entries long, whose first entry has the id `id_`."""
    entry = b'"entry":{"type":"label","id":%s,"parentId":null,"timestamp":"","targetId":"x"}}'
    below = b'{"children":[' * depth + (b"]," + entry % b'"e"') * (depth - 1) + b"]," + entry % id_
    return b'{"type":"response","command":"get_tree","success":true,"data":{"leafId":null,"tree":[' + below + b"]}}"


@pytest.mark.parametrize("depth", [1, 300, 5000])
def test_a_tree_is_checked_however_deep_it_nests(depth: int) -> None:
    assert check_line(tree_line(depth, b'"e"')) == []
    assert check_line(tree_line(depth, b"5")) == ["/data/tree/0/entry/id: must be a string, got 5"]


def test_a_fault_far_down_is_told_with_both_ends_of_its_pointer() -> None:
    deepest = tree_line(5000, b'"e"').replace(b'"children":[]', b'"children":[{}]')
    assert (
        check_line(deepest)
        == [
            '/data/tree/0/children/0/children/.../children/0/children/0/children/0: "entry" is required (an object)',
            '/data/tree/0/children/0/children/.../children/0/children/0/children/0: "children" is required (an array)',
        ][:1]
    )


@pytest.mark.parametrize("line", [b"", b"{", b"[1", b"nope", b"[" * 5000])
def test_a_line_that_is_no_json_is_a_fault(line: bytes) -> None:
    (fault,) = check_line(line)
    assert fault.startswith("the line: ")


def test_a_lone_surrogate_is_json_and_a_string() -> None:
    line = b'{"type":"bash_execution_update","channel":"stdout","delta":"\\ud83d"}'
    assert check_line(line) == []


# ---- the oracle --------------------------------------------------------------------------------------------------


def oracle(root: str) -> Draft202012Validator:
    return Draft202012Validator({**document(WHOLE), "$ref": f"#/$defs/{root}"})


@pytest.mark.parametrize("root", ROOTS)
def test_what_a_schema_allows_is_fine(root: str) -> None:
    check, theirs = check_of(root), oracle(root)

    @given(Instances(document(WHOLE), faulty=False).of(root))
    @settings(max_examples=50)
    def fine(value: Any) -> None:
        assert check(value) == []
        assert theirs.is_valid(value)

    fine()


@pytest.mark.parametrize("root", ROOTS)
def test_jsonschema_finds_a_fault_exactly_when_we_do(root: str) -> None:
    check, theirs = check_of(root), oracle(root)

    @given(Instances(document(WHOLE), faulty=True).of(root) | ANYTHING)
    def agreed(value: Any) -> None:
        assert (check(value) == []) == theirs.is_valid(value)

    agreed()
