"""The fields of a call of `subagent` that do not go together, and the shape of what the model reads."""

from __future__ import annotations

import json
from typing import Any

import pytest

from actors.mail import (
    AgentRefusal,
    AgentsAnswer,
    AgentSlot,
    AgentsPlanned,
    DescribeAgents,
    KillTask,
    LaunchAgents,
    TaskAnswer,
    ToolPlace,
    ToolRequest,
    WaitForTask,
)
from actors.probe import Probe
from actors.task.agent_view import AgentView
from actors.task.definition import AgentDefinition, fields_of
from actors.task.effects import WaitPolicy
from actors.tool.schema import check_arguments
from actors.tool.subagent_call import launch, order, output, progress
from actors.tool.table import ToolOutput, builtin_tools
from protocol import messages
from protocol import tasks as t
from protocol.codec import encode
from runtime.setting_keys import Partly, agent_overrides

TOOL = builtin_tools()["subagent"]
CALL = Probe[Any]()
BAD_WAIT = "Invalid subagent wait: expected background or foreground with a finite non-negative budgetMs"
NEW = {"name": "x", "description": "d"}
ONE = {"agent": "scout", "task": "x"}


def request(**arguments: Any) -> ToolRequest:
    return ToolRequest(1, TOOL, messages.ToolCall("c", "subagent", arguments), ToolPlace("/", "s", {}, False))


@pytest.mark.parametrize(
    "arguments",
    [
        ONE,
        {"tasks": [{**ONE, "count": 3, "cwd": "a", "reads": ["x"]}], "concurrency": 2},
        {**ONE, "wait": {"kind": "foreground", "budgetMs": 0}},
        {**ONE, "reads": False, "output": "a", "outputMode": "file-only", "maxOutput": {"bytes": 1}},
        {"action": "list", "agentScope": "user"},
        {**ONE, **dict.fromkeys(("tasks", "action", "id", "budgetMs", "config", "reads", "output", "context"))},
        {"action": "list", **dict.fromkeys(("agent", "task", "tasks", "wait", "id"))},
        {"agent": None, "tasks": [{**ONE, "cwd": None, "count": None, "reads": None}]},
        {"action": "get", "agent": "scout"},
        {"action": "status"},
        {"action": "wait", "id": "", "budgetMs": 0},
        {"action": "kill", "id": "t"},
        {"action": "create", "config": NEW, "agentScope": "project"},
        {"action": "update", "agent": "x", "config": {"tools": ["read"], "skills": "a, b", "model": None}},
        {"action": "delete", "agent": "x", "cwd": "sub"},
    ],
)
def test_what_goes_together_is_let_through(arguments: dict[str, Any]) -> None:
    assert check_arguments(TOOL, arguments) is None


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        *(
            ({**ONE, "wait": wait}, BAD_WAIT)
            for wait in (
                None,
                {},
                {"kind": "soon"},
                {"kind": "background", "budgetMs": 1},
                {"kind": "foreground", "x": 1},
            )
        ),
        (
            {"action": "interrupt", "id": "t"},
            "Unknown action: interrupt. Valid: list, get, status, wait, kill, create, update, delete",
        ),
        ({"action": 7}, "Unknown action: 7. Valid: list, get, status, wait, kill, create, update, delete"),
        ({"id": "t"}, "Missing action."),
        ({**ONE, "budgetMs": 5}, "Missing action."),
        ({"action": "wait"}, "Invalid params: action wait needs id"),
        ({"action": "get"}, "Invalid params: action get needs agent"),
        ({"config": {}}, "Missing action."),
        ({"action": "create"}, "Invalid params: action create needs config"),
        ({"action": "create", "config": {"name": "x"}}, "Invalid params: action create needs config.description"),
        ({"action": "create", "config": NEW, "agent": "x"}, "'agent' does not belong to action create"),
        ({"action": "create", "config": {**NEW, "colour": "red"}}, "config.'colour' is not a known property"),
        ({"action": "create", "config": {**NEW, "thinking": "much"}}, "config.thinking must be one of 'off'"),
        ({"action": "update", "config": {}}, "Invalid params: action update needs agent"),
        ({"action": "update", "agent": "x", "config": "y"}, "Invalid params: action update needs config"),
        ({"action": "delete"}, "Invalid params: action delete needs agent"),
        ({"action": "delete", "agent": "x", "config": {}}, "'config' does not belong to action delete"),
        ({"action": "wait", "id": "t", "task": "x"}, "Invalid params: 'task' does not belong to action wait"),
        ({"action": "wait", "id": "t", "budgetMs": -1}, "Invalid params: budgetMs must be a finite number"),
        ({**ONE, "reads": True}, "reads must be an array of file path strings or false"),
        ({"tasks": [{**ONE, "reads": [1]}]}, "reads must be an array of file path strings or false"),
        ({**ONE, "reads": 0}, "reads must be an array of file path strings or false"),
        ({**ONE, "share": True}, "'share' is not a known property"),
        ({**ONE, "worktree": "yes"}, "worktree must be true or false, got 'yes'"),
        ({"tasks": [{**ONE, "group": "g"}]}, "tasks[0].'group' is not a known property"),
    ],
)
def test_what_does_not_is_refused_by_name(arguments: dict[str, Any], text: str) -> None:
    assert text in (check_arguments(TOOL, arguments) or "")


