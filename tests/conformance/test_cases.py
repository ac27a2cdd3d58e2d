"""The shipped cases against our own program: every fourth here, all of them in `make conformance`."""

from __future__ import annotations

import subprocess
import sys
from itertools import groupby
from pathlib import Path

import pytest

from conformance.player import Target
from conformance.profile import read_profile
from conformance.report import as_text
from conformance.run import chosen, default_jobs, run
from conformance.run_command import schema_check
from conformance.transcript import Case


def program() -> list[str]:
    script = Path(sys.executable).with_name("atomic")
    return (
        [str(script), "--mode", "rpc"] if script.exists() else [sys.executable, "-m", "runtime.main", "--mode", "rpc"]
    )


def every_fourth() -> list[Case]:
    """Of each section the first, the fifth, and so on: the whole takes a minute and more of two cores."""
    sections = groupby(chosen([], [], []), lambda case: case.name.partition("/")[0])
    return [case for _, inside in sections for case in list(inside)[::4]]


@pytest.mark.timeout(240)
def test_our_program_passes_the_cases_that_are_tried() -> None:
    target = Target(program(), read_profile("atomic"), 20.0, schema_check("strict"))
    verdicts = run(every_fourth(), target, default_jobs())
    assert {verdict.outcome for verdict in verdicts} == {"passed"}, as_text(verdicts, program())


def test_the_command_runs_a_case_and_lists_them() -> None:
    kit = [sys.executable, "-m", "conformance"]
    words = [*kit, "run", "--only", "framing/unknown-command", "--", *program()]
    run_ = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (run_.returncode, run_.stderr) == (0, "")
    assert "framing/unknown-command" in run_.stdout
    listed = subprocess.run([*kit, "list"], capture_output=True, text=True, check=True)
    assert "unknown-command" in listed.stdout
