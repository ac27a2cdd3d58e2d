"""Opening session files: what is tolerated, what is refused, and that no acknowledged entry is ever lost."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.session.file import OpenedSession, SessionFileError, Stamps, new_session, open_session, read_session
from actors.session.journal import SessionInUse
from actors.session.naming import BadSessionId
from protocol.entry_head import WorkflowStage

ROOT = Path(__file__).resolve().parents[3]
HEADER = b'{"type":"session","version":3,"id":"s-1","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/srv/app"}'
MARK = '{"type":"message","id":"%s","parentId":%s,"timestamp":"t","message":{"role":"user","content":"%s"}}'


def stamps() -> Stamps:
    numbers = itertools.count(1)
    return Stamps(
        now=lambda: 1767225600000,
        uuid7=lambda: f"01900000-0000-7000-8000-{next(numbers):012x}",
        uuid4=lambda: f"{next(numbers):08x}-0000-4000-8000-000000000000",
    )


def user(entry_id: str, text: str = "hi", parent: str = "null") -> bytes:
    return (MARK % (entry_id, parent, text)).encode()


def opened(path: Path) -> OpenedSession:
    return open_session(str(path), stamps(), "/home/u")


def reopened_ids(path: Path) -> list[str]:
    session = opened(path)
    session.journal.close()
    return [entry.head.id for entry in session.entries]


def session_file(tmp_path: Path, *lines: bytes, end: bytes = b"\n") -> Path:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"\n".join((HEADER, *lines)) + end)
    return path


def test_header_and_entries_come_back_in_order(tmp_path: Path) -> None:
    session = opened(session_file(tmp_path, user("a"), user("b", parent='"a"')))
    assert (session.header.id, session.header.cwd, session.notes) == ("s-1", "/srv/app", ())
    assert [entry.raw for entry in session.entries] == [user("a"), user("b", parent='"a"')]
    session.journal.close()


@pytest.mark.parametrize("junk", [b"not json", b"\0\0\0\0", b"", b"[1]", b"null", b'{"type":"message"}', b"[" * 5000])
def test_bad_lines_cost_nothing_but_themselves(tmp_path: Path, junk: bytes) -> None:
    path = session_file(tmp_path, user("a"), junk, user("b"))
    before = path.read_bytes()
    assert reopened_ids(path) == ["a", "b"]
    assert path.read_bytes() == before


def test_lines_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    path = session_file(tmp_path, b"not json", user("a"), b"{")
    session = opened(path)
    session.journal.close()
    assert session.notes == (f"Session file has 2 unreadable lines: {path}",)


def test_an_entry_behind_a_block_of_nuls_is_found(tmp_path: Path) -> None:
    assert reopened_ids(session_file(tmp_path, b"\0\0\0\0" + user("a"))) == ["a"]


def test_a_later_header_is_ignored_and_duplicate_entries_are_kept(tmp_path: Path) -> None:
    assert reopened_ids(session_file(tmp_path, user("a"), HEADER, user("a"), user("b"))) == ["a", "a", "b"]


def test_unknown_types_are_kept(tmp_path: Path) -> None:
    assert reopened_ids(session_file(tmp_path, b'{"type":"hologram","id":"h","parentId":null}')) == ["h"]


def test_separators_of_other_languages_and_lone_surrogates_survive(tmp_path: Path) -> None:
    lines = [user("a", "one\u2028two\u2029three\u0085"), user("b", "bad \\ud83d end")]
    session = opened(session_file(tmp_path, *lines))
    session.journal.close()
    assert [entry.raw for entry in session.entries] == lines
    assert [entry.head.id for entry in session.entries] == ["a", "b"]


def test_invalid_utf8_is_repaired_in_what_is_shown_and_left_alone_in_the_file(tmp_path: Path) -> None:
    path = session_file(tmp_path, user("a").replace(b"hi", b"h\xffi"))
    before = path.read_bytes()
    session = opened(path)
    session.journal.close()
    assert json.loads(session.entries[0].raw)["message"]["content"] == "h\ufffdi"
    assert path.read_bytes() == before


def test_lines_longer_than_the_read_chunk_are_read_whole(tmp_path: Path) -> None:
    long = user("a", "\u00e4" * 1_700_001)
    session = opened(session_file(tmp_path, user("z", "x" * 999), long, user("b")))
    session.journal.close()
    assert [entry.raw for entry in session.entries] == [user("z", "x" * 999), long, user("b")]


@pytest.mark.parametrize("end", [b"", b'\n{"type":"message","id":"zz","mess', b"\n\xe2\x82"])
def test_an_append_after_a_file_without_last_line_feed_stands_alone(tmp_path: Path, end: bytes) -> None:
    path = session_file(tmp_path, user("a"), end=end)
    session = opened(path)
    session.journal.append(user("new"))
    session.journal.close()
    assert reopened_ids(path) == ["a", "new"]
    assert path.read_bytes().startswith(HEADER + b"\n" + user("a") + end)


def test_continuing_a_file_without_assistant_message_writes_the_header_once(tmp_path: Path) -> None:
    path = session_file(tmp_path, user("a"))
    session = opened(path)
    session.journal.append(b'{"type":"session_info","id":"n","parentId":"a","timestamp":"t","name":"x"}')
    session.journal.append(user("b"))
    session.journal.close()
    assert path.read_bytes().count(b'"type":"session"') == 1
    assert reopened_ids(path) == ["a", "n", "b"]


@pytest.mark.parametrize("text", [b"# my notes\nkeep me\n", b"\n", HEADER.replace(b'"s-1"', b"7"), user("a") + b"\n"])
def test_a_file_that_is_no_session_is_refused_by_name_and_left_alone(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "notes.md"
    path.write_bytes(text)
    with pytest.raises(SessionFileError) as caught:
        opened(path)
    assert str(caught.value) == f"Session file is not a valid atomic session: {path}"
    assert path.read_bytes() == text
    with pytest.raises(SessionFileError, match="not a valid atomic session"):
        read_session(str(path), stamps().uuid4)


def test_an_empty_file_gets_its_header_at_once(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.touch()
    session = opened(path)
    header = json.loads(path.read_bytes())
    assert (header["version"], header["id"], header["cwd"]) == (3, session.header.id, "/home/u")
    assert session.journal.exists_on_disk
    session.journal.close()


@pytest.mark.parametrize("value", [b"true", b"null", b'"3"', b"3.5", b"-3", b"[]"])
def test_a_header_whose_version_is_none_is_refused_by_its_value_and_left_alone(tmp_path: Path, value: bytes) -> None:
    path = session_file(tmp_path, user("a"))
    before = path.read_bytes().replace(b'"version":3', b'"version":' + value)
    path.write_bytes(before)
    for read in (lambda: opened(path), lambda: read_session(str(path), stamps().uuid4)):
        with pytest.raises(SessionFileError) as caught:
            read()
        told = f'"version" must be a whole number from 1 up, got {value.decode()}'
        assert str(caught.value) == f"Session file has an invalid header: {path}: {told}"
    assert path.read_bytes() == before
    path.write_bytes(before.replace(value, b"3", 1))
    assert reopened_ids(path) == ["a"]  # it was let go


def test_a_version_of_3_point_0_is_the_current_one(tmp_path: Path) -> None:
    path = session_file(tmp_path, user("a"))
    before = path.read_bytes().replace(b'"version":3', b'"version":3.0')
    path.write_bytes(before)
    session = opened(path)
    session.journal.close()
    assert session.header.version == 3 and path.read_bytes() == before


def test_a_link_without_target_is_a_new_session_at_the_target(tmp_path: Path) -> None:
    link, target = tmp_path / "link.jsonl", tmp_path / "deep" / "x.jsonl"
    link.symlink_to(target)
    session = opened(link)
    session.journal.append(user("a"))
    session.journal.close()
    assert link.is_symlink() and reopened_ids(target) == reopened_ids(link) == ["a"]


def test_a_link_to_itself_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").symlink_to("x.jsonl")
    with pytest.raises(SessionFileError, match="Too many levels of symbolic links"):
        opened(tmp_path / "x.jsonl")


WITHOUT_RIGHTS = """
import os, sys
from actors.session.file import SessionFileError, Stamps, new_session, open_session
if os.geteuid() == 0:
    os.setuid(65534)
