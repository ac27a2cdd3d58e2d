"""Lines that `<keepContext>` protects from compaction.

A tag counts when it is all that stands on its line, behind at most one header. A span ends with its closing tag, and at
the latest where the next message begins. What tools returned protects nothing. Pure. Source: `sessions.md` 2.4.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from actors.session.compaction.ranges import Range
from actors.session.provider_view import trimmed
from actors.session.transcript import RESULT_HEADER, header_of

_OPEN = "<keepcontext>"
_CLOSE = "</keepcontext>"


def protected_ranges(lines: Sequence[str]) -> Iterator[Range]:
    """The protected ranges in order, tags included."""
    opened: int | None = None
    is_result = False
    for number, line in enumerate(lines, 1):
        header = header_of(line) if line.startswith("[") else ""
        if header:
            if opened is not None:
                yield opened, number - 1
            opened, is_result = None, header == RESULT_HEADER
        tag = "" if is_result else _tag(line[len(header) :])
        if tag == _OPEN and opened is None:
            opened = number
        elif tag == _CLOSE and opened is not None:
            yield opened, number
            opened = None
    if opened is not None:
        yield opened, len(lines)


def _tag(text: str) -> str:
    """The text as a tag would be written. Most lines hold none, and are not trimmed."""
    return trimmed(text).lower() if ">" in text[-16:] or "ontext" in text.lower() else ""
