"""Subagents as a client and a model meet them: launches, notices, kills, forks, fallbacks, and nothing left behind."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conformance.driver import Agent
from conformance.model_server import ModelServer, Request, error, text, tool, tools

Start = Callable[..., Agent]
Record = dict[str, Any]
Answer = Callable[[Request], Any]

CHILD = "You are a subagent"
CONTACT = "contact_supervisor"
JOBS = 50
HELD, FAILING, ASKING = 0, 5, 20


def launch(call: str = "t1", /, **arguments: Any) -> Any:
    return tool("subagent", arguments, id=call)


def siblings(calls: list[Record]) -> Any:
    """Calls `s0`, `s1`, ... of one message."""
    return tools(launch(f"s{place}", **call) for place, call in enumerate(calls))


def is_child(request: Request) -> bool:
    return CHILD in json.dumps(request.body["system"])


def said(request: Request) -> str:
    """All that the request carries, as one text."""
    return json.dumps(request.body["messages"], ensure_ascii=False)


def unread(request: Request) -> str:
    """What has come since the model last spoke, as one text."""
    messages = request.body["messages"]
    spoken = [place for place, message in enumerate(messages) if message["role"] == "assistant"]
    return json.dumps(messages[spoken[-1] + 1 if spoken else 0 :], ensure_ascii=False)


def result(a: Agent, call: str = "t1") -> Record:
    ended: Record = a.wait({"type": "tool_execution_end", "toolCallId": call})
    return ended


def told(ended: Record) -> Any:
    (block,) = ended["result"]["content"]
    return json.loads(block["text"])


def notices(a: Agent) -> list[Record]:
    return [r["message"] for r in a.records if r["type"] == "message_end" and r["message"]["role"] == "custom"]


def has_notices(a: Agent, count: int) -> list[Record]:
    found = a.until(lambda _: notices(a) if len(notices(a)) >= count else None)
    assert found, f"{len(notices(a))} of {count} notices"
    return found


def ends(messages: list[Record]) -> list[Record]:
    """Of notices those that a task is over."""
    return [message for message in messages if message["customType"] == "task-completion"]


def alive(a: Agent, command: str, count: int = 1) -> None:
    """Waits until so many processes below the program run exactly this."""
    deadline = time.monotonic() + 20
    while [process.command for process in a.orphans()].count(command) < count:
        assert time.monotonic() < deadline, f"no {count} x {command}"
        a.request("get_state")


def settled(a: Agent) -> None:
    """Waits until no run goes on."""
    deadline = time.monotonic() + 20
    while a.request("get_state")["data"]["isStreaming"]:
        assert time.monotonic() < deadline


def parent_and(child: Answer, *first: Any) -> Answer:
    """Children are answered by `child`, the parent with `first` and then with a word."""
    waiting = list(first)

    def answer(request: Request) -> Any:
        if is_child(request):
            return child(request)
        return waiting.pop(0) if waiting else text("noted")

    return answer


def job_of(request: Request) -> int:
    return int(said(request).split("job ")[1].split(" ")[0])


# ---- many --------------------------------------------------------------------------------------------------------


@pytest.mark.timeout(180)  # some 10 s alone
def test_fifty_run_four_at_a_time_while_the_parent_chats_and_each_is_told_once(
    agent: Start, server: ModelServer, home: Any
) -> None:
    """One is killed, one fails, and one asks its parent; then the input ends, and the file holds all of it."""
    go = home.cwd / "go"

    def child(request: Request) -> Any:
        job, done = job_of(request), said(request).count("tool_result")
        if done == 0:
            sleep = "sleep 313" if job == HELD else f"until [ -e {go} ]; do sleep 0.02; done; echo did {job}"
            return tool("bash", {"command": sleep}, id=f"c{job}")
        if done == 1 and job == ASKING:
            return tool(CONTACT, {"reason": "need_decision", "message": f"may job {job} go on?"}, id="q")
        answer = f"answer of {job}" + (", allowed" if "you may" in said(request) else "")
        return error(400, message="no such thing") if job == FAILING else text(answer)

    def parent(request: Request) -> Any:
        if "tool_result" not in said(request):
            return launch(tasks=[{"agent": "scout", "task": f"job {job} "} for job in range(JOBS)])
        newest = unread(request)
        if f"may job {ASKING} go on?" in newest:
            return tool("intercom", {"action": "reply", "message": "you may"}, id="r1")
        return text("hello to you" if "hello" in newest else "noted")

    server.default = lambda request: child(request) if is_child(request) else parent(request)
    with agent() as a:
        a.request("set_task_subscription", enabled=True)
        a.prompt("go")
        slots = told(result(a))["slots"]
        assert [slot["ordinal"] for slot in slots] == list(range(JOBS))
        ids = [slot["outcome"]["observation"]["taskId"] for slot in slots]
        assert {slot["outcome"]["observation"]["kind"] for slot in slots} == {"yielded"}

        def at_work(records: list[Record]) -> Any:
            last = {r["task"]["ref"]["taskId"]: r["task"] for r in records if r["type"] == "task_update"}
            return sum("currentAction" in task for task in last.values()) == 4 or None

        assert a.until(at_work)
        states = Counter(task["state"] for task in a.request("get_tasks")["data"]["tasks"])
        assert states == {"running": 4, "queued": JOBS - 4}
        assert a.prompt("hello", streamingBehavior="followUp")  # the parent is free
        receipt = a.request("cancel_task", taskId=ids[HELD])["data"]
        assert receipt["decision"] == "cancellation-requested"
        go.touch()
        assert a.prompt("hello again", streamingBehavior="followUp")
        found = {message["details"]["taskId"]: message for message in ends(has_notices(a, JOBS + 1))}
        assert sorted(found) == sorted(ids)
        assert a.orphans("sleep 313", deadline=5) == []
        statuses = [found[task_id]["details"]["notification"]["status"] for task_id in ids]
        assert statuses == [{HELD: "stopped", FAILING: "failed"}.get(job, "completed") for job in range(JOBS)]
        assert found[ids[7]]["content"].startswith("Subagent scout completed: job 7")
        assert "answer of 7\n" in found[ids[7]]["content"]
        assert f"answer of {ASKING}, allowed" in found[ids[ASKING]]["content"]
        assert "no such thing" in found[ids[FAILING]]["content"]
        assert told(result(a, "r1"))["taskId"] == ids[ASKING]
        settled(a)
        records = a.request("get_tasks")["data"]["tasks"]
        assert {record["cleanup"]["kind"] for record in records} == {"reaped"}
        said_once = [m["details"].get("messageId") or m["details"]["completionId"] for m in notices(a)]
        assert len(said_once) == len(set(said_once)) == JOBS + 1
        request_id = told(result(a, "r1"))["requestId"]
        assert said_once.index(request_id) < said_once.index(f"completion-{ids[ASKING]}")
        # no event of a child's session is the client's: its prompts and tools are not there
        assert {r["toolName"] for r in a.records if r["type"] == "tool_execution_start"} == {"subagent", "intercom"}
        a.close_stdin()
        assert a.wait_exit() == 0
        assert a.orphans() == []
    (path,) = home.sessions.glob("*.jsonl")
    with agent("--session", str(path)) as a:
        again = [m for m in a.request("get_messages")["data"]["messages"] if m["role"] == "custom"]
        assert [m["details"].get("messageId") or m["details"]["completionId"] for m in again] == said_once
        a.none_since({"type": "message_end", "message.role": "custom"}, 0)


def test_the_end_of_input_ends_the_children_and_their_commands(agent: Start, server: ModelServer, home: Any) -> None:
    server.default = parent_and(
        lambda request: tool("bash", {"command": "sleep 317 & sleep 318"}, id="c"),
        launch(tasks=[{"agent": "scout", "task": "a", "count": 6}]),
    )
    with agent() as a:
        a.prompt("go")
        alive(a, "sleep 318", 4)
        a.close_stdin()
        assert a.wait_exit() == 0
        assert a.orphans("sleep 31", deadline=5) == []


# ---- one ---------------------------------------------------------------------------------------------------------


def test_a_launch_that_is_waited_for_shows_progress_and_returns_the_answer(
    agent: Start, server: ModelServer, home: Any
) -> None:
    (home.cwd / "notes.txt").write_text("here")
    processes: list[int] = []

    def child(request: Request) -> Any:
        processes.append(len(a.process_tree()))
        return text("found it") if "tool_result" in said(request) else tool("ls", {}, id="c1")

    server.default = parent_and(child, launch(agent="scout", task="find the notes", wait={"kind": "foreground"}))
    with agent() as a:
        a.prompt("go")
        ended = result(a)
        outcome = told(ended)
        assert outcome["kind"] == "admitted" and outcome["output"] == "found it"
        assert outcome["observation"]["result"] == {"kind": "completed"}
        assert ended["result"]["details"]["taskResponse"] == outcome
        (record,) = ended["result"]["details"]["taskRecords"]
        assert (record["agentName"], record["model"], record["metrics"]["toolCount"]) == ("scout", "fa/m", 1)
        updates = [r for r in a.records if r["type"] == "tool_execution_update"]
        assert updates and all(update["toolCallId"] == "t1" for update in updates)
        assert sum(r["type"] == "agent_start" for r in a.records) == 1
        assert notices(a) == []
        kept = {Path(path).name.rpartition("_")[2]: Path(path).read_text() for path in outcome["artifacts"]}
        assert (kept["input.md"], kept["output.md"]) == ("find the notes", "found it")
        meta = json.loads(kept["meta.json"])
        assert meta["result"] == {"kind": "completed"}
        header = json.loads(Path(meta["sessionFile"]).read_text().splitlines()[0])
        assert header["parentSession"] in {str(path) for path in home.sessions.glob("*.jsonl")}
    first = server.requests[1]
    assert is_child(first)
    assert processes == [0, 0]  # the child is no process
    assert {each["name"] for each in first.body["tools"]} <= {"read", "search", "find", "ls", "bash", CONTACT}


def test_an_abort_stops_a_child_that_the_turn_waits_for_and_what_it_runs(agent: Start, server: ModelServer) -> None:
    server.default = parent_and(
        lambda request: tool("bash", {"command": "sleep 319"}, id="c"),
        launch(agent="scout", task="wait", wait={"kind": "foreground"}),
    )
    with agent() as a:
        a.send("prompt", message="go")
        alive(a, "sleep 319")
        a.request("abort")
        assert told(result(a))["observation"]["result"] == {"kind": "cancelled", "cause": "user"}
        assert a.orphans("sleep 319", deadline=5) == []
        assert notices(a) == []


def test_a_child_cannot_delegate_and_has_no_tool_for_it(agent: Start, server: ModelServer, home: Any) -> None:
    (home.agent_dir / "agents").mkdir()
    (home.agent_dir / "agents" / "all.md").write_text("---\nname: all\ndescription: all tools\n---\nDo it.\n")
    seen: list[str] = []

    def child(request: Request) -> Any:
        seen.append(said(request))
        return text("well") if "tool_result" in seen[-1] else launch("c1", agent="scout", task="more")

    server.default = parent_and(child, launch(agent="all", task="delegate", wait={"kind": "foreground"}))
    with agent() as a:
        a.prompt("go")
        assert told(result(a))["output"] == "well"
    assert "Subagent delegation is not available inside a subagent." in seen[-1]
    offered = {each["name"] for each in server.requests[1].body["tools"]}
    assert "edit" in offered and not offered & {"subagent", "kill"}


def test_an_agent_that_the_model_makes_can_be_run_changed_and_removed(
    agent: Start, server: ModelServer, home: Any
) -> None:
    config = {"name": "mine", "description": "mine", "systemPrompt": "Be brief.", "tools": ["read", "subagent"]}
    looks = [("subagent", {"action": "get", "agent": "mine"}), ("subagent", {"action": "status"})]
    tries = [("subagent", {"action": action, "agent": "mine"}) for action in ("delete", "kill")]

    def child(request: Request) -> Any:
        return text("seen") if "tool_result" in said(request) else tools([*looks, *tries])

    server.default = parent_and(
        child,
        launch("make", action="create", config=config),
        launch("run", agent="mine", task="look", wait={"kind": "foreground"}),
        launch("change", action="update", agent="mine", config={"model": "m2"}),
        launch("again", agent="mine", task="look", wait={"kind": "foreground"}),
        launch("remove", action="delete", agent="mine"),
        launch("gone", agent="mine", task="look"),
    )
    path = home.agent_dir / "agents" / "mine.md"
    with agent() as a:
        a.prompt("go")
        assert result(a, "make")["result"]["content"][0]["text"] == f"Created agent mine (user): {path}"
        assert told(result(a, "run"))["output"] == "seen"
        assert told(result(a, "again"))["output"] == "seen"
        assert not result(a, "remove")["isError"] and not path.exists()
        assert result(a, "gone")["result"]["content"][0]["text"] == "Unknown agent: mine"
    first, looked, *_ = [request for request in server.requests if is_child(request)]
    assert "Be brief." in json.dumps(first.body["system"]) and first.body["model"] == "m"
    assert {each["name"] for each in first.body["tools"]} == {"read", "subagent", CONTACT}
    answers = [block["content"] for block in looked.body["messages"][-1]["content"]]
    assert "Be brief." in json.dumps(answers[0]) and '"tasks' in json.dumps(answers[1]).replace("\\", "")
    assert all("Subagent delegation is not available inside a subagent." in json.dumps(each) for each in answers[2:])
    assert [request.body["model"] for request in server.requests if is_child(request)] == ["m", "m", "m2", "m2"]


def test_changes_of_one_definition_wait_for_each_other(agent: Start, server: ModelServer, home: Any) -> None:
    fields = ("model", "output", "thinking", "description", "defaultReads", "skills")
    changes = [("subagent", {"action": "update", "agent": "mine", "config": {name: "low"}}) for name in fields]
    server.script(launch(action="create", config={"name": "mine", "description": "d"}), tools(changes), text("ok"))
    with agent() as a:
        a.prompt("go")
    kept = (home.agent_dir / "agents" / "mine.md").read_text()
    assert all(f"{name}: low" in kept for name in fields)


def test_settings_change_and_disable_agents_and_lower_limits(agent: Start, server: ModelServer, home: Any) -> None:
    overrides = {"scout": {"model": "m2", "systemPrompt": "Look twice."}, "reviewer": {"disabled": True}}
    settings = {"subagents": {"agentOverrides": overrides, "concurrency": 1, "maxTasks": 2}}
    (home.agent_dir / "settings.json").write_text(json.dumps(settings))
    calls = [
        {"action": "list"},
        {"agent": "reviewer", "task": "x"},
        {"tasks": [{"agent": "scout", "task": "x", "count": 3}]},
    ]
    server.default = parent_and(
        lambda request: tool("bash", {"command": "sleep 331"}, id="c"),
        tools([("subagent", call) for call in calls]),
        launch(tasks=[{"agent": "scout", "task": "x", "count": 2}]),
    )
    with agent() as a:
        a.prompt("go")
        listed, disabled, many = [r["message"]["content"][0]["text"] for r in a.records if _is_result(r)][:3]
        assert "Disabled by the settings: reviewer" in listed and "- reviewer" not in listed
        assert disabled == "Agent is disabled by the settings: reviewer"
        assert many == "Max 2 tasks"
        alive(a, "sleep 331")
        states = [task["state"] for task in a.request("get_tasks")["data"]["tasks"]]
        assert sorted(states) == ["queued", "running"]
    (request,) = [request for request in server.requests if is_child(request)]
    assert request.body["model"] == "m2" and "Look twice." in json.dumps(request.body["system"])


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("wait", [{"kind": "foreground"}, {"kind": "background"}])
def test_calls_of_one_message_are_launches_of_their_own_and_each_gets_its_own_result(
    agent: Start, server: ModelServer, count: int, wait: Any
) -> None:
    """They run at the same time: each child waits for all the others. Their options need not match."""
    came: list[int] = []
    processes: list[int] = []

    def child(request: Request) -> Any:
        job = job_of(request)
        came.append(job)
        processes.append(len(a.process_tree()))
        deadline = time.monotonic() + 20
        while len(set(came)) < count and time.monotonic() < deadline:
            time.sleep(0.005)
        return text(f"answer of {job}")

    tasks: list[Record] = [{"agent": "scout", "task": f"job {job} "} for job in range(count)]
    calls: list[Record] = [{**each, "wait": wait, "maxOutput": {"lines": 1 + job}} for job, each in enumerate(tasks)]
    calls[-1] = {"tasks": [tasks[-1]], "wait": wait, "concurrency": 1}
    server.default = parent_and(child, siblings(calls))
    with agent() as a:
        a.prompt("go")
        outcomes = [told(result(a, f"s{job}")) for job in range(count)]
        assert outcomes[-1]["kind"] == "parallel"
        outcomes[-1] = outcomes[-1]["slots"][0]["outcome"]
        ids = [outcome["observation"]["taskId"] for outcome in outcomes]
        assert len(set(ids)) == count
        if wait["kind"] == "foreground":
            assert [outcome["output"] for outcome in outcomes] == [f"answer of {job}" for job in range(count)]
            assert notices(a) == []
        else:
            found = {message["details"]["taskId"]: message["content"] for message in has_notices(a, count)}
            assert all(f"answer of {job}" in found[task_id] for job, task_id in enumerate(ids))
            settled(a)
    assert sorted(came) == list(range(count))
    assert processes == [0] * count  # none of them is a process


def test_of_calls_of_one_message_a_bad_one_leaves_the_others_and_all_share_the_room(
    agent: Start, server: ModelServer
) -> None:
    calls: list[Record] = [
        {"tasks": [{"agent": "scout", "task": "x", "count": 3}], "wait": {"kind": "foreground"}},
        {"agent": "nobody", "task": "x"},
        {"tasks": [{"agent": "scout", "task": "y", "count": 3}], "wait": {"kind": "foreground"}},
    ]
    server.default = parent_and(
        lambda request: tool("bash", {"command": "sleep 337"}, id="c"),
        siblings(calls),
    )
    with agent() as a:
        a.request("set_task_subscription", enabled=True)
        a.send("prompt", message="go")
        alive(a, "sleep 337", 4)
        last = {r["task"]["ref"]["taskId"]: r["task"]["state"] for r in a.records if r["type"] == "task_update"}
        assert Counter(last.values()) == {"running": 4, "queued": 2}
        assert result(a, "s1")["result"]["content"][0]["text"] == "Unknown agent: nobody"
        a.request("abort")
        for call in ("s0", "s2"):
            results = [slot["outcome"]["observation"]["result"] for slot in told(result(a, call))["slots"]]
            assert results == [{"kind": "cancelled", "cause": "user"}] * 3
        assert a.orphans("sleep 337", deadline=5) == []


def test_status_wait_and_kill_know_the_agents_of_this_session_alone(agent: Start, server: ModelServer) -> None:
    ids: list[str] = []

    def act(action: str) -> Answer:
        return lambda request: launch(action, action=action, id=ids[0], **({"budgetMs": 0} if action == "wait" else {}))

    steps = [
        launch(agent="scout", task="hang about"),
        lambda request: ids.append(_task_id(request)) or act("status")(request),  # type: ignore[func-returns-value]
        act("wait"),
        lambda request: tools([("kill", {"id": ids[0]}), ("bash", {"action": "wait", "id": ids[0]})]),
        act("kill"),
    ]

    def answer(request: Request) -> Any:
        if is_child(request):
            return tool("bash", {"command": "sleep 323"}, id="c")
        step = steps.pop(0) if steps else text("noted")
        return step(request) if callable(step) else step

    server.default = answer
    with agent() as a:
        a.prompt("go")
        (described,) = told(result(a, "status"))["tasks"]
        assert described["task"]["state"] == "running"
        assert told(result(a, "wait"))["observation"]["kind"] == "yielded"
        refused = [r["result"]["content"][0]["text"] for r in a.records if r.get("isError")]
        assert sorted(refused) == ["UnknownTask: UnknownTask", "kill only supports shell tasks"]
        assert told(result(a, "kill"))["decision"] == "cancellation-requested"
        (message,) = has_notices(a, 1)
        assert message["content"].startswith("Subagent scout stopped: hang about")
        assert a.orphans("sleep 323", deadline=5) == []


def _task_id(request: Request) -> str:
    return said(request).split("task-")[1].split("\\")[0].join(("task-", ""))


def test_what_was_kept_long_enough_goes_when_tasks_begin_and_not_before(
    agent: Start, server: ModelServer, home: Any, tmp_path: Path
) -> None:
    log = tmp_path / f"atomic-{os.getuid()}" / "s" / "atomic-bash-0123456789abcdef.log"
    kept = home.sessions / "subagent-artifacts" / "0123abcd_scout_output.md"
    session = home.sessions / "subagents" / "s" / "old.jsonl"
    for path in (log, kept, session):
        path.parent.mkdir(parents=True)
        path.write_text("{}")
        os.utime(path, (0, 0))
    server.script(text("hello"), launch(agent="scout", task="x"), text("ok"), text("ok"), text("ok"))
    with agent(env={"TMPDIR": str(tmp_path)}) as a:
        a.prompt("hello")
        assert log.exists() and kept.exists()
        a.prompt("go")
        deadline = time.monotonic() + 20
        while log.exists() or kept.exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        has_notices(a, 1)
        settled(a)
    assert session.exists()


# ---- context and models ------------------------------------------------------------------------------------------


def test_a_fork_knows_the_conversation_but_not_that_it_was_launched(
    agent: Start, server: ModelServer, home: Any
) -> None:
    server.default = parent_and(
        lambda request: text("did it"),
        text("blue it is"),
        launch(agent="worker", task="paint it", model="m2", wait={"kind": "foreground"}),
    )
    with agent() as a:
        a.prompt("the colour is blue")
        a.prompt("now paint")
        assert told(result(a))["output"] == "did it"
    (forked,) = [request for request in server.requests if is_child(request)]
    assert "the colour is blue" in said(forked) and "now paint" in said(forked)
    assert "for reference only" in said(forked) and "paint it" in said(forked)
    assert '"subagent"' not in said(forked)
    assert forked.body["model"] == "m2"  # whatever the history was said by
    (path,) = (home.sessions / "subagents").rglob("*.jsonl")
    assert "the colour is blue" in path.read_text()


def test_a_fork_after_a_compaction_begins_with_what_that_kept(agent: Start, server: ModelServer, home: Any) -> None:
    lines = "\n".join(f"line {number}" for number in range(1, 41))
    server.default = parent_and(
        lambda request: text("did it"),
        text("noted"),
        launch(agent="scout", task="look", wait={"kind": "foreground"}),
        text("it looked"),
        text("2,40"),
        launch("t2", agent="worker", task="paint it", wait={"kind": "foreground"}),
    )
    with agent() as a:
        a.prompt(lines)
        a.prompt("and now?")
        assert a.request("compact")["success"]
        a.prompt("now paint")
        assert told(result(a, "t2"))["output"] == "did it"
    forked = said([request for request in server.requests if is_child(request)][-1])
    kept = ("line 1\\n(filtered 39 lines)", "it looked", "now paint", "paint it")
    assert [part for part in kept if part not in forked] == [] and "line 20" not in forked
    (path,) = [each for each in (home.sessions / "subagents").rglob("*.jsonl") if "filtered" in each.read_text()]
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    (boundary,) = [entry for entry in entries if entry["type"] == "compaction"]
    assert boundary["firstKeptEntryId"] in {entry.get("id") for entry in entries[: entries.index(boundary)]}


def test_a_fork_beside_another_call_of_its_message_has_a_history_that_providers_take(
    agent: Start, server: ModelServer
) -> None:
    """When it forks, the command beside it has no result yet."""
    calls = [tool("bash", {"command": "sleep 0.3; echo late"}, id="b1"), launch(agent="worker", task="paint it")]
    server.default = parent_and(lambda request: text("did it"), tools(calls))
    with agent() as a:
        a.prompt("go")
        has_notices(a, 1)
        settled(a)
    (forked,) = [request for request in server.requests if is_child(request)]
    blocks = [block for message in forked.body["messages"] for block in message["content"] if isinstance(block, dict)]
    asked = [block["id"] for block in blocks if block["type"] == "tool_use"]
    answered = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    assert asked == answered


@pytest.mark.parametrize("task", [{"context": "fork", "agent": "scout"}, {"agent": "worker"}])
def test_a_fork_of_a_session_in_memory_is_refused(agent: Start, server: ModelServer, task: Any) -> None:
    server.script(launch(task="x", **task), text("ok"))
    with agent(session=False) as a:
        a.prompt("go")
        ended = result(a)
        assert ended["isError"]
        assert told(ended)["reason"]["error"]["message"] == (
            "Forked subagent context requires a persisted parent session."
        )


def test_a_session_in_memory_has_its_children_in_memory(agent: Start, server: ModelServer, home: Any) -> None:
    server.script(launch(agent="scout", task="x", wait={"kind": "foreground"}), text("done"), text("ok"))
    with agent(session=False) as a:
        a.prompt("go")
        outcome = told(result(a))
        assert outcome["output"] == "done" and "artifacts" not in outcome
    assert list(home.sessions.rglob("*")) == []


def test_another_model_takes_over_and_the_record_names_it(agent: Start, server: ModelServer, home: Any) -> None:
    (home.agent_dir / "agents").mkdir()
    head = "name: pinned\ndescription: d\nmodel: m2\nfallbackModels: nowhere/x, fo/m"
    (home.agent_dir / "agents" / "pinned.md").write_text(f"---\n{head}\n---\nDo it.\n")
    server.script(
        launch(agent="pinned", task="x", wait={"kind": "foreground"}),
        error(404, message="model: no such model"),
        text("from the other"),
        text("ok"),
    )
    with agent() as a:
        a.prompt("go")
        ended = result(a)
        outcome = told(ended)
        assert outcome["output"] == "from the other"
        assert outcome["skippedModels"] == ["nowhere/x: no model of that name is available"]
        (record,) = ended["result"]["details"]["taskRecords"]
        assert record["model"] == "fo/m"
    assert [request.body["model"] for request in server.requests] == ["m", "m2", "m", "m"]


def test_what_a_call_gets_wrong_is_told_and_nothing_starts(agent: Start, server: ModelServer) -> None:
    calls = [
        {"agent": "nobody", "task": "x"},
        {"tasks": [{"agent": "scout", "task": "x"}, {"agent": "nobody", "task": "y"}]},
        {"agent": "scout", "chain": []},
        {"agent": "scout", "task": "x", "cwd": "/no/such/folder"},
        {"action": "wait", "id": "task-0"},
    ]
    server.script(tools(("subagent", call) for call in calls), text("ok"))
    with agent() as a:
        a.prompt("go")
        ended = [r["message"]["content"][0]["text"] for r in a.records if _is_result(r)]
        assert ended[0] == "Unknown agent: nobody"
        assert ended[1] == "Unknown agent: nobody (task 2)"
        assert "chain" in ended[2] and "is not a known property" in ended[2]
        assert json.loads(ended[3])["reason"]["error"]["code"] == "InvalidCwd"
        assert ended[4] == "No in-process child found for 'task-0'."
        assert all(r["message"]["isError"] for r in a.records if _is_result(r))
        assert a.request("get_tasks")["data"]["tasks"] == []


def _is_result(record: Record) -> bool:
    return record["type"] == "message_end" and record["message"]["role"] == "toolResult"
