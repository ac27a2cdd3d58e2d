"""Text of a command's output: the same however the bytes are cut, and free of what a terminal would have eaten."""

from __future__ import annotations

import itertools
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from actors.shell.output import ESCAPE_LIMIT, Decoder, Sanitizer


def clean(*chunks: bytes) -> str:
    sanitizer = Sanitizer()
    return "".join([sanitizer.feed(chunk) for chunk in chunks]) + sanitizer.end()


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (b"plain\ttext\n", "plain\ttext\n"),
        (b"a\r\nb\rc\n", "a\nbc\n"),
        (b"\x00\x01\x07\x08\x0b\x0c\x0e\x1fx", "x"),
        (b"\x7f\xc2\x80\xc2\x9b31m", "\x7f\x80\x9b31m"),
        ("a\ufff9b\ufffac\ufffbd\ufffce".encode(), "abcd\ufffce"),
        (b"\xef\xbb\xbfbom", "bom"),
        ("a\ufeffb".encode(), "a\ufeffb"),
        (b"\xff\xfeabc", "\ufffd\ufffdabc"),
        (b"\xe2\x07\x82\xac", "\ufffd\ufffd\ufffd"),
        (b"tail\xe2\x82", "tail"),
    ],
)
def test_controls_go_and_invalid_bytes_become_replacement_characters(written: bytes, text: str) -> None:
    assert clean(written) == text


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (b"\x1b[31mred\x1b[0m", "red"),
        (b"\x1b[38;5;196mx\x1b[?25l\x1b[2 q", "x"),
        (b"\x1b]0;title\x07x", "x"),
        (b"\x1b]8;;http://a.b\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]0;title\x9cx".encode(), "x"),
        (b"\x1bPq#0;2\x1b\\x\x1b_app\x1b\\y", "xy"),
        (b"\x1b(B\x1b=\x1b7x\x1bM", "x"),
        (b"\x1b\x1b[1mx", "x"),
        (b"\x1b\xc3\xa9", "é"),
    ],
)
def test_escape_sequences_go(written: bytes, text: str) -> None:
    assert clean(written) == text


def test_what_is_cut_by_the_end_is_dropped_but_not_the_text_of_an_unterminated_string() -> None:
    assert clean(b"a\x1b[31") == "a"
    assert clean(b"a\x1b") == "a"
    assert clean(b"a\x1b]text\r\n") == "atext\n"


SAMPLE = (
    "€\x1b[1;31mred\x1b[0m\r\n\x1b]0;ti\x1b\\t\x1b(B\x1b]0;x\x07𝄞\x1bP1\x1b[2m\ufff9e\x1b\x1b]z\x1b".encode()
    + b"\xf0\x9f"
)


@pytest.mark.parametrize("border", range(len(SAMPLE) + 1))
def test_a_chunk_border_anywhere_changes_nothing(border: int) -> None:
    assert clean(SAMPLE[:border], SAMPLE[border:]) == clean(SAMPLE)


ASCII_PIECES = [bytes([c]) for c in b"\x1b[]P\\3;m (\n\r\x07a\x00"]
OTHER_PIECES = [b"\xe2", b"\x82", b"\xac", b"\xef\xbf\xb9", b"\xef\xbb\xbf", b"\xc2\x9c", b"\xf0\x9d"]
PIECES = st.sampled_from([*ASCII_PIECES, *OTHER_PIECES, b"x" * 2050, b"1" * 200])


@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES, max_size=30), st.lists(st.integers(0, 200), max_size=8))
@example([b"\x1b", b"]", b"x" * 2050, b"\x00", b"x" * 2050, b"a"], [3, 2060])
def test_any_cutting_gives_the_same_text(pieces: list[bytes], cuts: list[int]) -> None:
    written = b"".join(pieces)
    borders = sorted({min(cut, len(written)) for cut in cuts} | {0, len(written)})
    chunks = [written[a:b] for a, b in itertools.pairwise(borders)]
    text = clean(*chunks)
    assert text == clean(*pieces) == clean(written)
    assert not any(character < " " and character not in "\t\n" for character in text)


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(exclude_characters="\x1b", exclude_categories=["Cs"])))
def test_without_escapes_only_the_named_characters_are_missing(text: str) -> None:
    kept = "".join(
        c for c in text.removeprefix("\ufeff") if not ((c < " " and c not in "\t\n") or c in "\ufff9\ufffa\ufffb")
    )
    assert clean(text.encode()) == kept


def test_an_unterminated_string_is_given_up_as_text_at_the_limit() -> None:
    sanitizer = Sanitizer()
    assert sanitizer.feed(b"\x1b]" + b"x" * ESCAPE_LIMIT) == ""
    assert sanitizer.feed(b"y") == "x" * ESCAPE_LIMIT + "y"
    assert clean(b"\x1b]" + b"x" * ESCAPE_LIMIT + b"\x07z") == "z"


@pytest.mark.parametrize("hostile", [b"\x1b]", b"\x1b", b"\x1b[", b"\x1b[3", b"\x1bP\x1b", b"\x1b]" + b"x" * 4000])
def test_hostile_escapes_take_time_in_proportion_to_their_length(hostile: bytes) -> None:
    def cost(size: int) -> float:
        started = time.process_time()
        clean(hostile * (size // len(hostile)))
        return time.process_time() - started

    # Quadratic work would make this 256 times as long; a megabyte then takes minutes.
    assert cost(1 << 20) < 5 + 64 * cost(1 << 16)


def test_the_decoder_of_the_tool_keeps_escapes_and_tells_of_a_cut_character() -> None:
    decoder = Decoder()
    assert decoder.feed(b"\xef\xbb") + decoder.feed(b"\xbf\x1b[1m\r\n\xe2") == "\x1b[1m\r\n"
    assert decoder.feed(b"\x82\xac\xe2\x82") + decoder.end() == "€\ufffd"
