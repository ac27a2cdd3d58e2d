"""`atomic sessions` lists what is stored, the latest first."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path

import pytest

from runtime.session_list import EDGE_BYTES, run


class Store:
    def __init__(self, root: Path) -> None:
        self.folder, self.cwd = root / "sessions", root / "project"
        self.folder.mkdir()
        self.cwd.mkdir()
        self.env = {"HOME": str(root), "ATOMIC_CODING_AGENT_DIR": str(root / "agent")}
        self.count = 0

    def add(self, session_id: str, *entries: object, cwd: str | None = None, **header: object) -> None:
        """Each is newer than the one before."""
        self.count += 1
        head = {
            "type": "session",
            "version": 3,
            "id": session_id,
            "timestamp": "t",
            "cwd": cwd or str(self.cwd),
            **header,
        }
        path = self.folder / f"{session_id}.jsonl"
        path.write_text("".join(json.dumps(entry) + "\n" for entry in (head, *entries)))
        os.utime(path, (self.count * 60, self.count * 60))

    def run(self, *argv: str) -> int:
        return run(["--session-dir", str(self.folder), *argv], self.env, str(self.cwd))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def said(text: object) -> dict[str, object]:
    return {"type": "message", "id": "e", "parentId": None, "message": {"role": "user", "content": text}}


def named(name: str) -> dict[str, object]:
    return {"type": "session_info", "id": "n", "parentId": None, "name": name}


def test_the_latest_is_first_with_its_name_or_else_its_first_prompt(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    store.add("old", said("first  thing\nasked"), said("second"))
    store.add("new", said([{"type": "text", "text": "question"}]), named("a name"), named("a better name"))
    assert store.run() == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ", 1)[1] for line in lines] == ["new  a better name", "old  first thing asked"]


def test_a_name_at_the_end_of_a_long_file_is_found(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    store.add("long", said("start"), said("x" * (3 * EDGE_BYTES)), named("late"))
    store.run()
    assert capsys.readouterr().out.rstrip().endswith("long  late")


def test_json_is_utf_8_on_a_stdout_of_another_encoding(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="cp1252"))
    store.add("one", said("hi"), named("\u8a8d\u8a3c"))
    store.run("--json")
    assert json.loads(written.getvalue().decode())["text"] == "\u8a8d\u8a3c"


def test_json_is_one_object_a_line(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    store.add("one", said("hi"))
    store.run("--json")
    path = str(store.folder / "one.jsonl")
    record = {"id": "one", "modified": 60_000, "cwd": str(store.cwd), "path": path, "text": "hi"}
    assert json.loads(capsys.readouterr().out) == record


def test_the_limit_counts_from_the_latest_and_0_lifts_it(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(22):
        store.add(f"s{number}", said("hi"))
    store.run("--limit", "1")
    assert "s21" in capsys.readouterr().out
    store.run()
    assert len(capsys.readouterr().out.splitlines()) == 20
    store.run("--limit", "0")
    assert len(capsys.readouterr().out.splitlines()) == 22


def test_sessions_of_workflows_and_what_is_no_session_are_passed_over(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    store.add("inner", internal=True, workflow={"runId": "r", "stageId": "s", "stageName": "n"})
    (store.folder / "broken.jsonl").write_text("nope\n")
    store.add("seen")
    store.run()
    assert capsys.readouterr().out.endswith("seen  (empty)\n")


def test_control_characters_of_a_prompt_do_not_reach_the_terminal(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    store.add("evil", said("\x1b[31mred"))
    store.run()
    assert "\x1b" not in capsys.readouterr().out


ODD: list[object] = [
    5,
    True,
    None,
    [5, None],
    [{"text": 5}],
    {"text": "x"},
    {},
    "",
    "lone \ud83d",
    [{"text": "\ud83d"}],
]


@pytest.mark.parametrize("output", [(), ("--json",), ("--all",)])
def test_no_file_keeps_the_others_from_being_listed(
    store: Store, output: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    store.add("good", said("hi"))
    for number, odd in enumerate(ODD):
        store.add(f"said{number}", said(odd))
        store.add(f"message{number}", {"type": "message", "message": odd, "role": "user"}, {"name": odd, "user": 1})
        store.add(f"name{number}", {"type": "session_info", "name": odd})
        store.add(f"head{number}", cwd="/x\ud83d", timestamp=odd, parentSession=odd, workflow=odd, internal=True)
    assert store.run("--limit", "0", *output) == 0
    out = capsys.readouterr().out
    assert len(out.splitlines()) == 1 + 4 * len(ODD)
    assert "good" in out


@pytest.mark.parametrize("code", ["\x1b[31m", "\r", "\x07", "\x9b2J", "\u202e", "\n"])
def test_nothing_in_a_file_moves_the_cursor_or_begins_a_line(
    store: Store, code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    store.add("said", said(f"a{code}b"), id=f"i{code}d", cwd=f"/f{code}g")
    store.add("named", named(f"a{code}b"))
    assert store.run("--all") == 0
    out = capsys.readouterr().out
    assert len(out.splitlines()) == 2 and "".join(out.splitlines()).isprintable()


def test_an_empty_store_is_told_on_stderr(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert store.run() == 0
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"atomic: No sessions in {store.folder}\n")


def test_the_folders_of_all_projects_are_listed_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = Store(tmp_path)
    root = tmp_path / "agent" / "sessions"
    for project in ("a", "b"):
        store.folder = root / f"--{project}--"
        store.folder.mkdir(parents=True)
        store.add(project, said("hi"), cwd=f"/{project}")
    assert run(["--all"], store.env, str(store.cwd)) == 0
    assert [line.split("  ")[1:3] for line in capsys.readouterr().out.splitlines()] == [["b", "/b"], ["a", "/a"]]


def test_a_wrong_flag_is_refused(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    for argv in (["--newest"], ["--limit", "-1"], ["--limit", "x"]):
        with pytest.raises(SystemExit) as stopped:
            store.run(*argv)
        assert stopped.value.code == 2
    assert capsys.readouterr().out == ""
