"""The arrows between the packages: runtime -> actors -> protocol, and conformance -> protocol alone."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

PACKAGES = {"protocol", "actors", "runtime", "conformance"}
# Distributions whose import name is another word.
IMPORT_NAMES = {"markdown-it-py": "markdown_it", "pillow": "PIL", "PyYAML": "yaml", "pywinpty": "winpty"}
# What is imported where an extra is needed: by name, and by whom.
OF_EXTRAS = {"textual": "runtime/inspector", "rich": "runtime/inspector"}
MAY_IMPORT = {"protocol": {"msgspec"}, "conformance": {"msgspec", "protocol"}}


def test_the_import_contracts_hold(root: Path) -> None:
    code = "from importlinter.cli import lint_imports_command; lint_imports_command(['--no-cache'])"
    run = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_import_contracts_look_at_every_package(pyproject: dict[str, Any]) -> None:
    assert set(pyproject["tool"]["importlinter"]["root_packages"]) == PACKAGES


def imported_from_outside(file: Path) -> Iterator[str]:
    """Top-level names of everything that a file imports anywhere in it, less the standard library."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}:{node.lineno}: relative import"
            names = [node.module or ""]
        yield from (name for full in names if (name := full.partition(".")[0]) not in sys.stdlib_module_names)


@pytest.mark.parametrize("package", sorted(MAY_IMPORT))
def test_a_bottom_package_uses_only_what_it_may(root: Path, package: str) -> None:
    used = {name for file in (root / package).rglob("*.py") for name in imported_from_outside(file)}
    assert used - {package} <= MAY_IMPORT[package]


def test_every_library_that_is_imported_is_declared(sources: list[Path], pyproject: dict[str, Any]) -> None:
    declared = [re.split(r"[^\w-]", requirement)[0] for requirement in pyproject["project"]["dependencies"]]
    allowed = PACKAGES | {IMPORT_NAMES.get(name, name) for name in declared} | set(OF_EXTRAS)
    used = {(name, file.name) for file in sources for name in imported_from_outside(file)}
    assert sorted((name, file) for name, file in used if name not in allowed) == []


@pytest.mark.parametrize(("name", "folder"), OF_EXTRAS.items())
def test_a_library_of_an_extra_is_imported_in_one_folder_alone(
    root: Path, sources: list[Path], pyproject: dict[str, Any], name: str, folder: str
) -> None:
    users = {file.relative_to(root).parent.as_posix() for file in sources if name in imported_from_outside(file)}
    assert users == {folder}
    extras = pyproject["project"]["optional-dependencies"]
    assert any(each.startswith(f"{name}>=") for extra in extras.values() for each in extra)
