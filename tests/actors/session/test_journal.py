"""The journal: lines are whole or absent, the file begins with the first message, one process writes it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from actors.session.journal import FileJournal, JournalError, MemoryJournal, SessionInUse, open_locked

ROOT = Path(__file__).resolve().parents[3]
HEADER = b'{"type":"session","version":3,"id":"s","timestamp":"t","cwd":"/"}'
LEVEL = b'{"type":"thinking_level_change","id":"a","parentId":null,"timestamp":"t","thinkingLevel":"low"}'
USER = b'{"type":"message","id":"b","parentId":"a","timestamp":"t","message":{"role":"user","content":"x"}}'
BASH = b'{"type":"message","id":"c","parentId":"b","timestamp":"t","message":{"role":"bashExecution","output":""}}'

CHILD_ON_A_FULL_DISK = """
import os, resource, sys
from actors.session.journal import FileJournal, JournalError
path, header, message = sys.argv[1], *(text.encode() for text in sys.argv[2:])
journal = FileJournal.planned(path, header)
def attempt(limit, line):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    try:
        journal.append(line)
    except JournalError as error:
        named = str(error).startswith("Session append failed: ")
        print("refused", os.path.exists(path) and os.path.getsize(path), named)
    else:
        print("written", os.path.getsize(path))
free = resource.RLIM_INFINITY
attempt(10, message)
attempt(free, message)
attempt(os.path.getsize(path) + 10, message)
attempt(free, message)
"""


def child(code: str, *arguments: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    return done.stdout.splitlines()


def stored(path: Path) -> list[bytes]:
    return path.read_bytes().split(b"\n")


def adopted(path: Path) -> FileJournal:
    return FileJournal.adopted(str(path), open_locked(str(path)))


def appended(path: Path, data: bytes) -> None:
    """What another program writes, without asking for the lock."""
    with path.open("ab") as file:
        file.write(data)


def test_nothing_is_on_disk_before_the_first_message_and_then_everything_is(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    journal = FileJournal.planned(str(path), HEADER)
    journal.append(LEVEL)
    assert not path.exists() and not journal.exists_on_disk and journal.path == str(path)
    journal.append(USER)
    assert stored(path) == [HEADER, LEVEL, USER, b""] and journal.exists_on_disk
    journal.close()


@pytest.mark.parametrize("first", [USER, BASH, b'{"id":"x","customType":"n","type":"custom_message","content":""}'])
def test_any_message_brings_the_file_into_being(tmp_path: Path, first: bytes) -> None:
    path = tmp_path / "s.jsonl"
    journal = FileJournal.planned(str(path), HEADER)
    journal.append(first)
    assert stored(path) == [HEADER, first, b""]
    journal.close()


def test_a_session_without_messages_leaves_no_file(tmp_path: Path) -> None:
    journal = FileJournal.planned(str(tmp_path / "s.jsonl"), HEADER)
    journal.append(LEVEL)
    journal.close()
    assert list(tmp_path.iterdir()) == []


def test_a_reopened_file_gets_only_what_is_new(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(HEADER + b"\n" + USER + b"\n")
    journal = adopted(path)
    journal.append(LEVEL)
    journal.append_all([BASH, USER])
    journal.close()
    assert stored(path) == [HEADER, USER, LEVEL, BASH, USER, b""]


def test_a_torn_last_line_stays_alone(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(HEADER + b"\n" + USER[:20])
    journal = adopted(path)
    journal.append(BASH)
    journal.append(LEVEL)
    journal.close()
    assert stored(path) == [HEADER, USER[:20], BASH, LEVEL, b""]


def test_an_empty_file_gets_its_first_line_at_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.touch()
    journal = adopted(path)
    journal.append(HEADER)
    journal.close()
    assert stored(path) == [HEADER, b""]


@pytest.mark.parametrize("before", [[], [LEVEL]])
def test_a_line_that_another_program_left_torn_stays_alone(tmp_path: Path, before: list[bytes]) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(HEADER + b"\n")
    journal = adopted(path)
    for line in before:
        journal.append(line)
    appended(path, USER[:20])
    journal.append(BASH)
    journal.append(LEVEL)
    journal.close()
    assert stored(path) == [HEADER, *before, USER[:20], BASH, LEVEL, b""]


def test_a_whole_line_of_another_program_is_followed_by_ours(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    journal = FileJournal.planned(str(path), HEADER)
    journal.append(USER)
    appended(path, LEVEL + b"\n")
    journal.append(BASH)
    journal.close()
    assert stored(path) == [HEADER, USER, LEVEL, BASH, b""]


@pytest.mark.parametrize("known", ["opened", "written"])
def test_a_file_that_another_program_cut_short_is_refused_for_good(tmp_path: Path, known: str) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(HEADER + b"\n" + USER + b"\n")
    journal = adopted(path)
    if known == "written":
        journal.append(LEVEL)
    left = len(HEADER) + 5
    os.truncate(path, left)
    for _ in range(2):
        with pytest.raises(JournalError) as caught:
            journal.append(BASH)
        assert str(caught.value) == f"Session file was truncated by another program: {path}"
        assert path.stat().st_size == left
    appended(path, b"x" * 1000)
    with pytest.raises(JournalError, match="truncated by another program"):
        journal.append(BASH)
    assert path.stat().st_size == left + 1000
    journal.close()


def test_a_write_cut_short_by_a_full_disk_is_taken_back_and_can_be_repeated(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    first, whole = len(HEADER) + len(USER) + 2, len(HEADER) + 2 * len(USER) + 3
    assert child(CHILD_ON_A_FULL_DISK, str(path), HEADER.decode(), USER.decode()) == [
        "refused False True",
        f"written {first}",
        f"refused {first} True",
        f"written {whole}",
    ]
    assert stored(path) == [HEADER, USER, USER, b""]


def test_a_file_that_was_removed_or_replaced_is_not_written_into_the_void(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    journal = FileJournal.planned(str(path), HEADER)
    journal.append(USER)
    path.unlink()
    with pytest.raises(JournalError, match="removed or replaced"):
        journal.append(BASH)
    journal.close()


def test_a_file_that_appeared_meanwhile_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    journal = FileJournal.planned(str(path), HEADER)
    path.write_bytes(b"mine")
    with pytest.raises(JournalError, match="cannot be created"):
        journal.append(USER)
    assert path.read_bytes() == b"mine"


def test_a_closed_journal_refuses_lines(tmp_path: Path) -> None:
    journal = FileJournal.planned(str(tmp_path / "s.jsonl"), HEADER)
    journal.close()
    with pytest.raises(JournalError, match="closed"):
        journal.append(USER)


def test_a_second_process_is_refused_until_the_journal_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    journal = FileJournal.planned(str(path), HEADER)
    journal.append(USER)
    code = """
