"""A part of the screen that shows lines and scrolls them: nothing in a line is markup, whatever it says."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip
from textual.widget import Widget

from runtime.inspector.texts import Line

PALETTE = {
    "": Style(),
    "bold": Style(bold=True),
    "dim": Style(dim=True),
    "busy": Style(color="cyan"),
    "good": Style(color="green"),
    "bad": Style(color="red"),
    "warn": Style(color="yellow"),
    "mark": Style(color="cyan", bold=True),
}
"""The terminal's own colours, so that it looks as the user wants his terminal to look."""


class Pane(Widget):
    """`top` is the first line that is seen. The lines fit the width that they were made for; what is wider is cut.
    `resized` is called when the pane has another size."""

    def __init__(self, id: str, resized: Callable[[], None] | None = None) -> None:
        super().__init__(id=id)
        self._resized = resized
        self.lines: Sequence[Line] = ()
        self.top = 0

    @property
    def bottom(self) -> int:
        """The largest `top`: the last line is seen then."""
        return max(len(self.lines) - max(self.size.height, 1), 0)

    def show(self, lines: Sequence[Line], top: int | None = None) -> None:
        """Shows `lines` from `top` on, or from where it was."""
        self.lines = lines
        self.top = min(max(self.top if top is None else top, 0), self.bottom)
        self.refresh()

    def scroll_lines(self, by: int) -> None:
        self.show(self.lines, self.top + by)

    def reveal(self, first: int, last: int) -> None:
        """Scrolls as little as needed to show these lines."""
        height = max(self.size.height, 1)
        top = min(max(self.top, last - height + 1), first)
        self.show(self.lines, top)

    def on_resize(self) -> None:
        if self._resized is not None:
            self._resized()

    def render_line(self, y: int) -> Strip:
        place = self.top + y
        line = self.lines[place] if 0 <= place < len(self.lines) else ()
        segments = [Segment(text, PALETTE[style]) for text, style in line]
        return Strip(segments).adjust_cell_length(self.size.width)
