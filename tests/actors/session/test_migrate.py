"""Files of versions 1 and 2 are brought to version 3 once, in one step, under the lock."""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path
from typing import Any

import pytest

from actors.session.file import OpenedSession, SessionFileError, Stamps, open_session, read_session
from actors.session.journal import SessionInUse
from actors.session.migrate import migrate, version_of

V1 = {"type": "session", "id": "s", "timestamp": "2025-01-01T00:00:00.000Z", "cwd": "/srv", "extra": 1}


def stamps() -> Stamps:
    numbers = itertools.count(1)
    return Stamps(lambda: 0, lambda: "u7", lambda: f"{next(numbers):08x}-0000-4000-8000-000000000000")


def text(record: dict[str, Any]) -> bytes:
    return json.dumps(record).encode()


def message(role: str, **fields: Any) -> dict[str, Any]:
    return {"type": "message", "timestamp": "t", "message": {"role": role, "content": "x"}, **fields}


def file_of(tmp_path: Path, *lines: bytes) -> Path:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path


def opened(path: Path) -> OpenedSession:
    return open_session(str(path), stamps(), "/")


def test_a_header_without_version_is_of_version_1() -> None:
    assert version_of({}) == 1 and version_of({"version": 2}) == 2 and version_of({"version": "x"}) == 1


def test_version_1_gets_ids_a_chain_and_a_kept_id_instead_of_an_index() -> None:
    lines = [message("user"), message("assistant"), {"type": "compaction", "firstKeptEntryIndex": 2, "summary": "S"}]
    header, new = migrate(dict(V1), [text(each) for each in lines], stamps().uuid4)
    assert json.loads(header) == {**V1, "version": 3}
    entries = [json.loads(each) for each in new]
    assert [(each["id"], each["parentId"]) for each in entries] == [
        ("00000001", None),
        ("00000002", "00000001"),
        ("00000003", "00000002"),
    ]
    assert entries[2]["firstKeptEntryId"] == "00000002" and "firstKeptEntryIndex" not in entries[2]


def test_version_2_renames_the_role_and_keeps_the_bytes_of_every_other_line() -> None:
    kept = b'{"type":"message","id":"a","parentId":null,"timestamp":"t","message":{"role":"user","n":1e2}, "z":[ ]}'
    hook = text(message("hookMessage", id="b", parentId="a"))
    header, new = migrate({**V1, "version": 2}, [kept, hook, b"torn {"], stamps().uuid4)
    assert json.loads(header)["version"] == 3
    assert new[0] == kept and len(new) == 2
    assert json.loads(new[1])["message"]["role"] == "custom"


def test_an_old_file_is_rewritten_once_and_a_second_open_changes_nothing(tmp_path: Path) -> None:
    path = file_of(tmp_path, text(V1), text(message("user")), b"torn {", text(message("hookMessage")))
    os.chmod(path, 0o640)
    session = opened(path)
    session.journal.append(text(message("user", id="new", parentId=session.entries[-1].head.id)))
    session.journal.close()
    after = path.read_bytes()
    again = opened(path)
    again.journal.close()
    assert path.read_bytes() == after and after.count(b"\n") == 4 and b"torn" not in after
    assert [each.head.id for each in again.entries] == ["00000001", "00000002", "new"]
    assert path.stat().st_mode & 0o777 == 0o640 and list(tmp_path.iterdir()) == [path]


def test_the_lock_is_kept_over_the_rename(tmp_path: Path) -> None:
    path = file_of(tmp_path, text(V1), text(message("user")))
    session = opened(path)
    with pytest.raises(SessionInUse):
        opened(path)
    session.journal.close()


def test_a_link_to_an_old_file_stays_a_link(tmp_path: Path) -> None:
    path = file_of(tmp_path, text(V1), text(message("user")))
    link = tmp_path / "link.jsonl"
    link.symlink_to(path)
    opened(link).journal.close()
    assert link.is_symlink() and b'"version":3' in path.read_bytes()


def test_a_version_from_the_future_is_left_alone(tmp_path: Path) -> None:
    path = file_of(tmp_path, text({**V1, "version": 4}), text(message("hookMessage", id="a", parentId=None)))
    before = path.read_bytes()
    opened(path).journal.close()
    assert path.read_bytes() == before


def test_reading_alone_migrates_in_memory_only(tmp_path: Path) -> None:
    path = file_of(tmp_path, text(V1), text(message("user")))
    before = path.read_bytes()
    assert [each.head.id for each in read_session(str(path), stamps().uuid4).entries] == ["00000001"]
    assert path.read_bytes() == before


def test_a_migration_that_cannot_be_written_leaves_the_old_file(tmp_path: Path) -> None:
    path = file_of(tmp_path, text(V1), text(message("user")))
    before = path.read_bytes()
    Path(f"{path}.migrating").mkdir()
    with pytest.raises(SessionFileError, match="cannot be opened"):
        opened(path)
    assert path.read_bytes() == before
