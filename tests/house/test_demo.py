"""`python -m runtime.demo` shows a real conversation, and says so when it did not go well."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from runtime.timeline import Paint, Timeline, describe

TIME_LIMIT_S = 10.0


def demo(root: Path, environment: dict[str, str], *command: str) -> subprocess.CompletedProcess[str]:
    call = [sys.executable, "-m", "runtime.demo", *command]
    return subprocess.run(call, cwd=root, env=environment, capture_output=True, text=True, check=False)


def test_the_demonstration_ends_well_and_soon(root: Path, environment: dict[str, str]) -> None:
    begun = time.monotonic()
    run = demo(root, environment)
    assert run.returncode == 0, run.stdout + run.stderr
    assert time.monotonic() - begun < TIME_LIMIT_S
    assert run.stdout.count("✓") == 7
    assert "\x1b" not in run.stdout
    assert run.stdout.startswith("This starts one agent")
    assert "What next: README.md" in run.stdout


def test_the_demonstration_fits_a_terminal_and_shows_every_record_in_short(
    root: Path, environment: dict[str, str]
) -> None:
    lines = demo(root, environment).stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) <= 52
    assert any('tool_execution_start read {"path":"notes.txt"}' in line for line in lines)


def test_a_reader_that_leaves_ends_it_quietly(root: Path, environment: dict[str, str]) -> None:
    call = [sys.executable, "-m", "runtime.demo"]
    pipe = subprocess.PIPE
    with subprocess.Popen(call, cwd=root, env=environment, stdout=pipe, stderr=pipe) as run:
        assert run.stdout and run.stderr
        run.stdout.readline()
        run.stdout.close()
        assert (run.stderr.read(), run.wait()) == (b"", 0)


def test_colours_can_be_asked_for(root: Path, environment: dict[str, str]) -> None:
    assert "\x1b[1m" in demo(root, environment | {"FORCE_COLOR": "1"}, sys.executable, "-c", "pass").stdout


@pytest.mark.parametrize(
    ("agent", "why"),
    [
        ("pass", "the agent "),
        ("import sys; print('no JSON', flush=True); sys.stdin.read()", "DecodeError"),
        (
            "import json, sys\n"
            "for line in sys.stdin:\n"
            "    command = json.loads(line)\n"
            "    print(json.dumps({'id': command['id'], 'type': 'response', 'command': command['type'],"
            " 'success': False, 'error': 'no'}), flush=True)\n"
            '    print(\'{"type":"agent_settled"}\', flush=True)',
            "NOT: the prompt was accepted",
        ),
    ],
    ids=["exits at once", "sends no JSON", "refuses everything"],
)
def test_an_agent_that_misbehaves_is_told_apart(root: Path, environment: dict[str, str], agent: str, why: str) -> None:
    run = demo(root, environment, sys.executable, "-c", agent)
    assert run.returncode == 1
    assert why in run.stdout
    assert "Traceback" not in run.stderr


def test_no_color_wins_over_force_color() -> None:
    with open(os.devnull, "w", encoding="utf-8") as stream:
        assert Paint(stream, {"FORCE_COLOR": "1"})("31", "red") == "\x1b[31mred\x1b[0m"
        assert Paint(stream, {"FORCE_COLOR": "1", "NO_COLOR": "1"})("31", "red") == "red"
        assert Paint(stream, {})("31", "red") == "red"


class Terminal(StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_dumb_terminal_gets_no_colours_unless_they_are_asked_for() -> None:
    assert Paint(Terminal(), {"TERM": "xterm"})("31", "red") == "\x1b[31mred\x1b[0m"
    assert Paint(Terminal(), {"TERM": "dumb"})("31", "red") == "red"
    assert Paint(Terminal(), {"TERM": "dumb", "FORCE_COLOR": "1"})("31", "red") != "red"


def shown(*records: dict[str, Any]) -> str:
    """The timeline of some records at time 0, without colours."""
    timeline = Timeline(Paint(StringIO(), {}))
    return "".join(timeline.line(0, "←", describe(record)) for record in records) + timeline.end()


def test_bookkeeping_shares_one_row_and_what_has_no_room_is_counted() -> None:
    few = [{"type": name} for name in ("agent_start", "turn_start")]
    assert shown(*few) == "     0 ms  ←          agent_start turn_start\n"
    (row,) = shown(*few * 5).splitlines()
    assert len(row) <= 80
    assert row.endswith("agent_start turn_start agent_start turn_start +6")


def test_the_pieces_of_a_text_share_rows_and_all_of_them_are_shown() -> None:
    change = {"type": "text_delta", "contentIndex": 0, "delta": "twelve chars"}
    rows = shown(*[{"type": "message_update", "assistantMessageEvent": change}] * 7).splitlines()
    assert [row.count('"twelve chars"') for row in rows] == [2, 2, 2, 1]
    assert max(map(len, rows)) <= 80


def test_a_long_record_is_cut_to_the_row() -> None:
    (row,) = shown({"type": "bash_execution_update", "id": "b", "channel": "stdout", "delta": "x" * 99}).splitlines()
    assert (len(row), row[-1]) == (80, "…")


def test_a_response_is_told_by_its_outcome() -> None:
    data = {"output": "hi\n", "exitCode": 0, "cancelled": False, "truncated": False}
    line = describe({"id": "b", "type": "response", "command": "bash", "success": True, "data": data})
    assert line.id == "b"
    assert line.text == r'bash: success, exitCode 0, cancelled false, output "hi\n"'
