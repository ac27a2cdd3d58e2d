"""Models and thinking levels as a client sees them: switching, cycling, saving, and reading the files again."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conformance.driver import Agent, line
from conformance.model_server import ModelServer
from conformance.schema_check import check_line
from tests.held_file import held, needs_leases

Start = Callable[..., Agent]
Record = dict[str, Any]


def data(a: Agent, type_: str, /, **fields: Any) -> Any:
    response = a.request(type_, **fields)
    assert response["success"], response
    return response.get("data")


def refusal(a: Agent, type_: str, /, **fields: Any) -> str:
    response = a.request(type_, **fields)
    assert not response["success"], response
    return str(response["error"])


def settings(home: Any) -> Record:
    found: Record = json.loads((home.agent_dir / "settings.json").read_text())
    return found


def chosen(a: Agent) -> str:
    state = data(a, "get_state")
    return f"{state['model']['provider']}/{state['model']['id']}:{state['thinkingLevel']}"


def since_then(a: Agent, cursor: int) -> list[str]:
    return [record["type"] for record in a.records[cursor:]]


def entries(a: Agent, kind: str) -> list[Record]:
    return [entry for entry in data(a, "get_entries")["entries"] if entry["type"] == kind]


# ---- switching ---------------------------------------------------------------------------------------------------


@pytest.mark.shows("set_model", events=["thinking_level_changed", "model_changed"])
def test_a_switch_tells_the_level_then_the_model_then_answers(agent: Start) -> None:
    with agent(model="think") as a:
        cursor = a.cursor
        data(a, "set_model", provider="fa", modelId="m")
        assert since_then(a, cursor) == ["thinking_level_changed", "model_changed", "response"]
        assert chosen(a) == "fa/m:off"
        data(a, "set_model", provider="fa", modelId="think")
        assert chosen(a) == "fa/think:medium"  # `off` of a model that cannot think is no wish
        assert [entry["thinkingLevel"] for entry in entries(a, "thinking_level_change")] == ["medium", "off", "medium"]


def test_a_prompt_in_the_same_write_goes_to_the_new_model(agent: Start, server: ModelServer) -> None:
    with agent() as a:
        a.send_raw(line("set_model", id="s", provider="fa", modelId="m2") + line("prompt", id="p", message="SAY hello"))
        a.wait({"type": "agent_settled"})
        assert [a.responses(id_)[0]["success"] for id_ in ("s", "p")] == [True, True]
    assert [request.body["model"] for request in server.requests] == ["m2"]


def test_a_switch_is_saved_only_when_asked(agent: Start, home: Any) -> None:
    with agent(model="think") as a:
        data(a, "set_thinking_level", level="high")
        data(a, "cycle_model")
        data(a, "set_model", provider="fa", modelId="m2")
    assert {"defaultProvider", "defaultModel", "defaultThinkingLevel"} & set(settings(home)) == set()
    with agent() as a:
        data(a, "set_model", provider="fa", modelId="think", persist=True)
        data(a, "set_thinking_level", level="low")
        data(a, "set_model", provider="fa", modelId="m", persist=True)
    saved = settings(home)
    assert (saved["defaultProvider"], saved["defaultModel"]) == ("fa", "m")
    assert saved["defaultThinkingLevel"] == "medium"  # the model that was saved last cannot think


@pytest.mark.shows("cycle_model", events=["model_changed"])
def test_cycling_goes_through_all_models_both_ways_and_wraps(agent: Start) -> None:
    with agent() as a:
        names = [f"{model['provider']}/{model['id']}" for model in data(a, "get_available_models")["models"]]
        assert names[0] == "fa/m"
        cursor = a.cursor
        seen = [data(a, "cycle_model") for _ in names]
        assert [f"{one['model']['provider']}/{one['model']['id']}" for one in seen] == [*names[1:], names[0]]
        assert {one["isScoped"] for one in seen} == {False}
        back = data(a, "cycle_model", direction="backward")["model"]
        assert f"{back['provider']}/{back['id']}" == names[-1]
        sources = {record["source"] for record in a.records[cursor:] if record["type"] == "model_changed"}
        assert sources == {"cycle"}


@pytest.mark.shows("cycle_model", events=["thinking_level_changed"])
def test_cycling_stays_in_the_scope_and_takes_its_levels(agent: Start, home: Any) -> None:
    with agent("--models", "fa/think:high,fa/m2") as a:
        scope = data(a, "get_available_models")["scopedModels"]
        assert [(one["model"]["id"], one.get("thinkingLevel")) for one in scope] == [("think", "high"), ("m2", None)]
        # `m` is not in the scope: it counts as the first one
        assert data(a, "cycle_model")["model"]["id"] == "m2"
        answer = data(a, "cycle_model", persist=True)
        assert (answer["model"]["id"], answer["thinkingLevel"], answer["isScoped"]) == ("think", "high", True)
    assert (settings(home)["defaultModel"], settings(home)["defaultThinkingLevel"]) == ("think", "high")


def test_a_scope_of_one_is_nothing_to_cycle_through(agent: Start, home: Any) -> None:
    home.write_settings({"enabledModels": ["fa/m2"]})
    with agent() as a:
        assert a.request("cycle_model")["data"] is None
        assert chosen(a) == "fa/m:off"


def test_a_client_sees_the_switches_of_a_model_under_both_names(agent: Start, home: Any) -> None:
    models = json.loads((home.agent_dir / "models.json").read_text())
    models["providers"]["fa"]["models"][1]["compat"] = {"supportsStrictTools": True, "supportsOpenAIGrammarTools": True}
    home.write_models(models)
    with agent() as a:
        told = data(a, "get_available_models")
        compat = next(model["compat"] for model in told["models"] if model["id"] == "m2")
        assert compat == dict.fromkeys(
            ("supportsStrictTools", "supportsOpenAIGrammarTools", "supportsGrammarTools"), True
        )
        assert (told["customAuthProviders"], told["oauthProviders"]) == ([], [])


# ---- an unsupported default --------------------------------------------------------------------------------------


@pytest.fixture
def locked(home: Any, watched: list[Agent]) -> Callable[..., Agent]:
    """`locked(*args)` starts an agent whose settings name a provider that is not there."""

    def start(*args: str) -> Agent:
        home.write_settings({"defaultProvider": "gone", "defaultModel": "m"})
        command, cwd, env = program_without_model(home)
        watched.append(Agent([*command, *args], cwd=cwd, env=env, check=check_line))
        return watched[-1]

    return start


def program_without_model(home: Any) -> tuple[list[str], Path, dict[str, str]]:
    """The command, its folder and its environment; `agent` always names a model."""
    script = Path(sys.executable).with_name("atomic")
    root = Path(__file__).resolve().parents[2]
    command = [str(script)] if script.exists() else [sys.executable, "-m", "runtime.main"]
    environment = {**home.environment(), "PYTHONPATH": str(root)}
    return [*command, "--mode", "rpc", "--no-session"], home.cwd, environment


@pytest.mark.shows(
    "prompt",
    error="Configured default model is unavailable or unsupported. Update defaultProvider/defaultModel or use /model.",
)
def test_an_unsupported_default_refuses_prompts_until_a_model_is_chosen(locked: Callable[..., Agent]) -> None:
    with locked() as a:
        state = data(a, "get_state")
        assert (state["model"], state["thinkingLevel"]) == (None, "off")
        assert state["modelFallbackReason"] == "configured-provider-unsupported"
        cursor = a.cursor
        assert refusal(a, "prompt", message="SAY hi") == state["modelFallbackMessage"]
        assert since_then(a, cursor) == ["response"]
        assert data(a, "get_available_thinking_levels") == {"levels": ["off"]}
        assert refusal(a, "set_model", provider="gone", modelId="m") == "Model not found: gone/m"
        assert "modelFallbackReason" in data(a, "get_state")
        data(a, "set_model", provider="fa", modelId="m")
        assert "modelFallbackReason" not in data(a, "get_state")
        assert a.prompt("SAY hi")[-1]["type"] == "agent_settled"


def test_cycling_lifts_the_block_only_when_it_finds_another_model(locked: Callable[..., Agent]) -> None:
    with locked("--models", "fa/m") as a:
        # the scope chose a model, so nothing is blocked
        assert chosen(a) == "fa/m:off"
    with locked() as a:
        assert data(a, "cycle_model")["model"]["provider"] == "fa"
        assert "modelFallbackReason" not in data(a, "get_state")


def test_cycling_that_finds_nothing_leaves_the_block(locked: Callable[..., Agent], home: Any) -> None:
    models = json.loads((home.agent_dir / "models.json").read_text())
    models["providers"] = {"fo": models["providers"]["fo"]}
    home.write_models(models)
    with locked() as a:
        assert a.request("cycle_model")["data"] is None
        assert data(a, "get_state")["modelFallbackReason"] == "configured-provider-unsupported"
        assert not a.request("prompt", message="SAY hi")["success"]


# ---- levels ------------------------------------------------------------------------------------------------------


@pytest.mark.shows("set_thinking_level", events=["thinking_level_changed"])
def test_a_level_is_clamped_told_once_and_answered_with_its_model(agent: Start) -> None:
    with agent(model="think") as a:
        cursor = a.cursor
        answer = {"level": "high", "provider": "fa", "modelId": "think"}
        assert data(a, "set_thinking_level", level="max") == answer
        assert data(a, "set_thinking_level", level="xhigh") == answer
        assert since_then(a, cursor) == ["thinking_level_changed", "response", "response"]
        assert a.records[cursor] == {"type": "thinking_level_changed", "level": "high"}
        assert len(entries(a, "thinking_level_change")) == 2


@pytest.mark.shows("cycle_thinking_level", events=["thinking_level_changed"])
@pytest.mark.shows("get_available_thinking_levels")
def test_levels_cycle_and_wrap(agent: Start) -> None:
    with agent("--thinking", "medium", model="think") as a:
        assert data(a, "get_available_thinking_levels") == {"levels": ["off", "minimal", "low", "medium", "high"]}
        assert [data(a, "cycle_thinking_level") for _ in range(2)] == [{"level": "high"}, {"level": "off"}]


def test_a_model_that_cannot_think_has_one_level_and_nothing_to_cycle_or_save(agent: Start, home: Any) -> None:
    with agent() as a:
        cursor = a.cursor
        assert data(a, "set_thinking_level", level="high", persist=True)["level"] == "off"
        assert a.request("cycle_thinking_level")["data"] is None
        assert data(a, "get_available_thinking_levels") == {"levels": ["off"]}
        assert since_then(a, cursor) == ["response"] * 3
    assert {"defaultThinkingLevel", "modelThinkingLevels"} & set(settings(home)) == set()


def test_a_saved_level_is_that_of_its_model_in_the_next_process(agent: Start, home: Any) -> None:
    with agent(model="think") as a:
        data(a, "set_thinking_level", level="low", persist=True)
    saved = settings(home)
    assert (saved["defaultThinkingLevel"], saved["modelThinkingLevels"]) == ("low", {"fa/think": "low"})
    home.write_settings({**saved, "defaultThinkingLevel": "high"})
    with agent(model="think") as a:
        assert chosen(a) == "fa/think:low"
        data(a, "set_model", provider="fa", modelId="m")
        data(a, "set_model", provider="fa", modelId="think")
        assert chosen(a) == "fa/think:low"
    with agent("--thinking", "minimal", model="think") as a:
        assert chosen(a) == "fa/think:minimal"


def test_a_new_session_tells_its_model_and_level_once(agent: Start) -> None:
    with agent(model="think") as a:
        data(a, "set_auto_compaction", enabled=False)
        data(a, "set_thinking_level", level="low")  # not saved, so it stays here
        data(a, "new_session")
        kinds = [entry["type"] for entry in data(a, "get_entries")["entries"]]
        assert kinds == ["model_change", "thinking_level_change"]
        assert chosen(a) == "fa/think:medium"


def test_what_is_saved_holds_in_a_session_that_starts_in_the_same_write(
    locked: Callable[..., Agent], home: Any
) -> None:
    with locked() as a:
        commands = [
            line("set_model", id="1", provider="fa", modelId="think", persist=True),
            line("set_thinking_level", id="2", level="low", persist=True),
            line("set_auto_compaction", id="3", enabled=False),
            line("new_session", id="4"),
            line("get_state", id="5"),
        ]
        a.send_raw(b"".join(commands))
        state = a.wait({"type": "response", "id": "5"})["data"]
        assert (state["model"]["id"], state["thinkingLevel"], state["autoCompactionEnabled"]) == ("think", "low", False)
        assert "modelFallbackReason" not in state


# ---- switches ----------------------------------------------------------------------------------------------------


@pytest.mark.shows("set_auto_compaction", "set_auto_retry")
def test_the_switches_of_compaction_and_retry_are_saved(agent: Start, home: Any) -> None:
    with agent() as a:
        assert data(a, "get_state")["autoCompactionEnabled"] is True
        assert "data" not in a.request("set_auto_compaction", enabled=False)
        assert "data" not in a.request("set_auto_retry", enabled=False)
        assert data(a, "get_state")["autoCompactionEnabled"] is False
        data(a, "new_session")
        assert data(a, "get_state")["autoCompactionEnabled"] is False
        assert "enabled" in refusal(a, "set_auto_retry", enabled="no")
    saved = settings(home)
    assert (saved["compaction"], saved["retry"]["enabled"], saved["retry"]["maxRetries"]) == (
        {"enabled": False},
        False,
        2,
    )


def test_a_broken_settings_file_survives_every_command_that_saves(agent: Start, home: Any) -> None:
    broken = '{"defaultThinkingLevel":"low",\n"mine":1,}\n'
    (home.agent_dir / "settings.json").write_text(broken)
    with agent(model="think") as a:
        data(a, "set_auto_compaction", enabled=False)
        data(a, "set_auto_retry", enabled=False)
        data(a, "set_steering_mode", mode="all")
        data(a, "set_thinking_level", level="high", persist=True)
        data(a, "cycle_model", persist=True)
        assert data(a, "get_state")["autoCompactionEnabled"] is False
        a.wait_stderr('setting "defaultModel" was not saved')
    assert (home.agent_dir / "settings.json").read_text() == broken


# ---- reading the files again -------------------------------------------------------------------------------------


@pytest.mark.shows("refresh_models")
def test_a_refresh_reads_models_and_keys_again_and_tells_faults(agent: Start, home: Any) -> None:
    with agent() as a:
        models = json.loads((home.agent_dir / "models.json").read_text())
        models["providers"]["fa"]["models"][0]["contextWindow"] = 123_456
        models["providers"]["new"] = {**models["providers"]["fo"], "apiKey": "$NOT_THERE"}
        models["providers"]["bad"] = {"baseUrl": 5}
        home.write_models(models)
        (home.agent_dir / "auth.json").write_text('{"new": {"type": "api_key", "key": "k"}}')
        (home.agent_dir / "auth.json").chmod(0o600)
        told = data(a, "refresh_models", timeoutMs=20_000, force=True, allowNetwork=False)
        assert told["aborted"] is False
        assert [error["provider"] for error in told["errors"]] == ["bad"]
        assert "new" in {model["provider"] for model in told["models"]}
        assert (told["scopedModels"], told["customAuthProviders"], told["oauthProviders"]) == ([], [], [])
        # the session's own model is the one that the file describes now
        assert data(a, "get_state")["model"]["contextWindow"] == 123_456
        data(a, "new_session")
        assert data(a, "set_model", provider="new", modelId="m")["provider"] == "new"


def test_a_refresh_of_a_broken_file_keeps_what_there_was(agent: Start, home: Any) -> None:
    with agent() as a:
        before = data(a, "get_available_models")["models"]
        (home.agent_dir / "models.json").write_text("{ broken")
        (home.agent_dir / "auth.json").write_text("[")
        told = data(a, "refresh_models")
        assert sorted(error["provider"] for error in told["errors"]) == ["auth.json", "models.json"]
        assert told["models"] == before
        assert a.prompt("SAY on")[-1]["type"] == "agent_settled"


@needs_leases
def test_a_refresh_that_hangs_is_aborted_at_its_deadline_and_delays_nobody(agent: Start, home: Any) -> None:
    with agent() as a:
        data(a, "get_state")  # it has read the file
        with held(home.agent_dir / "models.json"):
            hanging = a.send("refresh_models")
            assert data(a, "set_model", provider="fa", modelId="m2")["id"] == "m2"
            late = data(a, "refresh_models", timeoutMs=50)
            assert late["aborted"] is True
            assert "fa" in {model["provider"] for model in late["models"]}
            assert a.responses(hanging) == []
        assert a.wait({"type": "response", "id": hanging})["data"]["aborted"] is False


@needs_leases
def test_a_refresh_that_began_before_a_replacement_is_answered_after_it(agent: Start, home: Any) -> None:
    with agent() as a:
        data(a, "get_state")  # it has read the file
        with held(home.agent_dir / "models.json"):
            hanging = a.send("refresh_models")
            data(a, "new_session")
        assert a.wait({"type": "response", "id": hanging})["success"]


# ---- the command line --------------------------------------------------------------------------------------------


def run(home: Any, *args: str) -> subprocess.CompletedProcess[str]:
    command, cwd, env = program_without_model(home)
    return subprocess.run(
        [*command[:-3], *args], cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )


def test_list_models_prints_a_table_and_ends(home: Any) -> None:
    listed = run(home, "--list-models")
    rows = [row.split()[:2] for row in listed.stdout.splitlines()]
    assert (listed.returncode, listed.stderr) == (0, "")
    assert rows[0] == ["provider", "model"] and ["fa", "think"] in rows and ["fo", "m"] in rows
    assert [row.split()[1] for row in run(home, "--list-models", "fa thi").stdout.splitlines()[1:]] == ["think"]
    assert home.session_files() == []


def test_a_key_on_the_command_line_needs_a_model(home: Any) -> None:
    refused = run(home, "--mode", "rpc", "--api-key", "s3cret")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == (
        "atomic: --api-key requires a model to be specified via --model, --provider/--model, or --models\n"
    )


def test_a_pattern_that_fits_nothing_is_one_warning(agent: Start) -> None:
    with agent("--models", "fa/m2,nope") as a:
        assert [one["model"]["id"] for one in data(a, "get_available_models")["scopedModels"]] == ["m2"]
        a.wait_stderr('No models match pattern "nope"')
