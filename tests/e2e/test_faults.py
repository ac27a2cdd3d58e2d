"""What a client and its files are left with when something dies, goes silent, runs full, or stops listening."""

from __future__ import annotations

import json
import os
import resource
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conformance.driver import Agent, line
from conformance.model_server import Control, ModelServer, drop, gate, hang, hang_before_head, raw, text, tool

Start = Callable[..., Agent]
Record = dict[str, Any]

ENDS = {"EOF": 0, "SIGTERM": 143, "SIGHUP": 129, "SIGINT": 130}


def session_path(a: Agent) -> Path:
    return Path(a.request("get_state")["data"]["sessionFile"])


def stored_messages(path: Path) -> list[Record]:
    """All messages of a file whose every line is whole."""
    stored = [json.loads(text_) for text_ in path.read_bytes().split(b"\n")[:-1]]
    assert path.read_bytes().endswith(b"\n")
    return [entry["message"] for entry in stored if entry["type"] == "message"]


def end(a: Agent, how: str) -> int:
    if how == "EOF":
        a.close_stdin()
    else:
        a.terminate(getattr(signal, how))
    return a.wait_exit()


def told_messages(a: Agent) -> list[Record]:
    return [record["message"] for record in a.records if record["type"] == "message_end"]


# ---- a shell child dies ------------------------------------------------------------------------------------------


def test_kill_9_of_a_bash_child_is_a_result_without_exit_code(agent: Start) -> None:
    with agent() as a:
        a.send("bash", id="b", command="echo $$; exec sleep 300")
        pid = int(a.wait({"type": "bash_execution_update", "id": "b"})["delta"])
        os.kill(pid, signal.SIGKILL)
        response = a.wait({"type": "response", "id": "b"})
        assert response["success"] and response["data"]["cancelled"] is False and "exitCode" not in response["data"]
        assert stored_messages(session_path(a))[0]["output"] == f"{pid}\n"


def test_kill_9_of_a_tools_child_is_told_to_the_model(agent: Start, server: ModelServer) -> None:
    server.script(tool("bash", {"command": "kill -9 $$"}, id="t1"), text("done"))
    with agent() as a:
        a.prompt("go")
        assert a.request("get_last_assistant_text")["data"]["text"] == "done"
        assert any(message["role"] == "toolResult" for message in told_messages(a))


# ---- the whole program dies --------------------------------------------------------------------------------------


@pytest.mark.parametrize("nth", [1, 2, 3, 4, 6])
def test_killed_after_any_message_it_opens_again_with_all_that_was_told(
    agent: Start, server: ModelServer, nth: int
) -> None:
    long = text("word " * 2000)
    server.script(*[tool("bash", {"command": "echo out"}, id=f"t{n}").then(long) for n in range(4)], text("done"))
    a = agent()
    path = session_path(a)
    a.send("prompt", message="go")
    a.wait(lambda record: record["type"] == "message_end" and len(told_messages(a)) >= nth)
    a.terminate(signal.SIGKILL)
    assert a.wait_exit() == -signal.SIGKILL
    told = told_messages(a)
    with agent("--session", str(path)) as again:
        kept = again.request("get_messages")["data"]["messages"]
        assert kept[: len(told)] == told
        server.default = text("and on")
        again.prompt("go on")
        assert again.request("get_last_assistant_text")["data"]["text"]
    assert a.orphans(deadline=5) == []


def test_killed_after_responses_it_opens_again_with_what_they_told(agent: Start) -> None:
    a = agent()
    a.prompt("SAY one")
    path = session_path(a)
    entry = a.request("get_fork_messages")["data"]["messages"][0]["entryId"]
    a.request("bash", command="echo RESULT")
    a.request("set_session_name", name="kept name")
    a.request("set_label", entryId=entry, label="kept label")
    a.request("set_model", provider="fa", modelId="m2")
    a.terminate(signal.SIGKILL)
    a.wait_exit()
    with agent("--session", str(path)) as again:
        state = again.request("get_state")["data"]
        assert (state["sessionName"], state["model"]["id"]) == ("kept name", "m")  # --model speaks for this start
        assert [m["role"] for m in again.request("get_messages")["data"]["messages"]][-1] == "bashExecution"
        kinds = [stored["type"] for stored in again.request("get_entries")["data"]["entries"]]
        assert kinds[-3:] == ["session_info", "label", "model_change"]
        assert again.request("get_tree")["data"]["tree"]


