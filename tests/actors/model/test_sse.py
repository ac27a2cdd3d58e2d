"""Server-sent events are read the same whatever the chunks and the line ends."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from actors.model.sse import SseDecoder

PIECES = st.sampled_from(
    [b"data: a", b"data:b", b"data:", b"data", b"event: e", b"event:", b": note", b"id: 3", b"", b"\xff\xfe", b"datax"]
)
ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])


def decoded(chunks: list[bytes]) -> list[tuple[bytes, bytes]]:
    decoder = SseDecoder()
    events = [event for chunk in chunks for event in decoder.feed(chunk)]
    return events + decoder.end()


def expected(lines: list[bytes]) -> list[tuple[bytes, bytes]]:
    """The specification's steps, line by line."""
    events: list[tuple[bytes, bytes]] = []
    name, data = b"", list[bytes]()
    for line in [*lines, b""]:
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if line == b"":
            if data:
                events.append((name, b"\n".join(data)))
            name, data = b"", []
        elif field == b"data":
            data.append(value)
        elif field == b"event":
            name = value
    return events


@settings(max_examples=150)
@given(st.lists(st.tuples(PIECES, ENDS), max_size=14), st.data())
def test_any_chunking_and_line_end_gives_the_events_of_the_specification(
    lines: list[tuple[bytes, bytes]], data: st.DataObject
) -> None:
    # An empty line after a CR would merge with it when its own end is LF: that pair is one line end.
    kept = [(line, end) for i, (line, end) in enumerate(lines) if line or not i or lines[i - 1][1] == end != b"\r\n"]
    stream = b"".join(line + end for line, end in kept)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    chunks = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    want = expected(_lines_of(stream))
    assert decoded(chunks) == want
    assert decoded([bytes([byte]) for byte in stream]) == want


def _lines_of(stream: bytes) -> list[bytes]:
    return stream.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")


def test_crlf_cut_between_its_bytes_is_one_line_end() -> None:
    assert decoded([b"data: a\r", b"\ndata: b\r", b"\n\r", b"\n"]) == [(b"", b"a\nb")]


def test_a_cr_ends_an_event_without_waiting_for_the_next_byte() -> None:
    decoder = SseDecoder()
    assert decoder.feed(b"data: a\r\r") == [(b"", b"a")]


def test_the_last_event_needs_no_blank_line_and_no_line_end() -> None:
    assert decoded([b"event: e\ndata: x"]) == [(b"e", b"x")]


def test_a_byte_order_mark_is_skipped_at_the_beginning_only() -> None:
    assert decoded([b"\xef\xbb", b"\xbfdata: a\n\n"]) == [(b"", b"a")]


def test_a_long_line_in_tiny_chunks_is_not_quadratic() -> None:
    decoder = SseDecoder()
    for _ in range(200_000):
        assert decoder.feed(b"xxxxxxxxxxxxxxxx") == []
    decoder.feed(b"\n\n")
    assert decoder.feed(b"data: ok\n\n") == [(b"", b"ok")]
