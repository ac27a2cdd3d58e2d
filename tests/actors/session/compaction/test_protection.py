"""`<keepContext>`: which lines it protects, and where a span ends."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.session.compaction.protection import protected_ranges
from actors.session.compaction.ranges import Range

LINES = st.lists(
    st.sampled_from(
        [
            *("<keepContext>", "</keepContext>", "[User]: <keepContext>", "[Assistant]: </keepcontext>", "", "text"),
            *("[Tool result]: <keepContext>", "[User]: hi", "[Tool result]: x", "[Assistant thinking]: <KEEPCONTEXT>"),
        ]
    )
)


@pytest.mark.parametrize(
    ("text", "protected"),
    [
        ("[User]: a\n<keepContext>\nb\n</keepContext>\nc", [(2, 4)]),
        ("[User]: <KEEPCONTEXT>\nb\n \t</keepcontext>\ufeff\nc", [(1, 3)]),
        ("[User]: please <keepContext> this\nb\n</keepContext>", []),
        ("[User]: <keepContext>\nb\n\n[Assistant]: c\n</keepContext>", [(1, 3)]),
        ("[User]: a\n<keepContext>\nb", [(2, 3)]),
        ("[User]: a\n<keepContext>\n<keepContext>\nb\n</keepContext>\nc\n</keepContext>", [(2, 5)]),
        ("[User]: a\n</keepContext>\nb", []),
        ("[Tool result]: a\n<keepContext>\nb\n</keepContext>", []),
        ("[Assistant tool calls]: <keepContext>\nb\n</keepContext>", [(1, 3)]),
        ("[Assistant thinking]: a\n<keepContext>\n</keepContext>", [(2, 3)]),
        ("from before\n<keepContext>\nb\n</keepContext>\n[Tool result]: x", [(2, 4)]),
        ("[User]: <keepContext>\n[Tool result]: </keepContext>\nb", [(1, 1)]),
        ("[User]: a\n< keepContext>\nb\n<keepContext >", []),
    ],
)
def test_a_tag_protects_from_its_line_to_the_end_of_its_span(text: str, protected: list[Range]) -> None:
    assert list(protected_ranges(text.split("\n"))) == protected


@given(LINES)
def test_spans_are_in_order_apart_and_inside_one_message(lines: list[str]) -> None:
    spans = list(protected_ranges(lines))
    assert all(1 <= start <= end <= len(lines) for start, end in spans)
    assert all(one[1] < other[0] for one, other in pairwise(spans))
    for start, end in spans:
        assert not any(line.startswith("[") for line in lines[start:end])
        assert "<keepcontext>" in lines[start - 1].lower()
