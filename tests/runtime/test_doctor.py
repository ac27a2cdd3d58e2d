"""`atomic doctor` tells what is configured and what is broken, and no secret."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from runtime.doctor import Finding, examine, run

SECRET = "sk-very-secret-value"


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "agent").mkdir()
    (tmp_path / "project").mkdir()
    return {"HOME": str(tmp_path), "ATOMIC_CODING_AGENT_DIR": str(tmp_path / "agent"), "PATH": "/usr/bin:/bin"}


def findings(env: dict[str, str], tmp_path: Path) -> dict[str, list[Finding]]:
    found: dict[str, list[Finding]] = {}
    for finding in examine(env, str(tmp_path / "project")):
        found.setdefault(finding.subject, []).append(finding)
    return found


def test_a_machine_without_credentials_is_told_so(env: dict[str, str], tmp_path: Path) -> None:
    found = findings(env, tmp_path)
    assert found["providers"][0].mark == "!!"
    assert found["model at start"][0].mark == "!!"
    assert run([], env, str(tmp_path / "project")) == 1


def test_a_credential_is_told_by_its_source_and_never_by_its_value(
    env: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    auth = tmp_path / "agent" / "auth.json"
    auth.write_text(json.dumps({"openai": {"type": "api_key", "key": SECRET}}))
    auth.chmod(0o600)
    assert run([], {**env, "ANTHROPIC_API_KEY": SECRET}, str(tmp_path / "project")) == 0
    out, err = capsys.readouterr()
    assert "ANTHROPIC_API_KEY" in out
    assert "provider openai" in out
    assert SECRET not in out + err
    assert "Nothing is broken." in out


def test_every_fault_of_a_file_is_a_broken_line(env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "agent" / "settings.json").write_text("{")
    (tmp_path / "agent" / "models.json").write_text('{"providers":{"x":{"baseUrl":5}}}')
    found = findings({**env, "OPENAI_API_KEY": SECRET}, tmp_path)
    assert [each.mark for each in found["settings"]] == ["!!"]
    assert "!!" in {each.mark for each in found["models"]}
    assert found["settings.json"][0].mark == "ok"  # it is there; what is wrong in it is told apart


def test_a_default_model_that_cannot_be_had_is_broken(env: dict[str, str], tmp_path: Path) -> None:
    settings = {"defaultProvider": "anthropic", "defaultModel": "claude-0"}
    (tmp_path / "agent" / "settings.json").write_text(json.dumps(settings))
    (found,) = findings({**env, "OPENAI_API_KEY": SECRET}, tmp_path)["model at start"]
    assert (found.mark, "anthropic/claude-0 cannot be had" in found.text) == ("!!", True)


def test_the_files_of_an_untrusted_project_are_told_as_left_out(env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "project" / "AGENTS.md").write_text("be good")
    found = findings(env, tmp_path)
    assert "not trusted" in found["project"][0].text
    assert "instructions" not in found


def test_arguments_are_refused(env: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--all"], env, "/") == 2
    assert capsys.readouterr().out == ""


def test_help_is_on_stdout(env: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"], env, "/") == 0
    assert capsys.readouterr().out.startswith("usage: atomic doctor")
