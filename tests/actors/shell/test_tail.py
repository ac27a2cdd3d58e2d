"""The tail of a command's output: flat in memory, right in its totals."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from actors.shell.output import Tail
from actors.shell.truncate import truncate_tail

CHUNKS = st.lists(
    st.sampled_from(["", "a", "\n", "€\n", "line\n" * 400, "x" * 30_000, "é" * 20_000, "𝄞\n" * 9_000]), max_size=14
)


def fill(chunks: list[str]) -> Tail:
    tail = Tail()
    for chunk in chunks:
        tail.append(chunk)
    return tail


def test_short_output_of_both_channels_is_kept_whole_in_the_order_of_arrival() -> None:
    assert fill(["out\n", "err\n", "out\n"]).text() == "out\nerr\nout\n"


@settings(max_examples=100, deadline=None)
@given(CHUNKS)
def test_truncating_the_tail_is_truncating_the_whole(chunks: list[str]) -> None:
    assert fill(chunks).truncated() == truncate_tail("".join(chunks))


@settings(max_examples=50, deadline=None)
@given(CHUNKS)
def test_the_last_line_is_measured_across_chunks(chunks: list[str]) -> None:
    assert fill(chunks).last_line_bytes == len("".join(chunks).rpartition("\n")[2].encode())


def test_a_long_run_of_chunks_stays_bounded() -> None:
    tail = Tail()
    for _ in range(500):
        tail.append("0123456789abcdef" * 4096)
        assert len(tail.text()) <= 250_000
    assert tail.total_bytes == 500 * 65536


def test_everything_is_still_held_when_the_log_has_to_be_opened() -> None:
    before, crossing = "a" * 51_200, "b" * 65_536
    assert fill([before, crossing]).text() == before + crossing


def test_one_huge_chunk_is_kept() -> None:
    assert len(fill(["a", "b" * 1_000_000]).text()) == 1_000_000
