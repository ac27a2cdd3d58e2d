"""What all pages of the inspector share: head, body and foot, and keys that ask for something."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, cast

from textual.app import ComposeResult
from textual.events import Key, Resize
from textual.screen import Screen

from runtime.inspector.footer import Control, controls, facts
from runtime.inspector.keys import Ask
from runtime.inspector.notice_view import notice
from runtime.inspector.pane import Pane
from runtime.inspector.texts import Line, clipped

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from runtime.inspector.inspection import Inspection
    from runtime.inspector.keys import Keys
    from runtime.inspector.sessions import Live


class Inspector(Protocol):
    """What a page may ask of the app. `flash` and `trouble` stand above the controls until the next key; of a trouble
    nothing is said where a notice tells why."""

    keys: Keys
    home: str
    flash: Line | None
    trouble: Line | None

    @property
    def has_picker(self) -> bool: ...
    def now(self) -> float: ...
    def leave(self) -> None: ...
    def look_again(self, picker: Any) -> None: ...
    def open_session(self, live: Live) -> None: ...
    def begin_again(self) -> None: ...
    def open_task(self, task_id: str) -> None: ...
    def ask_to_stop(self, task_id: str) -> None: ...
    def do(self, work: Awaitable[None], done: str = "") -> None: ...
    def answered(self) -> None: ...


def rule(width: int, told: str = "") -> Line:
    """A line across the screen; `told` stands in it at the right."""
    if not told or len(told) + 6 > width:
        return (("─" * width, "dim"),)
    return (("─" * (width - len(told) - 4) + f" {told} ──", "dim"),)


class Page(Screen[None]):
    """A subclass says what its head, body and controls are, and what a key does. `inspection` is the session that it
    belongs to."""

    AUTO_FOCUS: ClassVar[str | None] = None
    again: ClassVar[str] = "r"
    """What leads to another look once this one is no longer live."""

    def __init__(self, inspection: Inspection | None) -> None:
        super().__init__()
        self._inspection = inspection

    def compose(self) -> ComposeResult:
        yield Pane(id="head")
        yield Pane(id="body", resized=self.redraw_later)
        yield Pane(id="foot")

    @property
    def inspector(self) -> Inspector:
        return cast("Inspector", self.app)

    def pane(self, name: str) -> Pane:
        return self.query_one(f"#{name}", Pane)

    # -- for subclasses

    def head(self, width: int) -> list[Line]:
        raise NotImplementedError

    def controls(self) -> Sequence[Control]:
        raise NotImplementedError

    def show_body(self, body: Pane, width: int) -> None:
        raise NotImplementedError

    def prepare(self) -> None:
        """Settles what is selected, before anything is shown."""

    def position(self) -> str:
        """Which lines of the body are seen."""
        body = self.pane("body")
        return f"{body.top + 1}-{min(body.top + body.size.height, len(body.lines))} of {len(body.lines)}"

    def act(self, ask: Ask) -> None:
        """Does what a key asks for, if it means something here. On most pages these mean the same."""
        if ask == "again":
            self.inspector.begin_again()
        elif ask in ("leave", "back"):
            self.inspector.leave()

    # -- events

    def redraw(self) -> None:
        """Shows everything as it is now."""
        if not self.is_mounted or not self.size.width or not self.children:  # it is only coming, or going
            return
        width = self.size.width
        self.prepare()
        self._fill("head", [*self.head(width), rule(width)])
        self._fill("foot", self._foot(width))
        self.show_body(self.pane("body"), width)
        self._fill("foot", self._foot(width))  # now it is known what is seen

    def _fill(self, name: str, lines: list[Line]) -> None:
        pane = self.pane(name)
        if pane.styles.height is None or pane.styles.height.value != len(lines):
            pane.styles.height = len(lines)
        pane.show(lines, 0)

    def _foot(self, width: int) -> list[Line]:
        app = self.inspector
        body = self.pane("body")
        lines = [rule(width, self.position() if body.bottom else "")]
        look = self._inspection
        lost = notice(look.board, look.door.pid, width, self.again) if look is not None else None
        told = app.flash or lost or app.trouble
        if told is not None:
            lines.append(clipped(told, width))
        if look is not None and look.board.session is not None:
            lines.append(facts(look.board.session, look.branch, app.home, width))
        return [*lines, controls(self.controls(), width)]

    def asked(self, event: Key) -> Ask | None:
        """What a key means here. Not by another `on_key`: textual calls those of all classes."""
        return self.inspector.keys.ask(event.key, event.character)

    def redraw_later(self) -> None:
        """Once the layout is known."""
        self.call_after_refresh(self.redraw)

    def on_resize(self, event: Resize) -> None:
        self.redraw_later()

    def on_screen_resume(self) -> None:
        self.redraw_later()

    def on_key(self, event: Key) -> None:
        ask = self.asked(event)
        if ask is not None:
            event.stop()
            event.prevent_default()
            self.inspector.flash = self.inspector.trouble = None
            self.prepare()
            self.act(ask)