@pytest.mark.parametrize("left", [1, 30, 200])
def test_a_file_cut_inside_its_last_record_opens_with_the_others(agent: Start, left: int) -> None:
    with agent() as a:
        a.prompt("SAY one")
        a.prompt("SAY two")
        path = session_path(a)
    whole = path.read_bytes()
    start_of_last = whole.rstrip(b"\n").rfind(b"\n") + 1
    path.write_bytes(whole[: start_of_last + left])
    with agent("--session", str(path)) as again:
        before = again.request("get_messages")["data"]["messages"]
        assert [message["role"] for message in before] == ["user", "assistant", "user"]
        again.prompt("SAY three")
    with agent("--session", str(path)) as third:
        kept = third.request("get_messages")["data"]["messages"]
        assert [message["role"] for message in kept] == ["user", "assistant", "user", "user", "assistant"]


# ---- the provider ------------------------------------------------------------------------------------------------


def test_a_provider_that_never_answers_ends_with_the_abort(agent: Start, server: ModelServer) -> None:
    server.script(hang_before_head(), text("back"))
    with agent() as a:
        a.request("prompt", message="go")
        server.wait_for_requests(1)
        begun = time.monotonic()
        assert a.request("abort")["success"]
        assert time.monotonic() - begun < 2
        a.prompt("again")
        assert a.request("get_last_assistant_text")["data"]["text"] == "back"


@pytest.mark.parametrize("silent", [hang_before_head(), hang("half")], ids=["before the head", "in the text"])
def test_a_provider_that_falls_silent_runs_into_the_idle_time_out(
    agent: Start, home: Any, server: ModelServer, silent: Any
) -> None:
    home.write_settings({"httpIdleTimeoutMs": 300, "retry": {"enabled": False}})
    server.script(silent, text("back"))
    with agent() as a:
        a.prompt("go")
        failed = told_messages(a)[-1]
        assert failed["stopReason"] == "error" and failed["errorMessage"]
        a.prompt("again")
        assert a.request("get_last_assistant_text")["data"]["text"] == "back"


@pytest.mark.parametrize("provider", ["fa", "fo", "fr"])
@pytest.mark.parametrize("fault", ["drop", "garbage", "no stream", "empty body"])
def test_a_provider_that_drops_or_sends_garbage_ends_the_run_with_an_error(
    agent: Start, home: Any, server: ModelServer, provider: str, fault: str
) -> None:
    home.write_settings({"retry": {"enabled": False}})
    replies = {
        "drop": drop(),
        "garbage": text(chunks=["x ", Control.GARBAGE]),
        "no stream": raw(b"<html>\x00\xff busy</html>", headers={"content-type": "text/html"}),
        "empty body": raw(b""),
    }
    server.script(replies[fault], text("back"))
    with agent(provider=provider) as a:
        a.prompt("go")
        failed = told_messages(a)[-1]
        assert (failed["role"], failed["stopReason"]) == ("assistant", "error") and failed["errorMessage"]
        a.prompt("again")
        assert a.request("get_last_assistant_text")["data"]["text"] == "back"


def test_a_provider_that_is_not_there_ends_the_run_with_an_error(agent: Start, home: Any) -> None:
    content = json.loads((home.agent_dir / "models.json").read_text())
    content["providers"]["fa"]["baseUrl"] = "http://127.0.0.1:9"
    home.write_models(content)
    home.write_settings({"retry": {"enabled": False}})
    with agent() as a:
        a.prompt("go")
        failed = told_messages(a)[-1]
        assert failed["stopReason"] == "error" and failed["errorMessage"]


# ---- the client --------------------------------------------------------------------------------------------------


def test_a_client_that_stops_reading_for_5_s_costs_no_memory(agent: Start) -> None:
    """The pause is the subject: 20,000 deltas wait behind a pipe that nobody empties."""
    with agent() as a:
        a.prompt("TOKENS 200")
        before = a.peak_rss()
        since = a.cursor
        a.stop_reading()
        a.send("prompt", message="TOKENS 20000")
        time.sleep(5)
        held = a.peak_rss() - before
        a.resume_reading()
        a.wait({"type": "agent_settled"}, since=since, deadline=60)
        updates = [r["assistantMessageEvent"] for r in a.records[since:] if r["type"] == "message_update"]
        assert sum(event["type"] == "text_delta" for event in updates) == 20_000
        assert held < 20 << 20 and a.peak_rss() - before < 20 << 20


def test_a_bash_whose_client_stops_reading_costs_no_memory(agent: Start) -> None:
    with agent() as a:
        a.request("bash", command="seq 20000")
        before = a.peak_rss()
        a.stop_reading()
        a.send("bash", id="b", command="seq 8000000")
        time.sleep(2)
        held = a.peak_rss() - before
        a.send("abort_bash", requestId="b")
        a.resume_reading()
        assert a.wait({"type": "response", "id": "b"}, deadline=40)["data"]["cancelled"] is True
        assert held < 20 << 20


