"""Ranges of lines: strict reading, and any answer made to fit any region."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.session.compaction.ranges import Range, fitted, merge, read_ranges, total

NUMBERS = st.integers(0, 60) | st.integers(0, 10**30)
RANGES = st.lists(st.tuples(NUMBERS, NUMBERS))


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("1,5", [(1, 5)]),
        ("1,5\n", [(1, 5)]),
        ("9,3\n0,0\n2,2", [(9, 3), (0, 0), (2, 2)]),
        ("1,5\n\n", None),
        ("\n1,5", None),
        ("1,5\n\n7,8", None),
        *(
            (bad, None)
            for bad in ("", " ", "\n", "01,5", "1,05", "-1,5", "1.0,5", "1, 5", "1,5 ", "1-5", "1,5,7", "one")
        ),
        *((bad, None) for bad in ("1,5\r\n", "```\n1,5\n```", "1,5\n# why", "\u0661,5", "1,5\u2028")),
    ],
)
def test_one_line_that_is_no_record_refuses_the_whole_answer(text: str, read: list[Range] | None) -> None:
    assert read_ranges(text) == read


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("1,5\n300,30", [(1, 5)]),
        ("1,5\n300,301\n", [(1, 5), (300, 301)]),
        ("1,5\n\n7,8\n", None),
        ("1,5\nx\n7", None),
        ("300,301", None),
        ("", None),
        ("\n", None),
    ],
)
def test_of_an_answer_that_was_cut_short_only_finished_lines_count(text: str, read: list[Range] | None) -> None:
    assert read_ranges(text, cut_short=True) == read


def test_numbers_of_any_length_are_read() -> None:
    digits = "9" * 5000
    assert fitted(read_ranges(f"3,{digits}") or (), 10) == [(3, 10)]
    assert fitted(read_ranges(f"{digits},{digits}") or (), 10) == []


def test_ranges_are_turned_clamped_merged_and_cut_around_what_is_protected() -> None:
    assert fitted([(5, 3), (6, 6), (0, 0), (20, 99), (90, 95)], 22) == [(3, 6), (20, 22)]
    assert fitted([(1, 10)], 10, [(1, 2), (5, 5), (9, 12)]) == [(3, 4), (6, 8)]
    assert fitted([(4, 6)], 10, [(1, 9)]) == []


@given(RANGES, st.integers(1, 60), RANGES)
def test_what_is_fitted_is_exactly_what_was_named_and_may_go(named: list[Range], count: int, kept: list[Range]) -> None:
    protected = fitted(kept, count)
    result = fitted(named, count, protected)
    asked = {line for start, end in named for line in range(max(1, min(start, end)), min(count, max(start, end)) + 1)}
    safe = {line for start, end in protected for line in range(start, end + 1)}
    assert [line for start, end in result for line in range(start, end + 1)] == sorted(asked - safe)
    assert total(result) == len(asked - safe)
    assert all(start <= end for start, end in result)


@given(RANGES)
def test_merged_ranges_are_apart_and_in_order(named: list[Range]) -> None:
    merged = merge((min(pair), max(pair)) for pair in named)
    assert all(one[1] + 1 < other[0] for one, other in pairwise(merged))
    assert merge(merged) == merged


@given(st.text(alphabet="0123456789,\n -x", max_size=40), st.booleans())
def test_reading_never_raises_and_takes_nothing_that_is_not_there(text: str, cut_short: bool) -> None:
    read = read_ranges(text, cut_short=cut_short)
    if read is not None:
        assert "\n".join(f"{start},{end}" for start, end in read) in text
