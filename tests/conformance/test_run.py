"""Running many cases: which are chosen, in what order their verdicts come, and that one broken case hides no other."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from conformance.player import Target
from conformance.profile import Profile
from conformance.run import chosen, run

AGENT = Path(__file__).with_name("small_agent.py")
GOOD = [{"send": {"id": "1", "type": "get_state"}}, {"expect": {"type": "response", "id": "1"}}]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Four cases in two sections; `b/broken` writes outside of its folders."""
    write(tmp_path / "a" / "one.jsonl", "contract", GOOD)
    write(tmp_path / "a" / "two.jsonl", "stricter", GOOD)
    write(
        tmp_path / "b" / "broken.jsonl", "contract", [{"shell": "ln -s / out"}, {"write": "cwd/out/x", "content": ""}]
    )
    write(tmp_path / "b" / "one.jsonl", "reference", GOOD)
    return tmp_path


def write(file: Path, level: str, lines: list[dict[str, Any]]) -> None:
    file.parent.mkdir(exist_ok=True)
    shows = {"file": "rpc-protocol.md", "heading": "get_state", "says": "something"}
    header = {"format": 1, "title": str(file), "level": level, "shows": shows}
    file.write_text("".join(json.dumps(line) + "\n" for line in [header, *lines]))


@pytest.mark.parametrize(
    ("only", "levels", "names"),
    [
        ([], [], ["a/one", "a/two", "b/broken", "b/one"]),
        (["a"], [], ["a/one", "a/two"]),
        (["*/one"], [], ["a/one", "b/one"]),
        (["a/two", "b/b*"], [], ["a/two", "b/broken"]),
        ([], ["stricter", "reference"], ["a/two", "b/one"]),
        (["a"], ["reference"], []),
    ],
)
def test_cases_are_chosen_by_section_glob_and_level(
    folder: Path, only: list[str], levels: list[str], names: list[str]
) -> None:
    assert [case.name for case in chosen([str(folder)], only, levels)] == names


def test_a_case_can_be_named_by_its_file(folder: Path) -> None:
    assert [case.name for case in chosen([str(folder / "a" / "two.jsonl")], [], [])] == ["two"]


def test_verdicts_come_in_the_order_of_the_cases_and_a_broken_case_is_an_error(folder: Path) -> None:
    target = Target([sys.executable, "-I", "-S", str(AGENT)], Profile("small"))
    told: list[str] = []
    verdicts = run(chosen([str(folder)], [], []), target, 3, lambda verdict: told.append(verdict.case.name))
    outcomes = {verdict.case.name: verdict.outcome for verdict in verdicts}
    assert outcomes == {"a/one": "passed", "a/two": "passed", "b/broken": "error", "b/one": "passed"}
    assert list(outcomes) == sorted(told)
    assert verdicts[2].reason == "cwd/out/x is outside of the folders of the case"


def test_nothing_is_left_of_a_run(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    target = Target([sys.executable, "-I", "-S", str(AGENT), "--break=leaves-a-child"], Profile("small"))
    run(chosen([str(folder)], ["a/one"], []), target, 1)
    assert list(scratch.iterdir()) == []
