"""The place where a case is played: files stand before the start, and nothing of the user's own is seen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conformance.profile import Profile, read_profile
from conformance.stage import Stage

URL = "http://127.0.0.1:9"


def stage(root: Path, start: dict[str, Any] | None = None, profile: Profile | None = None) -> Stage:
    return Stage(root, URL, profile or read_profile("atomic"), start or {})


def test_models_and_settings_stand_where_the_profile_says(tmp_path: Path) -> None:
    stage(tmp_path, {"settings": {"retry": {"maxRetries": 7}}, "models": {"own": {"baseUrl": "{{url}}/x"}}})
    models = json.loads((tmp_path / "agent" / "models.json").read_text())["providers"]
    assert (models["fa"]["baseUrl"], models["own"]) == (URL, {"baseUrl": f"{URL}/x"})
    settings = json.loads((tmp_path / "agent" / "settings.json").read_text())
    assert settings["retry"] == {"enabled": True, "maxRetries": 7, "baseDelayMs": 50}


def test_the_folder_of_a_project_has_the_name_of_the_program(tmp_path: Path) -> None:
    stage(tmp_path, {"files": {"cwd/{{project}}/a": "x"}}, Profile("other", project=".other"))
    assert (tmp_path / "cwd" / ".other" / "a").read_text() == "x"


CONTENTS: list[tuple[Any, bytes]] = [
    ("text {{cwd}}", b"text CWD"),
    (["a", {"b": "{{cwd}}"}], b'a\n{"b": "CWD"}\n'),
    ({"lines": ["a", "b"]}, b"a\nb"),
    ({"json": {"a": [1]}}, b'{"a": [1]}'),
    ({"hex": "ff00"}, b"\xff\x00"),
    ({"$times": [3, "ab"]}, b"ababab"),
    ({"text": "plain"}, b"plain"),
]


@pytest.mark.parametrize(("content", "written"), CONTENTS)
def test_files_stand_as_the_format_says(tmp_path: Path, content: Any, written: bytes) -> None:
    stage(tmp_path, {"files": {"cwd/deep/file": content}})
    assert (tmp_path / "cwd" / "deep" / "file").read_bytes() == written.replace(b"CWD", str(tmp_path / "cwd").encode())


def words(root: Path, start: dict[str, Any], change: dict[str, Any] | None = None) -> str:
    command = stage(root, start).command(["x"], change or {}, {})
    return " ".join(command).replace(str(root), "")


def test_the_command_line_is_made_of_profile_and_start(tmp_path: Path) -> None:
    line = words(tmp_path, {"session": "sessions/a.jsonl", "model": "think", "args": ["--name", "{{cwd}}"]})
    assert line == ("x --session-dir /sessions --provider fa --model think --session /sessions/a.jsonl --name /cwd")


def test_a_session_in_memory_and_no_model(tmp_path: Path) -> None:
    assert words(tmp_path, {"in_memory": True, "model": None}) == "x --no-session"


def test_a_restart_changes_what_it_says(tmp_path: Path) -> None:
    line = words(tmp_path, {"args": ["--a"]}, {"session": "/abs/b.jsonl", "args": ["--b"]})
    assert line == "x --session-dir /sessions --provider fa --model m --session /abs/b.jsonl --b"


def test_nothing_of_the_users_own_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OTHER_API_KEY", "https_proxy", "ATOMIC_X", "OPENAI_BASE_URL"):
        monkeypatch.setenv(name, "secret")
    monkeypatch.setenv("KEPT", "yes")
    env = stage(tmp_path, {"env": {"OWN": "{{cwd}}", "HOME": None}}).environment({"env": {"MORE": "1"}}, {})
    assert "secret" not in env.values()
    assert (env["KEPT"], env["OWN"], env["MORE"]) == ("yes", str(tmp_path / "cwd"), "1")
    assert "HOME" not in env
    assert env["ATOMIC_CODING_AGENT_DIR"] == str(tmp_path / "agent")