stamps = Stamps(lambda: 0, lambda: "u7", lambda: "u4")
folder = sys.argv[1]
for make in (lambda: open_session(folder + "/x.jsonl", stamps, "/"), lambda: new_session(stamps, "/", folder)):
    try:
        make()
        print("stands")
    except SessionFileError as error:
        print(error)
"""


def test_a_session_whose_folder_cannot_be_written_is_refused_before_its_first_message() -> None:
    with TemporaryDirectory() as folder:  # outside of tmp_path, which another user cannot enter
        os.chmod(folder, 0o555)
        done = subprocess.run(
            [sys.executable, "-c", WITHOUT_RIGHTS, folder],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
    refusal = "Session file cannot be created: {}: its folder cannot be written"
    assert done.stdout.splitlines() == [
        refusal.format(f"{folder}/x.jsonl"),
        refusal.format(f"{folder}/1970-01-01T00-00-00-000Z_u7.jsonl"),
    ]


def test_a_missing_path_is_a_new_session_bound_to_it(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er" / "x.jsonl"
    session = opened(path)
    assert path.parent.is_dir() and not path.exists() and session.journal.path == str(path)
    session.journal.append(user("a"))
    session.journal.close()
    assert reopened_ids(path) == ["a"]


def test_folders_pipes_and_unreachable_paths_are_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").touch()
    for name, text in (
        ("", "is a directory"),
        ("pipe", "is not a regular file"),
        ("file/x.jsonl", "cannot be opened"),
        ("n" * 300, "cannot be opened"),
    ):
        with pytest.raises(SessionFileError, match=text):
            opened(tmp_path / name)
        with pytest.raises(SessionFileError):
            read_session(str(tmp_path / name), stamps().uuid4)


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SessionFileError, match="Session folder cannot be made"):
        new_session(stamps(), "/home/u", str(tmp_path / "file" / "sessions"))


def test_an_open_session_is_refused_a_second_time_but_can_be_read(tmp_path: Path) -> None:
    path = session_file(tmp_path, user("a"))
    session = opened(path)
    with pytest.raises(SessionInUse) as caught:
        opened(path)
    assert str(caught.value) == f"Session file is in use by another process: {path}"
    assert len(read_session(str(path), stamps().uuid4).entries) == 1
    session.journal.close()


def test_a_new_session_has_a_name_of_time_and_id_and_a_folder_but_no_file(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    session = new_session(stamps(), "/home/u", str(folder), parent_session="/old.jsonl")
    name = "2026-01-01T00-00-00-000Z_01900000-0000-7000-8000-000000000001.jsonl"
    assert session.journal.path == str(folder / name) and list(folder.iterdir()) == []
    session.journal.append(user("a"))
    session.journal.close()
    assert json.loads((folder / name).read_bytes().split(b"\n")[0]) == {
        "type": "session",
        "version": 3,
        "id": "01900000-0000-7000-8000-000000000001",
        "timestamp": "2026-01-01T00:00:00.000Z",
        "cwd": "/home/u",
        "parentSession": "/old.jsonl",
    }


def test_a_workflow_marks_its_session_as_internal() -> None:
    session = new_session(stamps(), "/", None, workflow=WorkflowStage("r", "s", "n"))
    assert session.header.internal is True
    assert json.loads(bytes(session.header.workflow or b"")) == {"runId": "r", "stageId": "s", "stageName": "n"}


def test_a_session_in_memory_has_no_path() -> None:
    session = new_session(stamps(), "/home/u", None, session_id="my.id", parent_session="")
    assert (session.header.id, session.header.parent_session, session.journal.path) == ("my.id", None, None)


def test_a_bad_id_is_refused() -> None:
    with pytest.raises(BadSessionId):
        new_session(stamps(), "/home/u", None, session_id="../x")


CHARACTERS = st.characters(codec="utf-8", exclude_characters='"\\', exclude_categories=["Cc"])
TEXTS = st.lists(st.text(CHARACTERS), max_size=4)


@settings(max_examples=120, deadline=None)
@given(texts=TEXTS, data=st.data())
def test_a_crash_at_any_byte_loses_no_acknowledged_entry(texts: list[str], data: st.DataObject) -> None:
    lines = [user(f"e{number}", text) for number, text in enumerate(texts)]
    whole = b"".join(each + b"\n" for each in (HEADER, *lines))
    cut = data.draw(st.integers(len(HEADER), len(whole)))
    ends = [len(HEADER) + 1 + sum(len(each) + 1 for each in lines[: n + 1]) for n in range(len(lines))]
    acknowledged = [f"e{number}" for number, end in enumerate(ends) if end <= cut]
    with TemporaryDirectory() as folder:
        path = Path(folder, "x.jsonl")
        path.write_bytes(whole[:cut])
        session = opened(path)
        found = [entry.head.id for entry in session.entries]
        session.journal.append(user("new"))
        session.journal.close()
        assert found[: len(acknowledged)] == acknowledged
        assert reopened_ids(path) == [*found, "new"]


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=300))
def test_no_bytes_behind_a_header_keep_the_session_from_opening(tail: bytes) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "x.jsonl")
        path.write_bytes(HEADER + b"\n" + user("a") + b"\n" + tail)
        assert reopened_ids(path)[0] == "a"
