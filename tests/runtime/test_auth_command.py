"""`atomic auth`: the credential alone on stdout, and an exit code for each way to fail."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runtime.auth_command import run

ENDPOINT = {"baseUrl": "http://h", "api": "anthropic-messages", "models": [{"id": "m"}]}
PROVIDERS: dict[str, Any] = {
    "plain": {**ENDPOINT, "apiKey": "s3cret"},
    "both": {**ENDPOINT, "apiKey": "s3cret", "authHeader": True},
    "command": {**ENDPOINT, "apiKey": "!echo s3cret; echo noise >&2"},
    "broken": {**ENDPOINT, "apiKey": "!echo s3cret; exit 1"},
    "unset": {**ENDPOINT, "apiKey": "$NOT_SET_ANYWHERE"},
    "none": {**ENDPOINT},
    "scripted": {"baseUrl": "http://h"},
}


class Bench:
    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self._capsys = folder, capsys
        (folder / "models.json").write_text(json.dumps({"providers": PROVIDERS}))

    def run(self, *argv: str, **env: str) -> tuple[int, str, str]:
        """Exit code, stdout and stderr."""
        given = {"ATOMIC_CODING_AGENT_DIR": str(self.folder), "HOME": str(self.folder), **env}
        try:
            code = run(argv, given, str(self.folder))
        except SystemExit as stopped:
            code = int(str(stopped.code))
        out, err = self._capsys.readouterr()
        return code, out, err


@pytest.fixture
def bench(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Bench:
    return Bench(tmp_path, capsys)


@pytest.mark.parametrize("model", ["plain/m", "both/m", "command/m"])
def test_an_api_key_is_all_that_stdout_holds(bench: Bench, model: str) -> None:
    assert bench.run("print-api-key", "--model", model) == (0, "s3cret\n", "")


def test_a_stored_key_is_printed_before_that_of_models_json(bench: Bench) -> None:
    (bench.folder / "auth.json").write_text('{"plain": {"type": "api_key", "key": "stored"}}')
    (bench.folder / "auth.json").chmod(0o600)
    assert bench.run("print-api-key", "--model", "plain/m")[:2] == (0, "stored\n")


def test_a_bearer_token_comes_from_the_variable_or_from_the_header(bench: Bench) -> None:
    anthropic = ("print-bearer-token", "--model", "claude-opus-5-5", "--min-expiry", "5m")
    assert bench.run(*anthropic, ANTHROPIC_AUTH_TOKEN="t0ken")[:2] == (0, "t0ken\n")
    assert bench.run("print-bearer-token", "--model", "both/m")[:2] == (0, "s3cret\n")


@pytest.mark.parametrize(
    ("argv", "code", "told"),
    [
        ((), 2, "usage:"),
        (("reveal",), 2, "invalid choice"),
        (("print-api-key",), 2, "--model is needed by print-api-key"),
        (("print-api-key", "--model", " "), 2, "--model"),
        (("print-api-key", "--model", "plain/m", "--min-expiry", "5m"), 2, "--min-expiry"),
        (("print-bearer-token", "--model", "plain/m", "--min-expiry", "5"), 2, '"5"'),
        (("print-bearer-token", "--model", "plain/m", "--min-expiry", "soon"), 2, '"soon"'),
        (("print-bearer-token", "--mod", "plain/m"), 2, "--mod"),
        (("print-api-key", "--model", "zzz"), 3, 'Model "zzz" not found'),
        (("print-api-key", "--model", "none/m"), 4, "No API key for provider: none"),
        (("print-api-key", "--model", "broken/m"), 5, "from shell command"),
        (("print-api-key", "--model", "unset/m"), 5, "NOT_SET_ANYWHERE"),
        (("print-bearer-token", "--model", "plain/m"), 6, "plain has no bearer token; it has an API key."),
        (("print-api-key", "--model", "scripted/scripted"), 6, "it needs none"),
    ],
)
def test_every_failure_has_its_code_and_leaves_stdout_empty(
    bench: Bench, argv: tuple[str, ...], code: int, told: str
) -> None:
    seen, out, err = bench.run(*argv)
    assert (seen, out) == (code, "")
    assert told in err
    assert "s3cret" not in err.replace("echo s3cret", "")  # the command is the user's own text


@pytest.mark.parametrize("argv", [("--help",), ("-h",), ("print-api-key", "--help")])
def test_help_that_was_asked_for_is_no_failure(bench: Bench, argv: tuple[str, ...]) -> None:
    code, out, err = bench.run(*argv)
    assert (code, err) == (0, "")
    assert "exit codes of print-*" in out


def test_every_line_on_stderr_says_who_speaks(bench: Bench) -> None:
    for argv in (("reveal",), ("print-api-key", "--model", "zzz"), ("check", "--model", "none/m")):
        _, _, err = bench.run(*argv)
        assert [line.startswith("atomic: ") for line in err.splitlines()] == [True], argv


def test_a_token_in_place_of_a_key_is_the_other_kind(bench: Bench) -> None:
    code, out, err = bench.run("print-api-key", "--model", "claude-opus-5-5", ANTHROPIC_AUTH_TOKEN="t0ken")
    assert (code, out) == (6, "")
    assert "t0ken" not in err


def test_warnings_go_to_stderr(bench: Bench) -> None:
    code, out, err = bench.run("print-api-key", "--model", "plain/newer")
    assert (code, out) == (0, "s3cret\n")
    assert err == 'atomic: Model "newer" not found for provider "plain". Using custom model id.\n'


@pytest.mark.parametrize(
    ("argv", "code"), [((), 0), (("--model", "plain/m"), 0), (("--model", "none/m"), 1), (("--model", "zzz"), 2)]
)
def test_check_tells_by_its_code_whether_a_prompt_could_be_sent(bench: Bench, argv: tuple[str, ...], code: int) -> None:
    assert bench.run("check", *argv)[:2] == (code, "")


def test_check_without_any_credential_is_not_ready(bench: Bench) -> None:
    (bench.folder / "models.json").write_text("{}")
    assert bench.run("check")[0] == 1


def test_a_check_runs_no_command(bench: Bench) -> None:
    entry = {**ENDPOINT, "apiKey": f"!touch {bench.folder}/ran"}
    (bench.folder / "models.json").write_text(json.dumps({"providers": {"fa": entry}}))
    assert bench.run("check", "--model", "fa/m")[0] == 0
    assert not (bench.folder / "ran").exists()
