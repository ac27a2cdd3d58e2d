"""The exact order in which a client sees the records of a run: turns, tools, aborts, and what waits in the queue."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from conformance.driver import Agent, line
from conformance.model_server import ModelServer, gate, hang_before_head, text, thinking, tool, tools

Start = Callable[..., Agent]
Record = dict[str, Any]

USER = ["start user", "end user"]
REPLY = ["start assistant", "update", "end assistant"]
SILENT = ["start assistant", "end assistant"]  # a reply without a delta
RESULT = ["start toolResult", "end toolResult"]


def label(record: Record) -> str:
    kind: str = record["type"]
    if kind in ("message_start", "message_end"):
        return f"{kind.removeprefix('message_')} {record['message']['role']}"
    if kind.startswith("tool_execution_"):
        return f"{kind.removeprefix('tool_execution_')} {record['toolCallId']}"
    named: dict[str, str] = {"message_update": "update", "response": record.get("command", "response")}
    return named.get(kind, kind)


def order(records: list[Record]) -> list[str]:
    """One label for each record, runs of `update` once, without tool progress (it may come or not)."""
    labels = [label(record) for record in records if record["type"] != "tool_execution_update"]
    return [one for one, _ in groupby(labels)]


def run(a: Agent, message: str = "go") -> list[str]:
    return order(a.prompt(message))


def said(records: list[Record], role: str) -> list[Record]:
    return [r["message"] for r in records if r["type"] == "message_end" and r["message"]["role"] == role]


def texts(message: Record) -> str:
    return "".join(block.get("text", "") for block in message["content"])


def asked(request: Any) -> list[str]:
    """Role and text of each message of a request, tool results by their text."""
    shown = []
    for message in request.body["messages"]:
        blocks = message["content"]
        inner = [block.get("content", block.get("text", "")) for block in blocks]
        shown.append(message["role"] + ": " + " ".join(str(one) for one in inner))
    return shown


def waiting(home: Any) -> tuple[str, Callable[[], None]]:
    """A command that waits on a fifo, and what lets it go."""
    fifo = home.cwd / "hold"
    os.mkfifo(fifo)

    def let_go() -> None:
        with open(fifo, "w") as end:
            end.write("go\n")

    return f"read go < {fifo}", let_go


# ---- turns -------------------------------------------------------------------------------------------------------


@pytest.mark.shows(
    "prompt",
    events=[
        "agent_start",
        "turn_start",
        "message_start",
        "message_update",
        "message_end",
        "turn_end",
        "agent_end",
        "agent_settled",
    ],
)
def test_a_text_answer(agent: Start) -> None:
    with agent() as a:
        assert run(a, "SAY hello you") == [
            "prompt", "agent_start", "turn_start", *USER, *REPLY, "turn_end", "agent_end", "agent_settled",
        ]  # fmt: skip


@pytest.mark.shows("prompt", events=["tool_execution_start", "tool_execution_end"])
def test_a_tool_turn(agent: Start, server: ModelServer) -> None:
    server.script(tool("bash", {"command": "echo out"}, id="t1"), text("done"))
    with agent() as a:
        seen = a.prompt("go")
        assert order(seen) == [
            "prompt", "agent_start", "turn_start", *USER, *REPLY, "start t1", "end t1", *RESULT, "turn_end",
            "turn_start", *REPLY, "turn_end", "agent_end", "agent_settled",
        ]  # fmt: skip
        told = next(record for record in seen if record["type"] == "agent_end")["messages"]
        ended = [record["message"] for record in seen if record["type"] == "message_end"]
        assert told == ended and [m["role"] for m in told] == ["user", "assistant", "toolResult", "assistant"]
        turns = [record for record in seen if record["type"] == "turn_end"]
        assert [turn["message"] for turn in turns] == said(seen, "assistant")
        assert [turn["toolResults"] for turn in turns] == [said(seen, "toolResult"), []]


def test_parallel_tools_end_as_they_finish_and_report_in_the_order_of_the_calls(
    agent: Start, server: ModelServer, home: Any
) -> None:
    command, let_go = waiting(home)
    slow, quick = tool("bash", {"command": command}, id="slow"), tool("bash", {"command": "echo q"}, id="quick")
    server.script(tools([slow, tool("nope", {}, id="unknown"), quick]), text("done"))
    with agent() as a:
        since = a.cursor
        a.request("prompt", message="go")
        a.wait({"type": "tool_execution_end", "toolCallId": "quick"})
        a.none_since({"type": "message_start", "message.role": "toolResult"}, since)
        let_go()
        a.wait({"type": "agent_settled"})
        seen = [one for one in order(a.records) if one != "get_state"]
        assert seen[seen.index("end assistant") + 1 : seen.index("turn_end")] == [
            "start slow", "start unknown", "end unknown", "start quick", "end quick", "end slow", *RESULT * 3,
        ]  # fmt: skip
        results = said(a.records, "toolResult")
        assert [result["toolCallId"] for result in results] == ["slow", "unknown", "quick"]
        assert [result["isError"] for result in results] == [False, True, False]
        assert texts(results[1]) == "Tool nope not found"


def test_a_reply_that_hits_the_length_limit_runs_none_of_its_calls(
    agent: Start, server: ModelServer, home: Any
) -> None:
    calls = [tool("bash", {"command": "touch ran"}, id=id_) for id_ in ("t1", "t2")]
    server.script(tools(calls)._replace(stop="length"), text("done"))
    with agent() as a:
        seen = a.prompt("go")
        assert order(seen)[5:-2] == [
            *REPLY, "start t1", "end t1", *RESULT, "start t2", "end t2", *RESULT, "turn_end",
            "turn_start", *REPLY, "turn_end",
        ]  # fmt: skip
        assert [texts(result) for result in said(seen, "toolResult")] == 2 * [
            'Tool call "bash" was not executed: the response hit the output token limit, so its arguments may be '
            "truncated. Re-issue the tool call with complete arguments."
        ]
        assert not (home.cwd / "ran").exists()


def test_a_reply_that_fails_runs_none_of_its_calls_and_polls_no_queue(agent: Start, home: Any) -> None:
    with agent() as a:
        a.request("follow_up", message="SAY later")
        seen = a.prompt("ERR 400 no")
        first = order(seen)[: order(seen).index("agent_end") + 1]
        assert first == ["prompt", "agent_start", "turn_start", *USER, *SILENT, "turn_end", "agent_end"]
        failed = said(seen, "assistant")[0]
        assert failed["stopReason"] == "error" and "no" in failed["errorMessage"]


def test_a_call_without_an_answer_is_repaired_in_the_request_and_not_in_the_file(
    agent: Start, server: ModelServer, home: Any
) -> None:
    path = home.sessions / "cut.jsonl"
    call = {"type": "toolCall", "id": "t1", "name": "bash", "arguments": {"command": "ls"}}
    usage = {"input": 1, "output": 1, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 2}
    cost = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}
    reply = {
        "role": "assistant", "content": [call], "api": "anthropic-messages", "provider": "fa", "model": "m",
        "usage": {**usage, "cost": cost}, "stopReason": "toolUse", "timestamp": 2,
    }  # fmt: skip
    question = {"role": "user", "content": [{"type": "text", "text": "hi"}], "timestamp": 1}
    stamp = "2026-01-01T00:00:00.000Z"
    head = {"type": "session", "version": 3, "id": "s", "timestamp": stamp, "cwd": str(home.cwd)}
    stored = [
        head,
        {"type": "message", "id": "a1", "parentId": None, "timestamp": stamp, "message": question},
        {"type": "message", "id": "a2", "parentId": "a1", "timestamp": stamp, "message": reply},
    ]
    before = "".join(json.dumps(entry) + "\n" for entry in stored)
    path.write_text(before)
    with agent("--session", str(path)) as a:
        a.prompt("SAY ok")
    results = [b for m in server.requests[0].body["messages"] for b in m["content"] if b["type"] == "tool_result"]
    assert [result["tool_use_id"] for result in results] == ["t1"] and results[0]["is_error"] is True
    assert "Tool execution was interrupted after it started; its result is unavailable." in str(results[0]["content"])
    assert path.read_text().startswith(before) and "interrupted" not in path.read_text()


def test_updates_carry_only_deltas_and_rebuild_the_message(agent: Start, server: ModelServer) -> None:
    server.script(
        thinking("a thought", "some words here").then(tool("bash", {"command": "echo hi there"}, id="t1", chunks=4)),
        text("done"),
    )
    with agent(model="think") as a:
        seen = a.prompt("go")
        updates = [record for record in seen if record["type"] == "message_update"]
        assert all("message" not in u and "partial" not in u["assistantMessageEvent"] and "usage" in u for u in updates)
        end = next(place for place, record in enumerate(seen) if label(record) == "end assistant")
        first = [record["assistantMessageEvent"] for record in seen[:end] if record["type"] == "message_update"]
        kinds = [(event["contentIndex"], event["type"]) for event in first]
        assert [kind for kind, _ in groupby(kinds)] == [
            (0, "thinking_start"), (0, "thinking_delta"), (0, "thinking_end"),
            (1, "text_start"), (1, "text_delta"), (1, "text_end"),
            (2, "toolcall_start"), (2, "toolcall_delta"), (2, "toolcall_end"),
        ]  # fmt: skip
        joined = {index: "" for index in range(3)}
        for event in first:
            joined[event["contentIndex"]] += event.get("delta", "")
        blocks = seen[end]["message"]["content"]
        assert (joined[0], joined[1]) == (blocks[0]["thinking"], blocks[1]["text"])
        assert json.loads(joined[2]) == blocks[2]["arguments"] == {"command": "echo hi there"}


# ---- abort -------------------------------------------------------------------------------------------------------

ABORTED_END = ["turn_end", "agent_end", "abort", "agent_settled"]


def abort(a: Agent) -> None:
    assert a.request("abort")["success"]
    a.wait({"type": "agent_settled"})


def test_an_abort_while_idle_just_succeeds(agent: Start) -> None:
    with agent() as a:
        assert a.request("abort")["success"]
        assert order(a.records) == ["abort"]


def test_an_abort_before_the_first_byte(agent: Start, server: ModelServer) -> None:
    server.script(hang_before_head())
    with agent() as a:
        a.request("prompt", message="go")
        server.wait_for_requests(1)
        abort(a)
        assert order(a.records) == ["prompt", "agent_start", "turn_start", *USER, *SILENT, *ABORTED_END]
        reply = said(a.records, "assistant")[0]
        assert (reply["stopReason"], reply["content"]) == ("aborted", [])


def test_an_abort_in_the_text_keeps_what_was_said(agent: Start) -> None:
    with agent() as a:
        a.request("prompt", message="HANG half a reply")
        a.wait({"type": "message_update", "assistantMessageEvent.delta": "reply"})
        abort(a)
        assert order(a.records) == ["prompt", "agent_start", "turn_start", *USER, *REPLY, *ABORTED_END]
        reply = said(a.records, "assistant")[0]
        assert (reply["stopReason"], texts(reply)) == ("aborted", "half a reply")


@pytest.mark.shows("prompt", events=["tool_execution_update"])
@pytest.mark.shows("abort", events=["agent_end", "agent_settled"])
def test_an_abort_in_a_tool_reports_its_result_and_then_ends_the_run(agent: Start, server: ModelServer) -> None:
    server.script(tool("bash", {"command": "echo up; sleep 302.5"}, id="t1"), text("never"))
    with agent() as a:
        a.request("prompt", message="go")
        a.wait({"type": "tool_execution_update"})
        abort(a)
        assert order(a.records) == [
            "prompt", "agent_start", "turn_start", *USER, *REPLY, "start t1", "end t1", *RESULT, "turn_end",
            "turn_start", *SILENT, *ABORTED_END,
        ]  # fmt: skip
        assert [reply["stopReason"] for reply in said(a.records, "assistant")] == ["toolUse", "aborted"]
        assert len(server.requests) == 1
        assert a.orphans("sleep 302.5", deadline=5) == []


def test_a_steer_that_an_abort_swallows_gets_a_run_of_its_own(agent: Start, server: ModelServer) -> None:
    server.script(tool("bash", {"command": "echo up; sleep 300"}, id="t1"), text("answered"))
    with agent() as a:
        a.request("prompt", message="go")
        a.wait({"type": "tool_execution_update"})
        a.request("steer", message="turn left")
        since = a.cursor
        abort(a)
        assert order(a.records[since:]) == [
            "end t1", *RESULT, "turn_end", "turn_start", "queue_update", *USER, *SILENT, "turn_end", "agent_end",
            "abort",
            "agent_start", "turn_start", *REPLY, "turn_end", "agent_end", "agent_settled",
        ]  # fmt: skip
        assert asked(server.requests[-1])[-1].endswith("turn left")
        told = a.request("get_messages")["data"]["messages"]
        assert [message["role"] for message in told] == ["user", "assistant", "toolResult", "user", "assistant"]
        stored = a.request("get_entries")["data"]["entries"]
        stops = [e["message"]["stopReason"] for e in stored if e.get("message", {}).get("role") == "assistant"]
        assert stops == ["toolUse", "aborted", "stop"]


def test_a_steer_whose_reply_had_begun_is_not_run_again(agent: Start, server: ModelServer) -> None:
    server.script(tool("bash", {"command": "echo"}, id="t1"), gate("half ", "end"))
    with agent() as a:
        a.request("steer", message="first")
        a.request("prompt", message="go")
        a.wait({"type": "message_update", "assistantMessageEvent.delta": "half "})
        since = a.cursor
        abort(a)
        assert order(a.records[since:]) == ["end assistant", *ABORTED_END]


def test_what_still_waits_after_an_abort_runs_by_itself(agent: Start, server: ModelServer) -> None:
    with agent() as a:
        a.request("prompt", message="HANG half")
        a.wait({"type": "message_update"})
        a.request("follow_up", message="SAY later")
        since = a.cursor
        abort(a)
        seen = [one for one in order(a.records[since:]) if one != "update"]
        assert seen == [
            "end assistant", "turn_end", "agent_end", "abort",
            "agent_start", "turn_start", "queue_update", *USER, *SILENT, "turn_end", "agent_end", "agent_settled",
        ]  # fmt: skip


@pytest.mark.shows("pause_queued_messages", "resume_queued_messages")
def test_after_pause_and_abort_nothing_runs_until_resume_and_a_prompt(agent: Start, server: ModelServer) -> None:
    with agent() as a:
        a.request("prompt", message="HANG half")
        a.wait({"type": "message_update"})
        a.request("follow_up", message="SAY held")
        a.request("pause_queued_messages")
        abort(a)
        state = a.request("get_state")["data"]
        assert (state["isStreaming"], state["queuedMessagesPaused"], state["pendingMessageCount"]) == (False, True, 1)
        assert a.request("prompt", message="SAY too")["success"]
        assert a.request("get_state")["data"]["pendingMessageCount"] == 2
        assert len(server.requests) == 1
        assert a.request("resume_queued_messages")["data"] == {"released": True}
        assert a.request("resume_queued_messages")["data"] == {"released": False}
        assert a.request("get_state")["data"]["isStreaming"] is False
        seen = a.prompt("SAY now")
        assert [texts(message) for message in said(seen, "user")] == ["SAY now", "SAY too", "SAY held"]
        assert [texts(reply) for reply in said(seen, "assistant")] == ["too", "held"]


def test_two_aborts_are_both_answered_after_the_run(agent: Start) -> None:
    with agent() as a:
        a.request("prompt", message="HANG half")
        a.wait({"type": "message_update"})
        a.send_raw(line("abort", id="x") + line("abort", id="y"))
        a.wait({"type": "agent_settled"})
        assert order(a.records)[-4:] == ["turn_end", "agent_end", "abort", "agent_settled"]
        assert len(a.responses("x")) == len(a.responses("y")) == 1


# ---- the queue ---------------------------------------------------------------------------------------------------


def queue_while_a_tool_runs(a: Agent, home: Any, server: ModelServer, queued: list[tuple[str, str]]) -> list[Record]:
    command, let_go = waiting(home)
    server.script(tool("bash", {"command": command}, id="t1"), text("r1"), text("r2"), text("r3"))
    since = a.cursor
    a.request("prompt", message="go")
    a.wait({"type": "tool_execution_start"})
    for kind, message in queued:
        a.request(kind, message=message)
    let_go()
    a.wait({"type": "agent_settled"}, since=since)
    records = a.records[since:]
    return records[next(i for i, record in enumerate(records) if label(record) == "end t1") :]


def test_two_steers_come_one_at_a_time_with_a_reply_between(agent: Start, server: ModelServer, home: Any) -> None:
    with agent() as a:
        seen = queue_while_a_tool_runs(a, home, server, [("steer", "one"), ("steer", "two")])
        assert order(seen) == [
            "end t1", *RESULT, "turn_end",
            "turn_start", "queue_update", *USER, *REPLY, "turn_end",
            "turn_start", "queue_update", *USER, *REPLY, "turn_end", "agent_end", "agent_settled",
        ]  # fmt: skip
        assert [r["steering"] for r in seen if r["type"] == "queue_update"] == [["two"], []]


def test_two_steers_come_together_in_mode_all(agent: Start, server: ModelServer, home: Any) -> None:
    with agent() as a:
        a.request("set_steering_mode", mode="all")
        seen = queue_while_a_tool_runs(a, home, server, [("steer", "one"), ("steer", "two")])
        assert order(seen) == [
            "end t1", *RESULT, "turn_end", "turn_start", "queue_update", *USER, "queue_update", *USER, *REPLY,
            "turn_end", "agent_end", "agent_settled",
        ]  # fmt: skip
        assert [r["steering"] for r in seen if r["type"] == "queue_update"] == [["two"], []]


@pytest.mark.parametrize(("mode", "runs"), [("one-at-a-time", [["f1"], ["f2"]]), ("all", [["f1", "f2"]])])
def test_follow_ups_wait_for_the_stop_and_continue_the_same_run(
    agent: Start, server: ModelServer, home: Any, mode: str, runs: list[list[str]]
) -> None:
    with agent() as a:
        a.request("set_follow_up_mode", mode=mode)
        seen = queue_while_a_tool_runs(a, home, server, [("follow_up", "f1"), ("follow_up", "f2")])
        turns = [["turn_start", *(["queue_update", *USER] * len(texts_)), *REPLY, "turn_end"] for texts_ in runs]
        assert order(seen) == [
            "end t1", *RESULT, "turn_end", "turn_start", *REPLY, "turn_end",
            *[one for turn in turns for one in turn], "agent_end", "agent_settled",
        ]  # fmt: skip


def test_steering_goes_before_follow_ups(agent: Start, server: ModelServer, home: Any) -> None:
    with agent() as a:
        seen = queue_while_a_tool_runs(a, home, server, [("follow_up", "later"), ("steer", "soon")])
        assert [texts(message) for message in said(seen, "user")] == ["soon", "later"]
        updates = [(r["steering"], r["followUp"]) for r in seen if r["type"] == "queue_update"]
        assert updates == [([], ["later"]), ([], [])]


@pytest.mark.shows("steer", events=["queue_update"])
def test_a_steer_given_while_idle_joins_the_first_turn_of_the_next_prompt(agent: Start, server: ModelServer) -> None:
    with agent() as a:
        since = a.cursor
        a.request("steer", message="also")
        assert order(a.records[since:]) == ["queue_update", "steer"]
        assert run(a, "SAY yes") == [
            "prompt", "agent_start", "turn_start", *USER, "queue_update", *USER, *REPLY, "turn_end",
            "agent_end", "agent_settled",
        ]  # fmt: skip
        assert len(server.requests) == 1


@pytest.mark.shows("follow_up", events=["queue_update"])
def test_a_follow_up_given_while_idle_waits_for_the_stop_of_the_next_run(agent: Start) -> None:
    with agent() as a:
        a.request("follow_up", message="SAY after")
        assert run(a, "SAY yes") == [
            "prompt", "agent_start", "turn_start", *USER, *REPLY, "turn_end",
            "turn_start", "queue_update", *USER, *REPLY, "turn_end", "agent_end", "agent_settled",
        ]  # fmt: skip


def test_a_message_has_left_the_queue_when_its_start_is_seen(agent: Start, server: ModelServer) -> None:
    with agent() as a:
        a.request("prompt", message="HANG half")
        a.wait({"type": "message_update"})
        server.script(gate("held "))
        a.request("steer", message="now")
        since = a.cursor
        a.send("abort")
        a.wait({"type": "message_start", "message.role": "user"}, since=since)
        assert a.request("get_state")["data"]["pendingMessageCount"] == 0


# ---- writes ------------------------------------------------------------------------------------------------------


def test_agent_end_and_agent_settled_leave_in_separate_writes(agent: Start, home: Any) -> None:
    """A pipe in packet mode gives each write back as one read."""
    from_child, to_us = os.pipe2(os.O_DIRECT)
    command = [str(Path(sys.executable).with_name("atomic")), "--mode", "rpc", "--no-session"]
    child = subprocess.Popen(
        [*command, "--provider", "fa", "--model", "m"],
        stdin=subprocess.PIPE, stdout=to_us, env=home.environment(), cwd=home.cwd, start_new_session=True,
    )  # fmt: skip
    os.close(to_us)
    assert child.stdin is not None
    child.stdin.write(line("prompt", id="1", message="SAY hi"))
    child.stdin.flush()
    writes: list[bytes] = []
    while not any(b'"agent_settled"' in one for one in writes):
        writes.append(os.read(from_child, 65536))
        assert writes[-1], "stdout ended"
    child.stdin.close()
    assert child.wait(10) == 0
    os.close(from_child)
    assert not any(b'"agent_end"' in one and b'"agent_settled"' in one for one in writes)
    assert [one for one in writes if b'"agent_settled"' in one] == [b'{"type":"agent_settled"}\n']
