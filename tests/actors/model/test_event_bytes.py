"""What of an event stream is more than a sign of life, in any chunking."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.model.event_bytes import EventBytes


@pytest.mark.parametrize(
    ("chunks", "spoken"),
    [
        ([b": ping\n\n"], [False]),
        ([b":", b" data: x", b"\n", b"\r\n"], [False, False, False, False]),
        ([b"data: 1\n\n", b": ping\n\n"], [True, False]),
        ([b"data", b": 1\n", b"\n", b":\n"], [True, True, False, False]),
        ([b": wait\n\ndata: 1\n\n"], [True]),
        ([b": wait\r", b"data: 1\r"], [False, True]),
        ([b"data: 1", b"\n: x"], [True, False]),
    ],
)
def test_comments_and_empty_lines_say_nothing(chunks: list[bytes], spoken: list[bool]) -> None:
    stream = EventBytes()
    assert [stream.speak(chunk) for chunk in chunks] == spoken


@given(st.lists(st.sampled_from((b":", b"d", b"\n", b"\r")), min_size=1, max_size=12), st.integers(1, 12))
def test_no_border_between_chunks_changes_the_verdict(pieces: list[bytes], place: int) -> None:
    data = b"".join(pieces)
    stream = EventBytes()
    said = [stream.speak(chunk) for chunk in (data[:place], data[place:]) if chunk]
    assert any(said) is EventBytes().speak(data)
