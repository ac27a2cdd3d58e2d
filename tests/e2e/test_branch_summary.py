"""Leaving a branch with a summary, over the wire and against a model server."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from conformance.driver import Agent
from conformance.model_server import ModelServer, error, gate, hang, text, tool
from tests.e2e.conftest import ROOT, Home, program

Start = Callable[..., Agent]
Record = dict[str, Any]
SUMMARIZED = {"cancelled": False}
ABORTED = {"cancelled": True, "aborted": True}
EVENTS = ("summarization_retry_scheduled", "summarization_retry_attempt_start", "summarization_retry_finished")


def data(a: Agent, type_: str, /, **fields: Any) -> Any:
    response = a.request(type_, **fields)
    assert response["success"], response
    return response.get("data", {})


def stored(home: Home) -> list[Record]:
    (path,) = home.session_files()
    return [json.loads(line) for line in path.read_text().splitlines()]


def begun(a: Agent) -> str:
    """A session of two turns; the id of the first reply."""
    a.prompt("SAY one")
    a.prompt("SAY two")
    entries = data(a, "get_entries")["entries"]
    found: str = next(entry["id"] for entry in entries if entry.get("message", {}).get("role") == "assistant")
    return found


def leave(a: Agent, target: str, **options: Any) -> Any:
    return a.send("navigate_tree", targetId=target, options={"summarize": True, **options})


def answer(a: Agent, sent: Any) -> Record:
    return a.wait({"type": "response", "id": sent})


def asked(server: ModelServer) -> tuple[str, str]:
    """System text and user text of the newest request."""
    body = server.requests[-1].body
    (message,) = body["messages"]
    system = body["system"]
    return (system if isinstance(system, str) else system[0]["text"]), message["content"][0]["text"]


@pytest.mark.shows("navigate_tree")
def test_a_branch_is_left_with_a_summary(agent: Start, server: ModelServer, home: Home) -> None:
    with agent() as a:
        target = begun(a)
        server.script(tool("read", {"path": "notes.txt"}), text("no file"), text("## Goal\nNotes"))
        a.prompt("look")
        assert data(a, "navigate_tree", targetId=target, options={"summarize": True, "label": "notes"}) == SUMMARIZED
        system, question = asked(server)
        assert "summar" in system.lower()
        assert '[Assistant tool calls]: read(path="notes.txt")' in question and "SAY one" not in question
        request = server.requests[-1]
        assert not request.body.get("tools") and "cache_control" not in json.dumps(request.body)
        made = next(entry for entry in stored(home) if entry["type"] == "branch_summary")
        assert (made["parentId"], made["fromId"]) == (target, target)
        assert made["summary"].endswith("## Goal\nNotes\n\n<read-files>\nnotes.txt\n</read-files>")
        assert made["details"] == {"readFiles": ["notes.txt"], "modifiedFiles": []}
        labels = [entry for entry in stored(home) if entry["type"] == "label"]
        assert [label["targetId"] for label in labels] == [made["id"]]
        assert [m["role"] for m in data(a, "get_messages")["messages"]] == ["user", "assistant", "branchSummary"]
        stats = data(a, "get_session_stats")
        assert stats["tokens"]["input"] == 10 * len(server.requests)
        a.prompt("SAY on")
        assert "<summary>" in json.dumps(server.requests[-1].body["messages"])


def test_the_summary_is_there_after_a_restart(agent: Start, server: ModelServer, home: Home) -> None:
    with agent() as a:
        target = begun(a)
        server.script(text("what was tried"))
        data(a, "navigate_tree", targetId=target, options={"summarize": True})
        before = data(a, "get_messages")
    with agent("--session", str(home.session_files()[0])) as a:
        assert data(a, "get_messages") == before


def test_the_client_directs_what_is_summarized(agent: Start, server: ModelServer) -> None:
    with agent() as a:
        target = begun(a)
        server.script(text("x"))
        options = {"customInstructions": "Only the file names.", "replaceInstructions": True}
        assert answer(a, leave(a, target, **options))["success"]
        assert asked(server)[1].endswith("</conversation>\n\nOnly the file names.")


def test_the_reserve_of_the_settings_counts(agent: Start, server: ModelServer, home: Home) -> None:
    home.write_settings({"branchSummary": {"reserveTokens": 19_900}})
    with agent(model="small") as a:  # its window has 20,000 tokens
        target = begun(a)
        server.script(text("long"), text("short"))
        a.prompt("y" * 2000)
        a.prompt("last")
        assert data(a, "navigate_tree", targetId=target, options={"summarize": True}) == SUMMARIZED
        question = asked(server)[1]
        assert "[User]: last" in question and "yyy" not in question


@pytest.mark.shows("navigate_tree", error="The model answered without a summary of the branch")
def test_an_answer_without_text_is_refused(agent: Start, server: ModelServer) -> None:
    with agent() as a:
        target = begun(a)
        server.script(text(" "))
        assert answer(a, leave(a, target))["error"] == "The model answered without a summary of the branch"


@pytest.mark.shows("navigate_tree", error="No API key found for ….")
def test_without_a_credential_the_move_is_refused(agent: Start, home: Home) -> None:
    with agent() as a:
        target = begun(a)
    content = json.loads((home.agent_dir / "models.json").read_text())
    content["providers"]["fa"]["apiKey"] = "$NOT_SET_ANYWHERE"
    home.write_models(content)
    with agent("--session", str(home.session_files()[0])) as a:
        assert answer(a, leave(a, target))["error"].startswith("No API key found for fa.")


@pytest.mark.shows("navigate_tree", error="No model available for summarization")
def test_without_a_model_the_move_is_refused(agent: Start, home: Home, watched: list[Agent]) -> None:
    with agent() as a:
        target = begun(a)
    home.write_models({"providers": {}})
    command = [*program(), "--mode", "rpc", "--session", str(home.session_files()[0])]
    environment = {**home.environment(), "PYTHONPATH": str(ROOT)}
    with Agent(command, cwd=home.cwd, env=environment) as a:
        watched.append(a)
        assert answer(a, leave(a, target))["error"] == "No model available for summarization"
        assert data(a, "navigate_tree", targetId=target) == {"cancelled": False}


@pytest.mark.shows(
    "navigate_tree",
    events=["summarization_retry_scheduled", "summarization_retry_attempt_start", "summarization_retry_finished"],
)
def test_a_failure_in_passing_is_retried(agent: Start, server: ModelServer) -> None:
    with agent() as a:
        target = begun(a)
        server.script(error(529), text("at last"))
        since = a.cursor
        assert answer(a, leave(a, target))["data"] == SUMMARIZED
        told = [record for record in a.records[since:] if record["type"] in EVENTS]
        assert [record["type"] for record in told] == list(EVENTS)
        assert (told[0]["attempt"], told[0]["maxAttempts"], told[0]["delayMs"]) == (1, 2, 100)
        assert told[1] == {"type": "summarization_retry_attempt_start", "source": "branchSummary"}


def test_a_failure_that_stays_is_the_answer(agent: Start, server: ModelServer) -> None:
    with agent() as a:
        target = begun(a)
        before = data(a, "get_entries")
        server.script(error(401, message="bad key"))
        response = answer(a, leave(a, target))
        assert not response["success"] and "bad key" in response["error"]
        assert data(a, "get_entries") == before


@pytest.mark.parametrize("command", ["abort", "abort_compaction"])
def test_it_can_be_aborted_in_every_phase(agent: Start, server: ModelServer, home: Home, command: str) -> None:
    home.write_settings({"retry": {"enabled": True, "maxRetries": 2, "baseDelayMs": 60_000}})
    with agent() as a:
        target = begun(a)
        before = data(a, "get_entries")
        half = gate("half ")
        server.script(half, error(529))
        sent = leave(a, target)
        half.reached.wait()
        assert a.request(command)["success"]
        assert answer(a, sent)["data"] == ABORTED
        sent = leave(a, target)
        a.wait({"type": "summarization_retry_scheduled"})
        assert a.request(command)["success"]
        assert answer(a, sent)["data"] == ABORTED
        assert data(a, "get_entries") == before


def test_an_abort_in_the_same_write_reaches_it(agent: Start, server: ModelServer) -> None:
    with agent() as a:
        target = begun(a)
        server.script(hang("half "))
        move = {"id": "m", "type": "navigate_tree", "targetId": target, "options": {"summarize": True}}
        a.send_raw(b"".join(json.dumps(each).encode() + b"\n" for each in (move, {"id": "x", "type": "abort"})))
        assert answer(a, "m")["data"] == ABORTED
        assert answer(a, "x")["success"]


@pytest.mark.shows("abort_compaction")
@pytest.mark.shows("navigate_tree", error="navigate_tree was stopped by … before it started")
def test_an_abort_stops_a_summary_that_has_not_begun(agent: Start, server: ModelServer) -> None:
    with agent() as a:
        target = begun(a)
        server.script(hang("half "))
        first, second, plain = leave(a, target), leave(a, target), a.send("navigate_tree", targetId=target)
        server.wait_for_requests(3)
        assert a.request("abort_compaction")["success"]
        assert answer(a, first)["data"] == ABORTED
        assert answer(a, second)["error"] == "navigate_tree was stopped by abort_compaction before it started"
        assert answer(a, plain)["data"] == {"cancelled": False}


def test_a_prompt_meanwhile_runs_after_it_on_the_new_branch(agent: Start, server: ModelServer) -> None:
    with agent() as a:
        target = begun(a)
        half = gate("half ", "whole")
        server.script(half)
        sent = leave(a, target)
        half.reached.wait()
        prompt, state = a.send("prompt", message="SAY three"), a.send("get_state")
        half.open()
        assert answer(a, sent)["data"] == SUMMARIZED
        assert answer(a, prompt)["success"] and answer(a, state)["data"]["isStreaming"]
        a.wait({"type": "agent_settled"}, since=a.cursor)
        roles = [m["role"] for m in data(a, "get_messages")["messages"]]
        assert roles == ["user", "assistant", "branchSummary", "user", "assistant"]


def test_the_end_of_input_ends_it_and_it_is_answered_once(agent: Start, server: ModelServer, home: Home) -> None:
    with agent() as a:
        target = begun(a)
        server.script(hang("half "))
        sent = leave(a, target)
        server.wait_for_requests(3)
        a.close_stdin()
        assert a.wait_exit() == 0
        (response,) = a.responses(sent)
        assert response["data"] == ABORTED
    assert not [entry for entry in stored(home) if entry["type"] == "branch_summary"]
