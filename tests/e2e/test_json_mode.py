"""`--mode json` as a script meets it: the whole program, one run, events on stdout."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from conformance.model_server import ModelServer, error, gate, text, tool
from conformance.schema_check import check_of

Start = Callable[..., "subprocess.Popen[bytes]"]
Run = Callable[..., tuple[int, str, str]]
Record = dict[str, Any]


def records(out: str) -> list[Record]:
    return [json.loads(line) for line in out.splitlines()]


def kinds(out: str) -> list[str]:
    return [record["type"] for record in records(out)]


def updates(out: str) -> list[Record]:
    return [record for record in records(out) if record["type"] == "message_update"]


def deltas(out: str) -> str:
    events = [record["assistantMessageEvent"] for record in updates(out)]
    return "".join(event["delta"] for event in events if event["type"] == "text_delta")


def test_the_session_header_comes_first_and_the_end_of_everything_last(
    run: Run, server: ModelServer, home: Any
) -> None:
    server.script(text("Hello"))
    code, out, err = run("--mode", "json", "hi")
    assert (code, err) == (0, "")
    header, *events = records(out)
    assert list(header) == ["type", "version", "id", "timestamp", "cwd"]
    assert (header["type"], header["version"], header["cwd"]) == ("session", 3, str(home.cwd))
    (stored,) = home.session_files()
    assert json.loads(stored.read_text().splitlines()[0])["id"] == header["id"]
    told = [event["type"] for event in events if event["type"] != "message_update"]
    message = ["message_start", "message_end"]
    assert told == ["agent_start", "turn_start", *message, *message, "turn_end", "agent_end", "agent_settled"]


def test_an_update_holds_the_message_so_far_and_the_deltas_add_up(run: Run, server: ModelServer) -> None:
    server.script(text("one two three"))
    _, out, _ = run("--mode", "json", "hi")
    for update in updates(out):
        assert list(update) == ["type", "message", "assistantMessageEvent"]
        assert update["message"]["role"] == "assistant"
    last = updates(out)[-1]
    assert last["assistantMessageEvent"] == {"type": "text_end", "contentIndex": 0, "content": "one two three"}
    assert last["message"]["content"] == [{"type": "text", "text": "one two three"}]
    assert deltas(out) == "one two three"


def test_many_deltas_are_few_updates(run: Run, server: ModelServer) -> None:
    answer = "word " * 2000
    server.script(text(answer))
    _, out, _ = run("--mode", "json", "hi")
    assert deltas(out) == answer
    assert len(updates(out)) < 200


def test_json_deltas_gives_every_delta_and_no_message_so_far(run: Run, server: ModelServer) -> None:
    server.script(text("one two three"))
    code, out, _ = run("--mode", "json", "--json-deltas", "hi")
    assert code == 0
    assert deltas(out) == "one two three"
    assert [list(update) for update in updates(out)] == [["type", "usage", "assistantMessageEvent"]] * len(updates(out))
    assert len(updates(out)) == 5  # start, a delta for each word, end


def test_with_json_deltas_every_line_is_as_the_schema_says(run: Run, server: ModelServer) -> None:
    server.script(tool("ls", {}), text("Hello"))
    _, out, _ = run("--mode", "json", "--json-deltas", "hi")
    header, *events = records(out)
    assert check_of("SessionHeader")(header) == []
    assert [faults for event in events if (faults := check_of("Event")(event))] == []


def test_a_tool_runs_and_its_events_stand_between_the_messages(run: Run, server: ModelServer) -> None:
    server.script(tool("bash", {"command": "echo from-a-tool"}), text("done"))
    code, out, _ = run("--mode", "json", "go")
    assert code == 0
    told = kinds(out)
    assert told.index("tool_execution_start") < told.index("tool_execution_end") < told.index("agent_end")
    assert any("from-a-tool" in json.dumps(record) for record in records(out) if record["type"] == "turn_end")


def test_a_failed_last_answer_is_exit_code_1_and_nothing_on_stderr(run: Run, server: ModelServer) -> None:
    server.script(error(400, message="no such thing"))
    code, out, err = run("--mode", "json", "hi")
    assert (code, err) == (1, "")
    (failed,) = [record["message"] for record in records(out) if record["type"] == "turn_end"]
    assert failed["stopReason"] == "error"


def test_a_retry_is_part_of_the_run(run: Run, server: ModelServer) -> None:
    server.script(error(529), text("better"))
    code, out, _ = run("--mode", "json", "hi")
    assert code == 0
    assert "auto_retry_start" in kinds(out)
    assert kinds(out).count("agent_settled") == 1


def test_several_messages_are_several_runs_of_one_session(run: Run, server: ModelServer) -> None:
    server.script(text("first"), text("second"))
    code, out, _ = run("--mode", "json", "one", "two")
    assert (code, kinds(out).count("session"), kinds(out).count("agent_settled")) == (0, 1, 2)
    assert len(server.requests[1].body["messages"]) == 3


def test_a_refused_prompt_is_told_on_stderr_and_stdout_is_empty(run: Run, home: Any) -> None:
    code, out, err = run("--mode", "json", "hi", model="openai/gpt-5.2")
    assert (code, out) == (1, "")
    assert "No API key found for openai" in err


def test_an_unsupported_default_provider_is_told_on_stderr_before_anything_is_sent(
    run: Run, home: Any, server: ModelServer
) -> None:
    home.write_settings({"defaultProvider": "gone", "defaultModel": "m"})
    for mode in (["--mode", "json"], ["-p"]):
        code, out, err = run(*mode, "hi", model=None)
        assert (code, out) == (1, "")
        assert "Configured default model is unavailable or unsupported." in err
    assert server.requests == []


def test_help_leaves_stdout_empty(run: Run) -> None:
    code, out, err = run("--mode", "json", "--help", model=None)
    assert (code, out) == (0, "")
    assert "--json-deltas" in err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)])
def test_a_signal_ends_the_run_journals_it_and_has_its_own_code(
    one_shot: Start, server: ModelServer, home: Any, number: int, code: int
) -> None:
    server.script(gate("half an answer"))
    child = one_shot("--mode", "json", "--json-deltas", "hi")
    assert child.stdin and child.stdout
    child.stdin.close()
    assert any(b"half" in line for line in child.stdout)
    child.send_signal(number)
    rest = child.stdout.read().decode()
    assert child.wait(20) == code
    assert kinds(rest)[-1] == "agent_settled"
    (stored,) = home.session_files()
    assert '"stopReason":"aborted"' in stored.read_text()


def test_a_reader_that_leaves_ends_the_run(one_shot: Start, server: ModelServer) -> None:
    server.script(text("word " * 50_000))
    child = one_shot("--mode", "json", "--json-deltas", "hi")
    assert child.stdin and child.stdout
    child.stdin.close()
    child.stdout.readline()
    child.stdout.close()
    assert child.wait(20) == 1
