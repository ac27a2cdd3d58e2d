"""Subagents that speak to their parent, as a client and both models meet it: asked, answered once, and nothing lost."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from conformance.driver import Agent
from conformance.model_server import ModelServer, Request, text, tool, tools
from tests.e2e.test_subagents import alive, has_notices, is_child, launch, notices, result, said, settled, told, unread

Start = Callable[..., Agent]
Record = dict[str, Any]

ASK = {"reason": "need_decision", "message": "Red or blue?"}


def ask(call: str = "q1", /, **arguments: Any) -> Any:
    return tool("contact_supervisor", arguments or ASK, id=call)


def reply(call: str = "r1", /, **arguments: Any) -> Any:
    return tool("intercom", {"action": "reply", **arguments}, id=call)


def messages(a: Agent) -> list[Record]:
    """What subagents have said so far."""
    return [each for each in notices(a) if each["customType"] == "intercom"]


def asked(a: Agent, count: int = 1) -> list[Record]:
    found = a.until(lambda _: messages(a) if len(messages(a)) >= count else None)
    assert found, f"{len(messages(a))} of {count} messages"
    return found


def is_asked(request: Request) -> bool:
    """Whether a subagent has said something that the parent's model has not answered to."""
    return "What the subagent says" in unread(request)


def state(a: Agent, task_id: str) -> Record:
    (task,) = [each for each in a.request("get_tasks")["data"]["tasks"] if each["ref"]["taskId"] == task_id]
    return dict(task)


def parents(*steps: Any) -> Callable[[Request], Any]:
    """The parent's replies in their order, then a word."""
    waiting = list(steps)
    return lambda request: waiting.pop(0) if waiting else text("noted")


def play(server: ModelServer, child: Callable[[Request], Any], parent: Callable[[Request], Any]) -> None:
    server.default = lambda request: child(request) if is_child(request) else parent(request)


def curious(request: Request) -> Any:
    """Asks once, and ends with what it was answered."""
    return text(f"done: {said(request)[-400:]}") if "tool_result" in said(request) else ask()


def test_a_question_waits_in_the_child_alone_and_its_parent_answers_it(agent: Start, server: ModelServer) -> None:
    steps = [launch(agent="scout", task="paint it"), text("it runs")]

    def parent(request: Request) -> Any:
        if steps:
            return steps.pop(0)
        return reply(message="Blue, please.") if is_asked(request) else text("noted")

    play(server, curious, parent)
    with agent() as a:
        a.request("set_task_subscription", enabled=True)
        a.prompt("go")
        message = asked(a)[0]
        assert message["display"] and message["content"].startswith("Subagent scout asks: paint it\nTask: task-")
        assert "Red or blue?" in message["content"] and message["details"]["requestId"] in message["content"]
        outcome = told(result(a, "r1"))
        assert outcome == {
            "kind": "replied",
            "taskId": message["details"]["taskId"],
            "requestId": message["details"]["requestId"],
        }
        (_, notice) = has_notices(a, 2)
        assert notice["customType"] == "task-completion" and "Blue, please." in notice["content"]
        settled(a)
        states = [r["task"]["state"] for r in a.records if r["type"] == "task_update"]
        assert [each for each, _ in groupby(states)] == ["running", "inputNeeded", "running", "completed"]
        asking = next(r["task"] for r in a.records if r.get("task", {}).get("state") == "inputNeeded")
        assert asking["attention"] == {"kind": "input-needed", "requestIds": [outcome["requestId"]]}
        assert asking["acceptsInput"] is True
    for request in server.requests:
        offered = {each["name"] for each in request.body["tools"]}
        mine, other = ("contact_supervisor", "intercom") if is_child(request) else ("intercom", "contact_supervisor")
        assert mine in offered and other not in offered


