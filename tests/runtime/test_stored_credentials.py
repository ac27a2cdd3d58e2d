"""Writing auth.json: one entry at a time, under a lock, for the user's eyes only."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest
from filelock import FileLock

from runtime import stored_credentials
from runtime.stored_credentials import StoredCredentialsError, load_stored, write_stored


def key(text: str) -> dict[str, str]:
    return {"type": "api_key", "key": text}


def test_the_folder_and_the_file_are_made_private(tmp_path: Path) -> None:
    write_stored(str(tmp_path / "new"), "p", key("k"))
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "new" / "auth.json").stat().st_mode & 0o777 == 0o600
    assert load_stored(str(tmp_path / "new"))[0]["p"].key == "k"


def test_a_file_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    (tmp_path / "auth.json").write_text("{}")
    (tmp_path / "auth.json").chmod(0o644)
    write_stored(str(tmp_path), "p", key("k"))
    assert (tmp_path / "auth.json").stat().st_mode & 0o777 == 0o600


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "auth.json").symlink_to(tmp_path / "real" / "kept.json")
    write_stored(str(tmp_path), "p", key("k"))
    assert (tmp_path / "auth.json").is_symlink()
    assert json.loads((tmp_path / "real" / "kept.json").read_text()) == {"p": key("k")}


def test_writers_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    threads = [threading.Thread(target=write_stored, args=(str(tmp_path), f"p{n}", key(str(n)))) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {name: entry.key for name, entry in load_stored(str(tmp_path))[0].items()} == {
        f"p{n}": str(n) for n in range(8)
    }


def test_a_lock_that_another_process_keeps_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_credentials, "LOCK_TIMEOUT_S", 0.05)
    with (
        FileLock(str(tmp_path / "auth.json.lock")),
        pytest.raises(StoredCredentialsError, match="is locked by another process"),
    ):
        write_stored(str(tmp_path), "p", key("s3cret"))
    assert not (tmp_path / "auth.json").exists()


def test_text_that_json_allows_and_utf_8_does_not_is_kept(tmp_path: Path) -> None:
    write_stored(str(tmp_path), "p", key("half \ud83d"))
    assert json.loads((tmp_path / "auth.json").read_bytes())["p"]["key"] == "half \ud83d"


@pytest.mark.parametrize("content", ["{", "[]", '{"a": 1,}'])
def test_a_file_that_makes_no_sense_is_never_written(tmp_path: Path, content: str) -> None:
    (tmp_path / "auth.json").write_text(content)
    for credential in (key("k"), None):
        with pytest.raises(StoredCredentialsError):
            write_stored(str(tmp_path), "p", credential)
    assert (tmp_path / "auth.json").read_text() == content


def test_a_folder_that_takes_no_files_is_told_without_values_and_leaves_no_draft(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoredCredentialsError) as failure:
        write_stored(str(tmp_path / "file"), "p", key("s3cret"))
    assert "s3cret" not in str(failure.value)
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("content", ["{", "[]", '{"p": 7}', '{"p": {"type": "api_key", "key": 7}}'])
def test_every_warning_names_the_path(tmp_path: Path, content: str) -> None:
    (tmp_path / "auth.json").write_text(content)
    (tmp_path / "auth.json").chmod(0o644)
    warnings = load_stored(str(tmp_path))[1]
    assert warnings
    assert [f"{tmp_path}/auth.json" in warning for warning in warnings] == [True] * len(warnings)
    assert all(warning.count(str(tmp_path)) == (2 if "chmod" in warning else 1) for warning in warnings)


def test_what_is_no_unicode_text_is_told_as_such(tmp_path: Path) -> None:
    """Nothing that we write to takes a lone surrogate."""
    document = {"p\ud83d": 7, "q": {"type": "api_key", "key": "s3cret\ud83d"}}
    (tmp_path / "auth.json").write_text(json.dumps(document))
    (tmp_path / "auth.json").chmod(0o600)
    stored, warnings = load_stored(str(tmp_path))
    assert (stored["q"].type, len(warnings)) == ("broken", 2)
    assert "s3cret" not in "".join(warnings).encode().decode()
