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


def test_what_was_not_found_and_what_is_of_another_version_are_told_apart(clone: Path, tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.write_text('#!/bin/sh\necho "is Python 3.9"\nexit 1\n', encoding="utf-8")
    old.chmod(0o755)
    run = make(clone, f"CANDIDATES=/nonexistent/python {old}", "demo")
    assert f"; not found: /nonexistent/python; {old} is Python 3.9. Install one" in run.stderr
    assert run.stderr.count("\n") == 1


def test_a_package_that_cannot_be_had_is_one_line_of_ours(clone: Path) -> None:
    python = clone / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\necho noise\necho 'ERROR: no such package' >&2\nexit 1\n", encoding="utf-8")
    python.chmod(0o755)
    run = make(clone, "demo")
    assert run.returncode != 0
    ours, _of_make = run.stderr.splitlines()  # the second is make's own
    assert "could not install atomic into .venv: ERROR: no such package;" in ours
    assert "noise" in (clone / ".venv" / "pip.log").read_text()
    assert not (clone / ".venv" / ".installed").exists()


def test_make_alone_tells_what_there_is_to_make(clone: Path) -> None:
    run = make(clone)
    assert run.returncode == 0
    assert {"make demo", "make test"} <= {line.split("  ")[0] for line in run.stdout.splitlines()}
