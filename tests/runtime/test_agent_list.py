"""`atomic agents` lists what there is in a folder, and shows one."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from runtime.agent_list import run


class Place:
    def __init__(self, root: Path) -> None:
        self.agent, self.cwd = root / "agent", root / "project"
        self.cwd.mkdir()
        self.env = {"HOME": str(root), "ATOMIC_CODING_AGENT_DIR": str(self.agent)}
        self.put(self.agent / "agents" / "mine.md", "name: mine\ndescription: is mine\nmodel: p/m:low\ntools: read, ls")
        self.put(self.cwd / ".atomic" / "agents" / "ours.md", "name: ours\ndescription: of the project")

    def put(self, path: Path, head: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"---\n{head}\n---\nDo it.\nWell.\n")

    def settings(self, **subagents: object) -> None:
        (self.agent / "settings.json").write_text(json.dumps({"subagents": subagents}))

    def run(self, *argv: str) -> int:
        return run(argv, self.env, str(self.cwd))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_the_table_tells_whose_each_is_and_a_project_counts_when_it_is_trusted(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    assert place.run() == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == ["agent", "whose", "model", "context", "description"]
    assert [row.split()[0] for row in rows] == ["analyst", "mine", "reviewer", "scout", "worker"]
    assert rows[1].split() == ["mine", "user", "p/m:low", "fresh", "is", "mine"]
    assert place.run("--approve") == 0
    assert "ours      project" in capsys.readouterr().out


def test_a_disabled_one_is_shown_as_such(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.settings(agentOverrides={"scout": {"disabled": True}})
    place.run()
    assert "builtin, disabled" in capsys.readouterr().out
    place.run("--json")
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {each["name"]: each["disabled"] for each in told}["scout"] is True


def test_json_is_utf_8_on_a_stdout_of_another_encoding(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="cp1252"))
    place.put(place.agent / "agents" / "mine.md", "name: mine\ndescription: \u8a8d\u8a3c")
    assert place.run("mine", "--json") == 0
    assert json.loads(written.getvalue().decode())["description"] == "\u8a8d\u8a3c"


def test_one_is_shown_with_its_instructions(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    assert place.run("mine") == 0
    out = capsys.readouterr().out
    assert f"path: {place.agent}/agents/mine.md\ndisabled: false\ntools: read, ls\nmodel: p/m:low\n" in out
    assert out.endswith("\n\nDo it.\nWell.\n")
    assert place.run("mine", "--json") == 0
    (told,) = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert (told["systemPrompt"], told["tools"], told["skills"]) == ("Do it.\nWell.", ["read", "ls"], None)


def test_one_that_is_not_there_is_told_with_those_that_are(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    assert place.run("nobody") == 1
    out, err = capsys.readouterr()
    assert (out, err) == ("", "atomic: Unknown agent: nobody. There are analyst, mine, reviewer, scout, worker\n")


def test_what_is_wrong_with_a_file_goes_to_stderr_and_nothing_moves_the_cursor(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    place.put(place.agent / "agents" / "broken.md", "name: [")
    place.put(place.agent / "agents" / "evil.md", 'name: evil\ndescription: "a\\e[2Jb\\nc"')
    assert place.run() == 0
    out, err = capsys.readouterr()
    assert "broken.md is skipped" in err and "a [2Jb c" in out and "\x1b" not in out
    assert place.run("evil") == 0
    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.parametrize("argv", [["a", "b"], ["--all"]])
def test_a_call_that_makes_no_sense_is_code_2(place: Place, argv: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        place.run(*argv)
    assert ended.value.code == 2
