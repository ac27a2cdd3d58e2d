"""`atomic tasks` in a real terminal, beside a real program whose model has started tasks."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from conformance.driver import Agent
from conformance.model_server import ModelServer, Request, text, tool
from tests.e2e.conftest import ROOT, Home, program
from tests.e2e.terminal import Terminal
from tests.runtime.inspector.scripted_door import ScriptedDoor, agent, settled, task

Open = Callable[..., Terminal]


@pytest.fixture
def short() -> Iterator[Path]:
    """The temporary directory of program and inspector: sockets need a short path."""
    folder = Path(tempfile.mkdtemp(prefix="ti"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def inspector(home: Home, short: Path, needs: Callable[..., None]) -> Iterator[Open]:
    """`inspector(*args, size=(80, 24), env={})` runs `atomic tasks` in a terminal."""
    needs("tmux")
    with ExitStack() as running:

        def open_terminal(*args: str, size: tuple[int, int] = (80, 24), env: dict[str, str] | None = None) -> Terminal:
            path = {"PYTHONPATH": str(ROOT)} if "-m" in program() else {}
            environment = {**home.environment(), "TMPDIR": str(short), **path, **(env or {})}
            folder = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="tm")))
            return running.enter_context(Terminal([*program(), "tasks", *args], folder, home.cwd, environment, size))

        yield open_terminal


@pytest.fixture
def door(short: Path) -> Iterator[ScriptedDoor]:
    """A program with tasks in every state, for what a real one does not show at once."""
    queued = {"state": "queued", "execution": {"kind": "queued"}, "metrics": {}}
    failed = settled("failed", code="AgentFailed", message="400")
    with ScriptedDoor(short / f"atomic-{os.getuid()}", pid=4_000_001, cwd="/srv/shop", sessionName="checkout") as door:
        door.put(
            agent("t1", title="Trace the authentication flow", metrics={"elapsedMs": 134_000}),
            agent("t2", title="Find 認証 tests", agentName="analyst", **queued),
            agent("t3", title="Review the change", agentName="reviewer", **failed),
            task("t4", title="npm run build"),
            task("t5", title="npm test", **settled("completed", exitCode=0)),
            task("t6", title="\x1b[31mred\x1b[2J [bold]plain[/bold]", **settled("cancelled", cause="user")),
        )
        yield door


def plain(capture: str) -> list[str]:
    """The lines of a capture, without the times that pass."""
    return [line.rstrip().replace("2m 15s", "2m 14s").replace("2m 16s", "2m 14s") for line in capture.splitlines()]


def test_the_list_as_it_looks(inspector: Open, door: ScriptedDoor) -> None:
    """The page for users shows what they will see."""
    screen = inspector().shows("Agents", "Shells", "Esc leave")
    page = (ROOT / "docs" / "inspector.md").read_text(encoding="utf-8")
    promised = page.partition("```text\n")[2].partition("\n```")[0].split("\n")
    assert [line for line in plain(screen) if line] == [line for line in promised if line]
    assert len(plain(screen)) == 24


def test_colours_are_the_terminals_own_and_none_when_none_are_wanted(inspector: Open, door: ScriptedDoor) -> None:
    terminal = inspector()
    terminal.shows("✗ Failed")
    assert re.search(r"\x1b\[(?:\d+;)*31m(?:\x1b\[49m)?✗", terminal.capture(styled=True))
    colourless = inspector(env={"NO_COLOR": "1"})
    colourless.shows("✗ Failed")
    styled = colourless.capture(styled=True)
    assert re.findall(r"\x1b\[(?:\d+;)*3[0-7](?:;\d+)*m", styled) == []
    assert "✗ " in styled and " ▸ " in styled


def test_a_terminal_that_changes_its_size_is_filled(inspector: Open, door: ScriptedDoor) -> None:
    terminal = inspector(size=(40, 12))
    terminal.shows(" ▸ ● scout · Trace", "Esc leave")
    terminal.resize(120, 40)
    screen = terminal.shows("─" * 120, " ▸ ● Running       scout · Trace the authentication flow")
    assert len(screen.splitlines()) == 40


def test_configured_keys_come_from_the_settings(inspector: Open, home: Home, door: ScriptedDoor) -> None:
    home.write_settings({"tasks": {"keys": {"stop": "f8", "back": ["b", "left"], "nope": "k", "pageUp": "enter"}}})
    terminal = inspector()
    terminal.shows("F8 stop")
    terminal.press("x", "F8")
    terminal.shows("Stop this agent?")
    terminal.press("b")
    terminal.shows("Agents 3")
    terminal.press("Escape")
    screen = terminal.shows("exit code 0")
    assert "Invalid tasks.keys setting" in screen and "nope" in screen and "pageUp" in screen


def test_the_end_of_the_program_is_said_and_the_terminal_is_given_back(inspector: Open, door: ScriptedDoor) -> None:
    terminal = inspector()
    terminal.shows("Agents 3")
    door.end()
    terminal.shows("The program (pid 4000001) has ended.", "npm run build")
    terminal.press("Escape")
    screen = terminal.shows("exit code 0")
    assert "Agents" not in screen and "Traceback" not in screen


# ---- beside a real program


@pytest.fixture
def start(agent: Callable[..., Agent], short: Path) -> Callable[..., Agent]:
    """An agent in whose temporary directory the inspector looks."""
    return lambda *args, **more: agent(*args, env={"TMPDIR": str(short)}, **more)


def run_task(a: Agent, server: ModelServer, tool_name: str, **arguments: Any) -> str:
    """Lets the model start a task in the background; its id."""
    since = a.cursor
    server.script(tool(tool_name, {**arguments, "wait": {"kind": "background"}}, id="t1"), text("done"))
    a.prompt("go")
    ended = a.wait({"type": "tool_execution_end", "toolCallId": "t1"}, since=since)
    a.wait({"type": "agent_settled"}, since=since)
    task_id: str = ended["result"]["details"]["observation"]["taskId"]
    return task_id


def test_a_command_is_watched_and_stopped(
    start: Callable[..., Agent], server: ModelServer, inspector: Open, home: Home
) -> None:
    go = home.cwd / "go"
    os.mkfifo(go)
    with start() as a:
        run_task(a, server, "bash", command=f"echo early; read x < {go}; echo late; sleep 319")
        terminal = inspector(str(a.pid))
        screen = terminal.shows("Shells 1   1 running", f"pid {a.pid}", "fa/m")
        assert "/project" in screen
        terminal.press("Enter")
        terminal.shows(" ▸ Output", "Command", "  early", "Time limit 300 s")
        go.write_text("x\n")
        terminal.shows("  late")
        terminal.press("x")
        terminal.shows("Stop this command?", "y stop it")
        terminal.press("n")
        terminal.shows(" ▸ Output", "● Running")
        terminal.press("x")
        terminal.shows("Stop this command?")
        terminal.press("y")
        terminal.shows("■ Stopped", "It was stopped", without=["   Stop\n"])
        message = a.wait({"type": "message_end", "message.customType": "task-completion"})["message"]
        assert message["details"]["notification"]["status"] == "stopped"
        assert a.orphans("sleep 319", deadline=5) == []
        terminal.press("Escape")
        screen = terminal.shows("Shells 1   1 stopped")
        assert re.search(r"echo early.* \d+s$", screen, re.MULTILINE)  # how long it ran
    terminal.shows(f"The program (pid {a.pid}) has ended.", "■ Stopped")


def test_a_terminal_command_is_typed_at(start: Callable[..., Agent], server: ModelServer, inspector: Open) -> None:
    with start() as a:
        run_task(a, server, "bash", command="read -p 'Who? ' name; echo hello $name; exec sleep 320", pty=True)
        terminal = inspector()
        terminal.shows("Shells 1")
        terminal.press("Enter")
        terminal.shows("   Input", "  Who?")
        terminal.press("Down", "Enter")
        terminal.shows("Esc leave input")
        terminal.type("xavier")
        terminal.press("Enter")
        terminal.shows("  hello xavier")
        terminal.press("Escape")
        terminal.shows(" ▸ Input", "● Running")


def test_an_agent_is_seen_at_work_and_its_question_is_answered(
    start: Callable[..., Agent], server: ModelServer, inspector: Open
) -> None:
    asked = {"reason": "need_decision", "message": "Shall I go on?"}
    steps = iter([tool("bash", {"command": "echo looked"}, id="c1"), tool("contact_supervisor", asked, id="c2")])
    first = iter([tool("subagent", {"agent": "scout", "task": "Look around."}, id="t1")])

    def answer(request: Request) -> Any:
        if "You are a subagent" in json.dumps(request.body["system"]):
            return next(steps, text("I went on."))
        return next(first, text("noted"))

    server.default = answer
    with start() as a:
        a.prompt("go")
        terminal = inspector()
        terminal.shows("Agents 1   1 input needed", "scout · Look around.")
        terminal.press("Enter")
        terminal.shows(" ▸ Open question", "Shall I go on?", "✓ bash  echo looked", "● contact_supervisor  ", "Prompt")
        terminal.press("Enter")
        terminal.shows("Type the answer, then Enter")
        terminal.type("Yes, do.")
        terminal.press("Enter")
        terminal.shows("✓ Completed", "  I went on.")
        terminal.press("Enter")
        terminal.shows(
            "Transcript  scout",
            " Task",
            "  Look around.",
            " ▸ bash  echo looked",
            "   looked",
            "   Yes, do.",
            "  I went on.",
        )
        terminal.press("Left", "Left")
        terminal.shows("Agents 1   1 completed")


def test_a_long_transcript_is_read_from_its_end_to_its_beginning_while_it_grows(
    start: Callable[..., Agent], server: ModelServer, inspector: Open, home: Home
) -> None:
    go = home.cwd / "go"
    os.mkfifo(go)
    calls = [tool("bash", {"command": f"echo result {number}"}, id=f"c{number}") for number in range(40)]
    steps = iter([*calls, tool("bash", {"command": "read x < go"}, id="hold"), text("All is done.")])
    first = iter([tool("subagent", {"agent": "scout", "task": "Count."}, id="t1")])

    def answer(request: Request) -> Any:
        if "You are a subagent" in json.dumps(request.body["system"]):
            return next(steps)
        return next(first, text("noted"))

    server.default = answer
    with start() as a:
        a.prompt("go")
        terminal = inspector()
        terminal.shows("Agents 1")
        terminal.press("Enter")
        terminal.shows(" ▸ Transcript", "● bash  read x")
        terminal.press("Enter")
        terminal.shows("   result 39", " ▸ bash  read x")
        terminal.press("Home")
        terminal.shows("earlier entries: page up at the top loads them", "more below")
        terminal.press("PageUp")
        seen = terminal.shows("more below", without=["earlier entries"])
        go.write_text("x\n")
        terminal.shows("✓ Completed")
        kept = terminal.capture().splitlines()[3:-3]
        assert kept == seen.splitlines()[3:-3]  # it grew below, and nothing moved
        terminal.press("Home")
        terminal.shows(" Task", "  Count.", "   result 0")
        terminal.press("End")
        terminal.shows("  All is done.", without=["more below"])


def test_another_session_is_said_to_be_current_and_shown_when_asked_for(
    start: Callable[..., Agent], server: ModelServer, inspector: Open
) -> None:
    with start() as a:
        run_task(a, server, "bash", command="sleep 321")
        terminal = inspector()
        terminal.shows("sleep 321", "● Running")
        a.request("new_session")
        terminal.shows("This session was replaced by", "sleep 321")
        run_task(a, server, "bash", command="sleep 322")
        terminal.press("r")
        terminal.shows("sleep 322", without=["sleep 321", "replaced"])


def test_scripts_get_the_tasks_of_a_session_as_json(
    start: Callable[..., Agent], server: ModelServer, short: Path, home: Home
) -> None:
    with start() as a:
        task_id = run_task(a, server, "bash", command="sleep 323")
        environment = {**home.environment(), "TMPDIR": str(short)}
        command = [*program(), "tasks", "--json", str(a.pid)]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=60, check=True)
        told = json.loads(done.stdout)
        assert (told["pid"], told["model"]) == (a.pid, "fa/m")
        known = a.request("get_tasks")["data"]["tasks"]
        for record in told["tasks"] + known:
            assert record.pop("metrics")["elapsedMs"] >= 0
        assert told["tasks"] == known
        assert [record["ref"]["taskId"] for record in told["tasks"]] == [task_id]
