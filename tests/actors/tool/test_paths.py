"""Paths and globs as a model writes them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from actors.tool.paths import PathRefused, glob_regex, mutated, relative, resolve
from actors.tool.table import builtin_tools


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("a/b", "/w/a/b"),
        ("./a/../b", "/w/b"),
        ("/etc/x", "/etc/x"),
        ("@a", "/w/a"),
        ("file:///tmp/with%20space", "/tmp/with space"),
        ("~", os.path.expanduser("~")),
        ("a, b", "/w/a, b"),
    ],
)
def test_a_path_is_made_absolute_as_it_was_meant(written: str, meant: str) -> None:
    assert resolve(written, "/w") == meant


@pytest.mark.parametrize(("path", "reason"), [("", "empty"), ("a\0b", "NUL"), ("a\ud83d", "lone surrogate")])
def test_what_no_file_system_takes_is_refused_by_name(path: str, reason: str) -> None:
    with pytest.raises(PathRefused, match=reason):
        resolve(path, "/w")


def test_a_link_and_its_target_are_one_file_for_mutations(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("x")
    (tmp_path / "link").symlink_to("target")
    tools = builtin_tools()
    real = os.path.realpath(tmp_path / "target")
    assert tools["edit"].mutates({"path": "link"}, str(tmp_path)) == real
    assert tools["write"].mutates({"path": "target"}, str(tmp_path)) == real
    assert tools["read"].mutates({"path": "target"}, str(tmp_path)) is None


@pytest.mark.parametrize("arguments", [{}, {"path": 1}, {"path": None}, {"path": "\0"}, {"path": "\ud800"}])
def test_bad_arguments_mutate_nothing_and_raise_nothing(arguments: dict[str, object]) -> None:
    assert mutated(arguments, "/") is None


def test_a_path_outside_stays_absolute() -> None:
    assert relative("/w/a/b", "/w") == "a/b"
    assert relative("/other", "/w") == "/other"
    assert relative("/w/..x", "/w") == "..x"


@pytest.mark.parametrize(
    ("glob", "hits", "misses"),
    [
        ("*.py", ["a.py"], ["a.pyc", "d/a.py"]),
        ("**/*.py", ["a.py", "d/e/a.py"], ["a.txt"]),
        ("src/**", ["src/a", "src/d/a"], ["other/a"]),
        ("a?.{md,txt}", ["ab.md", "ac.txt"], ["a.md", "ab.rst", "a/.md"]),
        ("[!a]x[0-9]", ["bx1"], ["ax1", "bxx"]),
        ("[[]id].tsx", ["[id].tsx"], ["i.tsx"]),
        ("{a", ["{a"], ["a"]),
        ("[z-a]", ["[z-a]"], ["z"]),
    ],
)
def test_globs_match_as_in_a_shell(glob: str, hits: list[str], misses: list[str]) -> None:
    regex = glob_regex(glob)
    assert [path for path in hits + misses if regex.match(path)] == hits
