"""Cutting text to lines and bytes, and the notes that tell of it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.shell.truncate import (
    Truncation,
    bash_tool_note,
    bash_tool_text,
    exit_note,
    format_size,
    truncate_head,
    truncate_tail,
)

TEXT = st.text(st.sampled_from("ab€𝄞\n\n\r"), max_size=60)
LIMITS = (st.integers(1, 8), st.integers(1, 30))


def numbers(count: int) -> str:
    return "".join(f"{n}\n" for n in range(1, count + 1))


def test_text_within_the_limits_is_whole_and_keeps_its_final_newline() -> None:
    cut = truncate_tail("a\nb\n")
    assert cut == Truncation("a\nb\n", False, None, 2, 4, 2, 4, False, False, 3000, 51200)


def test_a_trailing_newline_is_no_line() -> None:
    assert not truncate_tail(numbers(3000)).truncated
    assert truncate_tail(numbers(3001)).truncated


def test_the_last_lines_stay_and_lose_the_final_newline() -> None:
    cut = truncate_tail(numbers(5000))
    assert cut.content == numbers(5000).removeprefix(numbers(2000)).removesuffix("\n")
    assert (cut.truncated_by, cut.total_lines, cut.output_lines) == ("lines", 5000, 3000)
    assert cut.total_bytes == len(numbers(5000)) and cut.output_bytes == len(cut.content)


def test_bytes_cut_between_lines() -> None:
    cut = truncate_tail("aaaa\nbbbb\ncccc", max_bytes=9)
    assert (cut.content, cut.truncated_by, cut.output_lines, cut.last_line_partial) == ("bbbb\ncccc", "bytes", 2, False)


def test_of_one_overlong_last_line_the_end_stays_on_a_character_border() -> None:
    cut = truncate_tail("first\n" + "€" * 10, max_bytes=8)
    assert (cut.content, cut.output_bytes, cut.output_lines, cut.last_line_partial) == ("€€", 6, 1, True)


def test_the_head_keeps_whole_lines_only() -> None:
    assert truncate_head("aaaa\nbbbb\ncccc", max_bytes=11).content == "aaaa\nbbbb"
    assert truncate_head("a\nb\nc\n", max_lines=2).content == "a\nb"
    cut = truncate_head("aaaa\nb", max_bytes=3)
    assert (cut.content, cut.first_line_exceeds_limit, cut.output_lines) == ("", True, 0)


@settings(max_examples=200, deadline=None)
@given(TEXT, *LIMITS)
def test_the_tail_is_the_longest_end_within_both_limits(text: str, max_lines: int, max_bytes: int) -> None:
    cut = truncate_tail(text, max_lines, max_bytes)
    body = text.removesuffix("\n") if cut.truncated else text
    assert body.endswith(cut.content) and len(cut.content.encode()) == cut.output_bytes <= max_bytes
    lines = text.removesuffix("\n").split("\n") if text else []
    assert cut.total_lines == len(lines) and cut.output_lines <= max_lines
    if cut.truncated and not cut.last_line_partial:
        more = "\n".join(lines[-(cut.output_lines + 1) :])
        assert cut.output_lines == max_lines or more == cut.content or len(more.encode()) > max_bytes


@settings(max_examples=200, deadline=None)
@given(TEXT, *LIMITS)
def test_the_head_is_the_longest_start_within_both_limits(text: str, max_lines: int, max_bytes: int) -> None:
    cut = truncate_head(text, max_lines, max_bytes)
    assert text.startswith(cut.content) and len(cut.content.encode()) == cut.output_bytes <= max_bytes
    lines = text.removesuffix("\n").split("\n") if text else []
    if cut.truncated:
        more = "\n".join(lines[: cut.output_lines + 1])
        assert cut.content == "\n".join(lines[: cut.output_lines])
        assert cut.output_lines == max_lines or more == cut.content or len(more.encode()) > max_bytes


@pytest.mark.parametrize(
    ("text", "path", "note"),
    [
        (numbers(10), "/p", ""),
        (numbers(5000), "/p", "[Showing lines 2001-5000 of 5000. Full output: /p]"),
        (numbers(5000), None, "[Showing lines 2001-5000 of 5000]"),
        (("x" * 1023 + "\n") * 60, "/p", "[Showing lines 11-60 of 60 (50.0KB limit). Full output: /p]"),
        ("a\n" + "x" * 102400, "/p", "[Showing last 50.0KB of line 2 (line is 100.0KB). Full output: /p]"),
    ],
)
def test_the_note_of_the_tool_tells_what_is_shown(text: str, path: str | None, note: str) -> None:
    last_line = len(text.rpartition("\n")[2])
    assert bash_tool_note(truncate_tail(text), path, last_line) == note


def test_the_result_of_the_tool_has_blank_lines_between_its_parts() -> None:
    assert bash_tool_text(truncate_tail(""), None, 0) == "(no output)"
    assert bash_tool_text(truncate_tail("x"), None, 1, exit_note(3)) == "x\n\nCommand exited with code 3"
    assert bash_tool_text(truncate_tail("x"), None, 1, exit_note(0)) == "x"
    long = bash_tool_text(truncate_tail(numbers(3001)), "/p", 0, "Command aborted")
    assert long.endswith("3001\n\n[Showing lines 2-3001 of 3001. Full output: /p]\n\nCommand aborted")


@pytest.mark.parametrize(("size", "text"), [(0, "0B"), (1023, "1023B"), (51200, "50.0KB"), (1258291, "1.2MB")])
def test_sizes_are_told_in_the_largest_fitting_unit(size: int, text: str) -> None:
    assert format_size(size) == text
