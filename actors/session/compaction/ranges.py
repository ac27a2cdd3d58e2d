"""Ranges of lines as a planner names them: read strictly, then made to fit.

Nothing is guessed: one line that is no record refuses the whole answer. What can be read is brought into the region's
bounds, merged, and cut around protected lines. Pure. Source: `sessions.md` 2.6.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

Range = tuple[int, int]
"""First and last line, from 1 on, both included."""

_NUMBER = r"(0|[1-9][0-9]*)"
_RECORD = re.compile(f"{_NUMBER},{_NUMBER}")
# Far beyond any region, and Python refuses to read thousands of digits.
_MOST_DIGITS = 15


def read_ranges(text: str, *, cut_short: bool = False) -> list[Range] | None:
    """The records of an answer as they stand; None if it is malformed. Of an answer that was cut short, what follows
    the last line feed is left out, however complete it looks."""
    complete, line_feed, rest = text.rpartition("\n")
    if cut_short:
        lines = complete.split("\n") if line_feed else []
    else:
        lines = (complete.split("\n") if line_feed else []) + ([rest] if rest else [])
    ranges = [_record(line) for line in lines]
    read = [found for found in ranges if found is not None]
    return read if lines and len(read) == len(ranges) else None


def fitted(ranges: Iterable[Range], count: int, protected: Sequence[Range] = ()) -> list[Range]:
    """`ranges` as deletions in a region of `count` lines: turned round, clamped, merged, and without what is
    protected."""
    inside = [(max(min(pair), 1), min(max(pair), count)) for pair in ranges]
    return _without(merge(pair for pair in inside if pair[0] <= pair[1]), protected)


def merge(ranges: Iterable[Range]) -> list[Range]:
    """In order, overlapping and touching ones joined."""
    merged: list[Range] = []
    for start, end in sorted(ranges):
        if merged and start <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def total(ranges: Iterable[Range]) -> int:
    """The number of lines in disjoint ranges."""
    return sum(end - start + 1 for start, end in ranges)


def _record(line: str) -> Range | None:
    found = _RECORD.fullmatch(line)
    return None if found is None else (_number(found[1]), _number(found[2]))


def _number(digits: str) -> int:
    return int(digits) if len(digits) <= _MOST_DIGITS else 10**_MOST_DIGITS


def _without(ranges: list[Range], protected: Sequence[Range]) -> list[Range]:
    """Both are in order and disjoint."""
    left: list[Range] = []
    place = 0
    for first, end in ranges:
        start = first
        while place < len(protected) and protected[place][1] < start:
            place += 1
        for kept_start, kept_end in protected[place:]:
            if kept_start > end:
                break
            if start < kept_start:
                left.append((start, kept_start - 1))
            start = kept_end + 1
        if start <= end:
            left.append((start, end))
    return left