@pytest.mark.parametrize("how", ["launch", "wait"])
def test_what_the_parent_waits_for_runs_on_and_the_others_too(agent: Start, server: ModelServer, how: str) -> None:
    tasks = [{"agent": "scout", "task": "ask"}, {"agent": "scout", "task": "sleep"}]
    foreground = {"kind": "foreground", "budgetMs": 60_000}
    ids: list[str] = []

    def child(request: Request) -> Any:
        if "sleep" in said(request):
            return tool("bash", {"command": "sleep 331"}, id="c")
        return ask() if "tool_result" not in said(request) else text("thanks")

    def parent(request: Request) -> Any:
        if not ids and "tool_result" not in said(request):
            return launch(tasks=tasks, wait=foreground if how == "launch" else {"kind": "background"})
        if not ids:
            ids.extend(each.split("\\")[0] for each in said(request).split('taskId\\":\\"')[1:])
            if how == "wait":
                return launch("w", action="wait", id=ids[-1], budgetMs=60_000)
        if is_asked(request):
            return reply(message="go on")
        return text("noted")

    play(server, child, parent)
    with agent() as a:
        a.request("set_task_subscription", enabled=True)
        a.send("prompt", message="go")
        ended = told(result(a, "t1" if how == "launch" else "w"))
        observed = (
            [slot["outcome"]["observation"] for slot in ended["slots"]] if how == "launch" else [ended["observation"]]
        )
        assert {(each["kind"], each["reason"]) for each in observed} == {("yielded", "intercom-coordination")}
        assert told(result(a, "r1"))["kind"] == "replied"
        alive(a, "sleep 331")
        (notice,) = [each for each in has_notices(a, 2) if each["customType"] == "task-completion"]
        assert "thanks" in notice["content"]
        assert {each["state"] for each in a.request("get_tasks")["data"]["tasks"]} == {"completed", "running"}


def test_a_wait_that_comes_after_the_question_does_not_keep_the_parent_from_it(
    agent: Start, server: ModelServer
) -> None:
    """The model asks for the wait while it has not been shown the question yet."""
    steps: list[Any] = []

    def parent(request: Request) -> Any:
        if "tool_result" not in said(request):
            return launch(agent="scout", task="ask")
        if not steps:
            steps.append(1)
            assert a.until(
                lambda records: [r for r in records if r.get("task", {}).get("state") == "inputNeeded"] or None
            )
            return launch(
                "w", action="wait", id=said(request).split('taskId\\":\\"')[1].split("\\")[0], budgetMs=60_000
            )
        return reply(message="go on") if is_asked(request) else text("noted")

    play(server, curious, parent)
    with agent() as a:
        a.request("set_task_subscription", enabled=True)
        a.send("prompt", message="go")
        assert told(result(a, "w"))["observation"]["reason"] == "intercom-coordination"
        assert "go on" in has_notices(a, 2)[1]["content"]


def test_an_interview_and_a_progress_update(agent: Start, server: ModelServer) -> None:
    questions = [
        {"type": "single", "question": "Which?", "id": "which", "options": ["red", "blue"]},
        {"type": "info", "question": "It is a wall."},
    ]

    def child(request: Request) -> Any:
        done = said(request).count("tool_result")
        if done == 0:
            return ask("p", reason="progress_update", message="halfway")
        if done == 1:
            return ask("i", reason="interview_request", message="A few things.", questions=questions)
        return text(said(request)[-300:])

    def parent(request: Request) -> Any:
        if is_asked(request) and "1. [single which] Which?" in said(request):
            return reply(to="Scout", message="which: red")
        return text("noted") if "tool_result" in said(request) else launch(agent="scout", task="interview")

    play(server, child, parent)
    with agent() as a:
        a.prompt("go")
        first, second = asked(a, 2)
        assert first["content"].startswith("Subagent scout reports: interview") and "halfway" in first["content"]
        assert "requestId" not in first["details"]
        assert "1. [single which] Which?\n   - red\n   - blue\n2. [info] It is a wall." in second["content"]
        assert second["details"]["questions"] == questions
        assert "which: red" in has_notices(a, 3)[2]["content"]


@pytest.mark.shows("send_task_input", error="No pending ask from …")
@pytest.mark.shows("send_task_input", error="Invalid params: input must not be blank …")
def test_a_client_answers_and_whoever_comes_second_is_told_so(agent: Start, server: ModelServer) -> None:
    play(server, curious, parents(launch(agent="scout", task="ask"), text("it runs"), text("let the user say")))
    with agent() as a:
        a.prompt("go")
        details = asked(a)[0]["details"]
        task_id, request_id = details["taskId"], details["requestId"]
        settled(a)
        shown = a.request("get_task", taskId=task_id)["data"]
        assert shown["questions"] == [{"requestId": request_id, "reason": "need_decision", "message": "Red or blue?"}]
        wrong = a.request("send_task_input", taskId=task_id, input="x", requestId="ask-0")
        assert wrong["error"] == 'No pending ask from "ask-0"'
        for blank in ("", "  ", "\n\t"):
            refused = a.request("send_task_input", taskId=task_id, input=blank, requestId=request_id)
            assert refused["error"].startswith("Invalid params: input must not be blank")
        assert a.request("send_task_input", taskId=task_id, input="green", requestId=request_id)["data"] == {
            "accepted": 5
        }
        late = a.request("send_task_input", taskId=task_id, input="red")
        assert late["error"] in (f'No pending ask from "{task_id}"', "TaskTerminal: TaskTerminal")
        assert "green" in has_notices(a, 2)[1]["content"]
        assert "questions" not in a.request("get_task", taskId=task_id)["data"]


