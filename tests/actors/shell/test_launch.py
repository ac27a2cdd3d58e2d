"""Processes of shell requests, run beside their actors: real ones, and one `ShellExited` from each."""

from __future__ import annotations

import os
import select
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from actors.mail import ShellExited, ShellOutput, ShellPlan
from actors.probe import Probe
from actors.pump import WINDOW_MESSAGES
from actors.shell.launch import ProcessLauncher, PumpedProcess


def pump(name: str, work: Callable[[], None]) -> None:
    threading.Thread(target=work, name=name, daemon=True).start()


class Bench:
    def __init__(self, cwd: Path) -> None:
        self.cwd = cwd
        self.shell: Probe[Any] = Probe()

    def start(
        self, command: str, *, cwd: str | None = None, shell: str | None = None, prefix: str | None = None
    ) -> PumpedProcess:
        launcher = ProcessLauncher(pump, shell, prefix, shutil.which)
        plan = ShellPlan(command, cwd or str(self.cwd), "s", {"PATH": os.environ["PATH"], "MARK": "m-1"}, False)
        return launcher.start(plan, self.shell)

    def outcome(self) -> tuple[bytes, ShellExited]:
        """All output, each read acked, and how it ended."""
        pieces = []
        while isinstance(mail := self.shell.next(), ShellOutput):
            pieces.append(mail.data)
            assert mail.ack is not None
            mail.ack.settle()
        assert isinstance(mail, ShellExited)
        return b"".join(pieces), mail


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_command_runs_in_its_folder_with_its_environment_and_tells_its_exit_code(bench: Bench) -> None:
    process = bench.start("pwd; echo $MARK; exit 3")
    assert bench.outcome() == (f"{bench.cwd}\nm-1\n".encode(), ShellExited(3))
    assert process.close() is False


def test_both_channels_are_told_apart(bench: Bench) -> None:
    bench.start("echo out; echo err >&2")
    channels = {}
    while isinstance(mail := bench.shell.next(), ShellOutput):
        channels[mail.channel] = mail.data
    assert channels == {"stdout": b"out\n", "stderr": b"err\n"}


def test_the_prefix_of_the_settings_runs_first(bench: Bench) -> None:
    bench.start("echo $x", prefix="x=5")
    assert bench.outcome() == (b"5\n", ShellExited(0))


def test_what_cannot_start_says_why(bench: Bench) -> None:
    bench.start("true", cwd="/no/such/folder")
    _, exited = bench.outcome()
    assert exited.code is None
    assert exited.error is not None and exited.error.startswith("Working directory does not exist: /no/such/folder")
    bench.start("true", shell="/no/such/shell")
    assert bench.outcome()[1].error == "Custom shell path not found: /no/such/shell"


def test_a_kill_ends_a_running_command(bench: Bench) -> None:
    process = bench.start("echo begun; sleep 600")
    assert bench.shell.next().data == b"begun\n"
    process.kill()
    assert bench.shell.next() == ShellExited(None)


def test_a_command_runs_no_further_ahead_than_its_readers_and_a_kill_frees_it(bench: Bench) -> None:
    process = bench.start("while :; do echo x; done")
    mails = [bench.shell.next() for _ in range(2)]
    assert all(isinstance(mail, ShellOutput) for mail in mails)
    unread = 0
    with pytest.raises(AssertionError):
        while True:
            bench.shell.next(0.2)
            unread += 1
    assert unread <= WINDOW_MESSAGES
    process.kill()
    assert bench.shell.next() == ShellExited(None)


def test_a_kill_before_the_process_stands_is_an_end_too(bench: Bench) -> None:
    work: list[Callable[[], None]] = []
    launcher = ProcessLauncher(lambda name, run: work.append(run), None, None, shutil.which)
    process = launcher.start(ShellPlan("touch ran", str(bench.cwd), "s", dict(os.environ), False), bench.shell)
    process.kill()
    work[0]()
    assert isinstance(bench.shell.of(ShellExited), ShellExited)
    assert list(bench.cwd.iterdir()) == []


class HeldKills:
    """Pumps that run, except those that kill: the test runs them."""

    def __init__(self) -> None:
        self.held: list[Callable[[], None]] = []

    def start(self, name: str, work: Callable[[], None]) -> None:
        if name == "shell-kill":
            self.held.append(work)
        else:
            pump(name, work)


def started(bench: Bench, pumps: HeldKills, command: str) -> PumpedProcess:
    plan = ShellPlan(command, str(bench.cwd), "s", {"PATH": os.environ["PATH"]}, False)
    return ProcessLauncher(pumps.start, None, None, shutil.which).start(plan, bench.shell)


def test_whoever_kills_does_not_look_for_the_family_itself(bench: Bench) -> None:
    pumps = HeldKills()
    process = started(bench, pumps, "echo $$; sleep 600")
    pid = int(bench.shell.next().data)
    process.kill()
    os.kill(pid, 0)
    (kill,) = pumps.held
    kill()
    assert bench.shell.next() == ShellExited(None)
    assert process.close() is False


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="watches a stranger by pidfd")
def test_a_kill_under_way_reaches_the_family_also_when_the_command_ends_and_is_closed_before(bench: Bench) -> None:
    pumps = HeldKills()
    os.mkfifo(bench.cwd / "gate")
    process = started(bench, pumps, "sleep 600 >&- 2>&- & echo $!; read x < gate; exit 4")
    left = os.pidfd_open(int(bench.shell.next().data))
    process.kill()
    (bench.cwd / "gate").write_text("go\n")
    assert isinstance(bench.shell.next(), ShellExited)
    assert process.close() is False
    assert not select.select([left], [], [], 0)[0]
    pumps.held[0]()
    assert select.select([left], [], [], 20)[0]
    os.close(left)
