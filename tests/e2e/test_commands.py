"""Every command that works, as a client meets it; those that come later; bad input; and the flags about sessions."""

from __future__ import annotations

import base64
import io
import json
import os
import re
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from conformance.driver import Agent, line
from conformance.model_server import ModelServer, gate, text, tool

Start = Callable[..., Agent]
Record = dict[str, Any]


def data(a: Agent, type_: str, /, **fields: Any) -> Record:
    response = a.request(type_, **fields)
    assert response["success"], response
    found: Record = response.get("data", {})
    return found


def refusal(a: Agent, type_: str, /, **fields: Any) -> str:
    response = a.request(type_, **fields)
    assert not response["success"] and response["command"] == type_, response
    error: str = response["error"]
    return error


def session_path(a: Agent) -> Path:
    return Path(data(a, "get_state")["sessionFile"])


def entries(path: Path) -> list[Record]:
    return [json.loads(text_) for text_ in path.read_bytes().split(b"\n") if text_]


def roles(a: Agent) -> list[str]:
    return [message["role"] for message in data(a, "get_messages")["messages"]]


def user_entries(a: Agent) -> list[str]:
    return [message["entryId"] for message in data(a, "get_fork_messages")["messages"]]


def first_answer(stored: list[Record]) -> str:
    found: str = next(entry["id"] for entry in stored if entry.get("message", {}).get("role") == "assistant")
    return found


def nodes(tree: list[Record]) -> list[Record]:
    return [found for node in tree for found in (node, *nodes(node["children"]))]


def settings(home: Any) -> Record:
    read: Record = json.loads((home.agent_dir / "settings.json").read_text())
    return read


# ---- state -------------------------------------------------------------------------------------------------------


@pytest.mark.shows("get_state", "get_last_assistant_text")
def test_get_state_tells_everything_about_a_fresh_session(agent: Start, home: Any) -> None:
    with agent() as a:
        state = data(a, "get_state")
        assert (state["model"]["provider"], state["model"]["id"], state["thinkingLevel"]) == ("fa", "m", "off")
        flags = ("isStreaming", "isCompacting", "queuedMessagesPaused")
        assert [state[flag] for flag in flags] == [False, False, False]
        assert (state["steeringMode"], state["followUpMode"]) == ("one-at-a-time", "one-at-a-time")
        assert (state["messageCount"], state["pendingMessageCount"], state["resourceOverlaps"]) == (0, 0, [])
        assert state["autoCompactionEnabled"] is True and "sessionName" not in state
        assert Path(state["sessionFile"]).parent == home.sessions and not Path(state["sessionFile"]).exists()
        assert state["sessionId"] in state["sessionFile"]
        assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", state["sessionId"])
        a.prompt("SAY hi")
        assert data(a, "get_state")["messageCount"] == 2 and session_path(a).exists()
        assert data(a, "get_last_assistant_text") == {"text": "hi"}


@pytest.mark.shows("get_messages", "get_fork_messages")
def test_a_session_without_an_answer_has_no_last_text(agent: Start) -> None:
    with agent() as a:
        assert data(a, "get_last_assistant_text") == {"text": None}
        assert data(a, "get_messages") == {"messages": []}
        assert data(a, "get_fork_messages") == {"messages": []}


@pytest.mark.shows("get_entries")
@pytest.mark.shows("get_entries", error="Entry not found: …")
def test_entries_come_in_the_order_of_the_file_and_from_a_cursor(agent: Start) -> None:
    with agent() as a:
        a.prompt("SAY one")
        a.prompt("SAY two")
        whole = data(a, "get_entries")
        assert whole["entries"] == entries(session_path(a))[1:]
        assert whole["leafId"] == whole["entries"][-1]["id"]
        since = whole["entries"][3]["id"]
        assert data(a, "get_entries", since=since)["entries"] == whole["entries"][4:]
        assert data(a, "get_entries", since=whole["leafId"])["entries"] == []
        assert refusal(a, "get_entries", since="nope") == "Entry not found: nope"


@pytest.mark.shows("get_tree", "set_label")
@pytest.mark.shows("set_label", error="Entry … not found")
def test_the_tree_shows_branches_and_labels(agent: Start) -> None:
    with agent() as a:
        a.prompt("SAY one")
        a.prompt("SAY two")
        first, second = user_entries(a)
        assert data(a, "navigate_tree", targetId=second) == {"cancelled": False, "editorText": "SAY two"}
        assert roles(a) == ["user", "assistant"]
        a.prompt("SAY other")
        assert data(a, "get_last_assistant_text")["text"] == "other"
        data(a, "set_label", entryId=first, label="begin")
        found = data(a, "get_tree")
        by_id = {node["entry"]["id"]: node for node in nodes(found["tree"])}
        assert by_id[first]["label"] == "begin" and by_id[first]["labelTimestamp"].endswith("Z")
        fork_point = by_id[second]["entry"]["parentId"]
        branches = by_id[fork_point]["children"]
        assert len(branches) == 2 and branches[0]["entry"]["id"] == second
        data(a, "set_label", entryId=first)
        assert not any("label" in node for node in nodes(data(a, "get_tree")["tree"]))
        assert refusal(a, "set_label", entryId="nope", label="x") == "Entry nope not found"


