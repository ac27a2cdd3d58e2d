"""The calls of `bash` and `kill` where a session owns what they start: what is refused, asked and said."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from actors.mail import KillTask, LaunchShell, ShellTaskPlan, TaskAnswer, ToolPlace, ToolRequest, WaitForTask
from actors.probe import Probe
from actors.task.effects import WaitPolicy
from actors.task.retained import Page
from actors.tool.schema import check_arguments
from actors.tool.shell_call import order, output, refused_without_owner
from actors.tool.table import ToolFailure, builtin_tools
from protocol import messages
from protocol import tasks as t
from tests.actors.task.views import view

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


@pytest.mark.parametrize(
    ("ended", "is_error", "code"),
    [
        (t.TaskCompleted(exit_code=0), False, None),
        (t.TaskCompleted(exit_code=3), True, 3),
        (t.TaskCancelled("user"), True, None),
        (t.TaskFailed("CommandKilled", "Command was killed by signal 9"), True, None),
    ],
)
def test_the_details_of_a_launch_tell_its_time_and_a_code_that_is_not_zero(
    ended: t.TaskResult, is_error: bool, code: int | None
) -> None:
    shown = output(request(command="make", timeout=1.9), TaskAnswer(t.SettledWait("t", ended), view("out\n")))
    details = {"timeoutSeconds": 1, "requestedTimeoutSeconds": 1.9, "wallTimeMs": 5}
    assert shown.details == details | ({} if code is None else {"exitCode": code})
    assert shown.is_error is is_error
    usual = output(request(command="make", timeout=2), TaskAnswer(t.SettledWait("t", ended), view("")))
    assert "requestedTimeoutSeconds" not in usual.details


def test_output_that_was_cut_names_its_file_and_what_is_shown() -> None:
    long = "".join(f"{number}\n" for number in range(3001))
    answer = TaskAnswer(t.SettledWait("t", t.TaskCompleted(exit_code=1)), view(long, path="/log"))
    shown = output(request(command="make"), answer)
    assert shown.details["fullOutputPath"] == "/log" and shown.details["truncation"]["totalLines"] == 3001
    note = "[Showing lines 2-3001 of 3001. Full output: /log]\n\nCommand exited with code 1"
    assert said(request(command="make"), answer).endswith(f"\n3000\n\n{note}")


def test_a_launch_that_yields_is_no_error_and_names_its_task() -> None:
    yielded = t.YieldedWait("task-1-0", "wait-1-1", "elapsed")
    answer = TaskAnswer(yielded, view("early\n"))
    assert said(request(command="make"), answer) == "early\n\nCommand is still running (task task-1-0)."
    shown = output(request(command="make"), answer)
    observation = {"kind": "yielded", "taskId": "task-1-0", "waitId": "wait-1-1", "reason": "elapsed"}
    assert (shown.is_error, shown.details["observation"]) == (False, observation)
    assert "exitCode" not in shown.details


WAIT = {"action": "wait", "id": "task-1-0"}


def test_a_wait_that_yields_shows_one_page_and_the_observation_as_a_line() -> None:
    yielded = t.YieldedWait("task-1-0", "wait-1-2", "elapsed")
    line = '{"kind":"yielded","taskId":"task-1-0","waitId":"wait-1-2","reason":"elapsed"}'
    answer = TaskAnswer(yielded, view("all of it\n", page=Page(b"all ", 0, 4, True), path="/log"))
    more = "[Additional output not shown; wait again to retrieve retained output.]"
    assert said(request(**WAIT), answer) == f"all \n{more}\n\n{line}\n\nFull output: /log"
    shown = output(request(**WAIT), answer)
    assert not shown.is_error and set(shown.details) == {"observation", "fullOutputPath"}
    assert said(request(**WAIT), TaskAnswer(yielded, view("", page=Page(b"", 4, 4, False)))) == line


@pytest.mark.parametrize("code", [0, 7])
def test_a_wait_that_settles_shows_all_and_the_code_also_when_it_is_zero(code: int) -> None:
    answer = TaskAnswer(t.SettledWait("task-1-0", t.TaskCompleted(exit_code=code)), view("all of it\n", (3, 5)))
    result = f'{{"kind":"completed","exitCode":{code}}}'
    line = f'{{"kind":"settled","taskId":"task-1-0","result":{result}}}'
    assert said(request(**WAIT), answer) == f"[Output omitted: bytes 3-5]\nall of it\n\n{line}"
    shown = output(request(**WAIT), answer)
    assert shown.details["exitCode"] == code and shown.details["observation"]["kind"] == "settled"


def test_the_receipt_of_a_kill_is_its_text_and_its_details() -> None:
    receipt = t.CancelReceipt("t", "cancellation-requested", t.Cancelling("user"), t.CleanupDraining())
    shown = output(request("kill", id="t"), TaskAnswer(receipt))
    assert shown.details == {
        "taskId": "t",
        "decision": "cancellation-requested",
        "execution": {"kind": "cancelling", "cause": "user"},
        "cleanup": {"kind": "draining"},
    }
    assert json.loads(said(request("kill", id="t"), TaskAnswer(receipt))) == shown.details and not shown.is_error


def test_a_launch_has_the_sessions_variables_the_callers_and_the_terminal_that_it_asks_for() -> None:
    place = ToolPlace("/here", "s", {"ATOMIC_SESSION_ID": "real", "AI_AGENT": "atomic", "MINE": "old"}, False)

    def plan(**arguments: Any) -> ShellTaskPlan:
        call = messages.ToolCall("c", "bash", {"command": "make", **arguments})
        launch = order(ToolRequest(1, TOOLS["bash"], call, place), Probe[Any]())
        assert isinstance(launch, LaunchShell)
        return launch.plan

    fake = {"ATOMIC_SESSION_ID": "fake", "PI_MODEL": "fake", "AI_AGENT": "fake", "MINE": "new"}
    asked = plan(env=fake)
    assert asked.environment == {"ATOMIC_SESSION_ID": "real", "AI_AGENT": "atomic", "MINE": "new"}
    assert (asked.pty, plan(pty=True).pty, plan(pty=True, env={"ATOMIC_NO_PTY": "1"}).pty) == (False, True, False)
    with pytest.raises(ToolFailure, match=r"^Invalid bash env name: 1A$"):
        plan(env={"1A": "x"})


def test_a_failure_without_a_code_has_no_code_in_its_details() -> None:
    answer = TaskAnswer(t.SettledWait("t", t.TaskFailed("RunnerFailed", "it died")))
    shown = output(request(action="wait", id="t"), answer)
    assert "exitCode" not in shown.details and "RunnerFailed" in said(request(action="wait", id="t"), answer)


def test_a_kill_whose_cleanup_has_failed_is_an_error() -> None:
    receipt = t.CancelReceipt("t", "already-settled", t.Queued(), t.CleanupFailed(("group 7",)))
    assert output(request("kill", id="t"), TaskAnswer(receipt)).is_error
    assert output(request("kill", id="t"), TaskAnswer("UnknownTask: UnknownTask")).is_error
