"""`python -m runtime.demo` shows a real conversation, and says so when it did not go well."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from runtime.timeline import Paint, describe

TIME_LIMIT_S = 10.0


def demo(root: Path, environment: dict[str, str], *command: str) -> subprocess.CompletedProcess[str]:
    call = [sys.executable, "-m", "runtime.demo", *command]
    return subprocess.run(call, cwd=root, env=environment, capture_output=True, text=True, check=False)


def test_the_demonstration_ends_well_and_soon(root: Path, environment: dict[str, str]) -> None:
    begun = time.monotonic()
    run = demo(root, environment)
    assert run.returncode == 0, run.stdout + run.stderr
    assert time.monotonic() - begun < TIME_LIMIT_S
    assert run.stdout.count("✓") == 11
    assert "\x1b" not in run.stdout


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


def test_a_response_is_told_by_its_outcome() -> None:
    data = {"output": "hi\n", "exitCode": 0, "cancelled": False, "truncated": False}
    line = describe({"id": "b", "type": "response", "command": "bash", "success": True, "data": data})
    assert line.id == "b"
    assert re.fullmatch(r"bash: success, exitCode 0, cancelled False, output 'hi\\n'", line.text)
