"""The calls of `bash` and `kill` where a session owns what they start: what is refused, asked and said."""

from __future__ import annotations

import math
from typing import Any

import pytest

from actors.mail import KillTask, LaunchShell, TaskAnswer, ToolPlace, ToolRequest, WaitForTask
from actors.probe import Probe
from actors.task.effects import WaitPolicy
from actors.tool.schema import check_arguments
from actors.tool.shell_call import order, output, refused_without_owner
from actors.tool.table import ToolFailure, builtin_tools
from protocol import messages
from protocol import tasks as t

TOOLS = builtin_tools()
NO_BACKGROUND = "Background bash observation requires a supported task owner"
BAD_WAIT = "Invalid bash wait: expected background or foreground with a finite non-negative budgetMs"


def request(name: str = "bash", **arguments: Any) -> ToolRequest:
    return ToolRequest(1, TOOLS[name], messages.ToolCall("c", name, arguments), ToolPlace("/here", "s", {}, False))


def said(asked: ToolRequest, answer: TaskAnswer) -> str:
    block = output(asked, answer).content[0]
    assert isinstance(block, messages.TextContent)
    return block.text


@pytest.mark.parametrize(
    "wait",
    [None, {}, {"kind": "later"}, {"kind": "background", "budgetMs": 1}, {"kind": "foreground", "budgetMs": -1},
     {"kind": "foreground", "budgetMs": math.inf}, {"kind": "foreground", "budgetMs": "1"},
     {"kind": "foreground", "more": 1}],
)  # fmt: skip
def test_a_malformed_wait_is_refused_before_anything_runs(wait: Any) -> None:
    assert check_arguments(TOOLS["bash"], {"command": "true", "wait": wait}) == BAD_WAIT


@pytest.mark.parametrize("field", ["command", "timeout", "wait", "env", "cwd", "pty"])
def test_a_wait_for_a_task_takes_nothing_of_a_launch(field: str) -> None:
    fault = check_arguments(TOOLS["bash"], {"action": "wait", "id": "t", field: "x"})
    assert fault is not None and fault.startswith("Invalid ") and field in fault


@pytest.mark.parametrize(
    "arguments",
    [{}, {"command": None}, {"command": None, "pty": True, "wait": {"kind": "background"}},
     {"command": None, "cwd": "/"}, {"action": None, "id": "t"}, {"action": "wait", "id": None},
     {"action": "wait"}, {"action": "wait", "id": 7}, {"action": "stop", "id": "t"}, {"id": "t"},
     {"action": "wait", "id": "t", "budgetMs": -1}, {"command": "true", "budgetMs": 1}],
)  # fmt: skip
def test_fields_that_do_not_go_together_are_refused(arguments: dict[str, Any]) -> None:
    assert str(check_arguments(TOOLS["bash"], arguments)).startswith("Invalid ")


@pytest.mark.parametrize("field", ["action", "id", "budgetMs", "timeout", "env", "cwd", "pty"])
def test_null_is_as_if_the_field_were_left_out(field: str) -> None:
    arguments = {"command": "true", field: None}
    assert check_arguments(TOOLS["bash"], arguments) is None
    assert isinstance(order(request(**arguments), Probe[Any]()), LaunchShell)
    assert refused_without_owner(arguments) is None


def test_the_timeout_is_looked_at_before_the_wait() -> None:
    fault = check_arguments(TOOLS["bash"], {"command": "true", "timeout": 3601, "wait": None})
    assert str(fault).startswith("Invalid timeout 3601: ")


def test_a_call_asks_the_desk_for_what_it_says() -> None:
    call = Probe[Any]()
    launch = order(request(command="make", cwd="sub", timeout=7.9, wait={"kind": "foreground", "budgetMs": 5}), call)
    assert isinstance(launch, LaunchShell) and launch.policy == WaitPolicy("foreground", 5)
    assert (launch.plan.command, launch.plan.cwd, launch.plan.timeout_s) == ("make", "/here/sub", 7)
    assert order(request(action="wait", id=" t "), call) == WaitForTask(" t ", None, call)
    assert order(request("kill", id="t"), call) == KillTask("t", call)


@pytest.mark.parametrize(("asked", "seconds"), [(None, 300), (0.1, 1), (1.99, 1), (3600, 3600)])
def test_a_timeout_is_in_whole_seconds_and_at_least_one(asked: float | None, seconds: int) -> None:
    """A shorter one would end a command before it has begun."""
    timeout = {} if asked is None else {"timeout": asked}
    launch = order(request(command="make", **timeout), Probe[Any]())
    assert isinstance(launch, LaunchShell) and launch.plan.timeout_s == seconds


def test_a_wait_looks_at_no_folder() -> None:
    place = ToolPlace("/nowhere/at/all", "s", {}, False)
    asked = ToolRequest(1, TOOLS["bash"], messages.ToolCall("c", "bash", {"action": "wait", "id": "t"}), place)
    assert isinstance(order(asked, Probe[Any]()), WaitForTask)


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        ({"action": "wait", "id": "t"}, "Shell task wait requires a supported task owner"),
        ({"command": "true", "wait": {"kind": "background"}}, NO_BACKGROUND),
        ({"command": "true", "wait": {"kind": "background"}, "pty": True}, NO_BACKGROUND),
        ({"command": "true", "wait": {"kind": "foreground", "budgetMs": 1}}, None),
        ({"command": "true"}, None),
    ],
)
def test_without_an_owner_of_tasks_nothing_can_outlive_its_call(arguments: dict[str, Any], refusal: str | None) -> None:
    assert check_arguments(TOOLS["bash"], arguments) is None
    assert refused_without_owner(arguments) == refusal


def test_without_an_owner_of_tasks_there_is_nothing_to_kill() -> None:
    with pytest.raises(ToolFailure, match=r"^kill requires a supported task owner$"):
        TOOLS["kill"].run(None, {"id": "t"})  # type: ignore[arg-type]


def test_how_a_launch_ended_is_said_as_ever() -> None:
    asked = request(command="make", timeout=1)
    ends: list[tuple[t.TaskResult, str]] = [
        (t.TaskCompleted(exit_code=0), "(no output)"),
        (t.TaskCompleted(exit_code=3), "(no output)\n\nCommand exited with code 3"),
        (t.TaskCancelled("execution-timeout"), "(no output)\n\nCommand timed out after 1 seconds"),
        (t.TaskCancelled("user"), "(no output)\n\nCommand aborted"),
        (t.TaskFailed("SpawnFailed", "no such shell"), "no such shell"),
    ]
    for result, text in ends:
        assert said(asked, TaskAnswer(t.SettledWait("t", result))) == text


def test_a_failure_without_a_code_has_no_code_in_its_details() -> None:
    answer = TaskAnswer(t.SettledWait("t", t.TaskFailed("RunnerFailed", "it died")))
    shown = output(request(action="wait", id="t"), answer)
    assert "exitCode" not in shown.details and "RunnerFailed" in said(request(action="wait", id="t"), answer)


def test_a_kill_whose_cleanup_has_failed_is_an_error() -> None:
    receipt = t.CancelReceipt("t", "already-settled", t.Queued(), t.CleanupFailed(("group 7",)))
    assert output(request("kill", id="t"), TaskAnswer(receipt)).is_error
    assert output(request("kill", id="t"), TaskAnswer("UnknownTask: UnknownTask")).is_error
