"""Text for a terminal: nothing in it steers the terminal, and it takes the cells that were counted."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from runtime.inspector.texts import (
    cells,
    clip,
    clip_start,
    clipped,
    count,
    duration,
    fold,
    harmless,
    pad,
    two_ends,
    wrap,
)

ANY = st.text(st.characters(exclude_categories=()))


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b[2J\x1b[1;1Hhome", "home"),
        ("bell\x07 back\x08 null\x00", "bell back null"),
        ("\x9b31mC1", "31mC1"),
        ("one\rtwo\r\nthree", "one\ntwo\nthree"),
        ("a\tb", "a       b"),
        ("\u202egnp.exe", "gnp.exe"),
        ("zero\u200bwidth\u200d\ufeff", "zerowidth"),
        ("line\u2028end", "line\nend"),
        ("no\u00a0break\u3000wide", "no break  wide"),
        ("lone \ud83d surrogate", "lone ? surrogate"),
        ("[bold]markup[/bold] :smile: [link=x]", "[bold]markup[/bold] :smile: [link=x]"),
        ("日本 e\u0301 ✓", "日本 e\u0301 ✓"),
    ],
)
def test_what_steers_a_terminal_is_taken_out_and_the_rest_stays(raw: str, shown: str) -> None:
    assert harmless(raw) == shown


@given(ANY)
def test_harmless_text_holds_nothing_but_what_shows(raw: str) -> None:
    shown = harmless(raw)
    assert [each for each in shown if each != "\n" and not each.isprintable()] == []
    assert not {unicodedata.category(each) for each in shown} & {"Cf", "Cs", "Co"}
    assert harmless(shown) == shown


@pytest.mark.parametrize("text", ["plain", "日本語", "e\u0301", "한글", "✓ ✗ ● ○ ■ ◌ ▸ … ─", "👍", "\uff46\uff55"])
def test_cells_are_counted_as_the_terminal_library_counts_them(text: str) -> None:
    assert cells(text) == cell_len(text)


@given(ANY, st.integers(1, 30))
def test_what_is_cut_fits_and_what_is_padded_fills(raw: str, width: int) -> None:
    text = harmless(raw).replace("\n", " ")
    assert cells(clip(text, width)) <= width
    assert cells(clip_start(text, width)) <= width
    assert cells(pad(text, width)) == width
    assert cells(text) > width or clip(text, width) == clip_start(text, width) == text


@given(ANY, st.integers(2, 30))
def test_folded_and_wrapped_lines_fit_and_hold_all_of_the_text(raw: str, width: int) -> None:
    text = harmless(raw)
    folded, wrapped = list(fold(text, width)), list(wrap(text, width))
    assert all(cells(line) <= width for line in [*folded, *wrapped])
    assert "".join(folded) == text.replace("\n", "")
    assert "".join("".join(wrapped).split()) == "".join(text.split())


def test_lines_are_broken_between_words_and_a_long_word_is_cut() -> None:
    assert list(wrap("one two three", 8)) == ["one two", "three"]
    assert list(wrap("abcdefghij k", 4)) == ["abcd", "efgh", "ij k"]
    assert list(wrap("  kept indent", 40)) == ["  kept indent"]


def test_a_line_with_two_ends_is_as_wide_as_the_screen_and_gives_up_its_right_end_first() -> None:
    line = two_ends((("left", ""),), (("right", "dim"),), 20)
    assert "".join(text for text, _ in line) == "left           right"
    assert two_ends((("a long left side", ""),), (("right", ""),), 9) == (("a long l…", ""),)
    assert clipped((("日本", "bold"), ("語です", "")), 7) == (("日本", "bold"), ("語…", ""))


@pytest.mark.parametrize(
    ("ms", "shown"),
    [(0, "0s"), (999, "0s"), (61_000, "1m 01s"), (3_720_000, "1h 02m"), (-5, "0s"), (86_400_000, "24h 00m")],
)
def test_durations(ms: int, shown: str) -> None:
    assert duration(ms) == shown


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (0, "0"),
        (950, "950"),
        (1000, "1k"),
        (34_211, "34.2k"),
        (1_200_000, "1.2M"),
        (2_080_800_000, "2.1G"),
        (999_999, "1M"),
    ],
)
def test_counts(number: int, shown: str) -> None:
    assert count(number) == shown