def test_an_answer_that_a_client_repeats_does_not_answer_the_next_question(agent: Start, server: ModelServer) -> None:
    def child(request: Request) -> Any:
        done = said(request).count('"tool_result"')
        return ask(f"q{done}", reason="need_decision", message=f"Question {done}?") if done < 2 else text("done")

    play(server, child, parents(launch(agent="scout", task="ask")))
    with agent() as a:
        a.prompt("go")
        task_id = asked(a)[0]["details"]["taskId"]

        def answer(words: str, operation: str) -> Any:
            return a.request("send_task_input", taskId=task_id, input=words, operationId=operation)

        assert answer("yes", "one")["data"] == {"accepted": 3}
        second = asked(a, 2)[1]["details"]["requestId"]
        assert answer("yes", "one")["data"] == {"accepted": 3}
        assert answer("no", "one")["error"] == "OperationConflict: operation one typed something else"
        open_now = a.request("get_task", taskId=task_id)["data"]["questions"]
        assert [question["requestId"] for question in open_now] == [second]
        assert answer("no", "two")["data"] == {"accepted": 2}
        assert a.request("wait_task", taskId=task_id, budgetMs=20_000)["data"]["kind"] == "settled"
        assert answer("no", "two")["data"] == {"accepted": 2}  # also when it is over


def test_a_child_that_is_told_something_reads_it_before_its_next_request(
    agent: Start, server: ModelServer, home: Any
) -> None:
    go = home.cwd / "go"

    def child(request: Request) -> Any:
        if "tool_result" in said(request):
            return text("heard of tests" if "run the tests too" in said(request) else "heard nothing")
        return tool("bash", {"command": f"until [ -e {go} ]; do sleep 0.02; done"}, id="c")

    talk = tools(
        [
            ("intercom", {"action": "list"}),
            ("intercom", {"action": "send", "to": "SCOUT", "message": "run the tests too"}),
            ("intercom", {"action": "pending"}),
            ("intercom", {"action": "send", "to": "nobody", "message": "x"}),
            ("intercom", {"action": "reply", "to": "scout", "message": "x"}),
            ("intercom", {"action": "send", "to": "scout"}),
        ]
    )
    play(server, child, parents(launch(agent="scout", task="work"), text("it runs"), talk))
    with agent() as a:
        a.request("set_task_subscription", enabled=True)
        a.prompt("go")
        a.prompt("tell it")
        answers = [
            r["message"]["content"][0]["text"]
            for r in a.records
            if r["type"] == "message_end" and r["message"].get("toolName") == "intercom"
        ]
        (listed,) = json.loads(answers[0])["agents"]
        assert (listed["name"], listed["state"], listed["title"]) == ("scout", "running", "work")
        assert json.loads(answers[1]) == {"kind": "sent", "taskId": listed["taskId"]}
        assert json.loads(answers[2]) == {"kind": "pending", "asks": []}
        assert answers[3:5] == ["No in-process child found for 'nobody'.", 'No pending ask from "scout"']
        assert "action send needs message" in answers[5]
        go.touch()
        assert "heard of tests" in has_notices(a, 1)[0]["content"]


def test_a_kill_ends_the_wait_for_an_answer_and_later_answers_find_nothing(agent: Start, server: ModelServer) -> None:
    play(server, curious, parents(launch(agent="scout", task="ask"), text("it runs")))
    with agent() as a:
        a.prompt("go")
        details = asked(a)[0]["details"]
        settled(a)
        a.request("cancel_task", taskId=details["taskId"])
        assert has_notices(a, 2)[1]["details"]["notification"]["status"] == "stopped"
        late = a.request("send_task_input", taskId=details["taskId"], input="x", requestId=details["requestId"])
        assert late["error"] == "TaskTerminal: TaskTerminal"
        task = state(a, details["taskId"])
        assert (task["attention"]["kind"], task["cleanup"]["kind"]) == ("none", "reaped")


