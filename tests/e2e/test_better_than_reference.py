"""The faults that the protocol's first program is known for, each with the outcome that a client meets here."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from conformance.driver import Agent, line
from conformance.model_server import ModelServer, gate
from conformance.schema_check import check_line

Start = Callable[..., Agent]
Record = dict[str, Any]

HEADER = '{"type":"session","version":3,"id":"s-1","timestamp":"2026-01-01T00:00:00.000Z","cwd":"%s"}'


def entries(path: Path) -> list[Record]:
    return [json.loads(text) for text in path.read_bytes().split(b"\n") if text]


def messages(path: Path) -> list[Record]:
    return [entry["message"] for entry in entries(path) if entry["type"] == "message"]


def bash_outputs(path: Path) -> list[str]:
    return [message["output"] for message in messages(path) if message["role"] == "bashExecution"]


def held(home: Any, after: str) -> tuple[str, Callable[[], None]]:
    """A shell command that says `up`, waits until it is let go, and then runs `after`; and how to let it go."""
    fifo = home.cwd / "hold"
    os.mkfifo(fifo)
    return f"echo up; read go < {fifo}; {after}", lambda: _write(fifo)


def _write(fifo: Path) -> None:
    with open(fifo, "w") as end:
        end.write("go\n")


def kinds(records: list[Record]) -> list[str]:
    return [record["type"] if record["type"] != "response" else record["command"] for record in records]


def session_path(agent: Agent) -> Path:
    return Path(agent.request("get_state")["data"]["sessionFile"])


def user_texts(body: Record) -> list[str]:
    said = [message for message in body["messages"] if message["role"] == "user"]
    return [block["text"] for message in said for block in message["content"] if block["type"] == "text"]


def write_session(home: Any, *lines: str, name: str = "old.jsonl", cwd: str | None = None, end: str = "\n") -> Path:
    path: Path = home.sessions / name
    path.write_text("\n".join([HEADER % (cwd or home.cwd), *lines]) + end)
    return path


def user(id_: str, parent: str | None, text: str) -> str:
    said = {"role": "user", "content": [{"type": "text", "text": text}], "timestamp": 1}
    entry = {"type": "message", "id": id_, "parentId": parent, "timestamp": "2026-01-01T00:00:01.000Z", "message": said}
    return json.dumps(entry, separators=(",", ":"))


def assistant(id_: str, parent: str, text: str) -> str:
    usage = {"input": 1, "output": 1, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 2}
    said = {
        "role": "assistant",
        "content": [{"type": "text", "text": text}],
        "api": "anthropic-messages",
        "provider": "fa",
        "model": "m",
        "usage": {**usage, "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}},
        "stopReason": "stop",
        "timestamp": 2,
    }
    entry = {"type": "message", "id": id_, "parentId": parent, "timestamp": "2026-01-01T00:00:02.000Z", "message": said}
    return json.dumps(entry, separators=(",", ":"))


# ---- prompts -----------------------------------------------------------------------------------------------------


@pytest.mark.shows(
    "prompt",
    error="Agent is already processing. Specify streamingBehavior ('steer' or 'followUp') to queue the message.",
)
def test_of_two_prompts_in_one_write_one_starts_and_the_other_is_refused_as_busy(
    agent: Start, server: ModelServer
) -> None:
    with agent() as a:
        a.send_raw(line("prompt", id="1", message="SAY one") + line("prompt", id="2", message="SAY two"))
        a.wait({"type": "agent_settled"})
        first, second = a.responses("1"), a.responses("2")
        assert [first[0]["success"], second[0]["success"]] == [True, False]
        assert "already processing" in second[0]["error"] and "streamingBehavior" in second[0]["error"]
        assert [user_texts(request.body) for request in server.requests] == [["SAY one"]]


@pytest.mark.parametrize("behaviour", ["steer", "followUp"])
@pytest.mark.shows("prompt", events=["queue_update"])
def test_of_two_prompts_in_one_write_the_second_is_queued_as_it_asks(
    agent: Start, server: ModelServer, behaviour: str
) -> None:
    with agent() as a:
        second = line("prompt", id="2", message="SAY two", streamingBehavior=behaviour)
        a.send_raw(line("prompt", id="1", message="SAY one") + second)
        a.wait({"type": "agent_settled"})
        assert [a.responses(id_)[0]["success"] for id_ in ("1", "2")] == [True, True]
        assert user_texts(server.requests[-1].body) == ["SAY one", "SAY two"]
        assert kinds(a.records).count("agent_settled") == 1


def test_an_abort_in_the_same_write_as_its_prompt_reaches_it(agent: Start) -> None:
    with agent() as a:
        a.send_raw(line("prompt", id="1", message="HANG never ends") + line("abort", id="2"))
        assert a.wait({"type": "response", "id": "2"})["success"]
        a.wait({"type": "agent_settled"})
        assert a.wait({"type": "message_end", "message.role": "assistant"})["message"]["stopReason"] == "aborted"


def test_an_abort_bash_in_the_same_write_as_its_target_reaches_it(agent: Start) -> None:
    with agent() as a:
        a.send_raw(line("bash", id="b", command="sleep 301.5") + line("abort_bash", id="x", requestId="b"))
        assert a.wait({"type": "response", "id": "b"})["data"]["cancelled"] is True
        assert a.orphans("sleep 301.5", deadline=5) == []


def test_of_two_live_bash_requests_with_one_id_both_are_cancelled(agent: Start) -> None:
    with agent() as a:
        a.send_raw(2 * line("bash", id="twin", command="echo up; exec sleep 301.5"))
        a.wait(lambda _: kinds(a.records).count("bash_execution_update") == 2)
        a.request("abort_bash", requestId="twin")
        a.wait(lambda _: len(a.responses("twin")) == 2)
        assert all(response["data"]["cancelled"] for response in a.responses("twin"))
        assert a.orphans("sleep 301.5", deadline=5) == []


def test_the_session_is_busy_until_it_has_settled(agent: Start) -> None:
    """The waits for a retry and for a compaction come later; the rule that they rest on is here."""
    with agent() as a:
        a.send_raw(line("prompt", id="1", message="HANG half") + line("get_state", id="s"))
        assert a.wait({"type": "response", "id": "s"})["data"]["isStreaming"] is True
        a.wait({"type": "message_update"})
        a.send_raw(line("abort", id="2") + line("prompt", id="3", message="SAY no"))
        assert a.wait({"type": "response", "id": "3"})["success"] is False
        a.wait({"type": "agent_settled"})
        assert a.request("get_state")["data"]["isStreaming"] is False
        assert kinds(a.prompt("SAY yes"))[-1] == "agent_settled"


# ---- shell requests and replacement ------------------------------------------------------------------------------


def test_a_bash_that_ends_while_the_agent_streams_is_recorded_before_new_session(
    agent: Start, server: ModelServer
) -> None:
    server.script(gate("half "))
    with agent() as a:
        a.request("prompt", message="go")
        a.wait({"type": "message_update", "assistantMessageEvent.type": "text_delta"})
        path = session_path(a)
        assert a.request("bash", command="echo KEPT")["data"]["output"] == "KEPT\n"
        assert a.request("new_session")["success"]
        assert bash_outputs(path) == ["KEPT\n"]


def test_a_bash_that_ends_while_the_agent_streams_is_recorded_at_eof(agent: Start, server: ModelServer) -> None:
    server.script(gate("half "))
    a = agent()
    a.request("prompt", message="go")
    a.wait({"type": "message_update", "assistantMessageEvent.type": "text_delta"})
    path = session_path(a)
    a.request("bash", command="echo KEPT")
    a.close_stdin()
    assert a.wait_exit() == 0
    assert bash_outputs(path) == ["KEPT\n"]
    assert [message["stopReason"] for message in messages(path) if message["role"] == "assistant"] == ["aborted"]


def test_switching_away_and_back_while_a_bash_runs_finds_the_same_session(agent: Start, home: Any) -> None:
    command, let_go = held(home, "echo LATE")
    with agent() as a:
        a.prompt("SAY one")
        path = session_path(a)
        a.send("bash", id="b", command=command)
        a.wait({"type": "bash_execution_update", "id": "b"})
        assert a.request("new_session")["success"]
        assert a.request("switch_session", sessionPath=str(path))["success"]
        a.prompt("SAY two")
        let_go()
        assert a.wait({"type": "response", "id": "b"})["data"]["output"] == "up\nLATE\n"
        a.prompt("SAY three")
        stored = entries(path)[1:]
        roles = [message["role"] for message in a.request("get_messages")["data"]["messages"]]
    assert roles == ["user", "assistant", "user", "assistant", "bashExecution", "user", "assistant"]
    assert all(entry["parentId"] == before["id"] for before, entry in pairwise(stored))


def test_the_bash_result_of_a_session_that_was_never_saved_is_kept(agent: Start) -> None:
    with agent() as a:
        path = session_path(a)
        a.request("bash", command="echo FIRST")
        assert bash_outputs(path) == ["FIRST\n"]
        a.request("new_session")
        assert bash_outputs(path) == ["FIRST\n"]


@pytest.mark.shows("new_session", events=["queue_update", "agent_end", "agent_settled"])
def test_a_replacement_tells_of_the_queue_that_it_empties(agent: Start) -> None:
    with agent() as a:
        a.request("prompt", message="HANG half")
        a.wait({"type": "message_update"})
        a.request("follow_up", message="later")
        a.request("steer", message="soon")
        since = a.cursor
        assert a.request("new_session")["success"]
        seen = a.records[since:]
        assert seen[0] == {"type": "queue_update", "steering": [], "followUp": []}
        assert [kind for kind in kinds(seen) if kind != "message_update"] == [
            "queue_update", "message_end", "turn_end", "agent_end", "agent_settled", "new_session",
        ]  # fmt: skip
        assert a.request("get_state")["data"]["pendingMessageCount"] == 0
        a.none_since({"type": "agent_start"}, since)


@pytest.mark.shows("switch_session", error="Stored session working directory does not exist: …")
def test_a_session_whose_successor_cannot_stand_stays_current(agent: Start, home: Any) -> None:
    gone = write_session(home, cwd="/no/such/folder")
    not_a_session = home.sessions / "notes.jsonl"
    not_a_session.write_text("keep me\n")
    with agent() as a:
        a.prompt("SAY one")
        before = a.request("get_state")["data"]
        refused = a.request("switch_session", sessionPath=str(gone))
        assert "Stored session working directory does not exist: /no/such/folder" in refused["error"]
        refused = a.request("switch_session", sessionPath=str(not_a_session))
        assert refused["error"] == f"Session file is not a valid atomic session: {not_a_session}"
        assert a.request("get_state")["data"] == before
        a.prompt("SAY two")
        assert a.request("get_last_assistant_text")["data"]["text"] == "two"
    assert not_a_session.read_text() == "keep me\n"


def test_no_session_holds_after_new_session(agent: Start, home: Any) -> None:
    with agent(session=False) as a:
        a.prompt("SAY one")
        a.request("new_session")
        a.prompt("SAY two")
        a.request("bash", command="echo three")
        assert "sessionFile" not in a.request("get_state")["data"]
    assert list(home.path.parent.rglob("*.jsonl")) == []


def test_eof_journals_the_partial_turn_and_tells_its_end(agent: Start) -> None:
    a = agent()
    a.request("prompt", message="HANG half an answer")
    a.wait({"type": "message_update", "assistantMessageEvent.type": "text_delta"})
    path = session_path(a)
    a.close_stdin()
    assert a.wait_exit() == 0
    assert kinds(a.records)[-4:] == ["message_end", "turn_end", "agent_end", "agent_settled"]
    last = messages(path)[-1]
    assert (last["stopReason"], last["content"][0]["text"].split()[0]) == ("aborted", "half")


# ---- files -------------------------------------------------------------------------------------------------------


def test_a_fork_across_a_label_keeps_the_history_before_it(agent: Start) -> None:
    with agent() as a:
        a.prompt("SAY one")
        first = a.request("get_fork_messages")["data"]["messages"][0]["entryId"]
        a.request("set_label", entryId=first, label="start")
        a.prompt("SAY two")
        a.prompt("SAY three")
        third = a.request("get_fork_messages")["data"]["messages"][2]["entryId"]
        assert a.request("fork", entryId=third)["data"] == {"text": "SAY three", "cancelled": False}
        told = a.request("get_messages")["data"]["messages"]
        assert [message["role"] for message in told] == ["user", "assistant"] * 2
        labelled = [node for node in _nodes(a.request("get_tree")["data"]["tree"]) if node.get("label")]
        assert [(node["entry"]["id"], node["label"]) for node in labelled] == [(first, "start")]


def _nodes(tree: list[Record]) -> list[Record]:
    return [found for node in tree for found in (node, *_nodes(node["children"]))]


def test_reopening_a_file_without_an_assistant_message_does_not_double_its_header(agent: Start, home: Any) -> None:
    path = write_session(home, user("a1", None, "hello"))
    with agent("--session", str(path)) as a:
        a.prompt("SAY one")
    stored = entries(path)
    assert [entry["type"] for entry in stored].count("session") == 1
    assert len({entry["id"] for entry in stored}) == len(stored)


def test_a_file_without_a_final_newline_gets_no_record_glued_on(agent: Start, home: Any) -> None:
    path = write_session(home, user("a1", None, "hello"), assistant("a2", "a1", "world"), end="")
    with agent("--session", str(path)) as a:
        a.prompt("SAY more")
    assert [message["role"] for message in messages(path)] == ["user", "assistant"] * 2


def test_one_bad_model_entry_hides_no_other_model(agent: Start, home: Any) -> None:
    content = json.loads((home.agent_dir / "models.json").read_text())
    content["providers"]["fa"]["models"].insert(0, {"name": "no id", "contextWindow": "wide"})
    content["providers"]["broken"] = {"models": 7}
    home.write_models(content)
    with agent() as a:
        told = {(model["provider"], model["id"]) for model in a.request("get_available_models")["data"]["models"]}
        assert {("fa", "m"), ("fa", "m2"), ("fo", "m"), ("fr", "m")} <= told
        assert "models.json" in a.wait_stderr("models.json")


# ---- bytes and validation ----------------------------------------------------------------------------------------


def test_an_escape_sequence_cut_at_a_chunk_border_does_not_leak(agent: Start, home: Any) -> None:
    command, let_go = held(home, r"printf '1mred\033[0m\n'")
    with agent() as a:
        a.send("bash", id="b", command=r"printf 'x\033[3'; " + command.replace("echo up;", "printf >&2 'up\\n';"))
        a.wait({"type": "bash_execution_update", "channel": "stdout"})
        let_go()
        assert a.wait({"type": "response", "id": "b"})["data"]["output"].replace("up\n", "") == "xred\n"
        deltas = [record["delta"] for record in a.records if record["type"] == "bash_execution_update"]
        assert not any("\x1b" in delta or "31m" in delta for delta in deltas)


@pytest.mark.parametrize(
    ("record", "field"),
    [
        ({"type": "bash"}, "command"),
        ({"type": "bash", "command": 7}, "command"),
        ({"type": "prompt"}, "message"),
        ({"type": "prompt", "message": "x", "streamingBehavior": "never"}, "streamingBehavior"),
        ({"type": "set_session_name"}, "name"),
        ({"type": "set_steering_mode", "mode": "some"}, "mode"),
        ({"type": "set_model", "provider": "fa"}, "modelId"),
        ({"type": "fork", "entryId": ["x"]}, "entryId"),
    ],
)
def test_a_bad_field_is_refused_by_name_and_the_id_is_echoed(
    shared: Agent, record: Record, field: str, ids: Callable[[], str]
) -> None:
    id_ = ids()
    shared.send_raw(json.dumps({**record, "id": id_}).encode() + b"\n")
    response = shared.wait({"type": "response", "id": id_})
    assert response["success"] is False and response["command"] == record["type"]
    assert field in response["error"]
    assert "\n" not in response["error"] and "Traceback" not in response["error"]


def test_nested_brackets_or_a_bare_null_are_refused_and_the_process_lives(shared: Agent) -> None:
    deep = b"[" * 100_000 + b"]" * 100_000
    field = b'{"type":"get_state","id":"deep","x":' + b'{"a":' * 50_000 + b"1" + b"}" * 50_000 + b"}"
    since = shared.cursor
    shared.send_raw(b"null\n" + deep + b"\n" + field + b"\n" + b"[" * 100_000 + b"\n")
    assert shared.request("get_state")["success"]
    seen = [record for record in shared.records[since:] if record["type"] == "response"]
    assert len(seen) == 5 and [record["success"] for record in seen[:2]] == [False, False]
    assert seen[3]["success"] is False


def test_queue_entries_are_known_by_serial_not_by_text(agent: Start, server: ModelServer) -> None:
    with agent() as a:
        a.request("steer", message="SAY same")
        a.request("steer", message="SAY other")
        seen = a.prompt("SAY same")
        updates = [record["steering"] for record in seen if record["type"] == "queue_update"]
        assert updates == [["SAY other"], []]
        assert user_texts(server.requests[0].body) == ["SAY same", "SAY same"]
        assert user_texts(server.requests[-1].body) == ["SAY same", "SAY same", "SAY other"]


def test_a_queued_message_that_is_only_an_image_leaves_the_list(agent: Start) -> None:
    image = {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}
    with agent() as a:
        a.request("steer", message="", images=[image])
        seen = a.prompt("SAY ok")
        assert [record["steering"] for record in seen if record["type"] == "queue_update"] == [[]]
        assert a.request("get_state")["data"]["pendingMessageCount"] == 0


# ---- the end -----------------------------------------------------------------------------------------------------

STUBBORN = "trap '' TERM INT HUP; echo up; while :; do sleep 61; done"


@pytest.mark.parametrize("end", ["SIGINT", "closed stdout"])
def test_sigint_or_a_closed_stdout_leaves_no_child(agent: Start, end: str) -> None:
    a = agent()
    a.send("bash", id="b", command=STUBBORN)
    a.wait({"type": "bash_execution_update", "id": "b"})
    if end == "SIGINT":
        a.terminate(signal.SIGINT)
        assert a.wait_exit() == 130
        assert a.responses("b")[0]["data"]["cancelled"] is True
    else:
        a.close_stdout()
        a.send("get_state")
        assert a.wait_exit() == 1
    assert a.orphans(deadline=5) == []


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One process for the tests that only send records which change nothing."""
    import sys

    command = [str(Path(sys.executable).with_name("atomic")), "--mode", "rpc", "--no-session"]
    home = tmp_path_factory.mktemp("home")
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "ATOMIC_CODING_AGENT_DIR": str(home / "agent")}
    with Agent(command, cwd=home, env=env, check=check_line) as running:
        yield running


@pytest.fixture(scope="module")
def ids() -> Callable[[], str]:
    numbers = iter(range(10_000))
    return lambda: f"id-{next(numbers)}"
