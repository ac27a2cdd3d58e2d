"""Framing: records come out the same however the bytes were cut."""

from __future__ import annotations

from itertools import pairwise
from time import perf_counter

from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.lines import LineSplitter

STREAMS = st.lists(st.sampled_from([b"\n", b"\r", b"\r\n", b"a", "\u2028\u0085é".encode(), b"\xff", b"{}"])).map(
    b"".join
)


def records_of(stream: bytes, cuts: list[int]) -> list[bytes]:
    splitter = LineSplitter()
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    whole = [record for at, end in pairwise(edges) for record in splitter.feed(stream[at:end])]
    return whole + splitter.end()


@given(STREAMS, st.lists(st.integers(0, 60)))
@settings(max_examples=200)
def test_any_chunking_gives_the_same_records(stream: bytes, cuts: list[int]) -> None:
    lines = stream.split(b"\n")
    expected = [line.removesuffix(b"\r") for line in (lines if lines[-1] else lines[:-1])]
    assert records_of(stream, cuts) == expected


def test_only_lf_ends_a_record_and_one_cr_before_it_is_dropped() -> None:
    stream = "a\u2028b\u2029c\u0085d\re\r\r\n\n".encode()
    assert records_of(stream, []) == ["a\u2028b\u2029c\u0085d\re\r".encode(), b""]


def test_a_crlf_that_is_cut_between_two_reads_is_one_line_end() -> None:
    assert records_of(b"a\r\nb", [2]) == [b"a", b"b"]


def test_the_last_record_needs_no_line_feed_and_is_delivered_once() -> None:
    splitter = LineSplitter()
    assert splitter.feed(b"whole\nhalf") == [b"whole"]
    assert splitter.end() == [b"half"]
    assert splitter.end() == []


def test_a_huge_line_in_small_pieces_takes_linear_time() -> None:
    def seconds(pieces: int) -> float:
        splitter = LineSplitter()
        started = perf_counter()
        for _ in range(pieces):
            splitter.feed(b"x" * 65536)
        (record,) = splitter.feed(b"\n")
        assert len(record) == pieces * 65536
        return perf_counter() - started

    assert seconds(512) < 2.0  # 32 MiB: joining anew at each piece copies 8 GiB
