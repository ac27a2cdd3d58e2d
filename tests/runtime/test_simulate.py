"""The real actors under the seeded scheduler: what holds in thousands of orders, and that the invariants can see."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from actors.mail import Enqueue, QueueMail, ShellMail
from actors.session.queue import Queue
from actors.shell.actor import Shell
from runtime.simulate import Played, failures, main
from runtime.simulation.house import Parts, Plan

ROOT = Path(__file__).parents[2]
SEEDS = 2000
SEEDS_WITH_A_FAULT = 300


AFTER_ITS_END = 2281  # a shell that died after it had ended took the shell desk along


def first_report(found: Any) -> str:
    played = next(found, None)
    return "" if played is None else played.report()


@pytest.mark.timeout(300)  # some 10 s alone, more beside others
def test_no_order_of_the_mail_breaks_an_invariant() -> None:
    assert first_report(failures(range(SEEDS))) == ""


def test_no_exception_in_any_actor_leaves_a_command_unanswered() -> None:
    assert first_report(failures(range(SEEDS_WITH_A_FAULT), crash=True)) == ""


def test_a_shell_that_dies_after_its_end_takes_nobody_along() -> None:
    assert first_report(failures(range(AFTER_ITS_END, AFTER_ITS_END + 1), crash=True)) == ""


def test_a_disk_that_refuses_an_append_loses_nothing_silently() -> None:
    assert first_report(failures(range(SEEDS_WITH_A_FAULT), disk=True)) == ""


def test_the_seeds_reach_what_they_are_there_for() -> None:
    kinds = {type(mail).__name__ for seed in range(200) for _, _, mail in Played(Plan(seed)).house.scheduler.trace}
    rare = {"Reload", "ForkReady", "TargetFailed", "CancelShell", "CancelTool", "CancelCall", "MutationGranted"}
    assert rare | {"BashFinished", "Taken", "ClearQueue", "PauseQueue", "StdoutClosed", "SignalReceived"} <= kinds


def test_faults_strike_actors_of_every_kind() -> None:
    faults = [Played(Plan(seed, crash=True)).house.fault for seed in range(SEEDS_WITH_A_FAULT)]
    struck = {fault.struck.rstrip("-0123456789") for fault in faults if fault is not None and fault.struck}
    assert {"intake", "writer", "sessions", "session", "queue", "model-call", "shells", "shell"} <= struck


# ---- the invariants see --------------------------------------------------------------------------------------------


class TwiceAnswered(Shell):
    """Answers its command, and then an unrelated one of the same client."""

    def _answer(self, error: str | None) -> None:
        super()._answer(error)
        self._ticket = msgspec.structs.replace(self._ticket, serial=self._ticket.serial + 10_000)
        super()._answer(error)


class Silent(Shell):
    """Never answers."""

    def _answer(self, error: str | None) -> None:
        self._finished = None
        super()._answer(error)


class Reordered(Shell):
    """Tells the client the second output before the first."""

    _held: Any = None

    def receive(self, mail: ShellMail) -> None:
        if type(mail).__name__ == "ShellOutput" and self._held is None:
            self._held = mail
            return
        super().receive(mail)
        held, self._held = self._held, False
        if held:
            super().receive(held)


class Forgetful(Queue):
    """Drops what comes in third, and says that it took it."""

    _came = 0

    def receive(self, mail: QueueMail) -> None:
        super().receive(mail)
        if isinstance(mail, Enqueue):
            self._came += 1
            if self._came == 3:
                self._live[mail.kind][-1:] = []


class Doubling(Queue):
    """Takes every message twice."""

    def receive(self, mail: QueueMail) -> None:
        if isinstance(mail, Enqueue) and not self._paused:
            self._live[mail.kind] += [msgspec.structs.replace(one) for one in self._live[mail.kind][-1:]]
        super().receive(mail)


@pytest.mark.parametrize(
    ("part", "broken", "complaint"),
    [
        ("shell", TwiceAnswered, "a response too many to"),
        ("shell", Silent, "no response to"),
        ("shell", Reordered, "the client saw"),
        ("queue", Forgetful, "left the queue without a word"),
        ("queue", Doubling, "is twice in the queue"),
    ],
)
def test_a_broken_actor_is_caught_and_the_report_shows_the_mail(part: str, broken: Any, complaint: str) -> None:
    parts = Parts()
    setattr(parts, part, broken)
    caught = [played for played in failures(range(150), parts=parts) if complaint in "\n".join(played.violations)]
    assert caught
    report = caught[0].report().split("\n")
    assert report[0].startswith(f"seed {caught[0].plan.seed} (python -m runtime.simulate --start ")
    first = msgspec.json.decode(report[report.index("mail:") + 1])
    assert set(first) == {"from", "to", "mail", "fields"}


# ---- repeating -----------------------------------------------------------------------------------------------------


def test_a_seed_plays_the_same_in_every_process(tmp_path: Path) -> None:
    traces = []
    for hash_seed in ("1", "2"):
        file = tmp_path / hash_seed
        command = [sys.executable, "-m", "runtime.simulate", "--start", "7", "--seeds", "1", "--trace", str(file)]
        env = {**os.environ, "PYTHONHASHSEED": hash_seed}
        run = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, check=False)
        assert run.returncode == 0, run.stdout + run.stderr
        traces.append(file.read_bytes())
    assert traces[0] == traces[1] != b""


def test_seeds_without_a_violation_end_with_0_and_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seeds", "3"]) == 0
    assert capsys.readouterr().out == "3 seeds, no violation\n"
