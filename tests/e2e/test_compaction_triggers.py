"""A context that is shortened by itself: when, in which order of events, and what becomes of the work around it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from conformance.driver import Agent
from conformance.model_scripts import Usage
from conformance.model_server import ModelServer, error, gate, hang, overflow, stream_error, text, tool
from tests.e2e.conftest import Home

Start = Callable[..., Agent]
Record = dict[str, Any]
LINES = "\n".join(f"line {number}" for number in range(1, 41))
PLAN = "2,40"
FULL = Usage(input=19_000, output=5)  # of the model `small`: 20,000 tokens, 16,384 of them in reserve
OVERFLOW_ERROR = (
    "Context overflow recovery failed after one compact-and-retry attempt. "
    "Try reducing context or switching to a larger-context model."
)


def data(a: Agent, type_: str, /, **fields: Any) -> Any:
    response = a.request(type_, **fields)
    assert response["success"], response
    return response.get("data", {})


def story(a: Agent, since: int = 0) -> list[str]:
    """What came since, without what happens inside a turn."""
    found = []
    for record in a.records[since:]:
        if record["type"] == "response":
            found.append(f"{record['command']} {'ok' if record['success'] else 'failed'}")
        elif not record["type"].startswith(("message", "turn", "tool")):
            found.append(record["type"])
    return found


def ends(a: Agent) -> list[Record]:
    return [record for record in a.records if record["type"] == "compaction_end"]


def begin(a: Agent, server: ModelServer) -> int:
    """One exchange of 40 lines; the place where the records of the next begin."""
    server.script(text("noted"))
    a.prompt(LINES)
    return a.cursor


@pytest.mark.shows("prompt", events=["compaction_start", "compaction_end"])
def test_a_reply_over_the_threshold_is_followed_by_a_compaction(agent: Start, server: ModelServer) -> None:
    with agent(model="small") as a:
        before = begin(a, server)
        server.script(text("sure", usage=FULL), text(PLAN))
        a.prompt("and now?")
        assert story(a, before) == [
            "prompt ok",
            "agent_start",
            "agent_end",
            "compaction_start",
            "compaction_end",
            "agent_settled",
        ]
        (end,) = ends(a)
        assert (end["reason"], end["willRetry"], end["aborted"]) == ("threshold", False, False)
        assert end["result"]["backupPath"].endswith(".auto-compact.bak")
        assert "errorMessage" not in end and "midTurn" not in end
        assert data(a, "get_session_stats")["contextUsage"]["tokens"] is None


def test_nothing_runs_while_it_is_switched_off(agent: Start, server: ModelServer) -> None:
    with agent(model="small") as a:
        begin(a, server)
        data(a, "set_auto_compaction", enabled=False)
        server.script(text("sure", usage=FULL), overflow())
        a.prompt("and now?")
        a.prompt("and then?")
        assert ends(a) == []
        data(a, "set_auto_compaction", enabled=True)
        server.script(text(PLAN), text("fine"))
        before = a.cursor
        a.prompt("again")
        assert story(a, before) == [
            "compaction_start",
            "compaction_end",
            "prompt ok",
            "agent_start",
            "agent_end",
            "agent_settled",
        ]


def test_a_threshold_with_nothing_to_compact_says_so_without_an_error(agent: Start, server: ModelServer) -> None:
    with agent(model="small") as a:
        server.script(text("sure", usage=FULL))
        a.prompt("hello")
        assert ends(a) == [
            {"type": "compaction_end", "reason": "threshold", "result": None, "aborted": False, "willRetry": False}
        ]


def test_an_overflow_is_compacted_and_the_prompt_runs_again(agent: Start, server: ModelServer) -> None:
    with agent() as a:
        before = begin(a, server)
        server.script(overflow(), text(PLAN), text("now it fits"))
        a.prompt("and now?")
        assert story(a, before) == [
            "prompt ok",
            "agent_start",
            "agent_end",
            "compaction_start",
            "compaction_end",
            "agent_start",
            "agent_end",
            "agent_settled",
        ]
        (end,) = ends(a)
        assert (end["reason"], end["willRetry"]) == ("overflow", True)
        assert end["result"]["backupPath"].endswith(".overflow-auto-compact.bak")
        (message,) = server.requests[-1].body["messages"]
        assert json.dumps(message).count("and now?") == 1
        assert data(a, "get_last_assistant_text") == {"text": "now it fits"}
        assert "auto_retry_start" not in {record["type"] for record in a.records}


@pytest.mark.parametrize(
    ("failures", "plan", "kept"),
    [
        ([error(529), overflow()], "no plan", "(filtered 42 lines)\n\n[User]: and now?"),
        ([stream_error("PARTIAL", "Overloaded"), overflow()], PLAN, "[Assistant]: noted\n\n[User]: and now?"),
        ([text("PARTIAL", stop="length")], PLAN, "[Assistant]: noted\n\n[User]: and now?"),
    ],
)
def test_what_runs_again_is_the_prompt_without_the_replies_that_failed(
    agent: Start, server: ModelServer, home: Home, failures: list[Any], plan: str, kept: str
) -> None:
    with agent() as a:
        begin(a, server)
        server.script(*failures, text(plan), text("done"))
        a.prompt("and now?")
        (message,) = server.requests[-1].body["messages"]
        asked = message["content"][0]["text"]
        assert asked.endswith(kept) and "PARTIAL" not in asked
        assert "PARTIAL" not in json.dumps(server.requests[-2].body["messages"]), "the planner does not see it"
        told = data(a, "get_messages")
    with agent("--session", str(home.session_files()[0])) as a:
        assert data(a, "get_messages") == told


def test_a_second_overflow_is_not_answered_by_a_third_request(agent: Start, server: ModelServer) -> None:
    with agent() as a:
        begin(a, server)
        server.script(overflow(), text(PLAN), overflow())
        before = a.cursor
        a.prompt("and now?")
        assert story(a, before)[-5:] == [
            "compaction_end",
            "agent_start",
            "agent_end",
            "compaction_end",
            "agent_settled",
        ]
        assert ends(a)[1] == {
            "type": "compaction_end",
            "reason": "overflow",
            "result": None,
            "aborted": False,
            "willRetry": False,
            "errorMessage": OVERFLOW_ERROR,
            "unresolvedOverflow": True,
        }
        server.script(text("fine"))
        a.prompt("short")
        assert data(a, "get_last_assistant_text") == {"text": "fine"}


def test_an_overflow_that_stays_goes_on_with_a_model_of_the_list(agent: Start, server: ModelServer, home: Home) -> None:
    home.write_settings({"fallbackModels": ["fa/m2"]})
    with agent(model="small") as a:
        begin(a, server)
        server.script(overflow(), text(PLAN), overflow(), text("large enough"))
        before = a.cursor
        a.prompt("and now?")
        kinds = [each for each in story(a, before) if each not in ("agent_start", "model_changed")]
        assert kinds == [
            "prompt ok",
            "agent_end",
            "compaction_start",
            "compaction_end",
            "agent_end",
            "compaction_end",
            "model_fallback_start",
            "agent_end",
            "model_fallback_end",
            "agent_settled",
        ]
        assert data(a, "get_last_assistant_text") == {"text": "large enough"}
        assert data(a, "get_state")["model"]["id"] == "small"


def test_an_overflow_whose_plan_fails_drops_what_may_go(agent: Start, server: ModelServer) -> None:
    with agent() as a:
        begin(a, server)
        server.script(overflow(), text("no plan"), text("goes on"))
        a.prompt("and now?")
        result = ends(a)[0]["result"]
        assert (result["rung"], result["compactedText"]) == ("fresh", "(filtered 42 lines)")
        assert data(a, "get_last_assistant_text") == {"text": "goes on"}


def test_an_overflow_with_nothing_to_drop_is_unresolved(agent: Start, server: ModelServer) -> None:
    with agent() as a:
        server.script(overflow())
        before = a.cursor
        a.prompt("far too long")
        assert story(a, before)[-3:] == ["compaction_start", "compaction_end", "agent_settled"]
        (end,) = ends(a)
        assert end["unresolvedOverflow"] is True and end["willRetry"] is False
        assert end["errorMessage"] == (
            "Context overflow recovery failed: Context compaction found no compactable transcript entries; "
            "nothing more was safely deletable"
        )


def test_a_good_reply_that_read_more_than_the_window_is_not_asked_again(agent: Start, server: ModelServer) -> None:
    with agent(model="small") as a:
        begin(a, server)
        server.script(text("sure", usage=Usage(input=20_001)), text(PLAN))
        a.prompt("and now?")
        assert [(end["reason"], end["willRetry"]) for end in ends(a)] == [("overflow", False)]
        assert len(server.requests) == 3


def test_a_reply_cut_short_of_its_limit_is_asked_again_with_less(agent: Start, server: ModelServer) -> None:
    with agent() as a:
        begin(a, server)
        server.script(text("half of", stop="length"), text(PLAN), text("all of it"))
        before = a.cursor
        a.prompt("and now?")
        assert story(a, before)[2:] == [
            "agent_end",
            "compaction_start",
            "compaction_end",
            "agent_start",
            "agent_end",
            "agent_settled",
        ]
        assert (ends(a)[0]["reason"], ends(a)[0]["willRetry"]) == ("overflow", True)
        assert data(a, "get_last_assistant_text") == {"text": "all of it"}


def test_a_reply_cut_short_twice_stands(agent: Start, server: ModelServer) -> None:
    with agent() as a:
        server.script(text("half", stop="length"), text("half again", stop="length"))
        a.prompt("hello")
        assert [end.get("errorMessage") for end in ends(a)] == [
            None,
            "Response truncation recovery stopped after one retry.",
        ]
        assert len(server.requests) == 2
        assert [message["role"] for message in data(a, "get_messages")["messages"]] == ["user", "assistant"]


def test_between_tool_results_and_the_next_request_the_context_is_shortened(
    agent: Start, server: ModelServer, home: Home
) -> None:
    (home.cwd / "big.txt").write_text("word " * 5000)
    with agent(model="small") as a:
        begin(a, server)
        server.script(tool("read", {"path": "big.txt"}), text(PLAN), text("read it"))
        before = a.cursor
        a.prompt("read big.txt")
        assert story(a, before) == [
            "prompt ok",
            "agent_start",
            "compaction_start",
            "compaction_end",
            "agent_end",
            "agent_settled",
        ]
        (end,) = ends(a)
        assert (end["reason"], end["midTurn"], end["willRetry"]) == ("threshold", True, False)
        (message,) = server.requests[-1].body["messages"]
        assert "[Assistant tool calls]: read" in json.dumps(message) and "word word" in json.dumps(message)
        assert data(a, "get_last_assistant_text") == {"text": "read it"}
        last = a.wait({"type": "agent_end"}, since=before)
        assert [each["role"] for each in last["messages"]] == ["user", "assistant", "toolResult", "assistant"]


def test_what_is_over_the_hard_limit_even_then_is_not_sent(agent: Start, server: ModelServer, home: Home) -> None:
    (home.cwd / "big.txt").write_text("word " * 10_000)
    with agent(model="small") as a:
        begin(a, server)
        calls = [tool("read", {"path": "big.txt"}).then(tool("read", {"path": "big.txt"}))]
        server.script(*calls, text(PLAN))
        a.prompt("read it twice")
        (end,) = ends(a)
        assert end["result"]["rung"] == "planned"
        assert end["errorMessage"].startswith(
            "Post-tool context remains over the provider hard input limit after compaction ("
        )
        assert end["errorMessage"].endswith(" > 20000 tokens); the next provider request was not sent.")
        asked = len(server.requests)
        last = [record for record in a.records if record["type"] == "agent_end"][-1]["messages"][-1]
        assert (last["stopReason"], last["errorMessage"]) == ("error", end["errorMessage"])
        assert asked == 3


@pytest.mark.parametrize("interrupt", ["abort", "abort_compaction"])
def test_a_compaction_in_mid_turn_is_cancelled_and_the_turn_ends(
    agent: Start, server: ModelServer, home: Home, interrupt: str
) -> None:
    (home.cwd / "big.txt").write_text("word " * 5000)
    with agent(model="small") as a:
        begin(a, server)
        server.script(tool("read", {"path": "big.txt"}), hang())
        before = a.cursor
        a.send("prompt", message="read big.txt")
        server.wait_for_requests(3)
        assert data(a, "get_state")["compactionReason"] == "threshold"
        a.request(interrupt)
        a.wait({"type": "agent_settled"}, since=before)
        (end,) = ends(a)
        assert (end["aborted"], end["result"], end["midTurn"]) == (True, None, True)
        last = a.wait({"type": "agent_end"}, since=before)["messages"][-1]
        assert last["stopReason"] == {"abort": "aborted", "abort_compaction": "error"}[interrupt]
        if interrupt == "abort_compaction":
            assert last["errorMessage"] == (
                "Post-tool context compaction was cancelled before the next provider request."
            )
        assert len(server.requests) == 3


def test_a_steer_that_comes_meanwhile_is_in_the_request_that_waited(
    agent: Start, server: ModelServer, home: Home
) -> None:
    (home.cwd / "big.txt").write_text("word " * 5000)
    with agent(model="small") as a:
        begin(a, server)
        held = gate("2,", "40")
        server.script(tool("read", {"path": "big.txt"}), held, text("read it, in French"))
        before = a.cursor
        a.send("prompt", message="read big.txt")
        held.reached.wait()
        assert a.request("steer", message="in French")["success"]
        held.open()
        a.wait({"type": "agent_settled"}, since=before)
        assert len(ends(a)) == 1 and len(server.requests) == 4
        compacted, steer = server.requests[-1].body["messages"][0]["content"], server.requests[-1].body["messages"][-1]
        assert "word word" in json.dumps(compacted) and json.dumps(steer).count("in French") == 1
        kinds = [each["type"] for each in a.records[before:]]
        assert kinds.count("turn_start") == kinds.count("turn_end") == 2


@pytest.mark.shows(
    "prompt",
    error="Agent is already processing. Specify streamingBehavior ('steer' or 'followUp') to queue the message.",
)
def test_while_it_runs_a_prompt_is_refused_and_a_steer_waits(agent: Start, server: ModelServer) -> None:
    with agent(model="small") as a:
        begin(a, server)
        held = gate("2,", "40")
        server.script(text("sure", usage=FULL), held, text("steered"))
        before = a.cursor
        a.send("prompt", message="and now?")
        held.reached.wait()
        state = data(a, "get_state")
        assert (state["isCompacting"], state["compactionReason"], state["isStreaming"]) == (True, "threshold", True)
        assert not a.request("prompt", message="another")["success"]
        assert a.request("prompt", message="queued", streamingBehavior="followUp")["success"]
        assert a.request("steer", message="this too")["success"]
        held.open()
        a.wait({"type": "agent_settled"}, since=before)
        texts = json.dumps([request.body["messages"] for request in server.requests])
        assert "another" not in texts
        last = json.dumps(server.requests[-1].body["messages"])
        assert last.count("this too") == 1 and last.count("queued") == 1
        assert "isCompacting" in (state := data(a, "get_state")) and not state["isCompacting"]
        assert "compactionReason" not in state


def test_a_command_takes_the_place_of_an_automatic_one(agent: Start, server: ModelServer) -> None:
    with agent(model="small") as a:
        begin(a, server)
        server.script(text("sure", usage=FULL), hang(), text(PLAN))
        before = a.cursor
        a.send("prompt", message="and now?")
        server.wait_for_requests(3)
        data(a, "compact")
        a.wait({"type": "agent_settled"}, since=before)
        assert story(a, before) == [
            "prompt ok",
            "agent_start",
            "agent_end",
            "compaction_start",
            "compaction_end",
            "compaction_start",
            "compaction_end",
            "compact ok",
            "agent_settled",
        ]
        first, second = ends(a)
        assert (first["aborted"], first["manualTakeoverPending"]) == (True, True)
        assert (second["reason"], second["aborted"]) == ("manual", False)
        assert "manualTakeoverPending" not in second


@pytest.mark.parametrize("interrupt", ["abort", "abort_compaction"])
def test_an_automatic_one_is_cancelled_and_the_prompt_is_over(
    agent: Start, server: ModelServer, interrupt: str
) -> None:
    with agent() as a:
        begin(a, server)
        server.script(overflow(), hang())
        before = a.cursor
        a.send("prompt", message="and now?")
        server.wait_for_requests(3)
        assert a.request(interrupt)["success"]
        a.wait({"type": "agent_settled"}, since=before)
        (end,) = ends(a)
        assert end == {
            "type": "compaction_end",
            "reason": "overflow",
            "result": None,
            "aborted": True,
            "willRetry": False,
        }
        assert len(server.requests) == 3


def test_a_prompt_waits_for_the_compaction_that_is_due_before_it(agent: Start, server: ModelServer, home: Home) -> None:
    with agent() as a:
        begin(a, server)
        server.script(text("sure", usage=FULL))
        a.prompt("and now?")
    with agent("--session", str(home.session_files()[0]), model="small") as a:
        held = gate("2,", "40")
        server.script(held, text("answer"))
        sent = a.send("prompt", message="next")
        held.reached.wait()
        assert a.responses(sent) == []
        assert not a.request("prompt", message="other")["success"]
        assert a.request("steer", message="also")["success"]
        held.open()
        a.wait({"type": "agent_settled"})
        _, *rest = server.requests[-1].body["messages"]
        assert [each["content"][0]["text"] for each in rest] == ["next", "also"]
        assert len(ends(a)) == 1


@pytest.mark.shows("prompt", error="prompt was stopped by abort before it started")
def test_an_abort_reaches_the_prompt_that_waits(agent: Start, server: ModelServer, home: Home) -> None:
    with agent() as a:
        begin(a, server)
        server.script(text("sure", usage=FULL))
        a.prompt("and now?")
    with agent("--session", str(home.session_files()[0]), model="small") as a:
        server.script(hang())
        sent = a.send("prompt", message="next")
        server.wait_for_requests(3)
        a.request("abort")
        assert a.responses(sent)[0]["error"] == "prompt was stopped by abort before it started"
        assert [end["aborted"] for end in ends(a)] == [True]
        assert not data(a, "get_state")["isStreaming"]
        server.script(text(PLAN), text("answer"))
        a.prompt("go on")


@pytest.mark.shows("prompt", error="the session was left before the prompt started")
@pytest.mark.parametrize("command", ["new_session", "clone"])
def test_a_replacement_ends_it_and_says_so(agent: Start, server: ModelServer, home: Home, command: str) -> None:
    with agent() as a:
        begin(a, server)
        server.script(text("sure", usage=FULL))
        a.prompt("and now?")
    with agent("--session", str(home.session_files()[0]), model="small") as a:
        server.script(hang())
        sent = a.send("prompt", message="next")
        a.wait({"type": "compaction_start"})
        data(a, command)
        assert [end["aborted"] for end in ends(a)] == [True]
        assert a.responses(sent)[0]["error"] == "the session was left before the prompt started"
        assert not data(a, "get_state")["isCompacting"]


def test_a_replacement_ends_the_one_after_a_run(agent: Start, server: ModelServer) -> None:
    with agent(model="small") as a:
        begin(a, server)
        server.script(text("sure", usage=FULL), hang())
        before = a.cursor
        a.send("prompt", message="and now?")
        server.wait_for_requests(3)
        a.request("steer", message="never lost without a word")
        data(a, "new_session")
        kinds = story(a, before)
        assert kinds[-4:] == ["queue_update", "compaction_end", "agent_settled", "new_session ok"]
        assert ends(a)[0]["aborted"] is True


def test_the_end_of_input_ends_it_in_time(agent: Start, server: ModelServer) -> None:
    with agent(model="small") as a:
        begin(a, server)
        server.script(text("sure", usage=FULL), hang())
        a.send("prompt", message="and now?")
        server.wait_for_requests(3)
        a.close_stdin()
        assert a.wait_exit(4) == 0
        assert [end["aborted"] for end in ends(a)] == [True]
        assert a.records[-1]["type"] == "agent_settled"


def test_a_failure_of_an_automatic_one_is_told_and_the_session_goes_on(agent: Start, server: ModelServer) -> None:
    with agent(model="small") as a:
        begin(a, server)
        server.script(text("sure", usage=FULL), error(400, message="bad request"))
        a.prompt("and now?")
        (end,) = ends(a)
        assert end["errorMessage"].startswith("Auto-compaction failed: ") and "bad request" in end["errorMessage"]
        assert (end["result"], end["aborted"], "unresolvedOverflow" in end) == (None, False, False)
        server.script(text(PLAN), text("fine"))
        a.prompt("again")
        assert data(a, "get_last_assistant_text") == {"text": "fine"}
