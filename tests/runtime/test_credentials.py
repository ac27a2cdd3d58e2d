"""Credentials: the order of their sources, the exact errors, and that no secret is told."""

from __future__ import annotations

import json
import os
import select
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from protocol.model import Model
from runtime.credentials import AuthStatus, CredentialError, Credentials, no_api_key_text
from runtime.models import merge_models
from runtime.secret_command import run_command
from runtime.stored_credentials import StoredCredential, load_stored


class Commands:
    """Answers commands from a table and keeps what was asked."""

    def __init__(self, **answers: str) -> None:
        self.answers, self.asked = answers, list[str]()

    def __call__(self, command: str) -> str | None:
        self.asked.append(command)
        return self.answers.get(command)


def setup(
    provider: dict[str, Any] | None = None,
    env: dict[str, str] | None = None,
    stored: dict[str, StoredCredential] | None = None,
    commands: Callable[[str], str | None] = lambda _: None,
    **more: Any,
) -> tuple[Credentials, Model]:
    entry = {"baseUrl": "http://h", "api": "anthropic-messages", "models": [{"id": "m"}], **(provider or {})}
    loaded = merge_models({"providers": {"fa": entry}}, scripted=True)
    model = next(model for model in loaded.models if model.provider == "fa")
    return Credentials(env or {}, loaded.providers, stored or {}, commands, **more), model


def builtin(provider: str) -> Model:
    return next(model for model in merge_models({}, scripted=True).models if model.provider == provider)


def test_a_literal_key_of_models_json() -> None:
    credentials, model = setup({"apiKey": "k"})
    assert credentials.status("fa") == AuthStatus(True, "models_json_key")
    assert credentials.resolve("fa", model).api_key == "k"


def test_a_key_from_a_variable_names_it() -> None:
    credentials, model = setup({"apiKey": "${MY_KEY}"}, {"MY_KEY": "v"})
    assert credentials.status("fa") == AuthStatus(True, "environment", "MY_KEY")
    assert credentials.resolve("fa", model).api_key == "v"


def test_a_missing_variable_means_unconfigured_and_is_named() -> None:
    credentials, model = setup({"apiKey": "$NOPE_UNSET"})
    assert not credentials.is_configured("fa")
    with pytest.raises(CredentialError) as failure:
        credentials.resolve("fa", model)
    assert str(failure.value) == ('Failed to resolve API key for provider "fa" from environment variable: NOPE_UNSET')


def test_a_command_runs_at_each_request_and_never_for_a_status() -> None:
    commands = Commands(**{"get key": "from-command"})
    credentials, model = setup({"apiKey": "!get key"}, commands=commands)
    assert credentials.status("fa") == AuthStatus(True, "models_json_command")
    assert commands.asked == []
    assert [credentials.resolve("fa", model).api_key for _ in range(2)] == ["from-command"] * 2
    assert commands.asked == ["get key", "get key"]


def test_a_failed_command_is_named_without_its_output() -> None:
    credentials, model = setup({"apiKey": "!cat key"})
    with pytest.raises(CredentialError) as failure:
        credentials.resolve("fa", model)
    assert str(failure.value) == 'Failed to resolve API key for provider "fa" from shell command: cat key'


def test_a_stored_command_runs_once_even_when_it_fails() -> None:
    commands = Commands()
    credentials, model = setup(stored={"fa": StoredCredential("api_key", "!gone")}, commands=commands)
    for _ in range(2):
        with pytest.raises(CredentialError):
            credentials.resolve("fa", model)
    assert commands.asked == ["gone"]


def test_the_order_is_runtime_stored_models_json_environment() -> None:
    env = {"ANTHROPIC_API_KEY": "env"}
    loaded = merge_models({"providers": {"anthropic": {"headers": {}, "apiKey": "file"}}}, scripted=False)
    model = loaded.models[0]
    stored = {"anthropic": StoredCredential("api_key", "stored")}

    def key(*args: Any) -> tuple[str, str | None]:
        credentials = Credentials(env, *args)
        return credentials.resolve("anthropic", model).api_key, credentials.status("anthropic").source

    assert key({}, {}, run_command) == ("env", "environment")
    assert key(loaded.providers, {}, run_command) == ("file", "models_json_key")
    assert key(loaded.providers, stored, run_command) == ("stored", "stored")
    assert key(loaded.providers, stored, run_command, {"anthropic": "flag"}) == ("flag", "runtime")


@pytest.mark.parametrize(
    "entry", [StoredCredential("oauth"), StoredCredential("broken"), StoredCredential("api_key", "$GONE")]
)
def test_a_stored_credential_owns_its_provider_even_when_useless(entry: StoredCredential) -> None:
    credentials = Credentials({"ANTHROPIC_API_KEY": "env"}, {}, {"anthropic": entry}, run_command)
    assert credentials.status("anthropic") == AuthStatus(False)
    with pytest.raises(CredentialError):
        credentials.resolve("anthropic", builtin("anthropic"))


def test_a_stored_credential_may_bring_its_own_variables() -> None:
    stored = {
        "fa": StoredCredential("api_key", "$LOCAL", {"LOCAL": "v"}),
        "openai": StoredCredential("api_key", None, {"OPENAI_API_KEY": "o"}),
    }
    credentials, model = setup(stored=stored)
    assert credentials.resolve("fa", model).api_key == "v"
    assert credentials.resolve("openai", builtin("openai")).api_key == "o"


