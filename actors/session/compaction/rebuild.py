"""The text that is left of a region once lines are taken out of it.

Kept lines stay as they are and in their order. Each gap is one marker line whose number counts every original line that
is gone there, those of older markers included, so that the numbers add up over any series of compactions. Pure.
Source: `sessions.md` 2.7.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from actors.session.compaction.ranges import Range, total
from actors.session.compaction.region import Region, marker, round_half_up
from actors.session.tokens import utf16_length
from protocol.compaction import CompactionStats


class Rebuilt(Struct, frozen=True):
    """`gaps` are the lines that were taken out, older markers beside them included."""

    text: str
    gaps: tuple[Range, ...]


def rebuild(region: Region, deletions: Iterable[Range]) -> Rebuilt:
    """`region` without `deletions`, which are fitted to it (see `ranges.fitted`)."""
    gaps = tuple(_gaps(region, deletions))
    return Rebuilt("\n".join(_lines(region, gaps)), gaps)


def stats_of(region: Region, rebuilt: Rebuilt, tokens_before: int, tail_tokens: int) -> CompactionStats:
    """`tokens_before` is the whole context's, `tail_tokens` what is kept behind the region."""
    deleted = total(rebuilt.gaps)
    return _stats(
        len(region), deleted, len(region) - deleted, len(rebuilt.gaps), rebuilt.text, tokens_before, tail_tokens
    )


def stats_of_override(region: Region, text: str, tokens_before: int, tail_tokens: int) -> CompactionStats:
    """For a text that somebody else put in the region's place."""
    kept = len(text.split("\n"))
    return _stats(len(region), max(0, len(region) - kept), kept, 0, text, tokens_before, tail_tokens)


def _stats(
    before: int, deleted: int, kept: int, gaps: int, text: str, tokens_before: int, tail_tokens: int
) -> CompactionStats:
    after = -(-utf16_length(text) // 4) + tail_tokens
    saved = round_half_up((1 - after / tokens_before) * 1000) / 10 if tokens_before else 0
    return CompactionStats(before, deleted, kept, gaps, tokens_before, after, saved)


def _gaps(region: Region, deletions: Iterable[Range]) -> Iterator[Range]:
    """The deletions, and the older markers that touch them."""
    gone, kept = _marked(region, deletions), _marked(region, region.protected)
    markers = [line for line in sorted(region.markers) if not kept[line]]
    for line in (*markers, *reversed(markers)):
        if gone[line - 1] or gone[line + 1]:
            gone[line] = 1
    end = 0
    while (start := gone.find(1, end)) != -1:
        end = gone.find(0, start)
        yield start, end - 1


def _marked(region: Region, ranges: Iterable[Range]) -> bytearray:
    """One byte for each line, and one at either end; 1 in the ranges."""
    marks = bytearray(len(region) + 2)
    for start, end in ranges:
        marks[start : end + 1] = b"\1" * (end - start + 1)
    return marks


def _lines(region: Region, gaps: Sequence[Range]) -> Iterator[str]:
    next_line = 1
    markers = sorted(region.markers)
    for start, end in gaps:
        yield from region.lines[next_line - 1 : start - 1]
        absorbed = markers[bisect_left(markers, start) : bisect_right(markers, end)]
        yield marker(end - start + 1 + sum(region.markers[line] - 1 for line in absorbed))
        next_line = end + 1
    yield from region.lines[next_line - 1 :]