def test_every_field_of_a_definition_can_be_written_and_overridden() -> None:
    agent = AgentDefinition("x", "d", "p", "user", "/x.md")
    known = set(fields_of(agent)) - {"source", "path", "disabled"}
    properties = set(TOOL.parameters["properties"]["config"]["properties"])
    assert properties - {"package"} == known
    every = {name: None for name in known - {"name"}}
    assert agent_overrides({"scout": {**every, "disabled": None}}) == {"scout": {}}
    assert isinstance(agent_overrides({"scout": {"name": "other"}}), Partly)
    assert len(known) == len(AgentDefinition.__struct_fields__) - 3


def test_what_is_asked_of_the_desk() -> None:
    assert order(request(action="status"), CALL) == DescribeAgents(None, CALL)
    assert order(request(action="wait", id=" t", budgetMs=5), CALL) == WaitForTask(" t", 5, CALL, "agent")
    assert order(request(action="kill", id="t"), CALL) == KillTask("t", CALL, "agent")
    planned = AgentsPlanned("r1", (AgentRefusal("c", "m"),))
    assert launch(request(**ONE), planned, CALL) == LaunchAgents("r1", planned.plans, WaitPolicy(), None, CALL)
    waited = launch(request(concurrency=2, wait={"kind": "foreground", "budgetMs": 7}), planned, CALL)
    assert (waited.policy, waited.concurrency) == (WaitPolicy("foreground", 7), 2)


# ---- results -----------------------------------------------------------------------------------------------------

REF = t.TaskRef("o", "t", "a", "g")


def record(**fields: Any) -> t.TaskRecord:
    whole = {
        "ref": REF, "launch_ordinal": 0, "kind": "agent", "title": "x", "state": "running", "execution": t.Running(),
        "observation": t.Background("explicit"), "cleanup": t.CleanupActive(), "attention": t.Attention(),
        "agent_name": "scout", **fields,
    }  # fmt: skip
    return t.TaskRecord(**whole)


YIELDED = AgentSlot(t.YieldedWait("t", "w", "default-background"), record())
SETTLED = AgentSlot(
    t.SettledWait("t", t.TaskCompleted()), record(state="completed"), AgentView("all", "shown", ("/a",), ("m: none",))
)
REFUSED = AgentSlot(AgentRefusal("InvalidCwd", "no folder"))
REJECTED = {
    "kind": "unstarted",
    "reason": {"kind": "rejected", "error": {"code": "InvalidCwd", "message": "no folder"}},
}


def read(result: ToolOutput) -> Any:
    (block,) = result.content
    assert isinstance(block, messages.TextContent)
    told = json.loads(block.text)
    assert json.loads(encode(result.details["taskResponse"])) == told
    return told


def answered(*slots: AgentSlot, **arguments: Any) -> ToolOutput:
    return output(request(**arguments), AgentsAnswer(slots))


def test_a_single_launch_tells_how_the_wait_ended_and_the_answer_if_there_is_one() -> None:
    observation = {"kind": "yielded", "taskId": "t", "waitId": "w", "reason": "default-background"}
    result = answered(YIELDED, **ONE)
    assert read(result) == {"kind": "admitted", "observation": observation}
    assert [each["ref"]["taskId"] for each in result.details["taskRecords"]] == ["t"] and not result.is_error
    assert read(answered(SETTLED, **ONE)) == {
        "kind": "admitted",
        "observation": {"kind": "settled", "taskId": "t", "result": {"kind": "completed"}},
        "output": "shown",
        "artifacts": ["/a"],
        "skippedModels": ["m: none"],
    }


def test_a_single_launch_that_was_not_admitted_is_an_error_and_one_of_several_is_not() -> None:
    single = answered(REFUSED, **ONE)
    assert read(single) == REJECTED and single.is_error
    several = answered(YIELDED, REFUSED, tasks=[ONE, ONE])
    told = read(several)
    assert told["kind"] == "parallel" and [slot["ordinal"] for slot in told["slots"]] == [0, 1]
    assert told["slots"][1]["outcome"] == REJECTED and not several.is_error


def test_status_and_wait_tell_of_tasks_that_exist() -> None:
    (task,) = read(answered(AgentSlot(None, record()), action="status"))["tasks"]
    assert task["task"]["state"] == "running" and "output" not in task
    assert read(answered(action="status")) == {"kind": "status", "tasks": []}
    assert read(answered(SETTLED, action="wait", id="t"))["output"] == "shown"


def test_a_kill_tells_its_receipt_and_a_refusal_is_an_error() -> None:
    receipt = t.CancelReceipt("t", "cancellation-requested", t.Cancelling("user"), t.CleanupDraining())
    result = output(request(action="kill", id="t"), TaskAnswer(receipt))
    assert read(result)["decision"] == "cancellation-requested" and not result.is_error
    refused = output(request(action="kill", id="t"), TaskAnswer("No in-process child found for 't'."))
    assert refused.is_error


def test_progress_is_a_line_for_each_agent() -> None:
    busy = record(current_action=t.Action("read", "a.py"))
    shown = progress((AgentSlot(None, busy), AgentSlot(None, record(state="queued"))))
    assert shown.content == [messages.TextContent("scout: read a.py\nscout: queued")]
