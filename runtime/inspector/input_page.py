"""The field for what is typed into a task."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.events import Key
from textual.widgets import Input

from runtime.inspector.detail_view import head
from runtime.inspector.footer import Control
from runtime.inspector.input_view import answer_of, input_lines
from runtime.inspector.inspection import Inspection
from runtime.inspector.keys import Ask
from runtime.inspector.page import rule
from runtime.inspector.pane import Pane
from runtime.inspector.task_page import TaskPage
from runtime.inspector.texts import Line
from runtime.inspector.watched import Watched


class InputPage(TaskPage):
    """What is typed goes to the task: a line for a terminal, or the answer to a question."""

    AUTO_FOCUS: ClassVar[str | None] = "Input"

    def __init__(self, inspection: Inspection, watched: Watched, *, is_answer: bool) -> None:
        super().__init__(inspection, watched)
        self.is_answer = is_answer

    def compose(self) -> ComposeResult:
        yield Pane(id="head")
        yield Pane(id="body", resized=self.redraw_later)
        yield Pane(id="edge")
        yield Input(id="field", placeholder=self._invitation(), select_on_focus=False)
        yield Pane(id="foot")

    def head(self, width: int) -> list[Line]:
        return head(self.inspection.board, self.record, width, self.inspector.now())

    def controls(self) -> list[Control]:
        return [("Enter", "send"), ("Esc", "leave input")]

    def show_body(self, pane: Pane, width: int) -> None:
        lines = input_lines(self.record, self.watched.detail, width, is_answer=self.is_answer)
        pane.show(lines, 0 if self.is_answer else len(lines))

        self.pane("edge").show([rule(width)])

    def _invitation(self) -> str:
        return "Type the answer, then Enter" if self.is_answer else "Type a line, then Enter"

    def asked(self, event: Key) -> Ask | None:
        """All but Escape is typing."""
        return "leave" if event.key == "escape" else None

    def act(self, ask: Ask) -> None:
        self.inspector.leave()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if not self.is_answer:
            self.inspector.do(self.inspection.type(self.watched.task_id, event.value + "\n"), "Sent.")
            event.input.clear()
            return
        asked = self.watched.detail.questions if self.watched.detail else ()
        if asked and event.value.strip():
            self.inspector.do(self._answer(asked[0].request_id, answer_of(asked[0], event.value)), "Answered.")

    async def _answer(self, request_id: str, text: str) -> None:
        await self.inspection.answer(self.watched.task_id, request_id, text)
        self.inspector.answered()
