"""The `edit` tool: exact replacements, and the bytes that they must not touch."""

from __future__ import annotations

import stat
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.tool.edit import Change, apply, numbered_diff


def _edit(bench: Any, *pairs: tuple[str, str]) -> Any:
    return bench.run("edit", path="a", edits=[{"oldText": old, "newText": new} for old, new in pairs])


def test_several_edits_refer_to_the_file_as_it_was(bench: Any) -> None:
    path = bench.write("a", "one\ntwo\nthree\n")
    output = _edit(bench, ("three", "one"), ("one", "three"))
    assert path.read_text() == "three\ntwo\none\n"
    assert output.content[0].text == "Successfully replaced 2 blocks in a"
    assert output.details == {"diff": "-1 one\n+1 three\n 2 two\n-3 three\n+3 one", "firstChangedLine": 1}


def test_a_single_edit_may_stand_at_the_top(bench: Any) -> None:
    path = bench.write("a", "x")
    assert bench.text("edit", path="a", oldText="x", newText="y") == "Successfully replaced 1 block in a"
    assert path.read_text() == "y"


def test_crlf_byte_order_mark_mode_and_link_survive(bench: Any) -> None:
    path = bench.write("target", b"\xef\xbb\xbfone\r\ntwo\r\nthree")
    path.chmod(0o640)
    (bench.root / "a").symlink_to("target")
    _edit(bench, ("one\ntwo\n", "1\n2\n2.5\n"))
    assert path.read_bytes() == b"\xef\xbb\xbf1\r\n2\r\n2.5\r\nthree"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert (bench.root / "a").is_symlink()


def test_a_mixed_file_keeps_each_line_end_around_the_change(bench: Any) -> None:
    path = bench.write("a", b"a\nb\nc\r\nd\r\ne\n")
    _edit(bench, ("b", "b\nB"), ("d", "d\r\nD"))
    assert path.read_bytes() == b"a\nb\nB\nc\r\nd\r\nD\r\ne\n"


def test_repeated_context_keeps_its_own_line_ends(bench: Any) -> None:
    path = bench.write("a", b"a\r\nb\nc\r\n")
    _edit(bench, ("a\nb\nc\n", "a\nB\nc\n"))
    assert path.read_bytes() == b"a\r\nB\nc\r\n"


def test_bytes_that_are_not_utf8_survive(bench: Any) -> None:
    path = bench.write("a", b"caf\xe9\nx\n")
    output = _edit(bench, ("x", "y"))
    assert path.read_bytes() == b"caf\xe9\ny\n"
    assert " 1 caf\ufffd" in output.details["diff"]


@pytest.mark.parametrize(
    ("pairs", "reason"),
    [
        ([("nope", "x")], "edits[0].oldText was not found; it must match the file exactly, white space included"),
        ([("a", "x")], "edits[0].oldText occurs 3 times; add lines around it until it occurs once"),
        ([("", "x")], "edits[0].oldText must not be empty"),
        ([("b c", "x"), ("c d", "y")], "edits[0].oldText and edits[1].oldText overlap; make them one edit"),
        ([("b", "b")], "The replacements change nothing"),
        ([("b", "x\ud800")], "edits[0].newText must not contain a lone surrogate"),
        ([("b", "x"), ("nope", "y")], "edits[1].oldText was not found; it must match the file exactly, white space"),
    ],
)
def test_a_misfit_is_named_and_leaves_the_file_alone(bench: Any, pairs: list[tuple[str, str]], reason: str) -> None:
    path = bench.write("a", "a b c d a\na\n")
    fault = bench.fault("edit", path="a", edits=[{"oldText": old, "newText": new} for old, new in pairs])
    assert fault.startswith(f"Could not edit file: a. {reason}")
    assert path.read_text() == "a b c d a\na\n"


def test_overlapping_occurrences_are_ambiguous_too(bench: Any) -> None:
    bench.write("a", "xxx")
    assert "occurs 2 times" in bench.fault("edit", path="a", oldText="xx", newText="y")


def test_nothing_to_do_a_missing_and_a_binary_file_are_named(bench: Any) -> None:
    bench.write("a", b"x\0")
    assert "edits is missing" in bench.fault("edit", path="a")
    assert "oldText is missing" in bench.fault("edit", path="a", newText="x")
    assert "It is a binary file, not text." in bench.fault("edit", path="a", oldText="x", newText="y")
    assert bench.fault("edit", path="b", oldText="x", newText="y").startswith("ENOENT: no such file or directory")


def test_the_diff_of_a_long_file_shows_only_the_surroundings(bench: Any) -> None:
    bench.write("a", "".join(f"line {n}\n" for n in range(1, 101)))
    output = _edit(bench, ("line 50\n", ""), ("line 90\n", "line 90\nnew\n"))
    assert output.details["firstChangedLine"] == 50
    assert output.details["diff"].splitlines() == [
        "...", " 47 line 47", " 48 line 48", " 49 line 49", "-50 line 50", " 50 line 51", " 51 line 52",
        " 52 line 53", "...", " 87 line 88", " 88 line 89", " 89 line 90", "+90 new", " 91 line 91", " 92 line 92",
        " 93 line 93", "...",
    ]  # fmt: skip


@st.composite
def _texts_and_changes(draw: st.DrawFn) -> tuple[str, list[Change]]:
    raw = "".join(draw(st.lists(st.sampled_from(["a", "b", "\r\n", "\n", "\r", "é"]), max_size=25)))
    size = len(raw.replace("\r\n", "\n"))
    cuts = sorted(draw(st.lists(st.integers(0, size), max_size=6)))
    new = st.sampled_from(["", "X", "X\nY\n"])
    return raw, [Change(start, end, draw(new), "") for start, end in list(pairwise(cuts))[::2]]


@settings(max_examples=150, deadline=None)
@given(_texts_and_changes())
def test_edits_change_what_they_name_and_not_one_byte_more(case: tuple[str, list[Change]]) -> None:
    raw, changes = case
    text = raw.replace("\r\n", "\n")
    expected = text
    for change in reversed(changes):
        expected = expected[: change.start] + change.new + expected[change.end :]
    # A lone CR before a CR LF looks like another CR LF once that is an LF: compared without any CR.
    assert apply(raw, changes).replace("\r", "") == expected.replace("\r", "")
    assert apply(raw, []) == raw


@settings(max_examples=150, deadline=None)
@given(_texts_and_changes())
def test_the_diff_turns_the_old_lines_into_the_new_ones(case: tuple[str, list[Change]]) -> None:
    text = case[0].replace("\r", "")
    changes = [change for change in case[1] if change.end <= len(text)]
    expected = text
    for change in reversed(changes):
        expected = expected[: change.start] + change.new + expected[change.end :]
    diff, _ = numbered_diff(text, changes)
    lines = {n: line for n, line in enumerate(text.split("\n"), 1)}
    after = {n: line for n, line in enumerate(expected.split("\n"), 1)}
    for row in diff.split("\n") if diff else []:
        if row != "...":
            number, _, line = row[1:].partition(" ")
            assert (lines if row[0] == "-" else after)[int(number)] == line
    removed = sum(row.startswith("-") for row in diff.split("\n"))
    added = sum(row.startswith("+") for row in diff.split("\n"))
    assert _count(expected) - _count(text) == added - removed


def _count(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n") and text != "")
