"""What holds for every file: it says what it is, and it stands on its own."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

NOT_OURS = {".git", ".venv", "build", "dist", "node_modules", "__pycache__"}
TOP_LEVEL = {
    "LICENSE",
    "Makefile",
    "README.md",
    "actors",
    "conformance",
    "docs",
    "protocol",
    "pyproject.toml",
    "runtime",
    "tests",
}


def files_of(folder: Path) -> Iterator[Path]:
    """Every file below a folder, without those that tools made."""
    for path, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in NOT_OURS and not name.endswith(("_cache", ".egg-info"))]
        yield from (Path(path, name) for name in names)


def test_every_module_opens_with_a_caption(root: Path) -> None:
    files = [file for file in files_of(root) if file.suffix == ".py"]
    assert len(files) > 20
    silent = [str(file.relative_to(root)) for file in files if not _docstring(file)]
    assert silent == []


def _docstring(file: Path) -> str:
    return ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""


def test_nothing_but_a_test_names_a_folder_outside_the_project(root: Path) -> None:
    outside = b"../shared"
    named = [file for file in files_of(root) if outside in file.read_bytes()]
    assert [str(file) for file in named if not file.is_relative_to(root / "tests")] == []


def test_the_top_level_holds_the_known_names_only(root: Path) -> None:
    visible = {path.name for path in root.iterdir() if not path.name.startswith(".")} - NOT_OURS
    assert visible <= TOP_LEVEL


@pytest.mark.parametrize("package", ["protocol", "actors", "runtime", "conformance"])
def test_each_package_says_that_it_is_typed(root: Path, package: str) -> None:
    assert (root / package / "py.typed").is_file()


def test_the_tests_are_no_package(root: Path) -> None:
    assert [str(file) for file in files_of(root / "tests") if file.name == "__init__.py"] == []
