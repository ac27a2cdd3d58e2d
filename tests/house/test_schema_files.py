"""docs/schema/ holds what the types of the wire say today."""

from __future__ import annotations

import re

import pytest

from protocol.schema.documents import DOCUMENTS
from tests.house.schema_files import FOLDER, files


@pytest.mark.parametrize("name", sorted(files()))
def test_a_file_is_what_the_types_say(name: str) -> None:
    assert (FOLDER / name).read_text(encoding="utf-8") == files()[name], f"docs/schema/{name} is stale: make schema"


def test_there_is_no_other_file() -> None:
    assert {file.name for file in FOLDER.iterdir()} == set(files())


def test_the_page_tells_of_every_file_and_what_a_value_of_it_is_called() -> None:
    page = (FOLDER.parent / "schema.md").read_text(encoding="utf-8")
    told = dict(re.findall(r"^\| \[(.+?)\]\(schema/.*?\) \| .* \| `(\w+)`", page, re.MULTILINE))
    assert set(told) == set(files())
    assert {name: told[f"{name}.json"] for name in DOCUMENTS} == {name: root for name, (_, root) in DOCUMENTS.items()}
