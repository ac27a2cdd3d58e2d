"""What the pages of one task share, and the question before it is stopped."""

from __future__ import annotations

from protocol.tasks import TaskRecord
from runtime.inspector.detail_view import head
from runtime.inspector.footer import Control
from runtime.inspector.inspection import Inspection
from runtime.inspector.keys import Ask
from runtime.inspector.page import Page
from runtime.inspector.pane import Pane
from runtime.inspector.texts import Line
from runtime.inspector.watched import Watched


class TaskPage(Page):
    """`watched` is the task; its record is the board's, which hears of it first."""

    def __init__(self, inspection: Inspection, watched: Watched) -> None:
        super().__init__(inspection)
        self.inspection = inspection
        self.watched = watched
        self._record = watched.record

    @property
    def record(self) -> TaskRecord:
        """As the board has it, else as it was when the board had it last."""
        self._record = self.inspection.board.task(self.watched.task_id) or self._record
        return self._record

    def act(self, ask: Ask) -> None:
        if ask == "stop":
            self.inspector.ask_to_stop(self.watched.task_id)
        else:
            super().act(ask)

    def stop_control(self) -> list[Control]:
        app = self.inspector
        return [(app.keys.name("stop"), "stop")] if self.inspection.can_stop(self.record) else []

    def page_control(self) -> Control:
        keys = self.inspector.keys
        return f"{keys.name('pageUp')}/{keys.name('pageDown')}", "scroll"

    def again_control(self) -> list[Control]:
        return [("r", "again")] if self.inspection.board.is_over else []

    def back_control(self) -> Control:
        return f"{self.inspector.keys.name('back')}/Esc", "back"


class ConfirmPage(TaskPage):
    """Whether it is to be stopped: `y`, or not."""

    def head(self, width: int) -> list[Line]:
        return head(self.inspection.board, self.record, width, self.inspector.now())

    def controls(self) -> list[Control]:
        if not self.inspection.can_stop(self.record):
            return [*self.again_control(), self.back_control()]
        return [("y", "stop it"), ("n/Esc", "keep it running")]

    def show_body(self, pane: Pane, width: int) -> None:
        if not self.inspection.can_stop(self.record):
            pane.show([(), ((" It cannot be stopped any more.", "dim"),)])
            return
        what = "this agent" if self.watched.is_agent else "this command"
        asked: Line = ((f" Stop {what}?", "bold"),)
        pane.show([(), asked, (), ((" What it has done so far is not undone.", "dim"),)])

    def key_y(self) -> None:
        if self.inspection.can_stop(self.record):
            self.inspector.leave()
            self.inspector.do(self.inspection.stop(self.watched.task_id), "The stop was asked for.")

    def key_n(self) -> None:
        self.inspector.leave()

    def act(self, ask: Ask) -> None:
        if ask != "stop":  # that is what this page asks about
            super().act(ask)
