"""What every test may use: hypothesis profiles, and the skip that cannot be overlooked."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable

import pytest
from hypothesis import settings

settings.register_profile("ci", deadline=None)  # other processes share the cores, so one example's time says nothing
settings.register_profile("thorough", deadline=None, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

_MISSING = "missing program: "


@pytest.fixture
def needs() -> Callable[..., None]:
    """`needs("node", "rg")` skips the test unless all these programs are there; the summary names what was missing."""

    def skip_without(*programs: str) -> None:
        missing = [program for program in programs if shutil.which(program) is None]
        if missing:
            pytest.skip(_MISSING + ", ".join(missing))

    return skip_without


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = [report for report in terminalreporter.stats.get("skipped", []) if _MISSING in str(report.longrepr)]
    if skipped:
        terminalreporter.section("SKIPPED FOR WANT OF A PROGRAM", yellow=True)
        for report in skipped:
            reason = str(report.longrepr[2]).partition(_MISSING)[2]
            terminalreporter.line(f"{report.nodeid}: {reason}")