def test_a_client_that_never_reads_again_does_not_stop_the_end(agent: Start) -> None:
    a = agent()
    a.prompt("SAY one")
    a.stop_reading()
    a.send("prompt", message="TOKENS 20000")
    a.send("bash", id="b", command="echo; exec sleep 300")
    a.terminate(signal.SIGTERM)
    assert a.wait_exit() == 143
    assert a.orphans(deadline=5) == []


@pytest.mark.parametrize("phase", ["idle", "streaming", "tool", "bash"])
def test_a_client_that_closes_stdout_ends_the_program_with_1(agent: Start, server: ModelServer, phase: str) -> None:
    a = agent()
    enter(a, server, phase)
    a.close_stdout()
    a.send("get_state")
    assert a.wait_exit() == 1
    assert a.orphans(deadline=5) == []


# ---- the end in each phase ---------------------------------------------------------------------------------------

FAMILY = (
    "trap '' TERM INT HUP; sleep 301 & setsid sleep 302 & (trap '' TERM INT HUP; sleep 303; true) & "
    "echo up; while :; do sleep 304; done"
)


def enter(a: Agent, server: ModelServer, phase: str) -> None:
    """Bring the program into the phase."""
    since = a.cursor
    if phase == "idle":
        a.request("get_state")
    elif phase == "connecting":
        server.script(hang_before_head())
        a.request("prompt", message="go")
        server.wait_for_requests(1)
    elif phase == "streaming":
        server.script(gate("half "))
        a.request("prompt", message="go")
        a.wait({"type": "message_update", "assistantMessageEvent.type": "text_delta"}, since=since)
    elif phase == "tool":
        server.script(tool("bash", {"command": FAMILY}, id="t1"))
        a.request("prompt", message="go")
        a.wait({"type": "tool_execution_update"}, since=since)
    elif phase == "bash":
        a.send("bash", id="b", command=FAMILY)
        a.wait({"type": "bash_execution_update", "id": "b"}, since=since)
    elif phase == "replacement":
        enter(a, server, "streaming")
        a.send("bash", id="b", command=FAMILY)
        a.wait({"type": "bash_execution_update", "id": "b"}, since=since)
        a.send("new_session", id="n")
    else:
        raise AssertionError(phase)


@pytest.mark.parametrize("how", list(ENDS))
@pytest.mark.parametrize("phase", ["idle", "connecting", "streaming", "tool", "bash", "replacement"])
def test_the_end_in_each_phase_is_orderly_and_leaves_no_process(
    agent: Start, server: ModelServer, phase: str, how: str
) -> None:
    a = agent()
    path = session_path(a)
    enter(a, server, phase)
    assert end(a, how) == ENDS[how]
    assert a.orphans(deadline=5) == []
    kinds = [record["type"] for record in a.records]
    assert kinds.count("agent_start") == kinds.count("agent_end") == kinds.count("agent_settled")
    if phase in ("connecting", "streaming", "tool", "replacement"):
        told = told_messages(a)
        assert told[-1]["stopReason"] == "aborted"
        kept = [message for message in stored_messages(path) if message["role"] != "bashExecution"]
        assert kept == told
    if phase in ("bash", "replacement"):
        assert [response["data"]["cancelled"] for response in a.responses("b")] == [True]
        kept = [message for message in stored_messages(path) if message["role"] == "bashExecution"]
        assert [(message["output"], message["cancelled"]) for message in kept] == [("up\n", True)]
    if phase == "replacement":
        assert len(a.responses("n")) == 1
    assert a.stderr == ""


@pytest.mark.parametrize("how", ["EOF", "SIGTERM"])
def test_what_an_answered_bash_left_in_the_background_ends_with_the_program(agent: Start, how: str) -> None:
    a = agent()
    command = "trap '' TERM HUP; sleep 305 >/dev/null 2>&1 & setsid sleep 306 >/dev/null 2>&1 & echo done"
    assert a.request("bash", command=command)["data"]["output"] == "done\n"
    assert end(a, how) == ENDS[how]
    assert a.orphans(deadline=5) == []


def test_a_second_signal_ends_at_once(agent: Start, server: ModelServer) -> None:
    a = agent()
    enter(a, server, "bash")
    a.stop_reading()
    a.send("prompt", message="TOKENS 20000")
    a.terminate(signal.SIGHUP)
    a.terminate(signal.SIGTERM)
    assert a.wait_exit() in (143, 129)
    assert a.orphans(deadline=5) == []


def test_commands_in_the_last_write_are_answered_before_the_end(agent: Start) -> None:
    a = agent()
    path = session_path(a)
    names = [line("set_session_name", id=f"n{n}", name=f"name {n}") for n in range(20)]
    a.send_raw(line("new_session", id="new") + b"".join(names) + line("get_state", id="s")[:-1])
    a.close_stdin()
    assert a.wait_exit() == 0
    order = [record["id"] for record in a.records if record.get("command") in ("new_session", "set_session_name")]
    assert order == ["new", *(f"n{n}" for n in range(20))]
    state = a.responses("s")[0]["data"]
    assert state["sessionName"] == "name 19" and state["sessionFile"] != str(path)