@pytest.mark.shows("navigate_tree")
@pytest.mark.shows("navigate_tree", error="Entry … not found")
@pytest.mark.shows("navigate_tree", error="Wait for the current response to finish before navigating the session tree.")
def test_navigate_tree(agent: Start, server: ModelServer) -> None:
    with agent() as a:
        a.prompt("SAY one")
        a.prompt("SAY two")
        leaf = data(a, "get_entries")["leafId"]
        assert data(a, "navigate_tree", targetId=leaf) == {"cancelled": False}
        answer = first_answer(data(a, "get_entries")["entries"])
        assert data(a, "navigate_tree", targetId=answer, options={"label": "here"}) == {"cancelled": False}
        assert roles(a) == ["user", "assistant"]
        labelled = [node["entry"]["id"] for node in nodes(data(a, "get_tree")["tree"]) if node.get("label") == "here"]
        assert labelled == [answer]
        assert refusal(a, "navigate_tree", targetId="nope") == "Entry nope not found"
        server.script(gate("half "))
        a.request("prompt", message="go")
        busy = "Wait for the current response to finish before navigating the session tree."
        assert refusal(a, "navigate_tree", targetId=leaf) == busy
        a.request("abort")


def test_going_back_before_the_first_message_starts_a_new_branch_at_the_root(agent: Start) -> None:
    with agent() as a:
        a.prompt("SAY one")
        first = user_entries(a)[0]
        assert data(a, "navigate_tree", targetId=first)["editorText"] == "SAY one"
        assert roles(a) == []
        a.prompt("SAY again")
        assert roles(a) == ["user", "assistant"] and len(user_entries(a)) == 2


@pytest.mark.shows("get_session_stats")
def test_stats_count_every_branch(agent: Start, server: ModelServer) -> None:
    server.script(tool("bash", {"command": "echo x"}, id="t1"), text("done"))
    with agent() as a:
        a.prompt("go")
        data(a, "bash", command="echo y")
        data(a, "navigate_tree", targetId=user_entries(a)[0])
        a.prompt("again")
        stats = data(a, "get_session_stats")
        names = ("userMessages", "assistantMessages", "toolCalls", "toolResults", "totalMessages")
        assert [stats[name] for name in names] == [2, 3, 1, 1, 7]
        tokens = stats["tokens"]
        assert tokens["total"] == sum(tokens[k] for k in ("input", "output", "cacheRead", "cacheWrite")) > 0
        assert stats["contextUsage"]["contextWindow"] == 200_000 and stats["contextUsage"]["tokens"] > 0
        assert stats["sessionFile"] == str(session_path(a)) and stats["sessionId"] == data(a, "get_state")["sessionId"]


@pytest.mark.shows("set_session_name", events=["session_info_changed"])
@pytest.mark.shows("set_session_name", error="Session name cannot be empty")
def test_names_are_trimmed_told_and_kept(agent: Start) -> None:
    with agent() as a:
        a.prompt("SAY one")
        since = a.cursor
        assert a.request("set_session_name", name="  my work \n")["success"]
        assert a.records[since] == {"type": "session_info_changed", "name": "my work"}
        assert data(a, "get_state")["sessionName"] == "my work"
        assert refusal(a, "set_session_name", name=" \t") == "Session name cannot be empty"
        path = session_path(a)
    with agent("--session", str(path)) as again:
        assert data(again, "get_state")["sessionName"] == "my work"


# ---- prompting ---------------------------------------------------------------------------------------------------


