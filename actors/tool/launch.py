"""Runs one tool in a pump, and tells its actor what comes of it."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import UNSET

from actors.base import Address, StartPump
from actors.mail import LeftBehind, ShellDeskMail, ToolCallMail, ToolRequest, ToolReturned, ToolUpdated
from actors.shell.spill import Spill
from actors.tool.table import ToolContext, ToolFailure, ToolOutput
from protocol.messages import TextContent


class ToolLauncher:
    """Starts tools for the ToolCall actors. `now` is monotonic seconds; `spill` makes a command's log."""

    def __init__(
        self,
        start_pump: StartPump,
        shells: Address[ShellDeskMail],
        now: Callable[[], float],
        spill: Callable[[str], Spill],
        shell_path: str | None,
        shell_prefix: str | None,
    ) -> None:
        self._start_pump = start_pump
        self._shells = shells
        self._now = now
        self._spill = spill
        self._shell_path = shell_path
        self._shell_prefix = shell_prefix

    def start(self, request: ToolRequest, call: Address[ToolCallMail]) -> ToolContext:
        place = request.place
        context = ToolContext(
            cwd=place.cwd,
            update=lambda partial: call.tell(ToolUpdated(partial)),
            now=self._now,
            environment=lambda: dict(place.environment),
            spill=lambda: self._spill(place.session_id),
            shell_path=self._shell_path,
            shell_prefix=self._shell_prefix,
            supports_images=place.supports_images,
            options=place.options,
            leave_behind=lambda process: self._shells.tell(LeftBehind(process)),
            beside=lambda work: self._start_pump("tool-cancel", work),
        )
        self._start_pump(f"tool-{request.tool.name}", lambda: call.tell(ToolReturned(_output(request, context))))
        return context


def _output(request: ToolRequest, context: ToolContext) -> ToolOutput:
    """What the tool returns, or how it failed: a failure of any kind is an error result, and the run goes on."""
    try:
        return request.tool.run(context, request.tool_call.arguments)
    except ToolFailure as error:
        return _failure(str(error), error.details)
    except OSError as error:
        return _failure(_reason(error))
    except Exception as error:
        return _failure(f"the tool {request.tool.name} failed: {type(error).__name__}")


def _reason(error: OSError) -> str:
    named = f": {error.filename}" if error.filename else ""
    return f"{error.strerror or error}{named}"


def _failure(text: str, details: object = UNSET) -> ToolOutput:
    return ToolOutput([TextContent(text)], details, is_error=True)
