"""A field of front matter that changes, and everything around it that stays."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.front_matter import FrontMatterError, split_front_matter
from runtime.front_matter_edit import edited

FILE = """---
# mine
name: scout  # short
description: |
  finds
  # things

# what it may
tools:
  - read
  - ls
x-other: {a: 1, b: [2, 3]}
number: 007
---
The body.

"""


def test_other_fields_comments_and_the_body_stay_as_they_are() -> None:
    made = edited(FILE, {"description": "one: two", "tools": "read", "model": "m"})
    assert made == FILE.replace("|\n  finds\n  # things\n", "'one: two'\n").replace(
        "tools:\n  - read\n  - ls\n", "tools: read\n"
    ).replace("007\n", "007\nmodel: m\n")


def test_a_field_goes_and_its_neighbours_stay() -> None:
    made = edited(FILE, {"description": None, "tools": None, "none": None})
    assert split_front_matter(made).fields == {"name": "scout", "x-other": {"a": "1", "b": ["2", "3"]}, "number": "007"}
    assert "# what it may" in made and "name: scout  # short" in made


def test_a_body_is_replaced_and_a_new_file_begins_with_its_fields() -> None:
    assert edited(FILE, {}, "New.\n\n---\nmore") == FILE.replace("The body.\n\n", "\nNew.\n\n---\nmore\n")
    assert edited("", {"name": "x", "inheritSkills": True}, "b") == "---\nname: x\ninheritSkills: true\n---\n\nb\n"
    assert edited("---\nname: x\n---", {"a": "1"}, "b") == "---\nname: x\na: '1'\n---\n\nb\n"


@pytest.mark.parametrize(
    "text",
    [
        "---\n{name: x, other: {a: b}}\n---\nbody",  # in one line
        "---\nname: &it x\nother: *it\n---\nbody",  # a name for a value that goes
        "---\nname: x\nname: y\n---\nbody",
        "---\nother: x\n---",
        "\ufeff---\nname: x\n# end\n---\nbody\n",
    ],
)
def test_whatever_way_it_is_written_it_reads_as_it_is_meant(text: str) -> None:
    before = split_front_matter(text.removeprefix("\ufeff"))
    after = split_front_matter(edited(text, {"name": "z", "new": "n"}).removeprefix("\ufeff"))
    assert after.fields == {**(before.fields or {}), "name": "z", "new": "n"}
    assert after.body == before.body


def test_line_ends_stay_those_of_the_file() -> None:
    assert edited("---\r\nname: x\r\n---\r\nbody\r\n", {"a": "b"}) == "---\r\nname: x\r\na: b\r\n---\r\nbody\r\n"


@pytest.mark.parametrize("text", ["---\nname: [\n---\n", "---\n- a\n---\n"])
def test_what_cannot_be_read_is_not_written(text: str) -> None:
    with pytest.raises(FrontMatterError):
        edited(text, {"name": "x"})


VALUES = st.one_of(st.text(), st.sampled_from(["yes", "null", "~", "- a", "a: b", "# c", "'", '"', "1e3", "a\n---\nb"]))


@given(st.dictionaries(st.sampled_from("abcde"), VALUES), st.dictionaries(st.sampled_from("abcde"), VALUES | st.none()))
def test_any_text_comes_back(first: dict[str, str], second: dict[str, Any]) -> None:
    try:
        made = edited(edited("", {**first, "z": "1"}, "body"), second)
    except FrontMatterError:
        return  # YAML has no way to say it: a lone surrogate, a control character
    wanted = {name: value for name, value in {**first, "z": "1", **second}.items() if value is not None}
    document = split_front_matter(made)
    assert (document.fields, document.body) == (wanted, "body")
