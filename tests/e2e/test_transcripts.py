"""What subagents say, as clients read it: pages of it, live while it is said, and no entry lost or invented."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance.driver import Agent
from conformance.model_server import ModelServer, Request, gate, text, tool
from tests.e2e.test_inspector_socket import inspect

Start = Callable[..., Agent]
Record = dict[str, Any]

CHILD = "You are a subagent"
NO_TASK = "UnknownTask: UnknownTask"


def said(request: Request) -> str:
    return json.dumps(request.body["messages"], ensure_ascii=False)


def play(server: ModelServer, child: Callable[[Request], Any], **more: Any) -> None:
    """The parent launches one agent in the background and then has nothing to say; the child answers by itself."""
    launched: list[int] = []

    def answer(request: Request) -> Any:
        if CHILD in json.dumps(request.body["system"]):
            return child(request)
        if launched:
            return text("noted")
        launched.append(1)
        return tool("subagent", {"agent": "scout", "task": "look around", **more}, id="t1")

    server.default = answer


def agent_of(a: Agent) -> str:
    """The id of the agent that the parent has launched."""
    a.prompt("go")
    ended = a.wait({"type": "tool_execution_end", "toolCallId": "t1"})
    task_id: str = ended["result"]["details"]["taskRecords"][0]["ref"]["taskId"]
    return task_id


def page(a: Any, task_id: str, **wanted: Any) -> Record:
    response = a.request("get_task", taskId=task_id, transcript=wanted)
    assert response["success"], response
    found: Record = response["data"]["transcript"]
    assert [entry["index"] for entry in found["entries"]] == list(
        range(found["first"], found["first"] + len(found["entries"]))
    )
    return found


def whole(a: Agent, task_id: str, limit: int) -> list[Record]:
    """All entries, page by page from the end."""
    found = page(a, task_id, limit=limit)
    entries = found["entries"]
    while found["first"] > found["missing"]:
        found = page(a, task_id, limit=limit, before=found["first"])
        assert found["entries"]
        entries = [*found["entries"], *entries]
    return entries


def shown(entries: list[Record]) -> list[tuple[str, str]]:
    return [(entry["role"], entry["text"]) for entry in entries]


def finished(a: Agent, task_id: str) -> None:
    assert a.request("wait_task", taskId=task_id)["data"]["kind"] == "settled"


# ---- pages -------------------------------------------------------------------------------------------------------


@pytest.mark.shows("get_task", error='get_task: "transcript" is for subagents; …')
def test_a_page_shows_prompt_calls_results_and_answer_and_a_command_has_none(agent: Start, server: ModelServer) -> None:
    def child(request: Request) -> Any:
        if "tool_result" in said(request):
            return text("It is a project.")
        return text("I look.").then(tool("bash", {"command": "echo seen; exit 3"}, id="c1"))

    play(server, child)
    with agent() as a:
        task_id = agent_of(a)
        finished(a, task_id)
        found = page(a, task_id)
        assert (found["first"], found["total"], found["missing"], "live" in found) == (0, 5, 0, False)
        (prompt, look, call, result, answer) = found["entries"]
        assert prompt["role"] == "user" and "look around" in prompt["text"]
        assert (look["role"], look["text"]) == ("assistant", "I look.")
        assert (call["role"], call["tool"], call["toolCallId"]) == ("toolCall", "bash", "c1")
        assert json.loads(call["text"]) == {"command": "echo seen; exit 3"}
        assert (result["role"], result["tool"], result["toolCallId"]) == ("toolResult", "bash", "c1")
        assert result["isError"] and "seen" in result["text"]
        assert (answer["role"], answer["text"]) == ("assistant", "It is a project.")
        assert all(isinstance(entry["timestamp"], int) for entry in found["entries"])
        assert whole(a, task_id, 2) == whole(a, task_id, 200) == found["entries"]
        assert page(a, task_id, before=0)["entries"] == []
        assert "transcript" not in a.request("get_task", taskId=task_id)["data"]
        assert a.request("get_task", taskId="task-none", transcript={})["error"] == NO_TASK

        server.script(tool("bash", {"command": "true", "wait": {"kind": "background"}}, id="b1"), text("ok"))
        since = a.cursor
        a.prompt("more", streamingBehavior="followUp")
        ended = a.wait({"type": "tool_execution_end", "toolCallId": "b1"}, since=since)
        command = ended["result"]["details"]["observation"]["taskId"]
        refused = a.request("get_task", taskId=command, transcript={})
        assert refused["error"] == f'get_task: "transcript" is for subagents; {command} is a command'


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        ({"limit": 0}, '"transcript.limit" must be an integer from 1 to 200, got 0'),
        ({"limit": 201}, '"transcript.limit" must be an integer from 1 to 200, got 201'),
        ({"before": -1}, '"transcript.before" must be an integer of 0 or more, got -1'),
        ({"before": "x"}, '"transcript.before" must be an integer of 0 or more, got "x"'),
        ([], '"transcript" must be an object, got []'),
    ],
)
def test_a_page_that_cannot_be_is_refused_by_name(agent: Start, wanted: Any, error: str) -> None:
    with agent(session=False) as a:
        assert a.request("get_task", taskId="x", transcript=wanted)["error"] == f"get_task: {error}"


def long_talk(server: ModelServer, rounds: int = 12, end: Any = None) -> None:
    """A child whose results are more together than is kept in memory."""

    def child(request: Request) -> Any:
        done = said(request).count('"tool_result"')
        if done < rounds:
            command = f"head -c 12000 /dev/zero | tr '\\0' {chr(97 + done)}"
            return tool("bash", {"command": command}, id=f"c{done}")
        return end or text("done")

    play(server, child)


def test_what_is_no_longer_kept_comes_from_the_file_while_the_agent_runs_and_when_it_is_over(
    agent: Start, server: ModelServer
) -> None:
    held = gate("so far", " and on")
    long_talk(server, end=held)
    with agent() as a:
        task_id = agent_of(a)
        held.reached.wait()
        running = whole(a, task_id, 7)
        held.open()
        finished(a, task_id)
        entries = whole(a, task_id, 200)
        assert entries[:-1] == running
        assert len(entries) == 1 + 12 * 2 + 1
        results = [entry["text"] for entry in entries if entry["role"] == "toolResult"]
        assert [len(text) >= 12000 and text[0] for text in results] == list("abcdefghijkl")
        assert page(a, task_id)["missing"] == 0


def test_what_is_nowhere_any_more_is_counted(agent: Start, server: ModelServer, home: Any) -> None:
    long_talk(server)
    with agent() as a:
        task_id = agent_of(a)
        finished(a, task_id)
        before = page(a, task_id, limit=200)
        for path in home.sessions.rglob("subagents/*/*.jsonl"):
            path.unlink()
        found = page(a, task_id, limit=200)
        assert found["missing"] == found["first"] > 0
        assert found["total"] == before["total"]
        assert found["entries"] == before["entries"][found["first"] :]
        assert page(a, task_id, before=found["first"])["entries"] == []


def test_a_session_in_memory_keeps_the_end_alone(agent: Start, server: ModelServer) -> None:
    long_talk(server)
    with agent(session=False) as a:
        task_id = agent_of(a)
        finished(a, task_id)
        found = page(a, task_id, limit=200)
        assert found["missing"] == found["first"] > 0
        assert shown(found["entries"])[-1] == ("assistant", "done")
        assert page(a, task_id, limit=1)["missing"] == found["missing"]


def test_a_history_that_was_given_is_no_part_of_it(agent: Start, server: ModelServer) -> None:
    server.script(text("earlier answer"))
    with agent() as a:
        a.prompt("earlier question")
        a.wait({"type": "agent_settled"})
        play(server, lambda _: text("mine"), context="fork")
        task_id = agent_of(a)
        finished(a, task_id)
        entries = whole(a, task_id, 1)
        assert "earlier" not in json.dumps(shown(entries))
        assert shown(entries)[-1] == ("assistant", "mine")
        assert [entry["role"] for entry in entries] == ["user", "assistant"]


# ---- live --------------------------------------------------------------------------------------------------------


@pytest.mark.shows("set_task_subscription", error="UnknownTask: UnknownTask")
@pytest.mark.shows("set_task_subscription", events=["task_transcript"])
def test_who_watches_is_told_what_is_said_while_it_is_said(agent: Start, server: ModelServer) -> None:
    held = gate("I think that", " it is good")
    play(server, lambda _: held)
    with agent() as a:
        task_id = agent_of(a)
        held.reached.wait()
        assert a.request("set_task_subscription", enabled=True, transcript="task-none")["error"] == NO_TASK
        since = a.cursor
        assert a.request("set_task_subscription", enabled=True, transcript=task_id)["success"]
        live = a.wait(lambda r: r["type"] == "task_transcript" and "that" in r["live"]["text"], since=since)
        assert live["live"] == {"index": 1, "role": "assistant", "text": "I think that"}
        assert (live["taskId"], live["first"], live["entries"]) == (task_id, 1, [])
        now = page(a, task_id)
        assert (now["total"], now["live"]) == (1, live["live"])
        held.open()
        last = a.wait(lambda r: r["type"] == "task_transcript" and r["entries"], since=since)
        assert shown(last["entries"]) == [("assistant", "I think that it is good")]
        assert last["entries"][0]["index"] == last["first"] == 1
        finished(a, task_id)
        assert "live" not in page(a, task_id)


def test_who_does_not_watch_is_told_nothing(agent: Start, server: ModelServer) -> None:
    held = gate("I think that", " it is good")
    play(server, lambda _: held)
    with agent() as a:
        task_id = agent_of(a)
        held.reached.wait()
        for enabled, transcript in ((True, task_id), (False, task_id), (True, None)):
            a.request("set_task_subscription", enabled=enabled, transcript=transcript)
        since = a.cursor
        held.open()
        finished(a, task_id)
        a.none_since({"type": "task_transcript"}, since)


def test_a_tool_of_the_agent_shows_what_it_has_given_so_far(agent: Start, server: ModelServer, home: Any) -> None:
    go = home.cwd / "go"

    def child(request: Request) -> Any:
        if "tool_result" in said(request):
            return text("done")
        return tool("bash", {"command": f"echo first; until [ -e {go} ]; do sleep 0.02; done; echo last"}, id="c1")

    play(server, child)
    with agent() as a:
        task_id = agent_of(a)
        a.request("set_task_subscription", enabled=True, transcript=task_id)
        found = a.wait(lambda r: r["type"] == "task_transcript" and "first" in r.get("live", {}).get("text", ""))
        assert (found["live"]["role"], found["live"]["tool"]) == ("toolResult", "bash")
        go.touch()
        a.wait(lambda r: r["type"] == "task_transcript" and any("last" in e["text"] for e in r["entries"]))
        finished(a, task_id)
        told = [entry for r in a.records if r["type"] == "task_transcript" for entry in r["entries"]]
        entries = whole(a, task_id, 200)
        assert told == entries[told[0]["index"] :]  # each once, in order, to the last


@pytest.fixture
def temp() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="i") as folder:
        yield Path(folder)


def test_inspectors_watch_each_for_itself(agent: Start, server: ModelServer, temp: Path) -> None:
    held = gate("I think that", " it is good")
    play(server, lambda _: held)
    with agent(env={"TMPDIR": str(temp)}) as a:
        task_id = agent_of(a)
        held.reached.wait()
        with inspect(a, temp) as watches, inspect(a, temp) as other:
            assert watches.request("set_task_subscription", enabled=True, transcript="none")["error"] == NO_TASK
            assert watches.request("set_task_subscription", enabled=True, transcript=task_id)["success"]
            assert other.request("set_task_subscription", enabled=True)["success"]
            assert watches.wait(type="task_transcript")["live"]["text"] == "I think that"
            assert page(other, task_id)["live"]["text"] == "I think that"
            held.open()
            assert shown(watches.wait(type="task_transcript", first=1)["entries"])
            assert other.wait(type="task_update")
            assert other.request("get_tasks")["success"]
            assert "task_transcript" not in {record["type"] for record in other.records}
        a.none_since({"type": "task_transcript"}, 0)