def test_the_anthropic_auth_token_travels_as_bearer_only() -> None:
    env = {"ANTHROPIC_AUTH_TOKEN": "t", "ANTHROPIC_API_KEY": "k"}
    credentials = Credentials(env, {}, {}, run_command)
    credential = credentials.resolve("anthropic", builtin("anthropic"))
    assert (credential.api_key, credential.bearer) == ("", "t")
    assert credentials.status("anthropic") == AuthStatus(True, "environment", "ANTHROPIC_AUTH_TOKEN")


def test_a_blank_variable_is_no_key() -> None:
    credentials = Credentials({"OPENAI_API_KEY": "  "}, {}, {}, run_command)
    assert not credentials.is_configured("openai")
    with pytest.raises(CredentialError, match=r"^No API key for provider: openai$"):
        credentials.resolve("openai", builtin("openai"))


def test_headers_are_resolved_with_the_models_own_on_top() -> None:
    entry = {"apiKey": "k", "headers": {"x-a": "$A", "x-b": "p"}, "models": [{"id": "m", "headers": {"x-b": "m"}}]}
    credentials, model = setup(entry, {"A": "a"})
    assert dict(credentials.resolve("fa", model).headers) == {"x-a": "a", "x-b": "m"}


def test_an_unresolved_header_is_named() -> None:
    credentials, model = setup({"apiKey": "k", "headers": {"x-a": "$GONE"}})
    with pytest.raises(CredentialError, match='header "x-a" for provider "fa" from environment variable: GONE'):
        credentials.resolve("fa", model)


def test_auth_header_adds_the_key_as_bearer() -> None:
    credentials, model = setup({"apiKey": "k", "authHeader": True})
    assert dict(credentials.resolve("fa", model).headers) == {"Authorization": "Bearer k"}


def test_the_scripted_provider_needs_no_key() -> None:
    credentials = Credentials({}, {}, {}, run_command)
    assert credentials.is_configured("scripted")
    assert credentials.resolve("scripted", builtin("scripted")).api_key == ""


def test_no_repr_tells_a_secret() -> None:
    credentials, model = setup({"apiKey": "s3cret"}, {"X": "s3cret"}, {"o": StoredCredential("api_key", "s3cret")})
    assert "s3cret" not in repr(credentials) + repr(credentials.resolve("fa", model)) + repr(
        StoredCredential("a", "s3cret")
    )


def test_a_prompt_without_a_key_is_told_what_to_do() -> None:
    assert no_api_key_text("openai").startswith("No API key found for openai.\n\n")
    assert "OPENAI_API_KEY" in no_api_key_text("openai")
    assert no_api_key_text("unknown").startswith("No API key found for the selected model.\n\n")


# ---- auth.json


def stored_from(folder: Path, content: str, mode: int = 0o600) -> tuple[dict[str, StoredCredential], list[str]]:
    path = folder / "auth.json"
    path.write_text(content, "utf-8")
    path.chmod(mode)
    return load_stored(str(folder))


def test_auth_json_is_read(tmp_path: Path) -> None:
    entries = {"a": {"type": "api_key", "key": "k"}, "b": {"type": "oauth", "access": "x", "expires": 1}}
    stored, warnings = stored_from(tmp_path, json.dumps(entries))
    assert warnings == []
    assert (stored["a"].key, stored["b"].type) == ("k", "oauth")


def test_no_auth_json_is_no_fault(tmp_path: Path) -> None:
    assert load_stored(str(tmp_path)) == ({}, [])


@pytest.mark.parametrize("content", ["{", "[]", '"s3cret"'])
def test_a_malformed_auth_json_is_one_line_and_stays_as_it_is(tmp_path: Path, content: str) -> None:
    stored, warnings = stored_from(tmp_path, content)
    assert (stored, len(warnings)) == ({}, 1)
    assert "s3cret" not in warnings[0]
    assert (tmp_path / "auth.json").read_text("utf-8") == content


@pytest.mark.parametrize("entry", ['"s3cret"', '{"key": "s3cret"}', '{"type": "api_key", "key": ["s3cret"]}'])
def test_a_broken_entry_is_told_by_type_and_keeps_its_provider(tmp_path: Path, entry: str) -> None:
    stored, warnings = stored_from(tmp_path, f'{{"openai": {entry}}}')
    assert len(warnings) == 1
    assert "s3cret" not in warnings[0]
    assert not Credentials({"OPENAI_API_KEY": "k"}, {}, stored, run_command).is_configured("openai")


@pytest.mark.skipif(os.name == "nt", reason="modes of POSIX")
def test_an_auth_json_that_others_can_read_is_pointed_out(tmp_path: Path) -> None:
    assert "chmod 600" in stored_from(tmp_path, "{}", 0o644)[1][0]


# ---- real commands


def test_a_real_command_answers_its_output() -> None:
    assert run_command("echo key; echo noise >&2") == "key\n"
    assert run_command("echo key; exit 3") is None


@pytest.mark.skipif(os.name == "nt", reason="process groups of POSIX")
def test_a_command_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    held = tmp_path / "held"
    os.mkfifo(held)
    reader = os.open(held, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert run_command(f"exec 3>{held}; echo up >&3; sleep 60 & wait", timeout_s=0.5) is None
        assert os.read(reader, 100) == b"up\n"
        # End of file: nobody who held the pipe is left.
        assert select.select([reader], [], [], 10)[0] == [reader]
        assert os.read(reader, 100) == b""
    finally:
        os.close(reader)
