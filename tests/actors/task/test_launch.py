"""The pump of a task's command, with real processes: what it tells of an input that the command does not read."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any

import pytest

from actors.mail import CommandExited, CommandOutput, CommandSwept, InputTaken, InputTyping, ShellTaskPlan
from actors.probe import Probe
from actors.shell.group import descendants
from actors.task.launch import TYPED_BYTES, CommandLauncher

pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="ptyprocess is POSIX"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]


def test_without_a_thread_the_command_has_failed_in_words() -> None:
    def no_thread(*_: Any) -> None:
        raise RuntimeError("can't start new thread")

    task = Probe[Any]()
    launcher = CommandLauncher(no_thread, "/bin/sh", None, lambda name: name, time.monotonic, time.sleep)
    launcher.start(ShellTaskPlan("echo", "/", "s", {}, 300, False), task)
    error = "Cannot run the command: can't start new thread"
    assert task.drain() == [CommandExited(None, error=error), CommandSwept()]


DEAF = {
    "alone": "echo holder 0",
    "beside one that holds the terminal on": """setsid sh -c "trap '' TERM HUP; sleep 600; :" & echo holder $!""",
}


@pytest.mark.parametrize("command", DEAF.values(), ids=DEAF)
def test_what_is_typed_is_told_while_the_rest_waits_and_the_pump_ends_with_the_command(command: str) -> None:
    pumps: dict[str, threading.Thread] = {}

    def start_pump(name: str, work: Any) -> None:
        pumps[name] = threading.Thread(target=work, daemon=True)
        pumps[name].start()

    task = Probe[Any]()
    launcher = CommandLauncher(start_pump, "/bin/sh", None, lambda name: name, time.monotonic, time.sleep)
    plan = ShellTaskPlan(f"stty raw -echo; {command}; exec sleep 600", "/", "s", dict(os.environ), 300, True)
    running = launcher.start(plan, task)
    output = b""
    try:
        while not output.endswith(b"\n"):
            output += task.of(CommandOutput).data
        running.type(b"x" * 60_000)
        told = [task.of(InputTyping).accepted for _ in range(4)]
        assert told == [TYPED_BYTES * n for n in (1, 2, 3, 4)]
        running.stop()
        pumps["task-input"].join(20)
        assert not pumps["task-input"].is_alive()
        assert told[-1] <= task.of(InputTaken).accepted < 60_000
    finally:
        running.kill()
        if holder := int(output.split()[1]):
            for pid in [*descendants([holder]), holder]:
                os.kill(pid, signal.SIGKILL)