import sys
from actors.session.journal import SessionInUse, open_locked
try:
    open_locked(sys.argv[1])
    print("open")
except SessionInUse as error:
    print(error)
"""
    assert child(code, str(path)) == [f"Session file is in use by another process: {path}"]
    journal.close()
    assert child(code, str(path)) == ["open"]


def test_the_lock_is_of_the_file_that_now_stands_at_the_path(tmp_path: Path) -> None:
    path, other = tmp_path / "s.jsonl", tmp_path / "t.jsonl"
    path.write_bytes(b"old")
    other.write_bytes(b"new")
    old = open_locked(str(path))
    new = open_locked(str(other))
    os.replace(other, path)
    with pytest.raises(SessionInUse):
        open_locked(str(path))
    os.close(new)
    again = open_locked(str(path))
    assert os.pread(again, 3, 0) == b"new"
    os.close(old)
    os.close(again)


def test_a_lock_won_on_a_file_that_was_just_replaced_is_given_back(tmp_path: Path) -> None:
    path, other = tmp_path / "s.jsonl", tmp_path / "t.jsonl"
    path.write_bytes(b"old")
    other.write_bytes(b"new")

    def open_and_lose(name: str, flags: int) -> int:
        fd = os.open(name, flags)
        if other.exists():
            os.replace(other, path)
        return fd

    fd = open_locked(str(path), open_and_lose)
    assert os.pread(fd, 3, 0) == b"new"
    os.close(fd)


def test_in_memory_nothing_is_kept() -> None:
    journal = MemoryJournal()
    journal.append(USER)
    journal.append_all([USER])
    journal.close()
    assert journal.path is None and not journal.exists_on_disk
