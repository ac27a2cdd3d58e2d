"""Tools run beside their actors: whatever a tool does, one `ToolReturned` comes of it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from actors.mail import LeftBehind, ToolPlace, ToolRequest, ToolReturned, ToolUpdated
from actors.probe import Probe
from actors.shell.spill import Spill
from actors.tool.launch import ToolLauncher
from actors.tool.table import Tool, ToolContext, ToolFailure, ToolOutput, builtin_tools, text_output
from protocol import messages


class Bench:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.call, self.shells = Probe[Any](), Probe[Any]()
        self.threads: list[str] = []
        self._launcher = ToolLauncher(
            self._pump,
            self.shells,
            time.monotonic,
            lambda session: Spill(str(folder), session, os.getuid(), lambda: "ab"),
            None,
            None,
        )

    def _pump(self, name: str, work: Callable[[], None]) -> None:
        self.threads.append(name)
        threading.Thread(target=work, daemon=True).start()

    def start(self, tool: Tool, **arguments: Any) -> ToolContext:
        place = ToolPlace(str(self.folder), "s", {"PATH": os.environ["PATH"], "MARK": "m-1"}, False)
        return self._launcher.start(
            ToolRequest(1, tool, messages.ToolCall("c", tool.name, arguments), place), self.call
        )

    def returned(self) -> ToolOutput:
        output = self.call.of(ToolReturned).output
        assert isinstance(output, ToolOutput)
        return output


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def tool(run: Callable[[ToolContext, dict[str, Any]], ToolOutput]) -> Tool:
    return Tool("mine", "", "", {}, run, lambda arguments, cwd: None)


def failing(error: Exception) -> Tool:
    def run(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
        raise error

    return tool(run)


def text(output: ToolOutput) -> str:
    return "".join(block.text for block in output.content if isinstance(block, messages.TextContent))


def test_a_tool_gets_its_arguments_and_place_and_its_result_comes_back(bench: Bench) -> None:
    def run(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
        context.update(text_output("half"))
        return text_output(f"{arguments['x']} {context.cwd} {context.environment()['MARK']} {context.supports_images}")

    bench.start(tool(run), x=7)
    assert text(bench.call.of(ToolUpdated).partial) == "half"
    output = bench.returned()
    assert (text(output), output.is_error) == (f"7 {bench.folder} m-1 False", False)
    assert bench.threads == ["tool-mine"]


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (ToolFailure("no such line"), "no such line"),
        (FileNotFoundError(2, "No such file or directory", "/f"), "No such file or directory: /f"),
        (OSError("odd"), "odd"),
        (KeyError("secret"), "the tool mine failed: KeyError"),
    ],
)
def test_a_tool_that_fails_in_any_way_is_an_error_result(bench: Bench, error: Exception, shown: str) -> None:
    bench.start(failing(error))
    output = bench.returned()
    assert (text(output), output.is_error) == (shown, True)


def test_a_failure_may_carry_details(bench: Bench) -> None:
    bench.start(failing(ToolFailure("no", {"exitCode": 3})))
    assert bench.returned().details == {"exitCode": 3}


def test_a_running_command_ends_when_it_is_cancelled(bench: Bench) -> None:
    context = bench.start(builtin_tools()["bash"], command="echo begun; sleep 600")
    while "begun" not in text(bench.call.of(ToolUpdated).partial):
        pass
    context.cancel()
    assert "begun" in text(bench.returned())


def test_background_processes_of_a_command_are_handed_to_the_shell_desk(bench: Bench) -> None:
    bench.start(builtin_tools()["bash"], command="sleep 600 >/dev/null 2>&1 &")
    bench.returned()
    mail = bench.shells.next()
    assert isinstance(mail, LeftBehind)
    mail.remains.kill_group_leftovers()


def test_what_a_cancel_sets_off_is_done_in_a_pump(bench: Bench) -> None:
    registered, done = Probe[Any](), Probe[Any]()

    def run(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
        context.on_cancel(lambda: done.tell(threading.current_thread()))
        registered.tell("registered")
        return text_output(str(done.next()))

    context = bench.start(tool(run))
    registered.next()
    context.cancel()
    assert context.cancelled()
    bench.returned()
    assert bench.threads == ["tool-mine", "tool-cancel"]
