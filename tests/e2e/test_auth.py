"""Stored credentials over the protocol and from the shell: saved, used at once, removed, and never shown."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conformance.driver import Agent, line
from conformance.model_server import ModelServer, masked

Start = Callable[..., Agent]
Record = dict[str, Any]
SECRET = "s3cret-0123456789"
KEY = {"type": "api_key", "key": SECRET}


@pytest.fixture(autouse=True)
def closed_provider(home: Any, server: ModelServer) -> None:
    """`closed` is a provider that only a stored credential opens."""
    models = json.loads((home.agent_dir / "models.json").read_text())
    endpoint = {"baseUrl": server.url, "api": "anthropic-messages", "models": [{"id": "m"}]}
    models["providers"]["closed"] = endpoint
    home.write_models(models)


def data(a: Agent, type_: str, /, **fields: Any) -> Any:
    response = a.request(type_, **fields)
    assert response["success"], response
    return response.get("data")


def refusal(a: Agent, type_: str, /, **fields: Any) -> str:
    response = a.request(type_, **fields)
    assert not response["success"], response
    return str(response["error"])


def providers(catalogue: Record) -> set[str]:
    return {model["provider"] for model in catalogue["models"]}


def stored(home: Any) -> Record:
    found: Record = json.loads((home.agent_dir / "auth.json").read_text())
    return found


# ---- saving and logging out --------------------------------------------------------------------------------------


@pytest.mark.shows("save_provider_credential")
def test_a_saved_credential_opens_its_provider_for_the_rest_of_the_same_write(
    agent: Start, home: Any, server: ModelServer
) -> None:
    with agent() as a:
        commands = [
            line("save_provider_credential", id="1", provider="closed", credential=KEY),
            line("set_model", id="2", provider="closed", modelId="m"),
            line("prompt", id="3", message="SAY hello"),
        ]
        a.send_raw(b"".join(commands))
        a.wait({"type": "agent_settled"})
        answers = [record for record in a.records if record["type"] == "response"]
        assert [(answer["id"], answer["success"]) for answer in answers] == [("1", True), ("2", True), ("3", True)]
        assert "closed" in providers(answers[0]["data"])
    assert server.requests[-1].headers["x-api-key"] == masked(SECRET)
    assert stored(home) == {"closed": KEY}
    assert (home.agent_dir / "auth.json").stat().st_mode & 0o777 == 0o600


def test_a_session_that_starts_later_knows_the_credential(agent: Start) -> None:
    with agent() as a:
        commands = [
            line("save_provider_credential", id="1", provider="closed", credential=KEY),
            line("new_session", id="2"),
            line("set_model", id="3", provider="closed", modelId="m"),
        ]
        a.send_raw(b"".join(commands))
        assert a.wait({"type": "response", "id": "3"})["success"]


@pytest.mark.shows("logout_provider")
def test_a_logout_closes_the_provider_and_tells_what_is_left(agent: Start, home: Any) -> None:
    (home.agent_dir / "auth.json").write_text(json.dumps({"closed": KEY, "other": KEY}))
    (home.agent_dir / "auth.json").chmod(0o600)
    with agent("--models", "closed/m,fa/m2,fa/think") as a:
        data(a, "set_model", provider="closed", modelId="m")
        left = data(a, "logout_provider", provider="closed")
        assert (left["provider"], left["authStatus"]) == ("closed", {"configured": False})
        assert "closed" not in providers(left)
        assert [one["model"]["id"] for one in left["scopedModels"]] == ["m2", "think"]
        assert a.request("prompt", message="hi")["error"].startswith("No API key found for closed.")
        assert refusal(a, "set_model", provider="closed", modelId="m") == "Model not found: closed/m"
    assert stored(home) == {"other": KEY}


def test_a_logout_leaves_keys_of_the_environment_and_of_models_json_and_names_them(agent: Start, home: Any) -> None:
    (home.agent_dir / "auth.json").write_text(json.dumps({"openai": KEY, "fa": KEY}))
    (home.agent_dir / "auth.json").chmod(0o600)
    with agent(env={"OPENAI_API_KEY": SECRET}) as a:
        left = data(a, "logout_provider", provider="openai")
        assert left["authStatus"] == {"configured": True, "source": "environment", "label": "OPENAI_API_KEY"}
        assert "openai" in providers(left)
        assert data(a, "logout_provider", provider="fa")["authStatus"] == {
            "configured": True,
            "source": "models_json_key",
        }
        assert data(a, "logout_provider", provider="nobody")["authStatus"] == {"configured": False}
    assert stored(home) == {}


def test_a_key_of_the_command_line_holds_until_the_logout(agent: Start, home: Any, server: ModelServer) -> None:
    with agent("--api-key", SECRET, provider="closed") as a:
        a.prompt("SAY hello")
        assert server.requests[-1].headers["x-api-key"] == masked(SECRET)
        assert "closed" not in providers(data(a, "logout_provider", provider="closed"))
    assert not (home.agent_dir / "auth.json").exists()


@pytest.mark.shows("save_provider_credential", "logout_provider", error="Failed to parse auth.json…")
def test_a_malformed_auth_json_is_never_written(agent: Start, home: Any) -> None:
    broken = '{"fa": {"type": "api_key", "key": "k"},}'
    with agent() as a:
        data(a, "get_state")
        (home.agent_dir / "auth.json").write_text(broken)
        told = refusal(a, "save_provider_credential", provider="closed", credential=KEY)
        assert told.startswith("Failed to parse auth.json") and SECRET not in told
        assert refusal(a, "logout_provider", provider="fa").startswith("Failed to parse auth.json")
        assert "closed" not in providers(data(a, "get_available_models"))
    assert (home.agent_dir / "auth.json").read_text() == broken


@pytest.mark.parametrize(
    ("credential", "told"),
    [
        ({}, '"credential.type" must be "api_key" or "oauth"'),
        ({"type": SECRET}, '"credential.type" must be "api_key" or "oauth"'),
        ({"type": ["api_key"]}, '"credential.type" must be "api_key" or "oauth"'),
        ({"type": "api_key"}, '"credential.key" is required (a string)'),
        ({"type": "api_key", "key": [SECRET]}, '"credential.key" must be a string that is not empty'),
        ({"type": "api_key", "key": " "}, '"credential.key" must be a string that is not empty'),
        ({"type": "api_key", "key": "k", "env": {"A": 1}}, '"credential.env" must be an object of strings'),
    ],
)
def test_a_credential_that_makes_no_sense_is_told_by_field(
    agent: Start, home: Any, credential: Record, told: str
) -> None:
    with agent() as a:
        error = refusal(a, "save_provider_credential", provider="closed", credential=credential)
        assert error == f"save_provider_credential: {told}"
        error = refusal(a, "save_provider_credential", provider=" ", credential=KEY)
        assert error == 'save_provider_credential: "provider" must not be empty'
    assert not (home.agent_dir / "auth.json").exists()


def test_what_is_saved_at_the_end_of_input_is_saved(agent: Start, home: Any) -> None:
    with agent() as a:
        a.send_raw(
            line("save_provider_credential", id="1", provider="closed", credential=KEY) + line("get_state", id="2")
        )
        a.close_stdin()
        assert a.wait_exit() == 0
        assert [a.responses(id_)[0]["success"] for id_ in ("1", "2")] == [True, True]
    assert stored(home) == {"closed": KEY}


def test_a_key_from_a_command_runs_once_a_process_and_never_for_a_listing(
    agent: Start, home: Any, server: ModelServer
) -> None:
    ran = home.path / "ran"
    with agent() as a:
        credential = {"type": "api_key", "key": f"!echo x >> {ran}; echo {SECRET}"}
        assert "closed" in providers(data(a, "save_provider_credential", provider="closed", credential=credential))
        data(a, "set_model", provider="closed", modelId="m")
        assert not ran.exists()
        a.prompt("SAY one")
        data(a, "refresh_models")
        a.prompt("SAY two")
        assert ran.read_text() == "x\n"
    assert [request.headers["x-api-key"] for request in server.requests] == [masked(SECRET)] * 2


# ---- logging in --------------------------------------------------------------------------------------------------


@pytest.mark.shows("login_provider", error="Provider login requires an interactive input host")
@pytest.mark.shows("login_provider", error="Provider does not support API-key login: …")
@pytest.mark.shows("login_provider", error="Unknown OAuth provider: …")
@pytest.mark.shows("cancel_login_provider")
def test_a_login_tells_that_nobody_can_be_asked_here(agent: Start) -> None:
    with agent() as a:
        interactive = "Provider login requires an interactive input host"
        assert refusal(a, "login_provider", provider="anthropic", authType="api_key") == interactive
        unknown = "Provider does not support API-key login: nobody"
        assert refusal(a, "login_provider", provider="nobody", authType="api_key") == unknown
        for fields in ({}, {"authType": "oauth", "loginId": "l"}):
            assert refusal(a, "login_provider", provider="anthropic", **fields) == "Unknown OAuth provider: anthropic"
        assert a.request("cancel_login_provider", provider="anthropic", loginId="l")["success"]


# ---- secrets -----------------------------------------------------------------------------------------------------


def test_a_credential_is_in_no_record_no_line_no_trace_and_no_session(agent: Start, home: Any) -> None:
    trace = home.path / "trace.jsonl"
    with agent("--trace", str(trace), "--api-key", f"{SECRET}-flag", provider="fa") as a:
        data(a, "save_provider_credential", provider="closed", credential=KEY)
        data(a, "set_model", provider="closed", modelId="m")
        a.prompt("SAY hello")
        refusal(a, "save_provider_credential", provider="closed", credential={"type": SECRET})
        assert not a.request("save_provider_credential", provider="closed", credential=SECRET)["success"]
        data(a, "logout_provider", provider="closed")
        records = b"\n".join(a.raw_lines)
    written = [trace, *home.session_files()]
    assert len(written) == 2
    assert [file for file in written if SECRET in file.read_text()] == []
    assert SECRET.encode() not in records and SECRET not in a.stderr


# ---- from the shell ----------------------------------------------------------------------------------------------


def auth(home: Any, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
    script = Path(sys.executable).with_name("atomic")
    command = [str(script)] if script.exists() else [sys.executable, "-m", "runtime.main"]
    environment = {**home.environment(), "PYTHONPATH": str(Path(__file__).resolve().parents[2]), **env}
    return subprocess.run([*command, "auth", *args], cwd=home.cwd, env=environment, capture_output=True, text=True)


def test_another_program_gets_the_credential_alone(agent: Start, home: Any) -> None:
    with agent() as a:
        data(a, "save_provider_credential", provider="closed", credential=KEY)
    printed = auth(home, "print-api-key", "--model", "closed/m")
    assert (printed.returncode, printed.stdout, printed.stderr) == (0, f"{SECRET}\n", "")
    token = auth(home, "print-bearer-token", "--model", "claude-opus-5-5", ANTHROPIC_AUTH_TOKEN=SECRET)
    assert (token.returncode, token.stdout) == (0, f"{SECRET}\n")


def test_a_failure_prints_nothing_and_has_a_code_of_its_own(home: Any) -> None:
    calls = {
        "print-api-key": 2,
        "print-api-key --model zzz": 3,
        "print-api-key --model closed/m": 4,
        "print-bearer-token --model fa/m": 6,
        "check --model closed/m": 1,
        "check --model zzz": 2,
    }
    found = {call: auth(home, *call.split()) for call in calls}
    assert {call: run.returncode for call, run in found.items()} == calls
    assert {run.stdout for run in found.values()} == {""}
    assert all(run.stderr.count("\n") == 1 for run in found.values())
