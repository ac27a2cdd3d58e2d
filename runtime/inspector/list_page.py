"""The first pages: which session, and which task."""

from __future__ import annotations

from collections.abc import Sequence

from runtime.inspector.footer import Control
from runtime.inspector.inspection import Inspection
from runtime.inspector.keys import Ask
from runtime.inspector.list_view import Shown, first_choice, moved, show_list
from runtime.inspector.notice_view import session_name
from runtime.inspector.page import Page
from runtime.inspector.pane import Pane
from runtime.inspector.sessions import Live
from runtime.inspector.texts import Line, clipped, one_line, two_ends


class PickerPage(Page):
    """The sessions that run, when nobody said which one."""

    def __init__(self, lives: Sequence[Live]) -> None:
        super().__init__(None)
        self.lives = list(lives)
        self.place = 0

    def head(self, width: int) -> list[Line]:
        return [clipped(((" Sessions", "bold"), (f" {len(self.lives)}", "bold")), width)]

    def controls(self) -> list[Control]:
        return [("↑↓", "select"), ("Enter", "open"), ("r", "look again"), ("Esc", "leave")]

    def show_body(self, body: Pane, width: int) -> None:
        lines = [self._row(live, place == self.place, width) for place, live in enumerate(self.lives)]
        body.show(lines or [((" No running session has tasks to look at.", "dim"),)])
        body.reveal(self.place, self.place)

    def act(self, ask: Ask) -> None:
        match ask:
            case "up" | "down":
                last = max(len(self.lives) - 1, 0)
                self.place = min(max(self.place + (1 if ask == "down" else -1), 0), last)
                self.redraw()
            case "enter" if self.lives:
                self.inspector.open_session(self.lives[self.place])
            case "again":
                self.inspector.look_again(self)
            case _:
                super().act(ask)

    def take(self, lives: Sequence[Live]) -> None:
        """What was found anew; the selection stays with its session."""
        chosen = self.lives[self.place].door if self.lives else None
        self.lives = list(lives)
        places = [place for place, live in enumerate(self.lives) if live.door == chosen]
        self.place = places[0] if places else 0
        self.redraw()

    def _row(self, live: Live, is_selected: bool, width: int) -> Line:
        hello = live.hello
        model = one_line(hello.model) if isinstance(hello.model, str) else ""
        start = ((" ▸ " if is_selected else "   ", "mark"), (session_name(hello), "bold" if is_selected else ""))
        where = ((f"  {one_line(hello.cwd)}", "dim"),)
        return two_ends((*start, *where), ((f"{model}  pid {live.door.pid} ", "dim"),), width)


class ListPage(Page):
    """The tasks of one session. The selection belongs to a task, so what arrives does not move it."""

    def __init__(self, inspection: Inspection) -> None:
        super().__init__(inspection)
        self.inspection = inspection
        self.selected: str | None = None
        self._has_chosen = False
        self._shown = Shown([], [])

    def head(self, width: int) -> list[Line]:
        session = self.inspection.board.session
        if session is None:
            return [((" Tasks", "bold"),)]
        left = ((" Tasks", "bold"), (f"  {session_name(session)}", "dim"))
        return [two_ends(left, ((f"pid {self.inspection.door.pid} ", "dim"),), width)]

    def controls(self) -> list[Control]:
        app, board = self.inspector, self.inspection.board
        record = board.task(self.selected) if self.selected else None
        offered = [("↑↓", "select"), ("Enter", "open")] if record is not None else []
        if record is not None and self.inspection.can_stop(record):
            offered.append((app.keys.name("stop"), "stop"))
        if board.is_over:
            offered.append(("r", "again"))
        return [*offered, ("Esc", "sessions" if app.has_picker else "leave")]

    def prepare(self) -> None:
        board = self.inspection.board
        if not self._has_chosen or self.selected is None or board.task(self.selected) is None:
            self.selected = first_choice(board)

    def show_body(self, body: Pane, width: int) -> None:
        board = self.inspection.board
        if board.state == "connecting":
            body.show([((" Connecting …", "dim"),)])
            return
        if board.session is None:
            body.show([])
            return
        before = self._shown.place_of(self.selected)
        row = None if before is None else before - body.top
        self._shown = show_list(board, self.selected, width, self.inspector.now())
        place = self._shown.place_of(self.selected)
        body.show(self._shown.lines, place - row if place is not None and row is not None else None)
        self._reveal(body)

    def _reveal(self, body: Pane) -> None:
        place = self._shown.place_of(self.selected)
        if place is None:
            return
        last = len(self._shown.owners) - 1 - self._shown.owners[::-1].index(self.selected)
        is_headed = place > 0 and self._shown.owners[place - 1] is None
        body.reveal(place - is_headed, last)

    def act(self, ask: Ask) -> None:
        app = self.inspector
        match ask:
            case "up" | "down":
                self._select(moved(self.inspection.board, self.selected, 1 if ask == "down" else -1))
            case "pageUp" | "pageDown":
                by = max(self.pane("body").size.height // 2, 1)
                self._select(moved(self.inspection.board, self.selected, by if ask == "pageDown" else -by))
            case "home" | "end":
                far = 1_000_000 if ask == "end" else -1_000_000
                self._select(moved(self.inspection.board, self.selected, far))
            case "enter" if self.selected is not None:
                self._has_chosen = True
                app.open_task(self.selected)
            case "stop" if self.selected is not None:
                self._has_chosen = True
                app.ask_to_stop(self.selected)
            case _:
                super().act(ask)

    def _select(self, task_id: str | None) -> None:
        self.selected, self._has_chosen = task_id, task_id is not None
        self.redraw()
