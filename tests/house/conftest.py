"""What the house tests share: where the project lies, which packages it ships, and how to start the program."""

from __future__ import annotations

import os
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

PACKAGES = ("protocol", "actors", "runtime", "conformance")


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's own folder: the one that holds `pyproject.toml`."""
    return next(folder for folder in Path(__file__).parents if (folder / "pyproject.toml").is_file())


@pytest.fixture(scope="session")
def pyproject(root: Path) -> dict[str, Any]:
    """`pyproject.toml`, parsed."""
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def sources(root: Path) -> list[Path]:
    """Every Python file that the distribution ships."""
    return sorted(file for package in PACKAGES for file in (root / package).rglob("*.py"))


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """An environment in which the program finds no settings, keys or sessions of whoever runs the tests."""
    kept = {name: value for name, value in os.environ.items() if not _is_ours(name)}
    return kept | {"HOME": str(tmp_path), "ATOMIC_CODING_AGENT_DIR": str(tmp_path / "agent")}


def _is_ours(name: str) -> bool:
    return name.startswith(("ATOMIC_", "PI_", "ANTHROPIC", "OPENAI")) or name in ("FORCE_COLOR", "NO_COLOR")


@pytest.fixture(scope="session")
def atomic() -> list[str]:
    """The installed command where it is installed beside this interpreter, else the module that it names."""
    script = Path(sys.executable).with_name("atomic")
    return [str(script)] if script.exists() else [sys.executable, "-m", "runtime.main"]