def test_a_definition_may_forbid_it(agent: Start, server: ModelServer, home: Any) -> None:
    (home.agent_dir / "agents").mkdir()
    (home.agent_dir / "agents" / "mute.md").write_text(
        "---\nname: mute\ndescription: d\ninteractive: false\n---\nDo.\n"
    )
    play(server, lambda _: text("done"), parents(launch(agent="mute", task="x", wait={"kind": "foreground"})))
    with agent() as a:
        a.prompt("go")
        assert told(result(a))["output"] == "done"
    assert "contact_supervisor" not in {each["name"] for each in server.requests[1].body["tools"]}


def test_what_was_asked_before_a_crash_is_in_the_history_once_and_asks_no_more(
    agent: Start, server: ModelServer, home: Any
) -> None:
    """The program dies after it has taken the question and while its parent's model speaks: it is not said yet."""
    held = Event()

    def parent(request: Request) -> Any:
        if "tool_result" not in said(request):
            return launch(agent="scout", task="ask")
        held.wait(20)
        return text("too late")

    play(server, curious, parent)
    with agent() as a:
        a.send("prompt", message="go")
        path = _asked_in_file(home.sessions)
        os.kill(a.pid, signal.SIGKILL)
        a.wait_exit()
        held.set()
        assert messages(a) == []
    for _ in range(2):
        with agent("--session", str(path)) as a:
            (again,) = _said_in(a)
            assert "Red or blue?" in again["content"] and "requestId" not in again["details"]
            assert "waits no longer" in again["content"]
            assert a.request("get_state")["data"]["isStreaming"] is False


def _asked_in_file(sessions: Path) -> Path:
    """The session file, once it holds what a subagent has asked."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        for path in sessions.glob("*.jsonl"):
            if "intercom_received" in path.read_text():
                return path
    raise AssertionError("nothing was asked within 20 s")


@pytest.mark.parametrize("ending", ["end of input", "new_session"])
def test_the_end_of_the_session_ends_who_waits(agent: Start, server: ModelServer, home: Any, ending: str) -> None:
    play(server, curious, parents(launch(agent="scout", task="ask"), text("it runs"), text("let me think")))
    with agent() as a:
        a.prompt("go")
        details = asked(a)[0]["details"]
        settled(a)
        if ending == "new_session":
            assert a.request("new_session")["success"]
            gone = a.request("send_task_input", taskId=details["taskId"], input="x", requestId=details["requestId"])
            assert gone["error"] == "UnknownTask: UnknownTask"
        a.close_stdin()
        assert a.wait_exit() == 0
    (path,) = [file for file in home.sessions.glob("*.jsonl") if details["messageId"] in file.read_text()]
    with agent("--session", str(path)) as a:
        assert len(_said_in(a)) == 1
        (notice,) = [
            m for m in a.request("get_messages")["data"]["messages"] if m.get("customType") == "task-completion"
        ]
        assert notice["details"]["notification"]["status"] == "stopped"
    (child,) = (home.sessions / "subagents").rglob("*.jsonl")
    assert '"isError":true' in child.read_text()


def _said_in(a: Agent) -> list[Record]:
    found = a.request("get_messages")["data"]["messages"]
    return [each for each in found if each["role"] == "custom" and each["customType"] == "intercom"]


def test_a_fork_does_not_know_what_others_asked(agent: Start, server: ModelServer, home: Any) -> None:
    def child(request: Request) -> Any:
        return curious(request) if "paint it" in said(request) else text("forked")

    steps = [launch(agent="scout", task="paint it"), text("it runs")]

    def parent(request: Request) -> Any:
        if steps:
            return steps.pop(0)
        return reply(message="Blue") if is_asked(request) else text("noted")

    play(server, child, parent)
    with agent() as a:
        a.prompt("go")
        has_notices(a, 2)
        settled(a)
        steps.append(launch("f", agent="worker", task="look", wait={"kind": "foreground"}))
        a.prompt("now fork")
        assert told(result(a, "f"))["output"] == "forked"
    forked = [request for request in server.requests if is_child(request)][-1]
    assert "now fork" in said(forked)
    assert not [part for part in ("Red or blue", "intercom", "Blue") if part in said(forked)]
    assert Path(home.sessions).exists()
