"""Numbers that are far too large, below zero or none: each field of each tool takes them or says what it allows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest

from actors.mail import AgentsPlanned, ToolPlace, ToolRequest
from actors.probe import Probe
from actors.tool import shell_call, subagent_call
from actors.tool.schema import check_arguments
from actors.tool.table import Tool, ToolFailure, builtin_tools
from protocol.messages import ToolCall
from tests.actors.task.test_delegation import made
from tests.actors.tool.conftest import Bench

TOOLS = builtin_tools()
ODD = (10**400, -(10**400), 10**5000, str(10**400), 10**308, 1e308, 2**63, -1, 0, -0.0, math.inf, -math.inf, math.nan)
ONE = {"agent": "both", "task": "t"}
BAD_WAIT = "Invalid {} wait: expected background or foreground with a finite non-negative budgetMs"
FINE: dict[str, dict[str, Any]] = {
    "read": {"path": "a"},
    "find": {"paths": ["a"]},
    "search": {"pattern": "a"},
    "ls": {},
    "bash": {"command": "a"},
    "subagent": ONE,
}


def _fields(schema: dict[str, Any], at: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, inner in schema.get("properties", {}).items():
        if inner.get("type") in ("number", "integer"):
            yield (*at, name)
        yield from _fields(inner, (*at, name))
        yield from _fields(inner.get("items", {}), (*at, name))


def _call(tool: Tool, field: tuple[str, ...], value: Any) -> dict[str, Any]:
    match field:
        case ("budgetMs",):
            return {"action": "wait", "id": "t", "budgetMs": value}
        case ("wait", name):
            return {**FINE[tool.name], "wait": {"kind": "foreground", name: value}}
        case ("tasks", name):
            return {"tasks": [{**ONE, name: value}]}
        case (outer, name):
            return {**FINE[tool.name], outer: {name: value}}
        case _:
            return {**FINE[tool.name], field[0]: value}


EACH = [(tool, field) for tool in TOOLS.values() for field in _fields(tool.parameters)]


def test_every_number_of_every_tool_is_tried() -> None:
    assert {tool.name for tool, _ in EACH} == FINE.keys() | ({"powershell"} & TOOLS.keys())
    assert {("maxOutput", "lines"), ("tasks", "count"), ("wait", "budgetMs")} <= {field for _, field in EACH}


@pytest.mark.parametrize("value", ODD, ids=range(len(ODD)))
@pytest.mark.parametrize(("tool", "field"), EACH, ids=lambda each: each.name if isinstance(each, Tool) else each[-1])
def test_an_odd_number_is_taken_or_refused_by_its_field(
    bench: Bench, tool: Tool, field: tuple[str, ...], value: Any
) -> None:
    bench.write("a", "a\n")
    arguments = _call(tool, field, value)
    fault = check_arguments(tool, arguments)
    if fault is not None:
        assert field[-1] in fault and "checked" not in fault and len(fault) < 250
        return
    asked = ToolRequest(1, tool, ToolCall("c", tool.name, arguments), ToolPlace("/", "s", {}, False))
    if tool.name == "subagent" and "action" not in arguments:
        plans = made(arguments)
        launched = subagent_call.launch(asked, AgentsPlanned("r", plans), Probe[Any]())
        assert "a\nb".split("\n", plans[0].max_lines) and plans[0].max_bytes <= 2**53
        assert launched.concurrency is None or 1 <= launched.concurrency <= 2**53
    elif tool.owned:
        (subagent_call if tool.name == "subagent" else shell_call).order(asked, Probe[Any]())
    else:
        try:
            tool.run(bench.context, arguments)
        except ToolFailure as refused:
            assert field[-1] in str(refused).casefold()


@pytest.mark.parametrize("value", [10**400, -(10**400), 10**5000, math.inf, math.nan, -1, "1"], ids=range(7))
def test_a_budget_that_is_none_is_refused_in_the_words_of_its_tool(value: Any) -> None:
    for name, call in (("bash", {"command": "a"}), ("subagent", ONE)):
        wait = {"kind": "foreground", "budgetMs": value}
        assert check_arguments(TOOLS[name], {**call, "wait": wait}) == BAD_WAIT.format(name)
        told = check_arguments(TOOLS[name], {"action": "wait", "id": "t", "budgetMs": value})
        assert told is not None and "budgetMs must be a finite number of 0 or more, got " in told
