"""Background tasks as a client and a model meet them: launches, waits, kills, notices, and no process left behind."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conformance.driver import Agent
from conformance.model_server import ModelServer, gate, text, tool

Start = Callable[..., Agent]
Record = dict[str, Any]

AT_ONCE = {"kind": "background"}


def shell(command: str, id: str = "t1", **arguments: Any) -> Any:
    return tool("bash", {"command": command, **arguments}, id=id)


def result(a: Agent, call: str = "t1") -> Record:
    """The result of a tool call, once it is there."""
    ended: Record = a.wait({"type": "tool_execution_end", "toolCallId": call})
    return ended


def shown(ended: Record) -> str:
    return "".join(block["text"] for block in ended["result"]["content"])


def task_of(ended: Record) -> str:
    task_id: str = ended["result"]["details"]["observation"]["taskId"]
    return task_id


def notices(a: Agent) -> list[Record]:
    return [r["message"] for r in a.records if r["type"] == "message_end" and r["message"]["role"] == "custom"]


def notice(a: Agent) -> Record:
    ended: Record = a.wait({"type": "message_end", "message.customType": "task-completion"})
    message: Record = ended["message"]
    return message


def settled(a: Agent, times: int) -> None:
    def enough(records: list[Record]) -> bool:
        return sum(record["type"] == "agent_settled" for record in records) >= times

    assert a.until(lambda records: enough(records) or None)


def living(a: Agent) -> list[str]:
    """The sleeping commands below the program."""
    return [process.command for process in a.orphans() if process.command.startswith("sleep ")]


def entries(home: Any) -> list[Record]:
    (path,) = home.session_files()
    return [json.loads(line) for line in path.read_text().splitlines()]


def completions(home: Any) -> list[tuple[str, str]]:
    """What the file says of notices: the kind of entry and its completion, in order."""
    found = []
    for entry in entries(home):
        kind = entry.get("customType", "")
        if kind.startswith("task-completion"):
            found.append(
                (kind.removeprefix("task-completion"), (entry.get("details") or entry["data"])["completionId"])
            )
    return found


# ---- the tools ---------------------------------------------------------------------------------------------------


def test_a_command_over_its_budget_goes_on_and_its_end_is_told_once_to_the_chat_and_the_model(
    agent: Start, server: ModelServer, home: Any
) -> None:
    hold = home.cwd / "hold"
    os.mkfifo(hold)
    command = f"echo early; read go < {hold}; echo late; exit 3"
    server.script(shell(command, wait={"kind": "foreground", "budgetMs": 1500}), text("meanwhile"), text("I see"))
    with agent() as a:
        a.prompt("go")
        ended = result(a)
        task_id = task_of(ended)
        assert shown(ended) == f"early\n\nCommand is still running (task {task_id})."
        observation = ended["result"]["details"]["observation"]
        assert (observation["kind"], observation["reason"], ended["isError"]) == ("yielded", "elapsed", False)
        hold.write_text("go\n")
        message = notice(a)
        assert message["content"].startswith(f"Background shell failed: {command}\nTask: {task_id}\n")
        assert "Exit code: 3" in message["content"] and "early\nlate" in message["content"]
        assert message["details"]["notification"]["status"] == "failed"
        settled(a, 2)  # the notice began a run of its own
        assert message["content"] in json.dumps(server.requests[-1].body, ensure_ascii=False).replace("\\n", "\n")
        assert len(notices(a)) == 1
        assert [message["role"] for message in a.request("get_messages")["data"]["messages"]][-2:] == [
            "custom",
            "assistant",
        ]
    name = f"completion-{task_id}"
    assert completions(home) == [("-intent", name), ("", name), ("-ack", name)]


@pytest.mark.parametrize(
    ("wait", "observation"),
    [({"commandBudgetMs": 50}, "yielded"), ({"commandBudgetMs": 50, "kind": "until-settled"}, "settled")],
)
def test_settings_say_how_long_a_command_is_waited_for(
    agent: Start, server: ModelServer, home: Any, wait: Record, observation: str
) -> None:
    home.write_settings({"tasks": {"wait": {"agentBudgetMs": 1, **wait}}})
    hold = home.cwd / "hold"
    os.mkfifo(hold)
    server.script(shell(f"echo early; read go < {hold}; echo late"), text("done"), text("told"))
    with agent() as a:
        a.send("prompt", message="go")
        if observation == "settled":
            a.wait({"type": "tool_execution_update", "toolCallId": "t1"})
            hold.write_text("go\n")
        ended = result(a)
        details = ended["result"]["details"] or {}
        assert details.get("observation", {"kind": "settled"})["kind"] == observation
        if observation == "yielded":
            hold.write_text("go\n")
        a.wait({"type": "agent_settled"})


def test_what_never_left_the_foreground_is_not_told_and_leaves_nothing_behind(
    agent: Start, server: ModelServer, home: Any
) -> None:
    server.script(shell("sleep 311 & echo done; exit 7"), text("ok"))
    with agent() as a:
        a.prompt("go")
        ended = result(a)
        assert shown(ended) == "done\n\nCommand exited with code 7"
        assert ended["isError"] and ended["result"]["details"]["exitCode"] == 7
        assert a.orphans("sleep 311", deadline=5) == []  # the shell's children end with it
        assert a.request("get_tasks")["data"]["tasks"] == []
    assert notices(a) == completions(home) == []


def test_waits_page_through_the_output_and_a_settled_one_shows_all_of_it(
    agent: Start, server: ModelServer, home: Any
) -> None:
    hold = home.cwd / "hold"
    os.mkfifo(hold)
    filler = "x" * 8190
    command = f"printf '%s' '{filler}€tail'; read go < {hold}; exit 7"
    server.script(shell(command, wait={"kind": "foreground", "budgetMs": 300}), text("started"))
    with agent() as a:
        a.prompt("go")
        task_id = task_of(result(a))

        def wait(call: str, **more: Any) -> Record:
            server.script(tool("bash", {"action": "wait", "id": task_id, **more}, id=call), text("seen"))
            a.prompt("look")
            return result(a, call)

        first, second, third = (shown(wait(call, budgetMs=0)) for call in ("w1", "w2", "w3"))
        assert first.startswith(
            filler + "\n[Additional output not shown; wait again to retrieve retained output.]\n\n{"
        )
        assert second.startswith("€tail\n\n{") and third.startswith('{"kind":"yielded"')
        server.script(text("noticed"))
        hold.write_text("go\n")
        notice(a)
        settled(a, 5)
        for call in ("w4", "w5"):
            ended = wait(call)
            assert shown(ended).startswith(f"{filler}€tail\n\n" + '{"kind":"settled"')
            assert ended["result"]["details"]["exitCode"] == 7


def test_kill_stops_a_task_and_the_stop_is_told_once_it_is_certain(agent: Start, server: ModelServer) -> None:
    server.script(shell("trap 'echo bye; exit 0' TERM; echo up; sleep 312 & wait", wait=AT_ONCE), text("started"))
    with agent() as a:
        a.prompt("go")
        task_id = task_of(result(a))
        server.script(tool("kill", {"id": task_id}, id="k1"), text("killed"), text("it is gone"))
        a.prompt("stop it")
        ended = result(a, "k1")
        receipt = json.loads(shown(ended))
        assert receipt == ended["result"]["details"]
        assert (receipt["taskId"], receipt["decision"]) == (task_id, "cancellation-requested")
        assert receipt["execution"]["kind"] == "cancelling" and not ended["isError"]
        message = notice(a)
        assert message["content"].startswith("Background shell stopped: ") and "Stop reason: user" in message["content"]
        assert living(a) == []  # already: the notice says that nothing is left
        server.script(tool("kill", {"id": task_id}, id="k2"), tool("kill", {"id": "task-0-0"}, id="k3"), text("ok"))
        a.request("prompt", message="again", streamingBehavior="followUp")
        repeated = json.loads(shown(result(a, "k2")))
        assert (repeated["decision"], repeated["cleanup"]) == ("cancellation-requested", {"kind": "reaped"})
        assert shown(result(a, "k3")) == "UnknownTask: UnknownTask"
        assert len(notices(a)) == 1


def test_a_time_out_ends_a_command_that_nobody_waits_for(agent: Start, server: ModelServer) -> None:
    server.script(shell("echo up; sleep 313", timeout=0.1, wait=AT_ONCE), text("started"), text("noticed"))
    with agent() as a:
        a.prompt("go")
        assert "Stop reason: execution-timeout" in notice(a)["content"]
        assert living(a) == []


def test_a_time_out_in_the_foreground_is_the_usual_error(agent: Start, server: ModelServer) -> None:
    server.script(shell("echo up; sleep 314", timeout=1), text("ok"))
    with agent() as a:
        a.prompt("go")
        ended = result(a)
        assert shown(ended) == "up\n\nCommand timed out after 1 seconds" and ended["isError"]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"command": "true", "timeout": 3601}, "Invalid timeout 3601: timeout must be a finite number greater than 0"),
        ({"command": "true", "wait": None}, "Invalid bash wait: expected background or foreground with a finite"),
        ({"command": "true", "wait": {"kind": "foreground", "budgetMs": 10**400}}, "Invalid bash wait: expected"),
        ({"action": "wait", "id": "x", "command": "true"}, "Invalid bash wait: command belongs to a launch"),
        ({"action": "wait", "id": "task-1"}, "UnknownTask: UnknownTask"),
        ({"command": "true", "cwd": "nowhere", "wait": AT_ONCE}, "Working directory does not exist: "),
    ],
)
def test_what_cannot_be_is_refused_by_name(
    agent: Start, server: ModelServer, arguments: dict[str, Any], reason: str
) -> None:
    server.script(tool("bash", arguments, id="t1"), text("ok"))
    with agent(session=False) as a:
        a.prompt("go")
        ended = result(a)
        assert shown(ended).startswith(reason) and ended["isError"]


@pytest.mark.parametrize("more", [{}, {"wait": AT_ONCE}, {"pty": True, "cwd": "."}])
def test_a_command_that_is_null_is_none_and_leaves_other_tasks_alone(
    agent: Start, server: ModelServer, more: dict[str, Any]
) -> None:
    server.script(
        shell("sleep 318", wait=AT_ONCE), tool("bash", {"command": None, **more}, id="t2"), text("ok")
    )  # fmt: skip
    with agent(session=False) as a:
        a.prompt("go")
        ended = result(a, "t2")
        assert shown(ended).startswith("Invalid bash call: command is missing") and ended["isError"]
        assert [task["state"] for task in a.request("get_tasks")["data"]["tasks"]] == ["running"]


# ---- the turn and the session ------------------------------------------------------------------------------------


def test_a_steer_waits_for_a_command_in_the_foreground(agent: Start, server: ModelServer) -> None:
    server.script(shell("echo up; sleep 316", wait={"kind": "foreground", "budgetMs": 600_000}))
    with agent() as a:
        a.request("prompt", message="go")
        a.wait({"type": "tool_execution_update", "partialResult.content.0.text": "up\n"})
        a.request("steer", message="look here")
        assert a.request("clear_queue")["data"] == {"steering": ["look here"], "followUp": []}
        a.request("abort")
        assert len(server.requests) == 1


def test_an_abort_cancels_the_command_that_is_waited_for_and_no_other(agent: Start, server: ModelServer) -> None:
    server.script(
        shell("sleep 316", wait=AT_ONCE), shell("echo up; sleep 317", id="t2"), text("never"), text("noticed")
    )
    with agent() as a:
        a.request("prompt", message="go")
        a.wait({"type": "tool_execution_update", "toolCallId": "t2", "partialResult.content.0.text": "up\n"})
        a.request("abort")
        assert shown(result(a, "t2")) == "up\n\nCommand aborted"
        assert living(a) == ["sleep 316"]


def test_a_new_session_ends_the_tasks_of_the_old_one_and_does_not_wait_for_that(
    agent: Start, server: ModelServer, home: Any
) -> None:
    server.script(shell("trap '' TERM; echo up; while :; do sleep 0.318; done", wait=AT_ONCE), text("started"))
    with agent() as a:
        a.prompt("go")
        task_id = task_of(result(a))
        old = a.request("get_state")["data"]["sessionFile"]
        assert a.request("new_session")["success"]
        assert a.request("get_tasks")["data"]["tasks"] == []
        assert a.request("cancel_task", taskId=task_id)["error"] == "UnknownTask: UnknownTask"
        assert a.orphans("sleep 0.318", deadline=5) == []
        assert notices(a) == []
        a.request("switch_session", sessionPath=old)  # back: what happened meanwhile is told, and wakes nobody
        assert "Stop reason: owner-close" in notice(a)["content"]
        assert a.request("get_state")["data"]["isStreaming"] is False
        assert [r["type"] for r in a.records].count("agent_start") == 1


@pytest.mark.parametrize("ending", ["eof", "SIGTERM", "SIGINT"])
def test_no_task_outlives_the_program(agent: Start, server: ModelServer, ending: str) -> None:
    stubborn = "trap '' TERM; echo up; while :; do sleep 0.319; done"
    server.script(shell(stubborn, wait=AT_ONCE), shell("setsid sleep 320 & echo up; sleep 321", id="t2"))
    with agent() as a:
        a.request("prompt", message="go")
        a.wait({"type": "tool_execution_update", "toolCallId": "t2", "partialResult.content.0.text": "up\n"})
        if ending == "eof":
            a.close_stdin()
        else:
            a.terminate(getattr(signal, ending))
        assert a.wait_exit() == {"eof": 0, "SIGTERM": 143, "SIGINT": 130}[ending]
        assert a.orphans(deadline=5) == []  # what was killed last may take a moment to go
        assert "gave up" not in a.stderr


# ---- notices across a crash --------------------------------------------------------------------------------------


def test_a_notice_that_a_crash_cut_off_comes_exactly_once(agent: Start, server: ModelServer, home: Any) -> None:
    hold = home.cwd / "hold"
    os.mkfifo(hold)
    server.script(shell(f"read go < {hold}; echo result", wait=AT_ONCE), gate("half ", "rest"))
    with agent() as a:
        a.request("prompt", message="go")
        task_id = task_of(result(a))
        # The model speaks: a notice has to wait for the next request.
        a.wait({"type": "message_update", "assistantMessageEvent.delta": "half "})
        a.request("set_task_subscription", enabled=True)
        hold.write_text("go\n")
        a.wait({"type": "task_update", "task.state": "completed"})
        os.kill(a.pid, signal.SIGKILL)
        a.wait_exit()
    name = f"completion-{task_id}"
    assert completions(home) == [("-intent", name)]
    with agent("--continue") as a:
        message = notice(a)
        assert message["content"].startswith(f"Background task completed: {task_id}\n")
        server.script(text("I know"))
        a.prompt("what was it?")
        assert f"Task: {task_id}" in json.dumps(server.requests[-1].body)
    assert completions(home) == [("-intent", name), ("", name), ("-ack", name)]
    with agent("--continue") as a:
        roles = [each["role"] for each in a.request("get_messages")["data"]["messages"]]
        assert roles.count("custom") == 1 and notices(a) == []
    assert len(completions(home)) == 3


def test_ids_of_an_earlier_process_are_unknown_and_never_come_again(agent: Start, server: ModelServer) -> None:
    ids: list[str] = []
    server.default = lambda _: text("noted")  # the notice may come in the same run, or begin one
    for flags in ((), ("--continue",)):
        server.script(shell("true", wait=AT_ONCE))
        with agent(*flags) as a:
            for earlier in ids:
                assert a.request("get_task", taskId=earlier)["error"] == "UnknownTask: UnknownTask"
            a.prompt("go")
            ids.append(task_of(result(a)))
            notice(a)
            assert [task["ref"]["taskId"] for task in a.request("get_tasks")["data"]["tasks"]] == ids[-1:]
            for earlier in ids[:-1]:
                for command in ("get_task", "wait_task", "cancel_task"):
                    assert a.request(command, taskId=earlier)["error"] == "UnknownTask: UnknownTask"
    assert len(set(ids)) == 2


def test_a_notice_that_was_said_before_the_crash_is_only_acknowledged(
    agent: Start, server: ModelServer, home: Any
) -> None:
    server.script(shell("true", wait=AT_ONCE), text("started"), text("noticed"))
    with agent() as a:
        a.prompt("go")
        notice(a)
        assert a.until(lambda _: len(completions(home)) == 3 or None)
    (path,) = home.session_files()
    before = completions(home)
    lines = [line for line in path.read_text().splitlines() if "task-completion-ack" not in line]
    parents = {entry["id"] for entry in map(json.loads, lines)}
    whole = [json.loads(line) for line in lines]
    for entry in whole:  # whatever hung on the line that the crash took
        if entry.get("parentId") not in parents and entry["type"] != "session":
            entry["parentId"] = next(e["id"] for e in whole if e.get("customType") == "task-completion")
    path.write_text("".join(json.dumps(entry) + "\n" for entry in whole))
    with agent("--continue") as a:
        a.request("get_state")
        assert notices(a) == []
    assert sorted(completions(home)) == sorted(before)


# ---- over the wire -----------------------------------------------------------------------------------------------


@pytest.mark.shows("get_tasks", "get_task", "cancel_task", "wait_task")
@pytest.mark.shows("set_task_subscription", events=["task_update"])
@pytest.mark.shows("get_task", "cancel_task", "wait_task", error="UnknownTask: UnknownTask")
def test_a_client_looks_waits_and_stops(agent: Start, server: ModelServer, home: Any) -> None:
    server.script(shell("printf '\\033[1mup\\033[0m\\n'; sleep 322", wait=AT_ONCE), text("started"), text("noticed"))
    with agent() as a:
        a.prompt("go")
        task_id = task_of(result(a))
        assert not [record for record in a.records if record["type"] == "task_update"]
        assert a.request("set_task_subscription", enabled=True)["success"]
        (task,) = a.request("get_tasks")["data"]["tasks"]
        assert (task["ref"]["taskId"], task["state"], task["kind"]) == (task_id, "running", "command")
        assert task["observation"] == {"kind": "background", "reason": "explicit"} and task["wasBackground"]
        a.until(lambda _: a.request("get_task", taskId=task_id)["data"]["tail"] == "up\n" or None)
        detail = a.request("get_task", taskId=task_id)["data"]
        assert (detail["cwd"], detail["timeoutSeconds"]) == (str(home.cwd), 300)
        yielded = a.request("wait_task", taskId=task_id, budgetMs=1)["data"]
        assert (yielded["kind"], yielded["reason"]) == ("yielded", "elapsed")
        a.send("wait_task", id="w", taskId=task_id)
        receipt = a.request("cancel_task", taskId=task_id)["data"]
        assert receipt["decision"] == "cancellation-requested"
        waited = a.wait({"type": "response", "id": "w"})["data"]
        assert waited["kind"] == "settled" and waited["result"]["kind"] == "cancelled"
        a.wait({"type": "task_update", "task.state": "stopped", "task.cleanup.kind": "reaped"})
        assert a.request("get_task", taskId=task_id)["data"]["tail"] == "up\n"
        for command in ("get_task", "cancel_task", "wait_task"):
            assert a.request(command, taskId="task-0-0")["error"] == "UnknownTask: UnknownTask"
        notice(a)


@pytest.mark.shows("send_task_input")
@pytest.mark.shows("send_task_input", error="UnknownTask: UnknownTask")
@pytest.mark.shows("send_task_input", error="OperationConflict: …")
@pytest.mark.shows("send_task_input", error="InputBackpressure: …")
@pytest.mark.shows("send_task_input", error="StdinClosed: …")
@pytest.mark.shows("send_task_input", error="TaskTerminal: …")
def test_input_reaches_a_command_on_a_terminal_once(agent: Start, server: ModelServer) -> None:
    command = "stty -echo; echo ready; read line; echo got $line"
    server.script(
        shell(command, pty=True, wait=AT_ONCE), shell("sleep 323", id="t2", wait=AT_ONCE), text("started"), text("ok")
    )
    with agent() as a:
        a.prompt("go")
        terminal, piped = task_of(result(a)), task_of(result(a, "t2"))
        a.until(lambda _: "ready" in a.request("get_task", taskId=terminal)["data"]["tail"] or None)

        def type_in(text: str, task: str = terminal, **more: Any) -> Record:
            response: Record = a.request("send_task_input", taskId=task, input=text, **more)
            return response

        assert type_in("x" * 65_537)["error"].startswith("InputBackpressure: ")
        assert type_in("")["data"] == {"accepted": 0}
        assert type_in("he", operationId="one")["data"] == {"accepted": 2}
        assert type_in("he", operationId="one")["data"] == {"accepted": 2}  # and it is not typed again
        assert type_in("ho", operationId="one")["error"].startswith("OperationConflict: ")
        assert type_in("llo\n")["data"] == {"accepted": 4}
        assert "got hello" in notice(a)["content"]
        assert type_in("more")["error"].startswith("TaskTerminal: ")
        assert type_in("x", task=piped)["error"].startswith("StdinClosed: ")
        assert type_in("x", task="task-0-0")["error"] == "UnknownTask: UnknownTask"


@pytest.mark.shows("resize_task")
@pytest.mark.shows("resize_task", error="UnknownTask: UnknownTask")
@pytest.mark.shows("resize_task", error="StdinClosed: …")
@pytest.mark.shows("resize_task", error="TaskTerminal: …")
def test_a_terminal_gets_another_size_and_the_program_hears_of_it(agent: Start, server: ModelServer) -> None:
    command = "trap 'echo told' WINCH; while :; do stty size; sleep 0.05; done"
    server.script(
        shell(command, pty=True, wait=AT_ONCE), shell("sleep 327", id="t2", wait=AT_ONCE), text("started"), text("ok")
    )
    with agent() as a:
        a.prompt("go")
        terminal, piped = task_of(result(a)), task_of(result(a, "t2"))

        def resize(columns: Any, rows: Any, task: str = terminal) -> Record:
            response: Record = a.request("resize_task", taskId=task, columns=columns, rows=rows)
            return response

        def tail() -> str:
            shown: str = a.request("get_task", taskId=terminal)["data"]["tail"]
            return shown

        assert a.until(lambda _: "40 120" in tail() or None)
        assert resize(80, 24)["success"] and resize(100, 30)["success"]
        assert a.until(lambda _: "told" in tail() or None)
        assert a.until(lambda _: "30 100" in tail() or None)
        assert resize(0, 30)["error"] == 'resize_task: "columns" must be an integer from 1 to 32767, got 0'
        assert resize(80, 40_000)["error"] == 'resize_task: "rows" must be an integer from 1 to 32767, got 40000'
        assert resize(80, 24, piped)["error"].startswith("StdinClosed: ")
        assert resize(80, 24, "task-0-0")["error"] == "UnknownTask: UnknownTask"
        a.request("cancel_task", taskId=terminal)
        a.request("wait_task", taskId=terminal)
        assert resize(80, 24)["error"].startswith("TaskTerminal: ")


def test_the_output_file_holds_raw_bytes_and_the_notice_its_end(agent: Start, server: ModelServer) -> None:
    command = "printf '\\377\\000'; seq 1 20000"
    server.script(shell(command, wait={"kind": "foreground", "budgetMs": 0}), text("started"), text("noticed"))
    with agent() as a:
        a.prompt("go")
        task_id = task_of(result(a))
        content = notice(a)["content"]
        assert "[Earlier output omitted]" in content and "\n20000\n" in content
        path = a.request("get_task", taskId=task_id)["data"]["fullOutputPath"]
        assert re.fullmatch(r".*/atomic-bash-[0-9a-f]{16}\.log", path)
        assert Path(path).read_bytes().startswith(b"\xff\x001\n2\n")
