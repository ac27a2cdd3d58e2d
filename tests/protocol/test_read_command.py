"""Reading commands: whatever bytes come, a command or a rejection that says why."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from protocol import commands
from protocol.codec import Rejected, read_command
from protocol.commands import COMMANDS, HOLDS_LANE, INTERRUPTS, LONG_WORK, ORDERED, REPLIES, command_name
from protocol.envelope import failed, ok

SCALARS = ["7", "-0", "1e400", "1E+2", "0.1000000000000000000000000001", "9" * 40, "9" * 5000, "true", "null"]
SCALARS += ['""', '"a"', '"\\u0041\\/"', '"\\ud83d"', '"é\u2028"']
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
FIELDS = ["id", "message", "images", "mode", "command", "level", "requestId", "options", "credential", "timeoutMs"]


def rejection(line: bytes | str) -> Rejected:
    result = read_command(line.encode() if isinstance(line, str) else line)
    assert isinstance(result, Rejected)
    return result


def accepted(line: bytes | str) -> Any:
    result = read_command(line.encode() if isinstance(line, str) else line)
    assert not isinstance(result, Rejected), result
    return result


def answer_to(line: bytes) -> dict[str, Any]:
    """The response that a client would see, decoded; it must be one line of JSON."""
    result = read_command(line)
    if isinstance(result, Rejected):
        record = failed(result.id, result.command, result.error)
    else:
        record = ok(bytes(result.id), command_name(result))
    assert record.endswith(b"}\n") and record.count(b"\n") == 1
    decoded: dict[str, Any] = json.loads(record, parse_int=str, parse_float=str)
    return decoded


# ---- whatever comes ----------------------------------------------------------------------------------------------


@given(st.binary(max_size=60))
@example(b"\xef\xbb\xbf{}")
@example(b'{"type":"get_state","x":"\\ud83d"}')
@settings(max_examples=150)
def test_any_bytes_get_exactly_one_answer(line: bytes) -> None:
    assert answer_to(line.replace(b"\n", b""))["type"] == "response"


@given(st.sampled_from([*COMMANDS, "nonsense", None, 5]), st.dictionaries(st.sampled_from(FIELDS), JSON))
@settings(max_examples=250)
def test_any_object_gets_an_answer_that_names_its_command(kind: Any, members: dict[str, Any]) -> None:
    answer = answer_to(json.dumps({"type": kind, **members}).encode())
    assert answer.get("command") == (kind if isinstance(kind, str) else None)
    assert answer["success"] or answer["error"]


@given(st.data())
@settings(max_examples=150)
def test_a_command_cut_or_damaged_anywhere_is_no_exception(data: st.DataObject) -> None:
    line = b'{"id":"\\u00e9","type":"prompt","message":"\xc3\xa9","images":[{"type":"image","data":"","mimeType":""}]}'
    at = data.draw(st.integers(0, len(line)))
    assert "type" in answer_to(line[:at] + data.draw(st.binary(max_size=3)).replace(b"\n", b"") + line[at + 1 :])


@pytest.mark.parametrize("opening", [b"[", b'{"a":', b'{"type":"get_state","x":' + b"["])
def test_a_line_of_a_hundred_thousand_brackets_is_rejected(opening: bytes) -> None:
    for closing in (b"", b"]" * 100_000):
        result = rejection(opening * 100_000 + closing)
        assert (result.id, result.command) == (b"", "parse")
        assert result.error.startswith("Failed to parse command: ")


def test_nesting_within_the_limits_is_ignored_in_an_unknown_field() -> None:
    assert command_name(accepted(b'{"type":"get_state","x":' + b"[" * 400 + b"]" * 400 + b"}")) == "get_state"


# ---- ids ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("raw_id", SCALARS)
@pytest.mark.parametrize(
    "rest", ['"type":"get_state"', '"type":"bash"', '"type":"what"', '"kind":1', '"type":"get_state","x":"\\ud83d"']
)
def test_a_scalar_id_is_echoed_as_it_stands(raw_id: str, rest: str) -> None:
    for line in (f'{{"id": {raw_id} ,{rest}}}', f'{{{rest}, "id":{raw_id}}}', f'{{"id":[],{rest},"id":{raw_id}}}'):
        assert bytes(read_command(line.encode()).id) == raw_id.encode()


@pytest.mark.parametrize("bad", ["[1]", "{}", '{"a":[]}'])
def test_an_id_that_is_no_scalar_is_rejected_by_name_and_not_echoed(bad: str) -> None:
    for rest in ('"type":"get_state"', '"type":"what"', '"type":"get_state","x":"\\ud83d"'):
        result = rejection(f'{{"id":{bad},{rest}}}')
        assert result.id == b""
        assert '"id" must be' in result.error and bad in result.error


def test_an_id_with_invalid_utf8_is_repaired_before_it_is_echoed() -> None:
    assert bytes(accepted(b'{"id":"\xff","type":"abort"}').id) == '"\ufffd"'.encode()


# ---- what is refused, and how ------------------------------------------------------------------------------------


@pytest.mark.parametrize("line", ["", " ", "{", "nul", "{}x", '{"type":"abort",}', '{"x":NaN,"type":"abort"}', "\x00"])
def test_what_is_no_json_fails_to_parse_without_an_id(line: str) -> None:
    result = rejection(line)
    assert (result.id, result.command) == (b"", "parse")
    assert result.error.startswith("Failed to parse command: ")


@pytest.mark.parametrize("line", ["42", '"x"', "[]", "{}", "null", "true"])
def test_json_that_is_no_command_object_is_the_unknown_command_undefined(line: str) -> None:
    assert rejection(line) == Rejected(b"", None, "Unknown command: undefined")


def test_an_object_without_type_keeps_its_id() -> None:
    assert rejection('{"id":7}') == Rejected(b"7", None, "Unknown command: undefined")


@pytest.mark.parametrize("name", ["foobar", "context_compact", "", "Prompt"])
def test_an_unknown_type_is_named(name: str) -> None:
    assert rejection(f'{{"id":"1","type":"{name}"}}') == Rejected(b'"1"', name, f"Unknown command: {name}")


def test_a_huge_unknown_type_is_shortened_in_the_error() -> None:
    assert rejection('{"type":"' + "x" * 5000 + '"}').error == "Unknown command: " + "x" * 77 + "..."


def test_a_type_that_is_no_string_is_told() -> None:
    assert rejection('{"id":1,"type":5}') == Rejected(b"1", None, '"type" must be a string, got 5')


ANYTHING = (
    "null",
    "true",
    "5",
    "-1",
    "1.5",
    "1e400",
    "1" + "0" * 30,
    "1" + "0" * 400,
    '"x"',
    "[]",
    "[1]",
    "[{}]",
    "{}",
    '{"a":{}}',
)
PLAUSIBLE = {
    "an integer from 1 to 32767": "1",
    "a string": '"x"',
    "true or false": "true",
    "a number": "1",
    "an integer": "1",
    "an array": "[]",
}


def required(name: str) -> dict[str, str]:
    """The members that a command cannot be without, as they are written."""
    members: dict[str, str] = {}
    while True:
        read = read_command(record(name, members))
        found = re.search(r'"(\w+)" is required \((.*)\)$', read.error or "") if isinstance(read, Rejected) else None
        if found is None:
            return members
        literal = re.match(r'"[^"]*"', found[2])
        members[found[1]] = literal[0] if literal else PLAUSIBLE.get(found[2], "{}")


def record(name: str, members: dict[str, str]) -> bytes:
    return (
        "{" + ",".join(f'"{key}":{value}' for key, value in {"type": f'"{name}"', **members}.items()) + "}"
    ).encode()


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - REPLIES))
def test_whatever_a_field_holds_the_command_is_read_or_refused_by_that_name(name: str) -> None:
    for field in msgspec.structs.fields(COMMANDS[name]):
        key = field.encode_name
        for value in ANYTHING:
            read = read_command(record(name, {**required(name), key: value}))
            if isinstance(read, Rejected):
                assert f'"{key}' in read.error, (key, value)


@pytest.mark.parametrize(
    ("members", "error"),
    [
        ('"type":"bash"', 'bash: "command" is required (a string)'),
        ('"type":"bash","command":null', 'bash: "command" must be a string, got null'),
        ('"type":"bash","command":5,"excludeFromContext":1', 'bash: "command" must be a string, got 5'),
        (
            '"type":"set_steering_mode","mode":"sometimes"',
            'set_steering_mode: "mode" must be "all" or "one-at-a-time", got "sometimes"',
        ),
        (
            '"type":"set_thinking_level","level":3',
            'set_thinking_level: "level" must be "off", "minimal", "low", "medium", "high", "xhigh" or "max", got 3',
        ),
        ('"type":"set_auto_retry","enabled":"yes"', 'set_auto_retry: "enabled" must be true or false, got "yes"'),
        ('"type":"prompt","message":"","images":{}', 'prompt: "images" must be an array, got {}'),
        ('"type":"prompt","message":"","images":[5]', 'prompt: "images[0]" must be an object, got 5'),
        ('"type":"prompt","message":"","images":[{}]', 'prompt: "images[0].data" is required (a string)'),
        (
            '"type":"prompt","message":"","images":[{"type":"text"}]',
            'prompt: "images[0].type" must be "image", got "text"',
        ),
        (
            '"type":"prompt","message":"","streamingBehavior":"later"',
            'prompt: "streamingBehavior" must be "steer" or "followUp", got "later"',
        ),
        (
            '"type":"navigate_tree","targetId":"a","options":{"label":5}',
            'navigate_tree: "options.label" must be a string, got 5',
        ),
        ('"type":"refresh_models","timeoutMs":true', 'refresh_models: "timeoutMs" must be a number, got true'),
        ('"type":"compact","preserve_recent":true', 'compact: "preserve_recent" must be an integer, got true'),
        (
            '"type":"refresh_models","timeoutMs":1e400',
            'refresh_models: "timeoutMs" must be a number, got a number out of range',
        ),
        (
            '"type":"wait_task","taskId":"t","budgetMs":"1"',
            'wait_task: "budgetMs" must be a number of 0 or more, got "1"',
        ),
        (
            '"type":"wait_task","taskId":"t","budgetMs":-1',
            'wait_task: "budgetMs" must be a number of 0 or more, got -1',
        ),
        (
            '"type":"wait_task","taskId":"t","budgetMs":1' + "0" * 400,
            'wait_task: "budgetMs" must be a number of 0 or more, got a number out of range',
        ),
        (
            '"type":"wait_task","taskId":"t","budgetMs":1e400',
            'wait_task: "budgetMs" must be a number of 0 or more, got a number out of range',
        ),
        (
            '"type":"abort_bash","requestId":[1]',
            'abort_bash: "requestId" must be a string, a number, true, false or null, got [1]',
        ),
    ],
)
def test_a_bad_field_is_named_with_what_came_and_what_is_allowed(members: str, error: str) -> None:
    name = members.split('"')[3]
    assert rejection(f'{{"id":"1",{members}}}') == Rejected(b'"1"', name, error)


def test_a_long_value_is_shortened_to_eighty_characters() -> None:
    error = rejection('{"type":"set_steering_mode","mode":"' + "x" * 5000 + '"}').error
    assert error.endswith(', got "' + "x" * 76 + "...")


@pytest.mark.parametrize("credential", ['"sk-secret"', '["sk-secret"]', "null", '{"key":"sk-secret","n":1e400}'])
def test_a_secret_is_never_shown(credential: str) -> None:
    line = f'{{"type":"save_provider_credential","provider":"p","credential":{credential}}}'
    error = rejection(line).error
    assert error.startswith('save_provider_credential: "credential" ') and "sk-secret" not in error


def test_a_saved_credential_does_not_show_in_the_repr_of_its_command() -> None:
    line = '{"type":"save_provider_credential","provider":"p","credential":{"key":"sk-secret"}}'
    command = accepted(line)
    assert command.credential == {"key": "sk-secret"} and "sk-secret" not in repr(command)


def test_infinite_numbers_enter_by_no_field() -> None:
    assert rejection('{"type":"extension_ui_response","id":"u","value":[1e400]}').error == (
        'extension_ui_response: "value" holds a number out of range'
    )


# ---- what is accepted --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_reads_back_as_it_was_written(name: str) -> None:
    samples: dict[str, Any] = {"images": (), "credential": {"key": "k"}, "enabled": True, "mode": "all", "level": "off"}
    samples |= {"columns": 80, "rows": 24}
    kind = COMMANDS[name]
    required = [each for each in msgspec.structs.fields(kind) if each.required]
    command: Any = kind(id=msgspec.Raw(b'"1"'), **{each.name: samples.get(each.name, "x") for each in required})
    assert read_command(msgspec.json.encode(command)) == command
    assert command_name(command) == name


def test_null_for_an_optional_field_counts_as_absent() -> None:
    line = '{"type":"prompt","message":"m","images":null,"streamingBehavior":null}'
    assert accepted(line) == commands.Prompt("m")
    assert accepted('{"type":"set_model","provider":"p","modelId":"m","persist":null}').persist is False
    assert accepted('{"type":"navigate_tree","targetId":"a","options":{"summarize":null}}').options.summarize is False
    assert accepted('{"type":"abort_bash","requestId":null,"id":1}') == commands.AbortBash(id=msgspec.Raw(b"1"))


def test_unknown_fields_are_ignored_and_the_last_duplicate_counts() -> None:
    assert accepted('{"type":"get_state","type":"bash","command":"a","command":"b","x":{}}') == commands.Bash("b")


def test_lone_surrogates_are_kept_in_strings() -> None:
    assert accepted('{"type":"prompt","message":"a\\ud83d"}').message == "a\ud83d"


def test_invalid_utf8_becomes_replacement_characters() -> None:
    assert accepted(b'{"type":"bash","command":"a\xff\xed\xa0\x80"}').command == "a" + "\ufffd" * 4


def test_images_come_as_typed_blocks() -> None:
    line = '{"type":"steer","message":"","images":[{"type":"image","data":"QQ==","mimeType":"a/b"}]}'
    (image,) = accepted(line).images
    assert (image.data, image.mime_type) == ("QQ==", "a/b")


@pytest.mark.parametrize("raw_id", ['"a"', "7", "true"])
def test_a_bash_request_is_addressed_by_its_id_verbatim(raw_id: str) -> None:
    assert bytes(accepted(f'{{"type":"abort_bash","requestId":{raw_id}}}').request_id) == raw_id.encode()


def test_a_dialog_reply_needs_a_string_id() -> None:
    reply = accepted('{"type":"extension_ui_response","id":"\\u0075-1","value":"v","cancelled":"odd"}')
    assert (reply.request_id, reply.value, reply.cancelled) == ("u-1", "v", "odd")
    for members in ('"id":5', '"value":1'):
        result = rejection(f'{{"type":"extension_ui_response",{members}}}')
        assert result.error == "Unknown command: extension_ui_response"


def test_every_command_has_exactly_one_lane() -> None:
    lanes = [INTERRUPTS, LONG_WORK, REPLIES, ORDERED]
    assert sorted(name for lane in lanes for name in lane) == sorted(COMMANDS)
    assert HOLDS_LANE <= ORDERED
