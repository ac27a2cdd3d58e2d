"""The region of a compaction: numbered lines, some of which must stay.

Lines are counted from 1 and split at line feeds alone. A view is the region without its oldest lines, numbered from 1
again, for a planner whose window is too small for all of it. Pure. Source: `sessions.md` 2.3 to 2.5.
"""

from __future__ import annotations

import math
import re

from msgspec import Struct

from actors.session.compaction.protection import protected_ranges
from actors.session.compaction.ranges import Range, total

MIN_LINES = 20
"""A region with fewer lines is not worth a request."""

# Of more digits nobody has made a marker: such a line is somebody's text.
_MARKER = re.compile(r"\(filtered ([0-9]{1,15}) lines\)")


class Region(Struct, frozen=True):
    """`protected` are the ranges that no compaction takes away, in order; `markers` maps the line of an older marker to
    the number of lines that it stands for."""

    lines: tuple[str, ...]
    protected: tuple[Range, ...] = ()
    markers: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def is_small(self) -> bool:
        return len(self.lines) < MIN_LINES

    @property
    def deletable(self) -> int:
        return len(self.lines) - total(self.protected)

    def keep_target(self, ratio: float) -> int:
        """How many lines a planner is asked to keep. Protected lines count, and are never too many."""
        return max(round_half_up(len(self.lines) * ratio), total(self.protected))

    def without_head(self, count: int) -> Region:
        """The view without the first `count` lines."""
        return Region(
            self.lines[count:],
            tuple((max(start - count, 1), end - count) for start, end in self.protected if end > count),
            {line - count: stands_for for line, stands_for in self.markers.items() if line > count},
        )


def region_of(text: str) -> Region:
    """The region whose lines are `text`; none for an empty one."""
    lines = text.split("\n") if text else []
    markers = {
        number: int(found[1])
        for number, line in enumerate(lines, 1)
        if line.startswith("(filtered ") and (found := _MARKER.fullmatch(line)) and int(found[1])
    }
    return Region(tuple(lines), tuple(protected_ranges(lines)), markers)


def marker(count: int) -> str:
    """The line that stands for `count` lines; plural for one as well."""
    return f"(filtered {count} lines)"


def round_half_up(value: float) -> int:
    """As JavaScript rounds: halves go up."""
    return math.floor(value + 0.5)
