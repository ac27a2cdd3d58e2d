"""docs/schema/ holds what the types of the wire say today."""

from __future__ import annotations

import pytest

from tests.house.schema_files import FOLDER, files


@pytest.mark.parametrize("name", sorted(files()))
def test_a_file_is_what_the_types_say(name: str) -> None:
    assert (FOLDER / name).read_text(encoding="utf-8") == files()[name], f"docs/schema/{name} is stale: make schema"


def test_there_is_no_other_file() -> None:
    assert {file.name for file in FOLDER.iterdir()} == set(files())
