"""A context that is shortened because the client asks: what is kept, stored and found again, and what ends it."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conformance.driver import Agent
from conformance.model_server import ModelServer, Reply, error, gate, hang, overflow, text
from tests.e2e.conftest import Home

Start = Callable[..., Agent]
Record = dict[str, Any]
LINES = "\n".join(f"line {number}" for number in range(1, 41))
PLAN = "2,40"


def data(a: Agent, type_: str, /, **fields: Any) -> Any:
    response = a.request(type_, **fields)
    assert response["success"], response
    return response.get("data", {})


def talk(a: Agent, server: ModelServer) -> None:
    """Two exchanges; the first one is the region: 42 lines."""
    server.script(text("noted"), text("sure"))
    a.prompt(LINES)
    a.prompt("and now?")


def story(a: Agent, since: int) -> list[str]:
    """What came since, by type; responses by their command."""
    return [
        f"{record['command']} {'ok' if record['success'] else 'failed'}"
        if record["type"] == "response"
        else record["type"]
        for record in a.records[since:]
    ]


def stored(path: Path) -> list[Record]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def ends(a: Agent) -> list[Record]:
    return [record for record in a.records if record["type"] == "compaction_end"]


@pytest.mark.shows("compact", events=["compaction_start", "compaction_end"])
def test_the_lines_that_the_model_names_are_gone_and_all_others_stand(
    agent: Start, server: ModelServer, home: Home
) -> None:
    with agent() as a:
        talk(a, server)
        server.script(text(PLAN))
        before = a.cursor
        result = data(a, "compact")
        assert story(a, before) == ["compaction_start", "compaction_end", "compact ok"]
        start, end = a.records[before : before + 2]
        assert start == {"type": "compaction_start", "reason": "manual"}
        assert end == {
            "type": "compaction_end",
            "reason": "manual",
            "result": result,
            "aborted": False,
            "willRetry": False,
        }
        assert result["compactedText"] == "[User]: line 1\n(filtered 39 lines)\n\n[Assistant]: noted"
        (path,) = home.session_files()
        entries = stored(path)
        boundary = entries[-1]
        kept = next(
            entry
            for entry in entries
            if entry.get("message", {}).get("content") == [{"type": "text", "text": "and now?"}]
        )
        assert (result["firstKeptEntryId"], result["promptVersion"], result["rung"]) == (kept["id"], 3, "planned")
        assert result["parameters"] == {"compression_ratio": 0.5, "preserve_recent": 2, "query": "and now?"}
        stats = result["stats"]
        assert (stats["linesBefore"], stats["linesDeleted"], stats["linesKept"], stats["rangeCount"]) == (42, 39, 3, 1)
        assert boundary["type"] == "compaction" and boundary["parentId"] == entries[-2]["id"]
        assert boundary["summary"] == result["compactedText"]
        assert boundary["details"] == {
            "strategy": "verbatim-lines",
            **{name: result[name] for name in ("promptVersion", "rung", "parameters", "stats", "backupPath")},
        }
        assert stored(Path(result["backupPath"])) == entries[:-1]
        assert result["backupPath"].startswith(f"{path}.") and result["backupPath"].endswith(".compact.bak")
        (answer,) = path.parent.glob("*-compaction-success-*.json")
        assert json.loads(answer.read_text())["response"] == PLAN
        assert {file.stat().st_mode & 0o777 for file in (answer, Path(result["backupPath"]))} == {0o600}


def test_the_planner_is_asked_outside_the_conversation(agent: Start, server: ModelServer) -> None:
    with agent() as a:
        talk(a, server)
        server.script(text(PLAN))
        data(a, "compact")
        body = server.requests[-1].body
        (message,) = body["messages"]
        question = message["content"][0]["text"]
        assert question.startswith("<transcript>\n1\u2192[User]: line 1\n2\u2192line 2\n")
        assert "42\u2192[Assistant]: noted\n</transcript>" in question
        assert not body.get("tools") and "cache_control" not in json.dumps(body)


def test_what_is_left_is_one_message_and_the_conversation_goes_on_from_it(
    agent: Start, server: ModelServer, home: Home
) -> None:
    with agent() as a:
        talk(a, server)
        server.script(text(PLAN))
        result = data(a, "compact")
        assert data(a, "get_session_stats")["contextUsage"] == {
            "tokens": None,
            "contextWindow": 200_000,
            "percent": None,
        }
        (message,) = data(a, "get_messages")["messages"]
        assert (message["role"], message["customType"], message["display"]) == ("custom", "compaction", True)
        (block,) = message["content"]
        assert block["text"].endswith(result["compactedText"] + "\n\n[User]: and now?\n\n[Assistant]: sure")
        assert data(a, "get_state")["messageCount"] == 1
        a.prompt("go on")
        first, second = server.requests[-1].body["messages"]
        assert (first["role"], second["role"]) == ("user", "user")
        assert data(a, "get_session_stats")["contextUsage"]["tokens"] > 0
        messages = data(a, "get_messages")
    with agent("--session", str(home.session_files()[0])) as a:
        asked = len(server.requests)
        assert data(a, "get_messages") == messages
        assert len(server.requests) == asked


def test_a_second_compaction_counts_what_the_first_took(agent: Start, server: ModelServer) -> None:
    with agent() as a:
        talk(a, server)
        server.script(text("2,21"))
        first = data(a, "compact")["compactedText"]
        assert first.split("\n")[1:3] == ["(filtered 20 lines)", "line 22"]
        server.script(text("done"), text("2,10"))
        a.prompt("more")
        second = data(a, "compact")["compactedText"]
        assert second.split("\n")[:3] == ["[User]: line 1", "(filtered 28 lines)", "line 30"]
        assert "[User]: and now?\n\n[Assistant]: sure" in second


def test_parameters_of_the_command_count_before_settings(agent: Start, server: ModelServer, home: Home) -> None:
    overrides = {"fa/m": {"preserve_recent": 3}}
    home.write_settings({"compaction": {"compression_ratio": 0.3, "modelOverrides": overrides, "query": "the plan"}})
    with agent() as a:
        talk(a, server)
        server.script(text("1,1"), text("1,1"))
        result = data(a, "compact")
        assert result["parameters"] == {"compression_ratio": 0.3, "preserve_recent": 3, "query": "the plan"}
        result = data(a, "compact", compression_ratio=0.9, preserve_recent=0, query=" this ")
        assert result["parameters"] == {"compression_ratio": 0.9, "preserve_recent": 0, "query": "this"}
        assert result["firstKeptEntryId"] is None
        (message,) = data(a, "get_messages")["messages"]
        assert message["content"][0]["text"].endswith(result["compactedText"])


@pytest.mark.shows("compact", error='compact: "compression_ratio" must be a number above 0 and below 1, not …')
@pytest.mark.shows("compact", error='compact: "preserve_recent" must be a whole number of 0 or more, not …')
@pytest.mark.shows("compact", error="Nothing to compact (session too small)")
def test_a_command_that_cannot_be_done_says_why(agent: Start, server: ModelServer) -> None:
    with agent() as a:
        for wrong in ({"compression_ratio": 1}, {"compression_ratio": 0}, {"preserve_recent": -1}):
            assert not a.request("compact", **wrong)["success"]
        assert ends(a) == []
        response = a.request("compact")
        assert response["error"] == "Nothing to compact (session too small)"
        assert ends(a)[0]["errorMessage"] == "Compaction failed: Nothing to compact (session too small)"
        assert ends(a)[0]["result"] is None
        a.prompt("SAY still here")


@pytest.mark.shows("compact", error="Compaction range planning returned malformed output…")
def test_an_answer_that_is_no_plan_changes_nothing_and_is_kept_for_a_look(
    agent: Start, server: ModelServer, home: Home
) -> None:
    with agent() as a:
        talk(a, server)
        messages = data(a, "get_messages")
        size = home.session_files()[0].stat().st_size
        server.script(text("I would delete lines 2 to 40."))
        response = a.request("compact")
        (path,) = home.session_files()[0].parent.glob("*-compaction-diagnostic-*.json")
        assert response["error"] == f"Compaction range planning returned malformed output (diagnostic: {path})"
        assert json.loads(path.read_text())["response"] == "I would delete lines 2 to 40."
        assert data(a, "get_messages") == messages
        assert home.session_files()[0].stat().st_size == size
        server.script(text(PLAN))
        assert data(a, "compact")["stats"]["linesDeleted"] == 39


@pytest.mark.shows("compact", events=["summarization_retry_scheduled", "summarization_retry_attempt_start"])
@pytest.mark.shows("compact", events=["summarization_retry_finished"])
def test_an_error_that_may_pass_is_tried_again(agent: Start, server: ModelServer) -> None:
    with agent() as a:
        talk(a, server)
        server.script(error(529), text(PLAN))
        before = a.cursor
        data(a, "compact")
        assert story(a, before) == [
            "compaction_start",
            "summarization_retry_scheduled",
            "summarization_retry_attempt_start",
            "summarization_retry_finished",
            "compaction_end",
            "compact ok",
        ]
        attempt = a.records[before + 2]
        assert (attempt["source"], attempt["reason"]) == ("compaction", "manual")


def test_a_planner_whose_window_is_too_small_sees_the_newer_half(agent: Start, server: ModelServer) -> None:
    with agent() as a:
        talk(a, server)
        server.script(overflow(), text("20,20"))
        result = data(a, "compact")
        question = server.requests[-1].body["messages"][0]["content"][0]["text"]
        assert question.startswith("<transcript>\n1\u2192line 22\n")
        assert result["compactedText"] == "(filtered 21 lines)\n" + "\n".join(LINES.split("\n")[21:40]) + (
            "\n(filtered 1 lines)\n[Assistant]: noted"
        )


def test_another_model_is_borrowed_for_the_plan_alone(agent: Start, server: ModelServer, home: Home) -> None:
    home.write_settings({"fallbackModels": ["nobody/x", "fa/m2"]})
    with agent() as a:
        talk(a, server)
        server.script(error(401, message="no such key"), text(PLAN))
        result = data(a, "compact")
        assert result["plannerModel"] == {"provider": "fa", "id": "m2"}
        assert server.requests[-1].body["model"] == "m2"
        assert data(a, "get_state")["model"]["id"] == "m"
        assert {"model_changed", "model_fallback_start"}.isdisjoint(record["type"] for record in a.records)


def test_when_nobody_can_plan_the_session_stays_as_it_is(agent: Start, server: ModelServer, home: Home) -> None:
    home.write_settings({"fallbackModels": ["fa/m2"], "retry": {"enabled": False}})
    with agent() as a:
        talk(a, server)
        server.script(error(429, message="slow down"), error(400, message="Your quota exceeded"))
        response = a.request("compact")
        assert "quota exceeded" in response["error"] and "(diagnostic: " in response["error"]
        assert ends(a)[0]["errorMessage"] == f"Compaction failed: {response['error']}"
        assert all(entry["type"] != "compaction" for entry in data(a, "get_entries")["entries"])
        a.prompt("SAY fine")


@pytest.mark.shows("compact", error="Compaction cancelled")
@pytest.mark.shows("abort_compaction")
@pytest.mark.parametrize("phase", ["asked", "streaming", "waiting"])
def test_a_compaction_is_cancelled_in_every_phase(agent: Start, server: ModelServer, home: Home, phase: str) -> None:
    home.write_settings({"retry": {"baseDelayMs": 60_000}})
    with agent() as a:
        talk(a, server)
        held = gate("2,", "40")
        server.script({"asked": hang(), "streaming": held, "waiting": error(529)}[phase])
        before = a.cursor
        sent = a.send("compact")
        if phase == "streaming":
            held.reached.wait()
        elif phase == "waiting":
            a.wait({"type": "summarization_retry_scheduled"})
        else:
            server.wait_for_requests(3)
        aborted = a.request("abort_compaction")
        response = a.wait({"type": "response", "id": sent})
        assert (aborted["success"], response["success"], response["error"]) == (True, False, "Compaction cancelled")
        told = [each for each in story(a, before) if not each.startswith("summarization_retry_sch")]
        finished = ["summarization_retry_finished"] if phase == "waiting" else []
        assert told == ["compaction_start", "abort_compaction ok", *finished, "compaction_end", "compact failed"]
        (end,) = ends(a)
        assert end == {
            "type": "compaction_end",
            "reason": "manual",
            "result": None,
            "aborted": True,
            "willRetry": False,
        }
        server.script(text("fine"))
        a.prompt("go on")
        assert data(a, "abort_compaction") == {}


def test_a_compaction_ends_the_run_and_what_is_queued_goes_on_after_it(agent: Start, server: ModelServer) -> None:
    with agent() as a:
        talk(a, server)
        held = gate("one", " two")
        server.script(held, text(PLAN), text("steered"))
        begun = a.cursor
        a.send("prompt", message="work")
        a.wait({"type": "message_update"}, since=begun)
        a.request("steer", message="and this")
        before = a.cursor
        data(a, "compact")
        a.wait({"type": "agent_settled"}, since=before)
        order = [each for each in story(a, before) if each.startswith(("agent", "comp", "queue"))]
        assert order == [
            "agent_end",
            "compaction_start",
            "compaction_end",
            "compact ok",
            "agent_start",
            "queue_update",
            "agent_end",
            "agent_settled",
        ]
        texts = json.dumps(server.requests[-1].body["messages"])
        assert texts.count("and this") == 1 and "[Assistant]: one" in texts


def test_a_prompt_behind_a_compaction_runs_once_after_it(agent: Start, server: ModelServer) -> None:
    with agent() as a:
        talk(a, server)
        held = gate("2,", "40")
        server.script(held, text("answer"))
        a.send("compact")
        held.reached.wait()
        a.send("prompt", message="after that")
        before = a.cursor
        held.open()
        a.wait({"type": "agent_settled"}, since=before)
        order = [each for each in story(a, before) if not each.startswith(("turn", "message"))]
        assert order == ["compaction_end", "compact ok", "prompt ok", "agent_start", "agent_end", "agent_settled"]
        assert sum("after that" in json.dumps(request.body) for request in server.requests) == 1


def test_a_shell_result_that_comes_in_between_is_kept(agent: Start, server: ModelServer) -> None:
    with agent() as a:
        talk(a, server)
        held = gate("2,", "40")
        server.script(held)
        sent = a.send("compact", preserve_recent=0)
        held.reached.wait()
        data(a, "bash", command="echo in-between")
        held.open()
        result = a.wait({"type": "response", "id": sent})["data"]
        assert result["firstKeptEntryId"] is not None
        (message,) = data(a, "get_messages")["messages"]
        assert message["content"][0]["text"].count("in-between") == 2  # the command and its output


def test_the_end_of_input_ends_it_in_time(agent: Start, server: ModelServer) -> None:
    with agent() as a:
        talk(a, server)
        server.script(hang())
        sent = a.send("compact")
        server.wait_for_requests(3)
        a.close_stdin()
        assert a.wait_exit(4) == 0
        assert a.responses(sent)[0]["error"] == "Compaction cancelled"
        assert [end["aborted"] for end in ends(a)] == [True]


def test_killed_around_the_append_the_session_opens_with_the_old_context_or_the_new(
    agent: Start, server: ModelServer, home: Home
) -> None:
    with agent() as a:
        talk(a, server)
        old = data(a, "get_messages")["messages"]
        path = home.session_files()[0]
        held = gate("2,", "40")
        server.script(held)
        a.send("compact")
        held.reached.wait()
        held.open()
        while not list(path.parent.glob("*.bak")):
            os.sched_yield()
        os.kill(a.pid, signal.SIGKILL)
        a.wait_exit()
    (backup,) = path.parent.glob("*.bak")
    assert path.read_bytes().startswith(backup.read_bytes())
    with agent("--session", str(path)) as a:
        messages = data(a, "get_messages")["messages"]
        assert messages == old or messages[0]["customType"] == "compaction"
        server.script(text("goes on"))
        a.prompt("and?")


def test_between_backup_and_append_nothing_is_lost(agent: Start, server: ModelServer, home: Home) -> None:
    """What such a death leaves: the backup, and a session file without the boundary."""
    with agent() as a:
        talk(a, server)
        old = data(a, "get_messages")
        server.script(text(PLAN))
        backup = Path(data(a, "compact")["backupPath"])
    path = home.session_files()[0]
    path.write_bytes(backup.read_bytes())
    with agent("--session", str(path)) as a:
        assert data(a, "get_messages") == old
        server.script(text(PLAN))
        assert data(a, "compact")["stats"]["linesDeleted"] == 39


def test_a_session_in_memory_leaves_no_files(agent: Start, server: ModelServer, home: Home) -> None:
    with agent(session=False) as a:
        talk(a, server)
        server.script(text(PLAN))
        assert "backupPath" not in data(a, "compact")
        assert list(home.sessions.iterdir()) == []


@pytest.mark.shows("compact", error="No API key found for ….")
def test_without_a_credential_it_says_so(agent: Start, server: ModelServer, home: Home) -> None:
    with agent() as a:
        talk(a, server)
        models = json.loads((home.agent_dir / "models.json").read_text())
        for provider in models["providers"].values():
            del provider["apiKey"]
        home.write_models(models)
        a.request("refresh_models")
        asked = len(server.requests)
        assert a.request("compact")["error"].startswith("No API key found for fa.")
        assert len(server.requests) == asked


def plan_of(*answers: str) -> list[Reply]:
    return [text(answer) for answer in answers]


def test_kept_context_survives_a_planner_that_deletes_everything(agent: Start, server: ModelServer) -> None:
    with agent() as a:
        server.script(text("noted"), text("sure"), *plan_of("1,999"))
        a.prompt(f"<keepContext>\nnever forget\n</keepContext>\n{LINES}")
        a.prompt("and now?")
        compacted = data(a, "compact")["compactedText"]
        assert compacted == "(filtered 0 lines)".replace("(filtered 0 lines)", "[User]: <keepContext>") + (
            "\nnever forget\n</keepContext>\n(filtered 42 lines)"
        )
