"""Which sessions a folder holds, which was used last, and which one an id means."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from actors.session.listing import find_everywhere, find_sessions, list_sessions, most_recent, read_listed

STAGE = {"runId": "r", "stageId": "s", "stageName": "n"}


def session(folder: Path, name: str, session_id: str, age: int, cwd: str = "/p", **fields: Any) -> Path:
    path = folder / f"{name}.jsonl"
    folder.mkdir(exist_ok=True)
    header = {"type": "session", "version": 3, "id": session_id, "timestamp": "t", "cwd": cwd, **fields}
    path.write_text(json.dumps(header) + '\n{"type":"custom"}\n')
    os.utime(path, (1_000_000 - age, 1_000_000 - age))
    return path


def test_sessions_are_listed_latest_first_and_everything_else_is_passed_over(tmp_path: Path) -> None:
    session(tmp_path, "old", "id-old", 9)
    session(tmp_path, "new", "id-new", 1)
    (tmp_path / "notes.jsonl").write_text("not a session\n")
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "new.jsonl.2026.compact.bak").write_text((tmp_path / "new.jsonl").read_text())
    (tmp_path / "dir.jsonl").mkdir()
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "dangling.jsonl").symlink_to("nowhere")
    assert [each.id for each in list_sessions(str(tmp_path))] == ["id-new", "id-old"]


def test_a_missing_folder_has_no_sessions(tmp_path: Path) -> None:
    assert list_sessions(str(tmp_path / "no")) == [] and most_recent(str(tmp_path / "no")) is None
    assert find_everywhere(str(tmp_path / "no"), "x") == []


def test_a_header_longer_than_one_read_is_read_whole(tmp_path: Path) -> None:
    path = session(tmp_path, "long", "id", 0, parentSession="/" + "x" * 200_000)
    listed = read_listed(str(path))
    assert listed is not None and listed.id == "id"


def test_the_most_recent_is_by_file_time_and_not_of_a_workflow(tmp_path: Path) -> None:
    session(tmp_path, "z", "old", 5)
    session(tmp_path, "a", "used", 2)
    session(tmp_path, "b", "stage", 1, internal=True, workflow=STAGE)
    found = most_recent(str(tmp_path))
    assert found is not None and found.id == "used"


@pytest.mark.parametrize(
    "fields",
    [
        {"internal": True},
        {"internal": 1, "workflow": STAGE},
        {"internal": True, "workflow": {**STAGE, "stageName": " "}},
        {"workflow": STAGE},
    ],
)
def test_an_incomplete_marking_hides_nothing(tmp_path: Path, fields: dict[str, Any]) -> None:
    session(tmp_path, "a", "id", 0, **fields)
    assert most_recent(str(tmp_path)) is not None


def test_in_a_shared_folder_only_sessions_of_the_project_count(tmp_path: Path) -> None:
    session(tmp_path, "a", "mine", 5, cwd="/mine")
    session(tmp_path, "b", "other", 1, cwd="/other")
    found = most_recent(str(tmp_path), "/mine")
    assert found is not None and found.id == "mine"
    assert most_recent(str(tmp_path), "/third") is None


def test_an_exact_id_beats_a_prefix_and_a_prefix_finds_all_the_latest_first(tmp_path: Path) -> None:
    session(tmp_path, "a", "ab", 9)
    session(tmp_path, "b", "abc", 5)
    session(tmp_path, "c", "abd", 1)
    ids = [[each.id for each in find_sessions(str(tmp_path), wanted)] for wanted in ("ab", "a", "x")]
    assert ids == [["ab"], ["abd", "abc", "ab"], []]


def test_a_session_of_another_project_is_found_by_id(tmp_path: Path) -> None:
    session(tmp_path / "one", "a", "abc", 1, cwd="/one")
    session(tmp_path / "two", "b", "ab", 1, cwd="/two")
    ids = [sorted(each.id for each in find_everywhere(str(tmp_path), wanted)) for wanted in ("ab", "a", "abc", "z")]
    assert ids == [["ab"], ["ab", "abc"], ["abc"], []]
