"""The inspector in the terminal: which page is open, and what the pages may ask for."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any

from textual.app import App
from textual.binding import Binding
from textual.screen import Screen

from runtime.inspector.detail_page import DetailPage
from runtime.inspector.input_page import InputPage, NotSent
from runtime.inspector.inspection import Inspection
from runtime.inspector.keys import Keys
from runtime.inspector.link import LinkLost, Refused
from runtime.inspector.list_page import ListPage, PickerPage
from runtime.inspector.page import Page
from runtime.inspector.records import BadRecord
from runtime.inspector.sessions import Live, find_sessions
from runtime.inspector.task_page import ConfirmPage, TaskPage
from runtime.inspector.texts import Line, one_line
from runtime.stdio import complain
from runtime.threads import describe

TICK_S = 1.0
"""How often times are counted on, and the output of a command that runs is asked for."""
REDRAW_S = 0.05
"""Changes within that time are shown together."""


class InspectorApp(App[int]):
    """`what` is the session to look at, or those to choose from."""

    ENABLE_COMMAND_PALETTE = False
    BINDINGS = [Binding("ctrl+c", "leave_all", priority=True, show=False)]  # noqa: RUF012
    CSS = """
    Screen { background: ansi_default; overflow: hidden; }
    #body { height: 1fr; }
    #edge { height: 1; }
    #field { border: none; height: 1; padding: 0 1; background: ansi_default; }
    """

    def __init__(self, what: Live | Sequence[Live], keys: Mapping[str, tuple[str, ...]], home: str) -> None:
        super().__init__(ansi_color=True)
        self.theme = "ansi-dark"
        self._what = what
        self.keys = Keys(keys)
        self.home = home
        self.inspection: Inspection | None = None
        self.flash: Line | None = None
        self.trouble: Line | None = None
        self.failure: Exception | None = None
        self._is_drawing = False

    def start(self) -> int:
        """Runs until the user leaves. The exit code."""
        self.run(mouse=False)  # so that the terminal's own selection and scrolling work
        if self.failure is not None:
            complain(f"the inspector failed: {describe(self.failure)}")
            return 1
        return self.return_code or 0

    def now(self) -> float:
        return time.monotonic()

    @property
    def has_picker(self) -> bool:
        return not isinstance(self._what, Live)

    @property
    def _is_live(self) -> bool:
        return self.inspection is not None and self.inspection.board.is_live

    # -- textual

    def on_mount(self) -> None:
        self.set_interval(TICK_S, self._tick)
        if isinstance(self._what, Live):
            self.open_session(self._what)
        else:
            self.push_screen(PickerPage(self._what))

    def on_unmount(self) -> None:
        """Whichever way it ends, while there is a loop to close the connection in."""
        self._let_go()

    def _let_go(self) -> None:
        if self.inspection is not None:
            self.inspection.close()
            self.inspection = None

    def _fatal_error(self) -> None:
        """No traceback in anybody's terminal."""
        self.failure = self._exception
        self._close_messages_no_wait()

    def action_leave_all(self) -> None:
        self.exit(0)

    # -- what pages ask for

    def leave(self) -> None:
        """Back to the page before; from the first one, out."""
        page = self.screen
        if len(self.screen_stack) <= 2:  # the lowest one is textual's own
            self.exit(0)
            return
        self.pop_screen()
        if isinstance(page, ListPage):
            self._let_go()
        elif self.inspection is not None and not isinstance(self.screen, TaskPage):
            self.inspection.unwatch()
        self.redraw()

    def look_again(self, picker: PickerPage) -> None:
        async def look() -> None:
            found = await find_sessions()
            picker.take(found.lives)
            if found.silent:
                self.tell("; ".join(map(str, found.silent)), "bad")

        self.do(look())

    def open_session(self, live: Live) -> None:
        inspection = self.inspection = Inspection(live.door, self.now, self.redraw, self.do)
        self.push_screen(ListPage(inspection))
        self.do(inspection.connect())

    def begin_again(self) -> None:
        """After a loss: connects anew. After a replacement: shows the session that is current now."""
        inspection = self.inspection
        if inspection is not None and inspection.board.state == "replaced":
            while isinstance(self.screen, TaskPage):
                self.pop_screen()
            self.do(inspection.follow())
        elif inspection is not None and inspection.board.state in ("lost", "ended"):
            self.do(inspection.connect())

    def open_task(self, task_id: str) -> None:
        if self.inspection is not None and (watched := self.inspection.watch(task_id)) is not None:
            self.push_screen(DetailPage(self.inspection, watched))

    def ask_to_stop(self, task_id: str) -> None:
        inspection = self.inspection
        record = inspection.board.task(task_id) if inspection is not None else None
        if inspection is None or record is None or not inspection.can_stop(record):
            return
        if (watched := inspection.watch(task_id)) is not None:
            self.push_screen(ConfirmPage(inspection, watched))

    def do(self, work: Awaitable[None], done: str = "") -> None:
        """Lets something happen beside the pages. What goes wrong is told on the screen, and so is `done`."""

        async def guarded() -> None:
            try:
                await work
            except NotSent as error:
                self.tell(str(error), "bad")
            except (LinkLost, Refused, BadRecord) as error:
                self.trouble = _line(str(error), "bad")
            else:
                if done:
                    self.tell(done, "good")
            self.redraw()

        self.run_worker(guarded())

    def tell(self, text: str, style: str) -> None:
        """Stands above the controls until the next key."""
        self.flash = _line(text, style)
        self.redraw()

    def redraw(self) -> None:
        """Soon, and once for all that changes until then."""
        if not self._is_drawing:
            self._is_drawing = True
            self.set_timer(REDRAW_S, self._draw)

    def answered(self) -> None:
        """The question of the open page has its answer."""
        if isinstance(self._page, InputPage):
            self.leave()

    # -- time

    def _tick(self) -> None:
        if self.inspection is not None:
            self.inspection.tick()
        self.redraw()

    def _draw(self) -> None:
        self._is_drawing = False
        page = self._page
        if isinstance(page, Page):
            page.redraw()

    @property
    def _page(self) -> Screen[Any] | None:
        """The page that is open; None once the application is leaving, when timers may still ring."""
        return self.screen_stack[-1] if self.screen_stack else None


def _line(text: str, style: str) -> Line:
    return ((f" {one_line(text)}", style),)
