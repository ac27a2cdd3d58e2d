"""What the check of tool arguments says, and that it always says something."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import convert

from actors.mail import KillTask, LaunchShell, ToolPlace, ToolRequest, UseIntercom, WaitForTask
from actors.probe import Probe
from actors.tool import intercom_call, shell_call
from actors.tool.contact_call import contact_tool
from actors.tool.schema import check_arguments
from actors.tool.table import DEFAULT_TOOLS, Tool, ToolFailure, builtin_tools
from protocol.messages import ToolCall

TOOLS = builtin_tools()
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@pytest.mark.parametrize(
    ("tool", "arguments", "fault"),
    [
        ("read", {}, "path is missing"),
        ("read", {"path": None}, "path is missing"),
        ("read", {"path": 1}, "path must be a string, got 1"),
        ("read", {"path": "a", "limit": 0}, "limit must be at least 1, got 0"),
        ("read", {"path": "a", "lines": 1}, "'lines' is not a known property; known are path, offset, limit"),
        ("read", {"path": "a", "limit": "many"}, "limit must be a number, got 'many'"),
        ("read", {"path": "a", "limit": "inf"}, "limit must be finite, got 'inf'"),
        ("edit", {"path": "a", "edits": []}, "edits must have at least 1 entries, got 0"),
        ("edit", {"path": "a", "edits": [{"oldText": "x"}]}, "edits[0].newText is missing"),
        ("bash", {"command": "a", "env": {"A": 1}}, "env.'A' must be a string, got 1"),
        ("bash", {"command": "a", "pty": "yes"}, "pty must be true or false, got 'yes'"),
        ("search", {"pattern": "a", "paths": 3}, "paths must be a string or an array, got 3"),
    ],
)
def test_a_misfit_names_the_field_what_came_and_what_is_allowed(
    tool: str, arguments: dict[str, Any], fault: str
) -> None:
    assert check_arguments(TOOLS[tool], arguments) == f"Invalid arguments for tool '{tool}': {fault}"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("read", {"path": "a", "offset": "7", "limit": None}),
        ("bash", {"command": ""}),
        ("bash", {"command": "a", "env": {"A": "b"}, "timeout": 1.5, "cwd": "/", "pty": False}),
        ("edit", {"path": "a", "oldText": "x", "newText": ""}),
        ("search", {"pattern": "a", "paths": "b", "skip": None}),
        ("ls", {}),
    ],
)
def test_numbers_as_strings_and_null_for_optional_fields_pass(tool: str, arguments: dict[str, Any]) -> None:
    assert check_arguments(TOOLS[tool], arguments) is None


def test_a_value_nested_deeper_than_the_stack_is_refused_and_not_raised() -> None:
    nested: list[Any] = []
    for _ in range(100_000):
        nested = [nested]
    fault = check_arguments(TOOLS["edit"], {"path": "a", "edits": nested})
    while nested:  # taken apart by hand: freeing it at once would recurse in C
        nested = nested[0]
    assert fault == "Invalid arguments for tool 'edit': edits[0] must be an object, got an array of 1"


def test_a_long_value_is_shortened_in_the_error() -> None:
    fault = check_arguments(TOOLS["bash"], {"command": "a", "pty": "x" * 10_000})
    assert fault is not None
    assert len(fault) < 160


def test_enum_const_any_of_and_string_limits_are_checked() -> None:
    schema = {
        "properties": {
            "kind": {"enum": ["a", "b"]},
            "fixed": {"const": 3},
            "either": {"anyOf": [{"type": "boolean"}, {"type": "array", "maxItems": 1}]},
            "name": {"type": "string", "pattern": "^x", "maxLength": 3},
        }
    }
    tool = Tool("t", "", "", schema, TOOLS["ls"].run, TOOLS["ls"].mutates)
    for fine in ({"kind": "a"}, {"fixed": 3}, {"either": True}, {"either": [1]}, {"name": "xy"}):
        assert check_arguments(tool, fine) is None
    for bad in ({"kind": "c"}, {"fixed": 4}, {"either": [1, 2]}, {"either": "x"}, {"name": "y"}, {"name": "xxxx"}):
        assert str(next(iter(bad))) in (check_arguments(tool, bad) or "")


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(TOOLS)), st.dictionaries(st.text(max_size=8), JSON, max_size=4))
def test_no_arguments_make_the_check_raise(name: str, arguments: dict[str, Any]) -> None:
    known = dict(zip(TOOLS[name].parameters["properties"], arguments.values(), strict=False))
    for candidate in (arguments, known):
        fault = check_arguments(TOOLS[name], candidate)
        assert fault is None or fault.startswith("Invalid ")


def test_every_tool_describes_itself_and_refuses_unknown_properties() -> None:
    assert set(TOOLS) - set(DEFAULT_TOOLS) == {"ls", "intercom"}
    for name, tool in TOOLS.items():
        assert tool.name == name and tool.description and tool.snippet
        assert tool.parameters["additionalProperties"] is False
        assert "not a known property" in (check_arguments(tool, {"zz": 1, **_required(tool)}) or "")


def _required(tool: Tool) -> dict[str, Any]:
    kinds = {"string": "a", "array": ["a"]}
    required = ["command"] if tool.name in ("bash", "powershell") else tool.parameters["required"]  # or an action
    return {name: kinds[tool.parameters["properties"][name]["type"]] for name in required}


def _fitting(tool: Tool) -> list[dict[str, Any]]:
    """Calls that name every field without which something cannot be done."""
    ask = {"reason": "interview_request", "message": "m", "questions": [{"type": "text", "question": "q"}]}
    actions = [{"action": "wait", "id": "t"}, {"action": "kill", "id": "t"}, {"action": "get", "agent": "a"}]
    new = {"action": "create", "config": {"name": "a", "description": "d"}}
    talks = [{"action": "send", "to": "a", "message": "m"}, {"action": "list"}]
    special: dict[str, list[dict[str, Any]]] = {
        "bash": [{"command": "a"}, {"command": "a", "pty": True, "cwd": "/"}, {"action": "wait", "id": "t"}],
        "subagent": [*actions, new, {"tasks": [{"agent": "a", "task": "b"}]}],
        "intercom": talks,
        "contact_supervisor": [ask],
        "edit": [{"path": "a", "edits": [{"oldText": "a", "newText": "b"}]}],
    }
    return special.get(tool.name.replace("powershell", "bash")) or [_required(tool)]


OPTIONAL = {"pty", "cwd", "edits"}


@pytest.mark.parametrize(
    ("tool", "fine"),
    [(tool, fine) for tool in (*TOOLS.values(), contact_tool()) for fine in _fitting(tool)],
    ids=lambda value: value.name if isinstance(value, Tool) else ",".join(value),
)
def test_null_for_a_field_that_is_needed_is_refused_as_if_it_were_left_out(tool: Tool, fine: dict[str, Any]) -> None:
    assert check_arguments(tool, fine) is None
    for name in fine.keys() - OPTIONAL:
        without = {key: value for key, value in fine.items() if key != name}
        fault = check_arguments(tool, {**fine, name: None})
        if tool.name == "subagent" and name in ("action", "tasks"):
            continue  # what is left may be another call, or is looked at with the definitions
        assert fault is not None and fault == check_arguments(tool, without)
    for name, inner in fine.items():
        for each in inner if isinstance(inner, list) else ():
            for field in each if isinstance(each, dict) else ():
                fault = check_arguments(tool, {**fine, name: [{**each, field: None}]})
                assert fault is not None and f"{name}[0].{field} is missing" in fault


FIELDS = sorted({name for tool in TOOLS.values() if tool.owned for name in tool.parameters["properties"]})
ODD = st.none() | st.sampled_from(["wait", "kill", "status", "send", "a", "", {"kind": "foreground"}, 0, -0.0, 7])


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(["bash", "kill", "intercom"]),
    st.sampled_from([{}, {"command": "a"}, {"action": "wait", "id": "t"}, {"id": "t"}, {"action": "list"}]),
    st.dictionaries(st.sampled_from(FIELDS), ODD | JSON, max_size=3),
)
def test_what_passes_the_check_makes_mail_that_is_of_its_types(
    name: str, fine: dict[str, Any], odd: dict[str, Any]
) -> None:
    """What a desk is told it trusts: a field of another type would end it, and every task with it."""
    arguments = {**fine, **odd}
    if check_arguments(TOOLS[name], arguments) is not None:
        return
    asked = ToolRequest(1, TOOLS[name], ToolCall("c", name, arguments), ToolPlace("/", "s", {}, False))
    ask = intercom_call.order if TOOLS[name].talks == "down" else shell_call.order
    try:
        mail = ask(asked, Probe[Any]())
    except ToolFailure:
        return
    match mail:
        case LaunchShell():
            plan, policy = mail.plan, mail.policy
            convert((plan.command, plan.cwd, plan.pty, plan.timeout_s), tuple[str, str, bool, int])
            convert((plan.environment, policy.kind, policy.budget_ms), tuple[dict[str, str], str, float | None])
        case UseIntercom():
            convert((mail.action, mail.target, mail.reply_to, mail.message), tuple[str, str | None, str | None, str])
        case WaitForTask():
            convert((mail.task_id, mail.budget_ms), tuple[str, float | None])
        case KillTask():
            convert(mail.task_id, str)
