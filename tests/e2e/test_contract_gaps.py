"""What docs/protocol.md lists and no other test has a reason to show: retries on the wire, and rare refusals."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conformance.driver import Agent, line
from conformance.model_server import ModelServer, error, gate, text
from conformance.schema_check import check_line
from tests.e2e.conftest import ROOT, Home, program
from tests.held_file import held, needs_leases

Start = Callable[..., Agent]
Record = dict[str, Any]


def refusal(a: Agent, type_: str, /, **fields: Any) -> str:
    response = a.request(type_, **fields)
    assert not response["success"], response
    return str(response["error"])


def of_type(records: list[Record], *types: str) -> list[Record]:
    return [record for record in records if record["type"] in types]


# ---- retries and fallback ----------------------------------------------------------------------------------------


@pytest.mark.shows("prompt", events=["auto_retry_start", "auto_retry_end"])
def test_a_retry_is_told_between_the_runs_and_its_end_after_the_reply(agent: Start, server: ModelServer) -> None:
    server.script(error(529, message="busy"), text("good"))
    with agent() as a:
        seen = a.prompt("go")
    kinds = [record["type"] for record in seen]
    first, last = kinds.index("auto_retry_start"), kinds.index("auto_retry_end")
    assert kinds[first - 1 : first + 2] == ["agent_end", "auto_retry_start", "agent_start"]
    assert kinds[last - 1] == "message_end" and seen[last] == {"type": "auto_retry_end", "success": True, "attempt": 1}
    told = seen[first]
    assert (told["attempt"], told["maxAttempts"], told["delayMs"]) == (1, 2, 100) and "busy" in told["errorMessage"]


@pytest.mark.shows("prompt", events=["auto_retry_end"])
def test_retries_in_vain_end_with_the_last_error(agent: Start, server: ModelServer) -> None:
    server.script(*[error(529, message=f"busy {n}") for n in range(3)])
    with agent() as a:
        (told,) = of_type(a.prompt("go"), "auto_retry_end")
    assert (told["success"], told["attempt"]) == (False, 2) and "busy 2" in told["finalError"]
    assert len(server.requests) == 3


@pytest.mark.shows("abort_retry", events=["auto_retry_end"])
def test_abort_retry_ends_the_wait_and_the_run(agent: Start, server: ModelServer, home: Any) -> None:
    home.write_settings({"retry": {"enabled": True, "maxRetries": 2, "baseDelayMs": 60_000}})
    server.script(error(529))
    with agent() as a:
        a.request("prompt", message="go")
        a.wait({"type": "auto_retry_start"})
        assert a.request("abort_retry")["success"]
        a.wait({"type": "agent_settled"})
        assert of_type(a.records, "auto_retry_end") == [
            {"type": "auto_retry_end", "success": False, "attempt": 1, "finalError": "Retry cancelled"}
        ]
    assert len(server.requests) == 1


@pytest.mark.shows("prompt", events=["model_fallback_start", "model_changed", "model_fallback_end"])
def test_another_model_takes_over_and_the_first_one_comes_back(agent: Start, server: ModelServer, home: Any) -> None:
    home.write_settings({"fallbackModels": ["fa/m2"]})
    server.script(error(401, message="no"), text("from the other"))
    with agent() as a:
        told = of_type(a.prompt("go"), "model_fallback_start", "model_changed", "model_fallback_end")
        assert a.request("get_state")["data"]["model"]["id"] == "m"
    assert sorted(record["type"] for record in told) == [
        "model_changed", "model_changed", "model_fallback_end", "model_fallback_start",
    ]  # fmt: skip
    assert (told[0]["type"], told[0]["to"], told[0]["attempt"]) == ("model_fallback_start", "fa/m2:off", 1)
    assert [record["source"] for record in told if record["type"] == "model_changed"] == ["fallback", "restore"]
    assert [record["success"] for record in told if record["type"] == "model_fallback_end"] == [True]


@pytest.mark.parametrize(("named", "to"), [("fa/think", "fa/think:high"), ("fa/think:low", "fa/think:low")])
def test_another_model_takes_over_at_its_own_level_or_at_the_default_one(
    agent: Start, server: ModelServer, home: Any, named: str, to: str
) -> None:
    home.write_settings({"fallbackModels": [named], "defaultThinkingLevel": "high"})
    server.script(error(401, message="no"), text("from the other"))
    with agent() as a:
        assert [record["to"] for record in of_type(a.prompt("go"), "model_fallback_start")] == [to]


def test_a_level_chosen_while_another_model_answers_goes_home_with_the_first(
    agent: Start, server: ModelServer, home: Any
) -> None:
    home.write_settings({"fallbackModels": ["fa/m"]})
    held = gate("from ", "the other")
    server.script(error(401, message="no"), held)
    with agent("--thinking", "high", model="think") as a:
        a.request("prompt", message="go")
        assert held.reached.wait()
        assert a.request("set_thinking_level", level="low")["data"]["level"] == "off"  # what the other model can do
        held.open()
        a.wait({"type": "agent_settled"})
        state = a.request("get_state")["data"]
        assert (state["model"]["id"], state["thinkingLevel"]) == ("think", "low")


# ---- commands that never start -----------------------------------------------------------------------------------


@pytest.mark.shows("prompt", error="prompt was stopped by abort before it started")
@pytest.mark.shows("steer", error="steer was stopped by clear_queue before it started")
@pytest.mark.shows("follow_up", error="follow_up was stopped by clear_queue before it started")
def test_what_waits_behind_a_replacement_is_stopped_by_what_would_have_stopped_it(
    agent: Start, server: ModelServer
) -> None:
    with agent() as a:
        held = [line("prompt", id="p", message="x"), line("steer", id="s", message="x")]
        held.append(line("follow_up", id="f", message="x"))
        a.send_raw(line("new_session", id="n") + b"".join(held) + line("abort", id="1") + line("clear_queue", id="2"))
        assert a.request("get_state")["data"]["pendingMessageCount"] == 0
        assert [a.responses(id_)[0]["success"] for id_ in "psfn12"] == [False] * 3 + [True] * 3
    assert server.requests == []


@needs_leases
@pytest.mark.shows("*", error="atomic is shutting down")
def test_what_waits_when_the_end_comes_is_told_so(agent: Start, home: Any) -> None:
    a = agent()
    a.request("get_state")  # the settings are read
    with held(home.agent_dir / "settings.json"):
        a.send("reload", id="held up")
        a.send("set_session_name", id="behind", name="x")
        assert a.request("abort_compaction")["success"]  # an interrupt: it passes, so the others have been read
        a.terminate(signal.SIGTERM)
        assert a.wait({"type": "response", "id": "behind"})["error"] == "atomic is shutting down"
    assert a.wait_exit() == 143


@pytest.mark.shows("*", error='…: "…" is required…')
@pytest.mark.shows("*", error='…: "…" must be …')
def test_a_field_that_is_missing_or_wrong_is_named(agent: Start) -> None:
    with agent() as a:
        assert refusal(a, "switch_session") == 'switch_session: "sessionPath" is required (a string)'
        allowed = '"off", "minimal", "low", "medium", "high", "xhigh" or "max"'
        assert refusal(a, "set_thinking_level", level="x") == (
            f'set_thinking_level: "level" must be {allowed}, got "x"'
        )


# ---- rare refusals -----------------------------------------------------------------------------------------------


@pytest.mark.shows("prompt", error="No API key found for the selected model.")
def test_without_any_model_a_prompt_is_refused(home: Home, watched: list[Agent]) -> None:
    home.write_models({"providers": {}})
    environment = {**home.environment(), "PYTHONPATH": str(ROOT)}
    with Agent([*program(), "--mode", "rpc", "--no-session"], cwd=home.cwd, env=environment, check=check_line) as a:
        watched.append(a)
        assert a.request("get_state")["data"]["modelFallbackReason"] == "no-models-available"
        assert refusal(a, "prompt", message="x").startswith("No API key found for the selected model.")


@pytest.mark.shows("bash", "user_bash", events=["bash_execution_update"])
@pytest.mark.shows("bash", "user_bash", error="Working directory does not exist: …\nCannot execute bash commands.")
def test_both_shell_requests_stream_and_are_refused_alike(agent: Start, home: Any) -> None:
    with agent() as a:
        for name in ("bash", "user_bash"):
            since = a.cursor
            assert a.request(name, command="echo out")["data"]["output"] == "out\n"
            assert [record["type"] for record in a.records[since:]] == ["bash_execution_update", "response"]
        home.cwd.rmdir()
        for name in ("bash", "user_bash"):
            assert refusal(a, name, command="true").startswith(f"Working directory does not exist: {home.cwd}\n")


@pytest.mark.shows("clone", error="Cannot clone session: no current entry selected")
def test_before_the_first_entry_there_is_nothing_to_clone(agent: Start) -> None:
    with agent() as a:
        a.prompt("SAY one")
        path = Path(a.request("get_state")["data"]["sessionFile"])
    lines = [json.loads(each) for each in path.read_text().splitlines()]
    message = next(each for each in lines if each["type"] == "message")
    rooted = path.with_name("rooted.jsonl")
    rooted.write_text("".join(json.dumps(each) + "\n" for each in (lines[0], {**message, "parentId": None})))
    with agent("--session", str(rooted)) as a:
        assert a.request("navigate_tree", targetId=message["id"])["success"]
        assert a.request("get_entries")["data"]["leafId"] is None
        assert refusal(a, "clone") == "Cannot clone session: no current entry selected"


@pytest.mark.shows("save_provider_credential", error='save_provider_credential: "credential.type" must be …')
def test_a_credential_of_no_known_type_is_refused(agent: Start) -> None:
    with agent() as a:
        told = refusal(a, "save_provider_credential", provider="x", credential={"type": "k"})
        assert told == 'save_provider_credential: "credential.type" must be "api_key" or "oauth"'


# ---- letting go --------------------------------------------------------------------------------------------------


@pytest.mark.shows("switch_session", "import_session", events=["queue_update", "agent_end", "agent_settled"])
@pytest.mark.shows("fork", "clone", events=["queue_update", "agent_end", "agent_settled"])
def test_every_replacement_ends_the_run_and_tells_the_emptied_queue_before_its_response(
    agent: Start, tmp_path: Path
) -> None:
    with agent() as a:
        a.prompt("SAY one")
        own = Path(a.request("get_state")["data"]["sessionFile"])
        foreign = tmp_path / "foreign.jsonl"
        foreign.write_bytes(own.read_bytes())
        replacements: dict[str, Callable[[], Record]] = {
            "clone": dict,
            "fork": lambda: {"entryId": a.request("get_fork_messages")["data"]["messages"][0]["entryId"]},
            "import_session": lambda: {"inputPath": str(foreign)},
            "switch_session": lambda: {"sessionPath": str(own)},
        }
        for name, fields in replacements.items():
            since = a.cursor
            a.request("prompt", message="HANG half")
            a.wait({"type": "message_update"}, since=since)
            a.request("follow_up", message="later")
            known, since = fields(), a.cursor
            assert a.request(name, **known)["success"], name
            seen = [record["type"] for record in a.records[since:]]
            assert [kind for kind in seen if kind in ("queue_update", "agent_end", "agent_settled")] == [
                "queue_update", "agent_end", "agent_settled",
            ]  # fmt: skip
            assert seen[-1] == "response"


# ---- what cannot be written or opened ----------------------------------------------------------------------------


@pytest.mark.shows("export_html", error="Cannot export to …: it is the file of the session itself")
@pytest.mark.shows("export_html", error="outputPath must hold neither NUL characters nor lone surrogates, got …")
def test_a_page_is_not_written_over_its_session_nor_to_what_is_no_path(agent: Start) -> None:
    with agent() as a:
        a.prompt("SAY one")
        own = a.request("get_state")["data"]["sessionFile"]
        told = refusal(a, "export_html", outputPath=own, deadline=40)
        assert told == f"Cannot export to {own}: it is the file of the session itself"
        assert refusal(a, "export_html", outputPath="a\0b", deadline=40).endswith(r"got 'a\x00b'")
        assert a.request("get_messages")["success"] and Path(own).read_text().startswith('{"type":"session"')


@pytest.mark.shows("switch_session", "import_session", error="Invalid …: it must not contain a NUL character")
@pytest.mark.shows("switch_session", "import_session", error="Invalid …: it must not contain a lone surrogate")
def test_a_path_that_no_system_takes_is_refused_by_field(agent: Start) -> None:
    with agent() as a:
        for name, field in (("switch_session", "sessionPath"), ("import_session", "inputPath")):
            for path in ("a\0b", "a\ud83db"):
                since = a.cursor
                a.send_raw(json.dumps({"type": name, field: path}).encode() + b"\n")
                told = a.wait({"type": "response", "command": name}, since=since)["error"]
                assert told.startswith(f"Invalid {field} {path!a}: ")


@pytest.mark.shows("bash", "user_bash", error="…\nOutput that was not recorded:\n…")
@pytest.mark.shows("*", error="Session file was removed or replaced: …")
def test_what_cannot_be_recorded_is_no_success(agent: Start) -> None:
    with agent() as a:
        a.prompt("SAY one")
        Path(a.request("get_state")["data"]["sessionFile"]).unlink()
        for name in ("bash", "user_bash"):
            assert refusal(a, name, command="echo PRECIOUS").endswith("\nOutput that was not recorded:\nPRECIOUS\n")
        told = refusal(a, "set_session_name", name="x")
        assert told.startswith("Session file was removed or replaced: ")
        assert [r for r in a.records if r["type"] == "session_info_changed"] == []


@pytest.mark.shows("switch_session", error="Session file cannot be opened: …")
@pytest.mark.shows("new_session", error="Session folder cannot be made: …")
def test_a_session_that_has_no_place_is_refused_with_the_words_of_the_system(agent: Start, home: Any) -> None:
    with agent() as a:
        long = home.cwd / ("x" * 300 + ".jsonl")
        told = refusal(a, "switch_session", sessionPath=str(long))
        assert told == f"Session file cannot be opened: {long}: File name too long"
        home.sessions.rmdir()
        home.sessions.write_text("in the way")
        assert refusal(a, "new_session").startswith(f"Session folder cannot be made: {home.sessions}")
        assert a.request("get_state")["success"]
