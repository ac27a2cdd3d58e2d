"""The text after a compaction: kept lines verbatim, markers that account for all others, over any number of runs."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.session.compaction.ranges import Range, fitted
from actors.session.compaction.rebuild import rebuild, stats_of, stats_of_override
from actors.session.compaction.region import Region, marker, region_of

WORDS = st.sampled_from(
    [
        *("alpha", "beta", "", "[User]: hi", "[Tool result]: x", "caf\u00e9 \U0001f600", "a\u2028b\x0cc\rd"),
        *("<keepContext>", "</keepContext>", "(filtered 3 lines)", "(filtered 1 lines) ", "(filtered 0 lines)"),
        f"(filtered {'9' * 5000} lines)",
    ]
)
TEXTS = st.lists(WORDS, min_size=1, max_size=40).map("\n".join).filter(bool)
NUMBERS = st.integers(0, 50) | st.integers(0, 10**30)
RANGES = st.lists(st.tuples(NUMBERS, NUMBERS), max_size=8)
ROUNDS = st.lists(RANGES, min_size=1, max_size=4)


def compacted(text: str, *deletions: Range) -> str:
    region = region_of(text)
    return rebuild(region, fitted(deletions, len(region), region.protected)).text


def stands_for(region: Region) -> int:
    """Original lines behind a region: its own, and those that its markers count."""
    return len(region) + sum(count - 1 for count in region.markers.values())


@pytest.mark.parametrize(
    ("deletions", "text"),
    [
        ([(4, 5)], "a\nb\n(filtered 7 lines)"),
        ([(2, 5)], "a\n(filtered 8 lines)"),
        ([(1, 1)], "(filtered 1 lines)\nb\n(filtered 5 lines)\nc\nd"),
        ([(2, 2)], "a\n(filtered 6 lines)\nc\nd"),
        ([(1, 5)], "(filtered 9 lines)"),
        ([(3, 3)], "a\nb\n(filtered 5 lines)\nc\nd"),
    ],
)
def test_markers_beside_a_gap_become_part_of_it(deletions: list[Range], text: str) -> None:
    assert compacted("a\nb\n(filtered 5 lines)\nc\nd", *deletions) == text


def test_a_row_of_markers_is_taken_in_from_either_side() -> None:
    row = "(filtered 2 lines)\n(filtered 3 lines)"
    assert compacted(f"a\n{row}\nb", (1, 1)) == "(filtered 6 lines)\nb"
    assert compacted(f"a\n{row}\nb", (4, 4)) == "a\n(filtered 6 lines)"
    assert compacted(f"a\n{row}\nb\n{row}\nc", (4, 4)) == "a\n(filtered 11 lines)\nc"


def test_a_line_that_only_looks_like_a_marker_is_somebodys_text() -> None:
    for line in ("(filtered 1 line)", " (filtered 2 lines)", "(filtered 2 lines).", "(filtered 0 lines)"):
        assert compacted(f"a\n{line}\nb", (1, 1)) == f"(filtered 1 lines)\n{line}\nb"


def test_a_marker_in_a_protected_span_is_not_taken_in() -> None:
    kept = "<keepContext>\n(filtered 4 lines)\n</keepContext>"
    assert compacted(f"a\n{kept}\nb", (1, 99)) == f"(filtered 1 lines)\n{kept}\n(filtered 1 lines)"


@given(TEXTS, ROUNDS)
def test_any_series_of_compactions_accounts_for_every_line(text: str, rounds: list[list[Range]]) -> None:
    original = region_of(text)
    for named in rounds:
        region = region_of(text)
        deletions = fitted(named, len(region), region.protected)
        rebuilt = rebuild(region, deletions)
        gone = {line for start, end in rebuilt.gaps for line in range(start, end + 1)}
        kept = [line for number, line in enumerate(region.lines, 1) if number not in gone]
        assert _without_gap_markers(region, rebuilt.text, gone) == kept
        assert {number for start, end in deletions for number in range(start, end + 1)} <= gone
        assert all(number in region.markers for number in gone - set(_numbers(deletions)))
        assert not gone & set(_numbers(region.protected))
        text = rebuilt.text
    assert stands_for(region_of(text)) == stands_for(original)


@given(TEXTS)
def test_protected_lines_survive_the_deletion_of_everything(text: str) -> None:
    region = region_of(text)
    protected = [region.lines[number - 1] for number in _numbers(region.protected)]
    rebuilt = rebuild(region, fitted([(1, len(region))], len(region), region.protected)).text
    assert [line for line in rebuilt.split("\n") if not re.fullmatch(r"\(filtered [0-9]+ lines\)", line)] == [
        line for line in protected if not re.fullmatch(r"\(filtered [0-9]+ lines\)", line)
    ]


def test_the_figures_count_absorbed_markers_as_lines_and_round_halves_up() -> None:
    region = region_of("a\nb\n(filtered 5 lines)\nc\nd")
    stats = stats_of(region, rebuild(region, [(4, 5)]), 8000, 1)
    assert (stats.lines_before, stats.lines_deleted, stats.lines_kept, stats.range_count) == (5, 3, 2, 1)
    assert (stats.tokens_before, stats.tokens_after, stats.percent_reduction) == (8000, 7, 99.9)
    assert stats_of(region, rebuild(region, [(1, 5)]), 0, 0).percent_reduction == 0
    assert stats_of(region, rebuild(region, [(1, 5)]), 2, 0).percent_reduction == -150
    assert stats_of(region_of("\U0001f600" * 6), rebuild(region_of("\U0001f600" * 6), []), 1000, 0).tokens_after == 3


def test_the_figures_of_a_text_that_somebody_else_made() -> None:
    stats = stats_of_override(region_of("a\nb\nc"), "x\ny", 100, 10)
    assert (stats.lines_before, stats.lines_deleted, stats.lines_kept, stats.range_count) == (3, 1, 2, 0)
    assert stats_of_override(region_of("a"), "x\ny", 100, 10).lines_deleted == 0
    assert stats.tokens_after == 11


@pytest.mark.parametrize(("lines", "keep"), [(25, 13), (24, 12), (1, 1), (20, 10)])
def test_half_a_line_is_kept(lines: int, keep: int) -> None:
    assert Region(("x",) * lines).keep_target(0.5) == keep


def test_protected_lines_raise_the_target_and_a_view_renumbers() -> None:
    region = Region(tuple("abcdefgh"), ((2, 3), (5, 8)), {4: 7})
    assert region.keep_target(0.5) == 6
    view = region.without_head(2)
    assert view == Region(tuple("cdefgh"), ((1, 1), (3, 6)), {2: 7})
    assert (view.deletable, view.keep_target(0.1)) == (1, 5)
    assert region.without_head(4).markers == {}


def test_a_region_is_split_at_line_feeds_alone() -> None:
    assert region_of("a\rb\u2028c\x0bd\ne").lines == ("a\rb\u2028c\x0bd", "e")
    assert region_of("").lines == ()


def _numbers(ranges: list[Range] | tuple[Range, ...]) -> list[int]:
    return [line for start, end in ranges for line in range(start, end + 1)]


def _without_gap_markers(region: Region, text: str, gone: set[int]) -> list[str]:
    """The lines of the new text, without the one marker that stands for each gap."""
    lines = text.split("\n")
    kept: list[str] = []
    place = 0
    for number in range(1, len(region) + 1):
        if number in gone and number - 1 in gone:
            continue
        if number not in gone:
            kept.append(lines[place])
        place += 1
    assert place == len(lines)
    return kept


def test_a_marker_is_plural_for_one() -> None:
    assert marker(1) == "(filtered 1 lines)"