def test_images_reach_the_provider_and_stay_in_the_session(agent: Start, server: ModelServer) -> None:
    image = {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}
    with agent() as a:
        a.prompt("look", images=[image])
        sent = server.requests[0].body["messages"][-1]["content"]
        assert {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="} in [b.get("source") for b in sent]
        assert image in data(a, "get_messages")["messages"][0]["content"]
        assert "images" in refusal(a, "prompt", message="x", images=[{"type": "text", "text": "no"}])


@pytest.mark.shows("prompt", "steer", "follow_up", error='…: "images[…]" cannot be used: …')
def test_what_cannot_be_an_image_is_refused_and_stays_out_of_the_session(agent: Start) -> None:
    whole = {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}
    faults = (
        ({"data": ""}, "data must not be empty"),
        ({"data": "data:image/png;base64,iVBORw0KGgo="}, "data must be the base64 alone"),
        ({"data": "a b="}, "data must be base64 without line breaks or spaces"),
        ({"mimeType": "image/svg+xml"}, "mimeType must be one of image/png"),
    )
    with agent() as a:
        for command in ("prompt", "steer", "follow_up"):
            for wrong, text in faults:
                told = refusal(a, command, message="look", images=[whole, {**whole, **wrong}])
                assert told.startswith(f'{command}: "images[1]" cannot be used: {text}')
        assert data(a, "get_state")["pendingMessageCount"] == 0
        assert data(a, "get_messages")["messages"] == []


def wide_image() -> dict[str, str]:
    buffer = io.BytesIO()
    Image.new("RGB", (4000, 3000), "blue").save(buffer, "PNG")
    return {"type": "image", "data": base64.b64encode(buffer.getvalue()).decode(), "mimeType": "image/png"}


def sizes(body: Any) -> list[tuple[int, int]]:
    """Of all images in a request or a message, in order."""
    if isinstance(body, list):
        return [size for item in body for size in sizes(item)]
    if not isinstance(body, dict):
        return []
    if isinstance(told := body.get("data"), str):
        return [Image.open(io.BytesIO(base64.b64decode(told))).size]
    return [size for item in body.values() for size in sizes(item)]


def test_large_images_are_made_smaller_before_they_are_kept_and_sent(agent: Start, server: ModelServer) -> None:
    with agent() as a:
        a.send_raw(line("prompt", id="p", message="look", images=[wide_image()]) + line("get_state", id="s"))
        a.wait({"type": "agent_settled"})
        ids = [record["id"] for record in a.records if record["type"] == "response"]
        assert ids == ["p", "s"], "the command is answered in its place"
        assert sizes(data(a, "get_messages")["messages"]) == [(2000, 1500)]
    assert sizes(server.requests[0].body) == [(2000, 1500)]


def test_without_resizing_images_stay_as_they_are_and_blocked_ones_are_not_sent(
    agent: Start, server: ModelServer, home: Any
) -> None:
    home.write_settings({"images": {"autoResize": False, "blockImages": True}})
    with agent() as a:
        image = wide_image()
        a.prompt("look", images=[image, image])
        assert sizes(data(a, "get_messages")["messages"]) == [(4000, 3000)] * 2
    told = [block["text"] for block in server.requests[0].body["messages"][0]["content"]]
    assert told == ["look", "(image omitted: the settings block images)"]


@pytest.mark.shows("prompt", error="No API key found for ….")
def test_a_prompt_without_a_usable_model_is_refused_with_the_reason(agent: Start, home: Any) -> None:
    content = json.loads((home.agent_dir / "models.json").read_text())
    for provider in content["providers"].values():
        provider["apiKey"] = "$NOT_SET_ANYWHERE"
    home.write_models(content)
    with agent() as a:
        assert refusal(a, "prompt", message="hi").startswith("No API key found for fa.")
        assert data(a, "get_available_models")["models"] == []
        assert [record["type"] for record in a.records] == ["response", "response"]


@pytest.mark.shows("clear_queue", events=["queue_update"])
def test_clear_queue_gives_back_what_waited_and_tells_it_once(agent: Start) -> None:
    with agent() as a:
        data(a, "steer", message="s")
        data(a, "follow_up", message="f")
        since = a.cursor
        assert data(a, "clear_queue") == {"steering": ["s"], "followUp": ["f"]}
        assert a.records[since] == {"type": "queue_update", "steering": [], "followUp": []}
        assert data(a, "clear_queue") == {"steering": [], "followUp": []}
        assert [record["type"] for record in a.records[since:]] == ["queue_update", "response"] * 2


@pytest.mark.shows("set_steering_mode", "set_follow_up_mode")
def test_queue_modes_are_saved_and_hold_in_the_next_session(agent: Start, home: Any) -> None:
    home.write_settings({"mine": {"kept": True}})
    with agent() as a:
        data(a, "set_steering_mode", mode="all")
        data(a, "set_follow_up_mode", mode="all")
        data(a, "new_session")
        state = data(a, "get_state")
        assert (state["steeringMode"], state["followUpMode"]) == ("all", "all")
        assert "mode" in refusal(a, "set_steering_mode", mode="some")
    saved = settings(home)
    assert (saved["steeringMode"], saved["followUpMode"], saved["mine"]) == ("all", "all", {"kept": True})
    with agent() as again:
        assert data(again, "get_state")["steeringMode"] == "all"


# ---- models ------------------------------------------------------------------------------------------------------


@pytest.mark.shows("set_model", events=["model_changed"])
@pytest.mark.shows("set_model", error="Model not found: …/…")
def test_set_model_answers_with_the_model_tells_the_change_and_writes_an_entry(
    agent: Start, server: ModelServer, home: Any
) -> None:
    with agent() as a:
        since = a.cursor
        model = data(a, "set_model", provider="fa", modelId="m2")
        assert (model["provider"], model["id"]) == ("fa", "m2") and "apiKey" not in model
        event = a.records[since]
        assert (event["type"], event["model"]["id"], event["previousModel"]["id"]) == ("model_changed", "m2", "m")
        assert event["source"] == "set"
        since = a.cursor
        data(a, "set_model", provider="fa", modelId="m2")
        assert [record["type"] for record in a.records[since:]] == ["response"]
        a.prompt("hi")
        assert server.requests[-1].body["model"] == "m2"
        changes = [entry["modelId"] for entry in entries(session_path(a)) if entry["type"] == "model_change"]
        assert changes[:2] == ["m", "m2"]
        assert refusal(a, "set_model", provider="fa", modelId="nope") == "Model not found: fa/nope"
        assert "defaultModel" not in settings(home)
        data(a, "set_model", provider="fo", modelId="m", persist=True)
    assert (settings(home)["defaultProvider"], settings(home)["defaultModel"]) == ("fo", "m")


@pytest.mark.shows("get_available_models")
def test_only_models_with_a_credential_are_available_and_never_the_scripted_one(agent: Start) -> None:
    with agent() as a:
        told = data(a, "get_available_models")
        assert {model["provider"] for model in told["models"]} == {"fa", "fo", "fr"}
        assert told["scopedModels"] == []


# ---- shell -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["bash", "user_bash"])
def test_a_shell_request_streams_and_tells_its_result(agent: Start, command: str) -> None:
    with agent() as a:
        since = a.cursor
        result = data(a, command, command="echo out; echo err >&2; exit 3")
        assert (result["exitCode"], result["cancelled"], result["truncated"]) == (3, False, False)
        assert sorted(result["output"].split()) == ["err", "out"]
        seen = a.records[since:]
        assert [record["type"] for record in seen] == ["bash_execution_update"] * (len(seen) - 1) + ["response"]
        by_channel = {record["channel"]: record["delta"] for record in seen[:-1]}
        assert by_channel == {"stdout": "out\n", "stderr": "err\n"}
        assert all(record["id"] == seen[-1]["id"] for record in seen)
        assert seen[-1]["command"] == command


def test_exit_codes_and_signals(agent: Start) -> None:
    with agent() as a:
        assert [data(a, "bash", command=f"exit {code}")["exitCode"] for code in (0, 1, 127, 255)] == [0, 1, 127, 255]
        killed = data(a, "bash", command="kill -9 $$")
        assert killed["cancelled"] is False and "exitCode" not in killed
        assert data(a, "bash", command="cat; echo end")["output"] == "end\n"
        assert data(a, "bash", command="sleep 308 & echo done")["output"] == "done\n"
        assert data(a, "bash", command="no-such-command-here")["exitCode"] == 127


def test_long_output_keeps_its_tail_and_a_full_log(agent: Start) -> None:
    with agent() as a:
        result = data(a, "bash", command="seq 1 5000")
        shown = result["output"].split("\n")
        assert result["truncated"] is True and "5000" in shown and "1" not in shown and len(shown) <= 3001
        log = Path(result["fullOutputPath"])
        assert log.read_text() == "".join(f"{n}\n" for n in range(1, 5001))
        assert stat.S_IMODE(log.stat().st_mode) == 0o600 and stat.S_IMODE(log.parent.stat().st_mode) == 0o700
        wide = data(a, "bash", command="head -c 60000 /dev/zero | tr '\\0' y; echo; echo tail")
        assert wide["truncated"] is True and len(wide["output"].encode()) <= 51200 and "tail" in wide["output"]
        small = data(a, "bash", command="seq 1 10")
        assert small["truncated"] is False and small.get("fullOutputPath") is None


def test_the_environment_of_a_command_names_its_session_and_nothing_stale(agent: Start) -> None:
    stale = {"ATOMIC_SESSION_FILE": "/old/1", "PI_MODEL": "old/2", "ATOMIC_SESSION_ID": "old/3"}
    with agent(env=stale) as a:
        shown = data(a, "bash", command="env")["output"]
        found = dict(one.partition("=")[::2] for one in shown.split("\n"))
        state = data(a, "get_state")
        for prefix in ("ATOMIC_", "PI_"):
            assert found[prefix + "SESSION_ID"] == state["sessionId"]
            assert (found[prefix + "PROVIDER"], found[prefix + "MODEL"]) == ("fa", "m")
            assert found[prefix + "REASONING_LEVEL"] == "off"
        assert found["AI_AGENT"] == "atomic" and "old/" not in shown
        assert data(a, "bash", command="echo $ATOMIC_SESSION_FILE $PWD")["output"].split()[0] == state["sessionFile"]


def test_exclude_from_context_keeps_a_result_from_the_model(agent: Start, server: ModelServer) -> None:
    with agent() as a:
        data(a, "bash", command="echo SHOWN")
        data(a, "bash", command="echo HIDDEN", excludeFromContext=True)
        a.prompt("SAY ok")
        sent = json.dumps(server.requests[0].body["messages"])
        assert "SHOWN" in sent and "HIDDEN" not in sent
        assert roles(a).count("bashExecution") == 2
        assert [e["message"].get("excludeFromContext") for e in entries(session_path(a)) if
                e.get("message", {}).get("role") == "bashExecution"] == [None, True]  # fmt: skip


@pytest.mark.shows("abort_bash")
def test_abort_bash_takes_every_id_that_a_request_may_have(agent: Start) -> None:
    with agent() as a:
        a.send("bash", id="other", command="echo up; exec sleep 309")
        a.wait({"type": "bash_execution_update", "id": "other"})
        for id_ in ("b", 7, -0.5, True, False, "", '\u00e9\u2028"', 10**30):
            since = a.cursor
            a.send("bash", id=id_, command="echo up; exec sleep 309")
            a.wait({"type": "bash_execution_update", "id": id_}, since=since)
            data(a, "abort_bash", requestId=id_)
            response = a.wait({"type": "response", "command": "bash"}, since=since)
            assert response["id"] == id_ and type(response["id"]) is type(id_) and response["data"]["cancelled"]
        data(a, "abort_bash", requestId="nobody")
        assert a.responses("other") == []
        data(a, "abort_bash")
        assert a.wait({"type": "response", "id": "other"})["data"]["cancelled"] is True


def test_a_bash_without_an_id_is_reached_by_the_bare_abort(agent: Start) -> None:
    with agent() as a:
        a.send_raw(b'{"type":"bash","command":"echo up; exec sleep 310"}\n')
        assert "id" not in a.wait({"type": "bash_execution_update"})
        data(a, "abort_bash")
        response = a.wait({"type": "response", "command": "bash"})
        assert "id" not in response and response["data"]["cancelled"] is True


def test_what_cannot_be_run_is_refused_and_recorded_nowhere(agent: Start, home: Any) -> None:
    with agent() as a:
        a.send_raw(b'{"id":"s","type":"bash","command":"echo \\ud83d"}\n')
        assert "command" in a.wait({"type": "response", "id": "s"})["error"]
        assert "command" in refusal(a, "bash", command="echo \0")
        home.cwd.rmdir()
        gone = f"Working directory does not exist: {home.cwd}\nCannot execute bash commands."
        assert refusal(a, "bash", command="true") == gone
        assert roles(a) == []


# ---- sessions ----------------------------------------------------------------------------------------------------


@pytest.mark.shows("new_session")
def test_new_session_keeps_the_old_file_and_names_its_parent(agent: Start, home: Any) -> None:
    with agent() as a:
        a.prompt("SAY one")
        old = data(a, "get_state")
        assert data(a, "new_session", parentSession=old["sessionFile"]) == {"cancelled": False}
        state = data(a, "get_state")
        assert state["sessionId"] != old["sessionId"] and (state["messageCount"], roles(a)) == (0, [])
        a.prompt("SAY two")
        assert entries(session_path(a))[0]["parentSession"] == old["sessionFile"]
        assert len(home.session_files()) == 2


@pytest.mark.shows("switch_session")
def test_switch_session_goes_there_and_back(agent: Start) -> None:
    with agent() as a:
        a.prompt("SAY one")
        first = session_path(a)
        data(a, "new_session")
        a.prompt("SAY two")
        second = session_path(a)
        data(a, "switch_session", sessionPath=str(first))
        assert data(a, "get_last_assistant_text")["text"] == "one" and session_path(a) == first
        a.prompt("SAY three")
        data(a, "switch_session", sessionPath=str(second))
        assert data(a, "get_last_assistant_text")["text"] == "two"
    assert [sum(entry["type"] == "message" for entry in entries(path)) for path in (first, second)] == [4, 2]


def test_switching_to_the_current_file_reads_it_again(agent: Start) -> None:
    with agent() as a:
        a.prompt("SAY one")
        path = session_path(a)
        stored = entries(path)
        added = {**stored[-1], "id": "added-1", "parentId": stored[-1]["id"]}
        with path.open("a") as file:
            file.write(json.dumps(added) + "\n")
        data(a, "switch_session", sessionPath=str(path))
        assert data(a, "get_entries")["leafId"] == "added-1"
        a.prompt("SAY two")
        assert roles(a) == ["user", "assistant", "assistant", "user", "assistant"]


@pytest.mark.shows("switch_session", events=["agent_end", "agent_settled"])
def test_switching_to_the_current_file_while_it_runs_ends_the_run_first(agent: Start) -> None:
    with agent() as a:
        a.request("prompt", message="HANG half")
        a.wait({"type": "message_update"})
        data(a, "switch_session", sessionPath=str(session_path(a)))
        kinds = [record["type"] for record in a.records]
        assert kinds.index("agent_settled") < len(kinds) - 1
        assert roles(a) == ["user", "assistant"]
        a.prompt("SAY more")
        assert data(a, "get_last_assistant_text")["text"] == "more"


def test_a_path_that_does_not_exist_becomes_a_session_with_its_first_message(agent: Start, home: Any) -> None:
    path = home.sessions / "deep" / "named.jsonl"
    with agent() as a:
        data(a, "switch_session", sessionPath=str(path))
        assert session_path(a) == path and not path.exists()
        a.prompt("SAY one")
        assert entries(path)[0]["cwd"] == str(home.cwd)


@pytest.mark.shows("switch_session", "import_session", error="Session file is not a valid atomic session: …")
@pytest.mark.shows("switch_session", error="Session file is a directory: …")
def test_an_empty_file_becomes_a_session_and_another_file_is_never_written_to(agent: Start, home: Any) -> None:
    empty, notes, folder = home.sessions / "empty.jsonl", home.sessions / "notes.md", home.sessions / "folder"
    empty.touch()
    notes.write_bytes(b"# mine\nkeep\n")
    folder.mkdir()
    with agent() as a:
        data(a, "switch_session", sessionPath=str(empty))
        a.prompt("SAY one")
        assert entries(empty)[0]["type"] == "session"
        refused = refusal(a, "switch_session", sessionPath=str(notes))
        assert refused == f"Session file is not a valid atomic session: {notes}"
        assert str(notes) in refusal(a, "import_session", inputPath=str(notes))
        assert str(folder) in refusal(a, "switch_session", sessionPath=str(folder))
        assert refusal(a, "switch_session", sessionPath="") == f"Session file is a directory: {home.cwd}"
        assert refusal(a, "switch_session", sessionPath="a\0b").endswith("it must not contain a NUL character")
        assert refusal(a, "import_session", inputPath="a\0b").endswith("it must not contain a NUL character")
        a.send_raw(b'{"id":"half","type":"switch_session","sessionPath":"\\ud83d.jsonl"}\n')
        assert a.wait({"type": "response", "id": "half"})["error"].endswith("it must not contain a lone surrogate")
        assert session_path(a) == empty
    assert notes.read_bytes() == b"# mine\nkeep\n"
    assert not (home.sessions / "notes.md.importing").exists()


@pytest.mark.shows("import_session")
@pytest.mark.shows("import_session", error="File not found: …")
@pytest.mark.shows("import_session", error="import_session: the session at … is open here, so it cannot be overwritten")
def test_import_copies_a_file_and_opens_the_copy(agent: Start, home: Any, tmp_path: Path) -> None:
    with agent() as a:
        a.prompt("SAY one")
        source = tmp_path / "foreign.jsonl"
        source.write_bytes(session_path(a).read_bytes())
        before = source.read_bytes()
        assert data(a, "import_session", inputPath=str(source)) == {"cancelled": False}
        assert session_path(a) == home.sessions / "foreign.jsonl" and roles(a) == ["user", "assistant"]
        a.prompt("SAY two")
        assert source.read_bytes() == before
        missing = tmp_path / "missing.jsonl"
        assert refusal(a, "import_session", inputPath=str(missing)) == f"File not found: {missing}"
        refused = refusal(a, "import_session", inputPath=str(source))
        assert str(home.sessions / "foreign.jsonl") in refused
        assert roles(a) == ["user", "assistant"] * 2
        other = source.rename(tmp_path / "other.jsonl")
        data(a, "import_session", inputPath=str(other), cwdOverride=str(tmp_path))
        assert data(a, "bash", command="pwd")["output"] == f"{tmp_path}\n"


@pytest.mark.shows("fork")
@pytest.mark.shows("fork", error="Invalid entry ID for forking")
def test_fork_starts_before_a_user_message(agent: Start) -> None:
    with agent() as a:
        a.prompt("SAY one")
        a.prompt("SAY two")
        origin = session_path(a)
        second = user_entries(a)[1]
        assert data(a, "fork", entryId=second) == {"text": "SAY two", "cancelled": False}
        assert roles(a) == ["user", "assistant"] and session_path(a) != origin
        a.prompt("SAY other")
        stored = entries(session_path(a))
        assert stored[0]["parentSession"] == str(origin)
        assert stored[1:5] == entries(origin)[1:5]
        assert refusal(a, "fork", entryId="nope") == "Invalid entry ID for forking"
        assert refusal(a, "fork", entryId=first_answer(stored)) == "Invalid entry ID for forking"
        assert data(a, "fork", entryId=user_entries(a)[0])["text"] == "SAY one"
        assert roles(a) == []


@pytest.mark.shows("clone")
@pytest.mark.shows(
    "clone",
    error="This session has not been saved yet. Wait for the first assistant response before cloning or forking it.",
)
def test_clone_copies_all_up_to_the_leaf(agent: Start) -> None:
    with agent() as a:
        unsaved = refusal(a, "clone")
        assert unsaved.startswith("This session has not been saved yet.")
        a.prompt("SAY one")
        origin = session_path(a)
        assert data(a, "clone") == {"cancelled": False}
        assert session_path(a) != origin and roles(a) == ["user", "assistant"]
        assert entries(session_path(a))[0]["parentSession"] == str(origin)


def replace(a: Agent, how: str, other: Path, first_user: str) -> None:
    commands: dict[str, Record] = {
        "new_session": {},
        "switch_session": {"sessionPath": str(other)},
        "import_session": {"inputPath": str(other)},
        "fork": {"entryId": first_user},
        "clone": {},
    }
    assert data(a, how, **commands[how])["cancelled"] is False


@pytest.mark.parametrize(
    ("how", "ending"),
    [
        *[(how, "ends") for how in ("new_session", "switch_session", "import_session", "fork", "clone")],
        ("new_session", "is cancelled by id"),
        ("switch_session", "is cancelled with all"),
    ],
)
def test_a_bash_is_recorded_once_in_the_session_where_it_began(
    agent: Start, home: Any, tmp_path: Path, how: str, ending: str
) -> None:
    with agent() as a:
        a.prompt("SAY other")
        other = tmp_path / "elsewhere.jsonl"
        other.write_bytes(session_path(a).read_bytes())
        data(a, "new_session")
        a.prompt("SAY home")
        began = session_path(a)
        fifo = home.cwd / "hold"
        os.mkfifo(fifo)
        a.send("bash", id="b", command=f"echo MARK; read go < {fifo}; echo end")
        a.wait({"type": "bash_execution_update", "id": "b"})
        replace(a, how, other, user_entries(a)[0])
        assert session_path(a) != began
        if ending == "ends":
            fifo.write_text("go\n")
        else:
            data(a, "abort_bash", **({"requestId": "b"} if ending == "is cancelled by id" else {}))
        result = a.wait({"type": "response", "id": "b"})["data"]
        assert (result["output"], result["cancelled"]) == (
            ("MARK\nend\n", False) if ending == "ends" else ("MARK\n", True)
        )
        assert "bashExecution" not in roles(a)
        a.prompt("SAY on")
    recorded = [path for path in [*home.session_files(), other] for entry in entries(path)
                if entry.get("message", {}).get("role") == "bashExecution"]  # fmt: skip
    assert recorded == [began]


def test_fifty_concurrent_requests_keep_their_own_order_and_are_all_recorded(agent: Start) -> None:
    with agent() as a:
        a.send_raw(b"".join(line("bash", id=n, command=f"echo {n}; echo {n} >&2; echo {n}") for n in range(50)))
        a.wait(lambda _: sum(record["type"] == "response" for record in a.records) == 50)
        for n in range(50):
            mine = [record for record in a.records if record.get("id") == n]
            assert mine[-1]["type"] == "response" and mine[-1]["data"]["output"].split() == [str(n)] * 3
            assert "".join(r["delta"] for r in mine[:-1] if r["channel"] == "stdout") == f"{n}\n{n}\n"
        assert roles(a) == ["bashExecution"] * 50


def test_commands_behind_a_replacement_reach_the_new_session_in_order(agent: Start, server: ModelServer) -> None:
    server.script(gate("half "), text("second"))
    with agent() as a:
        a.request("prompt", message="first")
        a.wait({"type": "message_update"})
        old, since = session_path(a), a.cursor
        a.send_raw(
            line("new_session", id="n") + line("set_session_name", id="s", name="fresh")
            + line("prompt", id="p", message="go") + line("get_state", id="g")
        )  # fmt: skip
        a.wait({"type": "agent_end", "messages.0.content.0.text": "go"}, since=since)
        answered = [record["id"] for record in a.records[since:] if record["type"] == "response"]
        assert answered == ["n", "s", "p", "g"]
        state = a.responses("g")[0]["data"]
        assert (state["sessionName"], state["isStreaming"]) == ("fresh", True) and state["sessionFile"] != str(old)
        kept = [entry["message"] for entry in entries(old) if entry["type"] == "message"]
        assert [message.get("stopReason") for message in kept] == [None, "aborted"]


# ---- cancels and unknown commands ----------------------------------------------------------------------------------


@pytest.mark.shows("abort_retry", "abort_compaction", "cancel_login_provider")
def test_cancels_succeed_when_there_is_nothing_to_cancel(agent: Start) -> None:
    with agent() as a:
        for name in ("abort_retry", "abort_compaction", "cancel_login_provider"):
            assert a.request(name, provider="x")["success"], name


@pytest.mark.shows("*", error="Unknown command: …")
@pytest.mark.shows("*", error="Failed to parse command: …")
def test_unknown_commands_and_records_that_are_none(agent: Start) -> None:
    with agent() as a:
        assert refusal(a, "foobar") == "Unknown command: foobar"
        for raw in (b"{}", b"[1]", b"42", b'"x"', b"null"):
            since = a.cursor
            a.send_raw(raw + b"\n")
            response = a.wait({"type": "response"}, since=since)
            assert response["error"] == "Unknown command: undefined" and "command" not in response, raw
        for raw in (b"ls -la", b'{"id":"x","type":', b"", b"\xff\xfe", b'{"type":"get_state"} x'):
            since = a.cursor
            a.send_raw(raw + b"\n")
            response = a.wait({"type": "response"}, since=since)
            assert response["command"] == "parse" and response["error"].startswith("Failed to parse command: "), raw
            assert "id" not in response
        a.send_raw(line("extension_ui_response", id="u", value="x"))
        assert a.request("get_state")["success"] and a.responses("u") == []


# ---- configuration and flags -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["settings.json", "models.json", "auth.json"])
@pytest.mark.parametrize("content", ["{ broken", "[]", "null", '{"providers": 7, "retry": "x"}', "[" * 5000])
def test_a_bad_configuration_file_is_told_in_one_line_and_the_process_lives(
    agent: Start, home: Any, name: str, content: str
) -> None:
    (home.agent_dir / name).write_text(content)
    flags = {} if name != "models.json" else {"provider": "scripted", "model": "scripted"}
    with agent(env={"ANTHROPIC_API_KEY": "k"}, **flags) as a:
        assert a.request("get_state")["success"]
        if not (name == "auth.json" and content.startswith('{"providers"')):
            a.wait_stderr(name.removesuffix(".json"))
        assert "Traceback" not in a.stderr and all(len(one) < 400 for one in a.stderr.split("\n"))
        data(a, "set_steering_mode", mode="all")
        assert a.request("get_state")["success"]
    if content in ("{ broken", "[" * 5000):
        assert (home.agent_dir / name).read_text() == content


def test_session_takes_a_path_or_an_id_and_continue_takes_the_newest(agent: Start, home: Any) -> None:
    with agent("--name", "first one") as a:
        a.prompt("SAY one")
        first = data(a, "get_state")
        assert first["sessionName"] == "first one"
    with agent() as b:
        b.prompt("SAY two")
        second = data(b, "get_state")
    os.utime(first["sessionFile"], (1, 1))
    for flags, wanted in (
        (("--session", first["sessionFile"]), first),
        (("--session", first["sessionId"]), first),
        (("--continue",), second),
    ):
        with agent(*flags) as again:
            state = data(again, "get_state")
            assert (state["sessionId"], state["messageCount"]) == (wanted["sessionId"], 2)


def test_start_up_errors_are_one_line_and_exit_1(agent: Start, home: Any) -> None:
    notes = home.cwd / "notes.md"
    notes.write_text("# mine\n")
    gone = home.sessions / "gone.jsonl"
    gone.write_text(
        '{"type":"session","version":3,"id":"g","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/no/where"}\n'
    )
    for flags, told in (
        (("--session", str(notes)), str(notes)),
        (("--session", "no-such-id"), "no-such-id"),
        (("--session", str(gone)), "/no/where"),
        (("--name", "  "), "name"),
        (("--no-such-flag",), "--no-such-flag"),
    ):
        a = agent(*flags)
        assert a.wait_exit() != 0, flags
        assert a.records == [] and told in a.stderr and "Traceback" not in a.stderr, a.stderr
    assert notes.read_text() == "# mine\n"


def test_version_and_help_need_no_configuration(home: Any) -> None:
    import sys

    program = str(Path(sys.executable).with_name("atomic"))
    for flag, wanted in (("--version", r"\d+\.\d+"), ("--help", "--session-dir")):
        done = subprocess.run([program, flag], capture_output=True, text=True, env=home.environment(), timeout=20)
        assert done.returncode == 0 and re.search(wanted, done.stdout) and done.stderr == ""
