"""The details of one task and what can be done with it."""

from __future__ import annotations

from runtime.inspector.detail_view import Action, body, choices, head
from runtime.inspector.footer import Control
from runtime.inspector.input_page import InputPage
from runtime.inspector.inspection import Inspection
from runtime.inspector.keys import Ask
from runtime.inspector.pane import Pane
from runtime.inspector.task_page import TaskPage
from runtime.inspector.texts import Line
from runtime.inspector.transcript_page import TranscriptPage
from runtime.inspector.watched import Watched

LOW = 18
"""Below so many lines the actions take one line."""


class DetailPage(TaskPage):
    """Head and actions are pinned, the body scrolls."""

    def __init__(self, inspection: Inspection, watched: Watched) -> None:
        super().__init__(inspection, watched)
        self.selected: Action = "transcript"
        self._has_chosen = False

    def _choices(self) -> list[tuple[Action, str]]:
        return list(choices(self.inspection.board, self.record, self.watched.detail))

    def prepare(self) -> None:
        offered = [action for action, _ in self._choices()]
        if not self._has_chosen or self.selected not in offered:
            self.selected = offered[0]

    def head(self, width: int) -> list[Line]:
        offered = self._choices()
        rows: list[Line] = []
        for number, (action, label) in enumerate(offered, 1):
            is_selected = action == self.selected
            row = ((" ▸ " if is_selected else "   ", "mark"), (label, "bold" if is_selected else ""))
            if self.size.height >= LOW:
                rows.append(row)
            elif is_selected:
                rows.append((*row, (f"  {number} of {len(offered)}", "dim")))
        about = head(self.inspection.board, self.record, width, self.inspector.now())
        return [*about, *([()] if self.size.height >= LOW else []), *rows]

    def controls(self) -> list[Control]:
        others = [*self.stop_control(), *self.again_control(), self.back_control()]
        return [("↑↓", "select"), ("Enter", "choose"), self.page_control(), *others]

    def show_body(self, pane: Pane, width: int) -> None:
        pane.show(body(self.record, self.watched.detail, self.watched.transcript, width))

    def act(self, ask: Ask) -> None:
        pane = self.pane("body")
        match ask:
            case "up" | "down":
                offered = [action for action, _ in self._choices()]
                place = offered.index(self.selected) if self.selected in offered else 0
                self.selected = offered[min(max(place + (1 if ask == "down" else -1), 0), len(offered) - 1)]
                self._has_chosen = True
                self.redraw()
            case "pageUp" | "pageDown":
                pane.scroll_lines(pane.size.height if ask == "pageDown" else -pane.size.height)
            case "home" | "end":
                pane.show(pane.lines, 0 if ask == "home" else pane.bottom)
            case "enter":
                self._do(self.selected)
            case _:
                super().act(ask)

    def _do(self, action: Action) -> None:
        app = self.inspector
        match action:
            case "transcript":
                self.app.push_screen(TranscriptPage(self.inspection, self.watched))
            case "answer" | "input":
                self.app.push_screen(InputPage(self.inspection, self.watched, is_answer=action == "answer"))
            case "stop":
                app.ask_to_stop(self.watched.task_id)
            case "back":
                app.leave()
