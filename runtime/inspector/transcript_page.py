"""The transcript of an agent, or the output of a command, in a view of its own."""

from __future__ import annotations

from runtime.inspector.footer import Control
from runtime.inspector.inspection import Inspection
from runtime.inspector.keys import Ask
from runtime.inspector.output_view import gap_labels, output_lines
from runtime.inspector.pane import Pane
from runtime.inspector.state_view import name_of, state_spans
from runtime.inspector.task_page import TaskPage
from runtime.inspector.texts import Line, clipped, indented, two_ends
from runtime.inspector.transcript import Place, find
from runtime.inspector.watched import Watched


class TranscriptPage(TaskPage):
    """Follows what is said until somebody reads earlier lines; those stay where they are, whatever arrives."""

    def __init__(self, inspection: Inspection, watched: Watched) -> None:
        super().__init__(inspection, watched)
        self._follows = True
        self._places: list[Place] = []
        self._anchor: tuple[Place, int] | None = None

    def head(self, width: int) -> list[Line]:
        kind = "Transcript" if self.watched.is_agent else "Output"
        left = ((f" {kind}  ", "dim"), (name_of(self.record), "bold"))
        state = ((" ", ""), *state_spans(self.record))
        return [clipped(left, width), two_ends(state, ((self._position() + " ", "dim"),), width)]

    def controls(self) -> list[Control]:
        ends = ("Home/End", "first, last")
        others = [*self.stop_control(), *self.again_control(), self.back_control()]
        return [("↑↓", "line"), self.page_control(), ends, *others]

    def show_body(self, pane: Pane, width: int) -> None:
        lines, self._places = self._lines(width)
        top = None
        if self._follows:
            top = len(lines)
        elif self._anchor is not None:
            top = find(self._places, self._anchor[0]) - self._anchor[1]
        pane.show(lines, top)
        self._fill("head", [*self.head(width), self.pane("head").lines[-1]])

    def act(self, ask: Ask) -> None:
        pane = self.pane("body")
        page = max(pane.size.height - 1, 1)
        match ask:
            case "pageUp" if pane.top == 0:
                self.inspector.do(self.watched.load_earlier())
            case "up" | "down" | "pageUp" | "pageDown":
                steps = {"up": -1, "down": 1, "pageUp": -page, "pageDown": page}
                self._go(pane.top + steps[ask])
            case "home" | "end":
                self._go(0 if ask == "home" else pane.bottom)
            case _:
                super().act(ask)

    def _go(self, top: int) -> None:
        pane = self.pane("body")
        pane.show(pane.lines, top)
        self._follows = pane.top >= pane.bottom
        self._anchor = self._anchor_at(pane.top)
        self.redraw()

    def _anchor_at(self, top: int) -> tuple[Place, int] | None:
        """The first line from `top` on that belongs to an entry: labels above it come and go."""
        first = self.watched.transcript.first
        for number in range(top, len(self._places)):
            if self._places[number].entry >= first:
                return self._places[number], number - top
        return None

    def _lines(self, width: int) -> tuple[list[Line], list[Place]]:
        if self.watched.is_agent:
            return self.watched.transcript.lines(width)
        detail = self.watched.detail
        if detail is None:
            return [((" Loading …", "dim"),)], []
        labels = indented(gap_labels(self.record, detail), "dim", by=1)
        lines = [*labels, *output_lines(self.record, detail, width - 2)]
        return lines, [Place(0, below) for below in range(len(lines))]

    def position(self) -> str:
        return ""  # it stands in the head

    def _position(self) -> str:
        pane = self.pane("body")
        total = len(pane.lines)
        last = min(pane.top + pane.size.height, total)
        way = "" if self._follows else "   more below"
        return f"lines {min(pane.top + 1, total)}-{last} of {total}{way}"
