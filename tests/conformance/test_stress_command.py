"""`stress` on the program itself finds nothing, and finds what is broken on purpose."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def stressed(agent: list[str], *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "conformance", "stress", *options, "--", *agent]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def program(atomic: list[str]) -> list[str]:
    """Without the flags of its own model: the load brings one."""
    return atomic[: atomic.index("--provider")]


def broken(atomic: list[str], *flags: str) -> list[str]:
    return [sys.executable, "-m", "conformance", "mutate", *flags, "--", *program(atomic)]


def test_the_program_keeps_its_promises(atomic: list[str], tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    run = stressed(program(atomic), "--seconds", "2", "--workers", "4", "--json", str(figures))
    assert (run.returncode, run.stderr) == (0, ""), run.stdout
    assert run.stdout.endswith("no violation\n")
    data = json.loads(figures.read_text())
    assert data["violations"] == data["leftBehind"] == [] and data["exitCode"] == 0
    assert {"bash", "prompt (settled)"} <= set(data["latencyMs"]) and data["events"] > 0


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (("--swap-deltas",), "bash w"),
        (("--double", "message_start"), "message_start before the message_end"),
        (("--double", "response"), "that nobody waits for"),
        (("--false-success",), "an unknown command was not refused"),
        (
            ("--wrong-id", "--chance", "0.05"),
            "the connection is over: the agent answered a request that was never made",
        ),
        (("--die-after", "60"), "ended by SIGKILL"),
    ],
)
def test_what_is_broken_is_found(atomic: list[str], flags: tuple[str, ...], told: str) -> None:
    options = ("--seconds", "2", "--workers", "4", "--deadline-factor", "0.3", "--profile", "atomic")
    run = stressed(broken(atomic, *flags), *options)
    violated = [line for line in run.stdout.splitlines() if line.startswith("VIOLATED: ") and told in line]
    assert run.returncode == 1 and violated, run.stdout + run.stderr


def test_an_agent_that_does_not_start_is_said_to(tmp_path: Path) -> None:
    run = stressed([sys.executable, "-c", "raise SystemExit('no luck')"])
    assert run.returncode == 2 and "exit code 1" in run.stderr and "no luck" in run.stderr


def test_too_much_memory_is_found(atomic: list[str]) -> None:
    run = stressed(program(atomic), "--seconds", "1", "--workers", "1", "--memory", "5")
    assert run.returncode == 1 and "MiB of memory, 5 are allowed" in run.stdout
