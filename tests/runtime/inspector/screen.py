"""The real application without a terminal: keys go in, and what stands on the screen comes out."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from textual.pilot import Pilot
from textual.widgets import Input

from runtime.inspector.app import InspectorApp
from runtime.inspector.pane import Pane
from runtime.inspector.records import Hello
from runtime.inspector.sessions import Door, Live
from runtime.inspector.texts import plain_text
from tests.runtime.inspector.scripted_door import ScriptedDoor

DEADLINE_S = 20


class Screen:
    def __init__(self, app: InspectorApp, pilot: Pilot[int]) -> None:
        self.app, self.pilot = app, pilot

    @property
    def lines(self) -> list[str]:
        """What is seen, from the top; the field for input as it stands."""
        found: list[str] = []
        for widget in self.app.screen.children:
            if isinstance(widget, Pane):
                height = widget.size.height
                seen = [plain_text(line).rstrip() for line in widget.lines[widget.top : widget.top + height]]
                found += seen + [""] * (height - len(seen))
            elif isinstance(widget, Input):
                found.append(f"> {widget.value}")
        return found

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def selected(self) -> str:
        """The row that is marked."""
        return next((line for line in self.lines if line.startswith(" ▸ ")), "")

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    async def until(self, holds: Callable[[], object]) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while not holds():
            assert time.monotonic() < deadline, self.text
            await self.pilot.pause(0.01)

    async def shows(self, *texts: str) -> None:
        """Waits until all these are on the screen."""
        await self.until(lambda: all(text in self.text for text in texts))

    async def hides(self, text: str) -> None:
        await self.until(lambda: text not in self.text)


def live(door: ScriptedDoor) -> Live:
    session = door.session
    return Live(
        Door(door.pid, str(door.path)), Hello(session_id=session["sessionId"], cwd=session["cwd"], pid=door.pid)
    )


def inspect(
    door: ScriptedDoor | list[ScriptedDoor],
    work: Callable[[Screen], Awaitable[None]],
    *,
    size: tuple[int, int] = (80, 24),
    keys: dict[str, tuple[str, ...]] | None = None,
) -> InspectorApp:
    """Runs `work` while the application looks at `door`, or offers several to choose from. Returns it, ended."""

    async def run() -> InspectorApp:
        what = [live(each) for each in door] if isinstance(door, list) else live(door)
        app = InspectorApp(what, keys or {}, "/nowhere")
        async with app.run_test(size=size) as pilot:
            await work(Screen(app, pilot))
        return app

    return asyncio.run(run())
