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
from actors.session.migrate import BadVersion, migrate, version_of

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


DEEP = (  # deeper than any interpreter reads: 3.13 takes 5,000 levels
    b'{"type":"message","timestamp":"t","message":{"role":"hookMessage","content":'
    + b"[" * 100_000
    + b"]" * 100_000
    + b"}}"
)


def test_a_header_without_version_is_of_version_1() -> None:
    assert version_of({}) == 1


@pytest.mark.parametrize(("number", "version"), [("2", 2), ("3.0", 3), ("2e0", 2), ("4", 4), ("1e300", int(1e300))])
def test_a_version_is_any_whole_number_of_json(number: str, version: int) -> None:
    assert version_of(json.loads(f'{{"version":{number}}}')) == version


@pytest.mark.parametrize("value", ["true", "false", "null", '"3"', "3.5", "-1", "0", "[3]", "{}"])
def test_what_is_no_version_is_refused_by_its_value(value: str) -> None:
    with pytest.raises(BadVersion) as caught:
        version_of(json.loads(f'{{"version":{value}}}'))
    assert str(caught.value) == f'"version" must be a whole number from 1 up, got {value}'


def test_version_1_gets_ids_a_chain_and_a_kept_id_instead_of_an_index() -> None:
    lines = [message("user"), message("assistant"), {"type": "compaction", "firstKeptEntryIndex": 2, "summary": "S"}]
    header, new, dropped = migrate(dict(V1), [text(each) for each in lines], stamps().uuid4)
    assert dropped == 0
    assert json.loads(header) == {**V1, "version": 3}
    entries = [json.loads(each) for each in new]
    assert [(each["id"], each["parentId"]) for each in entries] == [
        ("00000001", None),
        ("00000002", "00000001"),
        ("00000003", "00000002"),
    ]
    assert entries[2]["firstKeptEntryId"] == "00000002" and "firstKeptEntryIndex" not in entries[2]


@pytest.mark.parametrize(("index", "kept"), [("1.0", "00000001"), ("4", "00000004"), ("0", None), ("9", None)])
@pytest.mark.parametrize("junk", [b"[1]", DEEP, b'{"no":"type"}', b'{"type":"session","id":"again"}'])
def test_what_is_no_entry_keeps_its_place_in_a_version_1_file_and_its_bytes_but_is_no_link(
    junk: bytes, index: str, kept: str | None
) -> None:
    compaction = b'{"type":"compaction","firstKeptEntryIndex":%s}' % index.encode()
    lines = [text(message("user")), junk, text(message("assistant")), compaction]
    _, new, dropped = migrate(dict(V1), lines, stamps().uuid4)
    assert dropped == 0 and new[1] == junk
    entries = [json.loads(each) for each in (new[0], new[2], new[3])]
    assert [each["parentId"] for each in entries] == [None, entries[0]["id"], entries[1]["id"]]
    assert entries[2].get("firstKeptEntryId") == kept and "firstKeptEntryIndex" not in entries[2]


def test_an_index_that_points_at_no_entry_means_the_next_one() -> None:
    lines = [text(message("user")), DEEP, text(message("user")), b'{"type":"compaction","firstKeptEntryIndex":2}']
    _, new, _ = migrate(dict(V1), lines, stamps().uuid4)
    assert json.loads(new[3])["firstKeptEntryId"] == json.loads(new[2])["id"]


VALUES = b'"a":1e999,"b":123456789012345678901234567890,"c":"\\ud83d","d":[ 1.0e2 ],"e":%s' % (b"7" * 5000)


def test_a_line_that_is_changed_keeps_every_value_as_it_was_written() -> None:
    line = b'{"type":"message","message":{"role":"hookMessage",%s},%s}' % (VALUES, VALUES)
    _, (first,), dropped = migrate(dict(V1), [line], stamps().uuid4)
    assert dropped == 0
    assert first == (
        b'{"type":"message","message":{"role":"custom",%s},%s,"id":"00000001","parentId":null}' % (VALUES, VALUES)
    )
    _, (second,), dropped = migrate({**V1, "version": 2}, [first.replace(b"custom", b"hookMessage")], stamps().uuid4)
    assert (second, dropped) == (first, 0)


@pytest.mark.parametrize("version", [{}, {"version": 2}, {"version": 2.0}])
def test_only_what_is_no_json_is_dropped_and_it_is_counted(version: dict[str, Any]) -> None:
    broken = [b"torn {", b'{"n":NaN}', b"\xef\xbf\xbd"]
    kept = [DEEP, b"null", b"[" * 100_000, b'{"type":"hologram","message":"hookMessage"}']
    _, new, dropped = migrate({**V1, **version}, [*broken, *kept, *broken], stamps().uuid4)
    assert dropped == 6 and new[:3] == kept[:3] and len(new) == 4


def test_version_2_renames_the_role_and_keeps_the_bytes_of_every_other_line() -> None:
    kept = b'{"type":"message","id":"a","parentId":null,"timestamp":"t","message":{"role":"user","n":1e2}, "z":[ ]}'
    hook = text(message("hookMessage", id="b", parentId="a"))
    header, new, dropped = migrate({**V1, "version": 2}, [kept, hook, b"torn {"], stamps().uuid4)
    assert json.loads(header)["version"] == 3
    assert new[0] == kept and len(new) == 2 and dropped == 1
    assert json.loads(new[1])["message"]["role"] == "custom"


def test_an_old_file_is_rewritten_once_and_a_second_open_changes_nothing(tmp_path: Path) -> None:
    path = file_of(tmp_path, text(V1), text(message("user")), b"torn {", text(message("hookMessage")))
    os.chmod(path, 0o640)
    session = opened(path)
    session.journal.append(text(message("user", id="new", parentId=session.entries[-1].head.id)))
    session.journal.close()
    after = path.read_bytes()
    assert session.notes == (f"Session file lost 1 unreadable line in becoming version 3: {path}",)
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
    (tmp_path / ".00000002-0000-4000-8000-000000000000.tmp").mkdir()
    with pytest.raises(SessionFileError) as caught:
        opened(path)
    assert str(caught.value) == f"Session file cannot be opened: {path}: File exists"
    assert path.read_bytes() == before
    open_session(str(path), Stamps(lambda: 0, lambda: "u7", lambda: "another"), "/").journal.close()  # it was let go


def test_lines_before_the_header_and_lines_nested_too_deep_stay_in_the_file(tmp_path: Path) -> None:
    path = file_of(tmp_path, b"junk", DEEP, text({**V1, "version": 2}), DEEP, text(message("user", id="a")))
    session = opened(path)
    session.journal.close()
    assert path.read_bytes().count(DEEP) == 2 and [each.head.id for each in session.entries] == ["a"]
    assert session.notes == (
        f"Session file lost 1 unreadable line in becoming version 3: {path}",
        f"Session file has 2 unreadable lines: {path}",
    )
