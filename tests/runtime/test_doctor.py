"""`atomic doctor` tells what is configured and what is broken, and no secret."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from actors.model.trust import _BUNDLES
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
    assert {found[name][0].mark for name in ("settings.json", "models.json")} == {"!!"}


FILES = ("settings.json", "models.json", "auth.json", "trust.json", ".atomic/settings.json")


@pytest.mark.parametrize("content", ["{", "[7]", "folder", "pipe", "{}"])
@pytest.mark.parametrize("name", FILES)
def test_a_file_is_well_in_all_its_lines_or_in_none(
    env: dict[str, str], tmp_path: Path, name: str, content: str
) -> None:
    if name == ".atomic/settings.json":
        (tmp_path / "agent" / "trust.json").write_text(json.dumps({str(tmp_path): True}))
    path = tmp_path / ("project" if "/" in name else "agent") / name
    path.parent.mkdir(exist_ok=True)
    if content == "folder":
        path.mkdir()
    elif content == "pipe":
        os.mkfifo(path)
    else:
        path.write_text(content)
        path.chmod(0o600)
    found = examine({**env, "OPENAI_API_KEY": SECRET}, str(tmp_path / "project"))
    marks = [each.mark for each in found if str(path) in each.text]
    assert marks == (["ok"] if content == "{}" else ["!!", "!!"])


@pytest.mark.parametrize(
    ("setting", "mark"),
    [
        ({"steeringMode": "x"}, "!!"),
        ({"defaultTools": ["nope"]}, "!!"),
        ({"zzz": 1}, "!!"),
        ({"fallbackModels": [7]}, "!!"),
        ({"steeringMode": "all"}, "ok"),
    ],
)
def test_a_fault_in_a_file_is_a_fault_of_the_file(
    env: dict[str, str], tmp_path: Path, setting: dict[str, Any], mark: str
) -> None:
    (tmp_path / "agent" / "settings.json").write_text(json.dumps(setting))
    found = findings({**env, "OPENAI_API_KEY": SECRET}, tmp_path)
    assert found["settings.json"][0].mark == mark
    assert [each.mark for each in found.get("settings", [])] == ([] if mark == "ok" else ["!!"])


@pytest.mark.parametrize("url", ["nonsense", "ftp://h", f"http://u:{SECRET}@", f"u:{SECRET}@h:1", "http://h:99999"])
def test_a_proxy_that_no_request_gets_through_is_broken(env: dict[str, str], tmp_path: Path, url: str) -> None:
    (tmp_path / "agent" / "settings.json").write_text(json.dumps({"httpProxy": url}))
    for more, source in (({}, "httpProxy"), ({"ALL_PROXY": url}, "ALL_PROXY")):
        (found,) = findings({**env, **more}, tmp_path)["proxy"]
        assert (found.mark, found.text.startswith(source)) == ("!!", True)
        assert SECRET not in found.text


def test_a_proxy_is_told_by_its_source(env: dict[str, str], tmp_path: Path) -> None:
    (found,) = findings({**env, "HTTPS_PROXY": f"http://u:{SECRET}@h:1"}, tmp_path)["proxy"]
    assert found == Finding("ok", "proxy", "from HTTPS_PROXY")


@pytest.mark.parametrize(
    ("name", "mark", "told"),
    [
        ("none.pem", "!!", "is missing"),
        ("", "!!", "is not a regular file"),
        ("notes.pem", "!!", "holds no certificate"),
        ("good.pem", "ok", "good.pem"),
    ],
)
def test_a_file_of_authorities_is_read(env: dict[str, str], tmp_path: Path, name: str, mark: str, told: str) -> None:
    bundle = next(filter(os.path.isfile, _BUNDLES), None)
    if bundle is None:
        pytest.skip("a system without a bundle of authorities")
    (tmp_path / "notes.pem").write_text("no certificate")
    (tmp_path / "good.pem").write_bytes(Path(bundle).read_bytes())
    (tmp_path / "agent" / "settings.json").write_text(json.dumps({"caFile": str(tmp_path / name)}))
    (found,) = findings(env, tmp_path)["caFile"]
    assert (found.mark, told in found.text) == (mark, True)


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
