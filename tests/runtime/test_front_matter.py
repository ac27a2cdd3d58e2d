"""Front matter: where it begins and ends, that its values stay text, and that YAML is loaded only when it is needed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from runtime.front_matter import Document, FrontMatterError, read_document, read_flag, split_front_matter


def test_fields_stand_between_two_lines_of_hyphens_and_the_body_is_trimmed() -> None:
    document = split_front_matter("---\nname: a\ndescription: does things\n---\n\n  Body.\n\n")
    assert document == Document({"name": "a", "description": "does things"}, "Body.")


def test_text_without_front_matter_is_not_trimmed() -> None:
    assert split_front_matter("\r\n Body.\r\n") == Document(None, "\n Body.\n")


@pytest.mark.parametrize(
    "text", ["---", "---\nname: a\n", "---\nname: a\n----\n", " ---\na: b\n---\n", "---x\na: b\n---"]
)
def test_front_matter_that_does_not_begin_or_end_is_text(text: str) -> None:
    assert split_front_matter(text) == Document(None, text)


def test_line_ends_of_windows_and_the_end_of_the_file_close_front_matter() -> None:
    assert split_front_matter("---\r\nname: a\r\n---") == Document({"name": "a"}, "")


def test_front_matter_may_be_empty() -> None:
    assert split_front_matter("---\n---\nBody") == Document({}, "Body")
    assert split_front_matter("---\n# only a comment\n---\nBody") == Document({}, "Body")


def test_a_rule_in_the_body_is_no_second_end() -> None:
    assert split_front_matter("---\na: b\n---\none\n---\ntwo").body == "one\n---\ntwo"


@pytest.mark.parametrize("word", ["on", "007", "1e3", "2026-01-02", "0x10", "1_000"])
@pytest.mark.parametrize("before", ["", "needs-yaml: [1]\n"])
def test_a_scalar_is_the_text_that_stands_there(word: str, before: str) -> None:
    assert split_front_matter(f"---\n{before}name: {word}\n---").text("name") == word


@pytest.mark.parametrize("value", ["", "~", "null", "'  '", "[a]", "{a: b}"])
def test_what_is_no_text_counts_as_absent(value: str) -> None:
    assert split_front_matter(f"---\nname: {value}\n---").text("name") is None


def test_block_scalars_are_read() -> None:
    assert split_front_matter("---\ndescription: >\n  one\n  two\n---").text("description") == "one two"


@pytest.mark.parametrize(
    ("yaml_text", "reason"),
    [
        ("name: a\nother: b: c", "is not valid YAML: line 3: mapping values are not allowed here"),
        ("name: [a", "is not valid YAML: line 3: "),
        ("- a\n- b", "must hold fields with names"),
        ("? [a]\n: b", "is not valid YAML: line 2: found unhashable key"),
        ("a: \x00", "is not valid YAML: unacceptable character"),
        ("- " * 1000, "is nested too deeply"),
        ("a: !!python/object/apply:os.getcwd []\nb: *none", "is not valid YAML: line 3: found undefined alias"),
        ("x: " + "y" * 65536, "has more than 65536 characters"),
    ],
)
def test_bad_front_matter_says_what_is_wrong(yaml_text: str, reason: str) -> None:
    with pytest.raises(FrontMatterError) as error:
        split_front_matter(f"---\n{yaml_text}\n---\n")
    assert str(error.value).startswith(reason)


def test_tags_make_no_objects() -> None:
    document = split_front_matter("---\na: !!python/object/apply:os.getcwd []\n---")
    assert document.fields == {"a": []}


@pytest.mark.parametrize(
    ("value", "flag"), [("true", True), ("yes", True), ("false", False), (None, False), ("", False)]
)
def test_flags_are_words(value: str | None, flag: bool) -> None:
    assert read_flag(value) is flag


def test_a_flag_may_be_neither() -> None:
    assert read_flag("perhaps") is read_flag(["true"]) is None


LETTERS = st.text(st.sampled_from("ab1 :#-'\"\\[]{}&*!|>%@`,?~=.é\u2028\t"), max_size=12)


@given(st.lists(st.tuples(st.sampled_from(["name", "a-b", "c_d"]), LETTERS), min_size=1, max_size=4))
def test_plain_lines_mean_what_yaml_says(pairs: list[tuple[str, str]]) -> None:
    text = "".join(f"{key}: {value}\n" for key, value in pairs)
    try:
        meant = yaml.load(text, yaml.BaseLoader)
    except yaml.YAMLError:
        meant = None
    try:
        found = split_front_matter(f"---\n{text}---\n").fields
    except FrontMatterError:
        found = None
    assert found == meant


@given(st.text())
def test_any_text_is_split_or_refused(text: str) -> None:
    for whole in (text, f"---\n{text}\n---\n"):
        try:
            split_front_matter(whole)
        except FrontMatterError as error:
            assert "\n" not in str(error)


# ---- files


def test_a_byte_order_mark_is_dropped_and_bad_bytes_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes(b"\xef\xbb\xbf---\nname: a\n---\n\xff")
    warnings: list[str] = []
    assert read_document(str(tmp_path / "a.md"), warnings) == Document({"name": "a"}, "\ufffd")
    assert warnings == []


@pytest.mark.skipif(os.name == "nt", reason="FIFOs of POSIX")
def test_a_fifo_is_refused_and_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.md")
    warnings: list[str] = []
    assert read_document(str(tmp_path / "a.md"), warnings) is None
    assert warnings == [f"{tmp_path / 'a.md'} is not a regular file; it is skipped"]


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="a file that always fails to be read")
def test_a_file_that_cannot_be_read_costs_one_warning() -> None:
    warnings: list[str] = []
    assert read_document("/proc/self/mem", warnings) is None
    assert warnings == ["/proc/self/mem cannot be read: Input/output error"]


@pytest.mark.skipif(sys.platform != "linux", reason="file systems that take any bytes in a name")
def test_a_file_whose_name_is_no_text_costs_one_warning(tmp_path: Path) -> None:
    path = os.path.join(os.fsencode(tmp_path), b"a\xff.md")
    with open(path, "w", encoding="utf-8") as file:
        file.write("Body")
    warnings: list[str] = []
    assert read_document(os.fsdecode(path), warnings) is None
    assert warnings == [f"'{tmp_path}/a\\udcff.md' is skipped: its name is not UTF-8"]


def test_bad_front_matter_of_a_file_costs_one_warning_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("---\na: [\n---\n", "utf-8")
    warnings: list[str] = []
    assert read_document(str(tmp_path / "a.md"), warnings) is None
    (warning,) = warnings
    assert warning.startswith(f"{tmp_path / 'a.md'} is skipped: its front matter is not valid YAML: line 3: ")


def test_plain_front_matter_does_not_load_yaml() -> None:
    plain = "---\nname: a\ndescription: Use it, when (and only when) it fits.\nhint: '<x>'\n---"
    code = f"""
import sys
from runtime.front_matter import split_front_matter
split_front_matter({plain!r})
print("yaml" in sys.modules)
split_front_matter("---\\nname: [a]\\n---")
print("yaml" in sys.modules)
"""
    root = Path(__file__).parents[2]
    run = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False", "True"]
