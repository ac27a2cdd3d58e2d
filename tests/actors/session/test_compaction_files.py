"""Files that a compaction leaves: whole, new, and for their owner alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from actors.session.compaction_files import DiskFiles, safe_label

NOW = 1767225600123


@pytest.fixture
def session(tmp_path: Path) -> Path:
    path = tmp_path / "s.jsonl"
    path.write_bytes(b'{"type":"session"}\n' + b"x" * 3_000_000)
    return path


def files() -> DiskFiles:
    return DiskFiles(lambda: NOW, lambda: "0190-7")


def test_a_backup_is_the_file_as_it_was_under_a_name_that_tells_when_and_why(session: Path) -> None:
    path = files().back_up(str(session), "auto-compact")
    assert path == f"{session}.2026-01-01T00-00-00-123Z.auto-compact.bak"
    assert Path(path).read_bytes() == session.read_bytes()
    assert Path(path).stat().st_mode & 0o777 == 0o600


def test_nothing_is_overwritten(session: Path) -> None:
    path = files().back_up(str(session), "compact")
    Path(path).write_text("mine")
    with pytest.raises(FileExistsError):
        files().back_up(str(session), "compact")
    assert Path(path).read_text() == "mine"
    first = files().keep_answer(str(session), "success", {"response": "1,2"})
    assert first is not None
    assert files().keep_answer(str(session), "success", {"response": "3,4"}) is None
    assert json.loads(Path(first).read_text())["response"] == "1,2"


def test_an_answer_is_kept_beside_the_session(session: Path) -> None:
    path = files().keep_answer(str(session), "diagnostic", {"response": "caf\u00e9 \ud83d"})
    assert path == f"{str(session)[:-6]}-compaction-diagnostic-{NOW}-0190-7.json"
    kept = json.loads(Path(path).read_text())
    assert kept["category"] == "diagnostic" and kept["version"] == 1
    assert kept["timestamp"] == "2026-01-01T00:00:00.123Z" and kept["response"].startswith("caf\u00e9")
    assert Path(path).stat().st_mode & 0o777 == 0o600


def test_where_nothing_can_be_written_the_answer_is_not_kept(tmp_path: Path) -> None:
    assert files().keep_answer(str(tmp_path / "gone" / "s.jsonl"), "success", {}) is None


@pytest.mark.parametrize(
    ("label", "safe"),
    [("auto-compact", "auto-compact"), ("a/../b c", "a-b-c"), ("--x--", "x"), ("///", "backup"), ("\u00e9", "backup")],
)
def test_a_label_is_fit_for_a_file_name(label: str, safe: str) -> None:
    assert safe_label(label) == safe