# ---- a full disk -------------------------------------------------------------------------------------------------


def test_a_full_disk_is_told_and_the_file_stays_whole(agent: Start, server: ModelServer) -> None:
    with agent() as a:
        a.prompt("SAY one")
        path = session_path(a)
        size = path.stat().st_size
        _limit_files(a, size + 600)  # the next prompt fits, its long answer does not
        server.script(text("long " * 2000), text("back"))
        a.prompt("go")
        last = told_messages(a)[-1]
        assert (last["role"], last["stopReason"]) == ("assistant", "error") and str(path) in last["errorMessage"]
        assert "Session append failed" in a.wait_stderr("Session append failed")
        lost = a.request("bash", command="echo PRECIOUS; seq 300")
        assert lost["success"] is False and "PRECIOUS" in lost["error"] and str(path) in lost["error"]
        assert a.request("set_session_name", name="n" * 900)["success"] is False
        assert a.request("get_state")["data"].get("sessionName") is None
        _limit_files(a, resource.RLIM_INFINITY)
        a.prompt("again")
        assert a.request("get_last_assistant_text")["data"]["text"] == "back"
        kept = [message["role"] for message in stored_messages(path)]
    assert kept == ["user", "assistant", "user", "user", "assistant"]
    with agent("--session", str(path)) as again:
        roles = [message["role"] for message in again.request("get_messages")["data"]["messages"]]
        assert roles == kept


def test_a_first_message_that_cannot_be_written_is_told(agent: Start) -> None:
    with agent() as a:
        path = session_path(a)
        _limit_files(a, 10)
        a.prompt("SAY one")
        last = told_messages(a)[-1]
        assert last["stopReason"] == "error" and str(path) in last["errorMessage"]
        assert not path.exists()
        refused = a.request("bash", command="echo PRECIOUS")
        assert refused["success"] is False and "PRECIOUS" in refused["error"]
        _limit_files(a, resource.RLIM_INFINITY)
        a.prompt("SAY two")
        assert [message["role"] for message in stored_messages(path)] == ["user", "assistant"]


def _limit_files(a: Agent, size: int) -> None:
    """No file that the program writes may grow beyond `size`: its writes fail as on a full disk."""
    resource.prlimit(a.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def test_a_session_folder_that_cannot_be_made_is_one_line_and_exit_1(agent: Start, home: Any) -> None:
    in_the_way = home.cwd / "file"
    in_the_way.write_text("x")
    a = agent("--session-dir", str(in_the_way / "sessions"))
    assert a.wait_exit() == 1
    assert a.records == [] and str(in_the_way) in a.stderr and a.stderr.count("\n") == 1


def test_a_session_file_that_was_removed_is_told_not_written_into_the_void(agent: Start) -> None:
    with agent() as a:
        a.prompt("SAY one")
        session_path(a).unlink()
        a.prompt("SAY two")
        assert told_messages(a)[-1]["stopReason"] == "error"
        assert a.request("bash", command="echo PRECIOUS")["success"] is False


# ---- two processes on one file -----------------------------------------------------------------------------------


@pytest.mark.shows("switch_session", error="Session file is in use by another process: …")
def test_a_second_process_on_a_live_session_is_refused_until_the_first_is_gone(agent: Start) -> None:
    first = agent()
    first.prompt("SAY one")
    path = session_path(first)
    second = agent("--session", str(path))
    assert second.wait_exit() == 1
    assert str(path) in second.stderr and second.stderr.count("\n") == 1 and second.records == []
    with agent() as third:
        before = third.request("get_state")["data"]
        refused = third.request("switch_session", sessionPath=str(path))
        assert refused["success"] is False and str(path) in refused["error"]
        assert third.request("get_state")["data"] == before
        first.prompt("SAY two")
        first.terminate(signal.SIGKILL)
        first.wait_exit()
        assert third.request("switch_session", sessionPath=str(path))["success"]
        assert len(third.request("get_messages")["data"]["messages"]) == 4


def test_a_child_that_lives_on_does_not_keep_the_session_locked(agent: Start) -> None:
    first = agent()
    first.prompt("SAY one")
    path = session_path(first)
    first.send("bash", id="b", command="echo up; exec sleep 307")
    first.wait({"type": "bash_execution_update", "id": "b"})
    first.terminate(signal.SIGKILL)
    first.wait_exit()
    left = first.orphans("sleep 307")
    try:
        with agent("--session", str(path)) as second:
            assert second.request("get_state")["success"]
    finally:
        for process in left:
            os.kill(process.pid, signal.SIGKILL)
