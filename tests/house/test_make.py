"""`make` on a machine that lacks something says in one line what to install."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


@pytest.fixture
def clone(root: Path, tmp_path: Path) -> Path:
    """A fresh copy of what make reads, in a folder with a space in its name and no virtual environment."""
    folder = tmp_path / "fresh clone"
    folder.mkdir()
    for name in ("Makefile", "pyproject.toml", "README.md"):
        shutil.copy(root / name, folder)
    return folder


def interpreter(folder: Path, body: str) -> Path:
    """A program that make may take for a Python."""
    file = folder / "python"
    file.write_text(f'#!/bin/sh\n{body}\nexec "{sys.executable}" "$@"\n', encoding="utf-8")
    file.chmod(0o755)
    return file


def make(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["make", "-s", *arguments], cwd=folder, capture_output=True, text=True, check=False)


def one_line_and_no_venv(clone: Path, python: str, target: str) -> str:
    """What make says before it gives up; it says one line and leaves nothing behind."""
    run = make(clone, f"PYTHON={python}", target)
    assert run.returncode != 0
    assert run.stdout == ""
    assert not (clone / ".venv").exists()
    (line,) = run.stderr.splitlines()
    return line


@pytest.mark.parametrize("target", ["demo", "test"])
def test_without_ensurepip_one_line_names_the_package(clone: Path, tmp_path: Path, target: str) -> None:
    python = interpreter(tmp_path, 'case "$2" in *ensurepip*) echo "No module named ensurepip" >&2; exit 1;; esac')
    assert "apt-get install python3-venv" in one_line_and_no_venv(clone, str(python), target)


@pytest.mark.parametrize("target", ["demo", "test"])
def test_an_interpreter_of_another_version_is_refused_in_one_line(clone: Path, tmp_path: Path, target: str) -> None:
    python = interpreter(tmp_path, 'case "$2" in *version_info*) exit 1;; esac')
    assert "Python 3.11, 3.12 or 3.13" in one_line_and_no_venv(clone, str(python), target)


def test_an_interpreter_that_is_not_there_is_refused_in_one_line(clone: Path) -> None:
    assert "/nonexistent/python" in one_line_and_no_venv(clone, "/nonexistent/python", "demo")


def test_make_alone_tells_what_there_is_to_make(clone: Path) -> None:
    run = make(clone)
    assert run.returncode == 0
    assert {"make demo", "make test"} <= {line.split("  ")[0] for line in run.stdout.splitlines()}
