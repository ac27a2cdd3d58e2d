"""The field for what is typed into a task."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import ClassVar

from textual.app import ComposeResult
from textual.events import Key
from textual.widgets import Input

from runtime.inspector.detail_view import head
from runtime.inspector.footer import Control
from runtime.inspector.input_view import answer_of, input_lines
from runtime.inspector.inspection import Inspection
from runtime.inspector.keys import Ask
from runtime.inspector.link import LinkLost, Refused
from runtime.inspector.notice_view import notice_text
from runtime.inspector.page import rule
from runtime.inspector.pane import Pane
from runtime.inspector.records import BadRecord
from runtime.inspector.task_page import TaskPage
from runtime.inspector.texts import Line
from runtime.inspector.watched import Watched


class NotSent(Exception):
    """What was typed has not reached the task; the text says why."""


class InputPage(TaskPage):
    """What is typed goes to the task: a line for a terminal, or the answer to a question."""

    AUTO_FOCUS: ClassVar[str | None] = "Input"
    again = "Esc, then r"

    def __init__(self, inspection: Inspection, watched: Watched, *, is_answer: bool) -> None:
        super().__init__(inspection, watched)
        self.is_answer = is_answer
        self._top: int | None = None

    def compose(self) -> ComposeResult:
        yield Pane(id="head")
        yield Pane(id="body", resized=self.redraw_later)
        yield Pane(id="edge")
        yield Input(id="field", placeholder=self._invitation(), select_on_focus=False)
        yield Pane(id="foot")

    def head(self, width: int) -> list[Line]:
        return head(self.inspection.board, self.record, width, self.inspector.now())

    def controls(self) -> list[Control]:
        scroll = [self.page_control()] if self.pane("body").bottom else []
        return [("Enter", "send"), *scroll, ("Esc", "leave input")]

    def show_body(self, pane: Pane, width: int) -> None:
        lines = input_lines(self.record, self.watched.detail, width, is_answer=self.is_answer)
        start = 0 if self.is_answer else len(lines)
        pane.show(lines, start if self._top is None else self._top)
        self.pane("edge").show([rule(width)])

    def _invitation(self) -> str:
        return "Type the answer, then Enter" if self.is_answer else "Type a line, then Enter"

    def asked(self, event: Key) -> Ask | None:
        """All but Escape and the keys that scroll is typing; a key that types something does not scroll."""
        if event.key == "escape":
            return "leave"
        ask = None if event.is_printable else self.inspector.keys.ask(event.key, None)
        return ask if ask in ("pageUp", "pageDown") else None

    def act(self, ask: Ask) -> None:
        if ask == "leave":
            self.inspector.leave()
            return
        pane = self.pane("body")
        pane.scroll_lines(pane.size.height if ask == "pageDown" else -pane.size.height)
        follows = not self.is_answer and pane.top >= pane.bottom
        self._top = None if follows else pane.top
        self.redraw()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if not self.is_answer:
            self.inspector.do(self._type(event.input, event.value), "Sent.")
            return
        asked = self.watched.detail.questions if self.watched.detail else ()
        if asked and event.value.strip():
            self.inspector.do(self._answer(asked[0].request_id, answer_of(asked[0], event.value)), "Answered.")

    async def _type(self, field: Input, line: str) -> None:
        """The field is free for the next line at once; what was not sent comes back."""
        field.clear()
        try:
            await self._sent(self.inspection.type(self.watched.task_id, line + "\n"))
        except NotSent:
            field.value = line + field.value
            field.cursor_position = len(field.value)
            raise

    async def _answer(self, request_id: str, text: str) -> None:
        await self._sent(self.inspection.answer(self.watched.task_id, request_id, text))
        self.inspector.answered()

    async def _sent(self, work: Awaitable[None]) -> None:
        """Raises `NotSent`, also where the notice tells of the loss: the user has to know what became of the line."""
        try:
            await work
        except (LinkLost, Refused, BadRecord) as error:
            look = self.inspection
            told = notice_text(look.board, look.door.pid, self.again) if not look.board.is_live else None
            raise NotSent(f"Not sent: {told or error}") from None
