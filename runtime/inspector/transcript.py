"""A transcript as far as it is loaded: pages and live changes merged by index, and shown as lines.

Pure. Promises that an entry keeps its place whatever arrives before or behind it, and that nothing which is missing
goes unsaid.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from itertools import pairwise
from typing import NamedTuple

from runtime.inspector.call_view import full
from runtime.inspector.records import Entry, TaskTranscript, Transcript
from runtime.inspector.texts import Line, Span, cells, clipped, fold, harmless, indented, one_line, wrap

PAGE = 50
"""Entries that one request asks for."""
RESULT_LINES = 40
CALL_LINES = 12


class Place(NamedTuple):
    """A line that stays findable: the entry it belongs to, and how far below its beginning."""

    entry: int
    below: int


class Loaded:
    """What is loaded of one agent's transcript; `is_absent` once the program has answered without one."""

    def __init__(self) -> None:
        self._entries: dict[int, Entry] = {}
        self._order: list[int] = []
        self.live: Entry | None = None
        self.total = 0
        self.missing = 0
        self.is_loaded = False
        self.is_absent = False
        self._shown = _Shown(0, 0, [])

    @property
    def first(self) -> int:
        """The earliest entry that is loaded."""
        return self._order[0] if self._order else self.total

    @property
    def has_earlier(self) -> bool:
        return self.is_loaded and self.first > self.missing

    @property
    def gap(self) -> int | None:
        """The entry before which others are not loaded, though later than the first; None without such a gap."""
        found = [after for before, after in pairwise(self._order) if after != before + 1]
        return found[-1] if found else None

    @property
    def entries(self) -> list[Entry]:
        """What is loaded, in order."""
        return [self._entries[index] for index in self._order]

    def take_page(self, page: Transcript, *, is_tail: bool = True) -> None:
        """A page as it was when it was asked for; only the one at the end tells what is being said."""
        self.is_loaded = True
        self._keep(page.entries)
        self.total, self.missing = max(page.total, self.total), page.missing
        if is_tail:
            self.live = page.live

    def take_change(self, change: TaskTranscript) -> None:
        self._keep(change.entries)
        self.total = max([self.total, *(entry.index + 1 for entry in change.entries)])
        self.live = change.live

    def _keep(self, entries: tuple[Entry, ...]) -> None:
        for entry in entries:
            self._shown.forget(entry.index)
            if entry.index not in self._entries:
                insort(self._order, entry.index)
            self._entries[entry.index] = entry

    # -- as lines

    def lines(self, width: int) -> tuple[list[Line], list[Place]]:
        """All lines, and where each belongs: places ascend. They are the caller's until the next call."""
        top = self._top(width)
        shown = self._shown
        if (shown.width, shown.first, shown.top) != (width, self.first, top):
            shown = self._shown = _Shown(width, self.first, top)
            shown.add(self.first - 1, top)
        shown.cut()
        previous = shown.last
        for index in self._order[bisect_right(self._order, previous) :] if previous is not None else self._order:
            if previous is not None and index > previous + 1:
                shown.add(index - 1, [(), _label(f"{index - previous - 1} entries are not loaded", width)])
            shown.end(index, self._of(self._entries[index], width))
            previous = index
        if self.live is not None:
            shown.add(self.total, [(), *entry_lines(self.live, width, is_live=True)])
        return shown.lines, shown.places

    def _of(self, entry: Entry, width: int) -> list[Line]:
        """A result stands close to its call."""
        space: list[Line] = [] if entry.role == "toolResult" else [()]
        return [*space, *entry_lines(entry, width)]

    def _top(self, width: int) -> list[Line]:
        if not self.is_loaded:
            return [_label("The transcript is not available" if self.is_absent else "Loading …", width)]
        if self.has_earlier:
            return [_label(f"{self.first - self.missing} earlier entries: page up at the top loads them", width)]
        if self.missing:
            return [_label(f"{self.missing} earlier entries are no longer kept", width)]
        if not self._entries and self.live is None:
            return [_label("Nothing has been said yet", width)]
        return []


class _Shown:
    """The lines that were made last, so that what is added costs only itself: a long transcript is shown ten times a
    second while somebody speaks. They were made for `width`, with the label `top` before the entry `first`."""

    def __init__(self, width: int, first: int, top: list[Line]) -> None:
        self.width, self.first, self.top = width, first, top
        self.lines: list[Line] = []
        self.places: list[Place] = []
        self._ends: list[tuple[int, int]] = []

    @property
    def last(self) -> int | None:
        """The last entry whose lines are here."""
        return self._ends[-1][0] if self._ends else None

    def add(self, entry: int, lines: list[Line]) -> None:
        self.lines += lines
        self.places += [Place(entry, below) for below in range(len(lines))]

    def end(self, entry: int, lines: list[Line]) -> None:
        """Adds all lines of an entry."""
        self.add(entry, lines)
        self._ends.append((entry, len(self.lines)))

    def forget(self, entry: int) -> None:
        """It, and all behind it, will have other lines."""
        while self._ends and self._ends[-1][0] >= entry:
            self._ends.pop()

    def cut(self) -> None:
        """Drops what is behind the last entry that is still right."""
        size = self._ends[-1][1] if self._ends else len(self.top)
        del self.lines[size:], self.places[size:]


def find(places: list[Place], wanted: Place) -> int:
    """The line of a place, else the nearest one behind it."""
    return min(bisect_left(places, wanted), max(len(places) - 1, 0))


def entry_lines(entry: Entry, width: int, *, is_live: bool = False) -> list[Line]:
    """One entry as it is shown."""
    inner = max(width - 5, 10)
    text = harmless(entry.text).strip("\n")
    match entry.role:
        case "user":
            return [((" Task", "mark"),), *indented(wrap(text, inner))]
        case "assistant":
            head: tuple[Span, ...] = ((" Agent", "bold"), (" …", "busy")) if is_live else ((" Agent", "bold"),)
            return [head, *indented(wrap(text, inner))]
        case "toolCall":
            return _call(entry, width)
        case "toolResult":
            return _result(entry, text, inner, is_live=is_live)
        case _:
            return [clipped(((" — ", "dim"), (line, "dim")), width) for line in wrap(text, inner)]


def _call(entry: Entry, width: int) -> list[Line]:
    """Name and arguments on one line if they fit, else the arguments below."""
    head: Line = ((" ▸ ", "busy"), (_tool(entry), "bold"))
    text = harmless(full(entry.text)).strip("\n")
    if "\n" not in text and cells(text) <= width - cells(_tool(entry)) - 6:
        return [clipped((*head, (f"  {text}", "")), width)]
    return [clipped(head, width), *_cut(list(wrap(text, max(width - 5, 10))), CALL_LINES, "")]


def _cut(lines: list[str], limit: int, style: str) -> list[Line]:
    shown = indented(lines[:limit], style, by=3)
    if len(lines) > limit:
        shown.append(((f"   … {len(lines) - limit} more lines", "dim"),))
    return shown


def _result(entry: Entry, text: str, width: int, *, is_live: bool) -> list[Line]:
    lines = [*fold(text, width)] if text else ["(no output)"]
    shown = _cut(lines, RESULT_LINES, "bad" if entry.is_error else "dim")
    if is_live:
        shown.append((("   …", "busy"),))
    return shown


def _tool(entry: Entry) -> str:
    return one_line(entry.tool) if isinstance(entry.tool, str) else "tool"


def _label(text: str, width: int) -> Line:
    return clipped(((f" ── {text} ──", "dim"),), width)
