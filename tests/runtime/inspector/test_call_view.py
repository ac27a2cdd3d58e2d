"""Arguments of a tool call, read by people."""

from __future__ import annotations

import pytest

from runtime.inspector.call_view import brief, full


@pytest.mark.parametrize(
    ("text", "short", "long"),
    [
        ('{"command":"ls -la"}', "ls -la", "ls -la"),
        ('{"path":"a.py","limit":5}', "a.py", "path: a.py\nlimit: 5"),
        ('{"limit":5,"pattern":"x\\ny"}', "x\ny", "limit: 5\npattern: x\ny"),
        ('{"edits":[{"oldText":"a"}]}', '{"edits":[{"oldText":"a"}]}', '[{"oldText":"a"}]'),
        ("{}", "", ""),
        ('{"command":"cut of', '{"command":"cut of', '{"command":"cut of'),
        ("ls -la", "ls -la", "ls -la"),
        ("[1]", "[1]", "[1]"),
        ("{" * 5000, "{" * 5000, "{" * 5000),
    ],
)
def test_arguments(text: str, short: str, long: str) -> None:
    assert (brief(text), full(text)) == (short, long)
