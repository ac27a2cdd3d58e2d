"""A folder whose name is short enough for a socket, and a door in it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runtime.inspector.scripted_door import ScriptedDoor


@pytest.fixture
def short() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="ti"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def private(short: Path) -> Path:
    """The folder where doors are looked for when the temporary directory is `short`."""
    return short / f"atomic-{os.getuid()}"


@pytest.fixture
def door(private: Path) -> Iterator[ScriptedDoor]:
    with ScriptedDoor(private) as open_door:
        yield open_door
