"""Job objects of Windows: a command and whatever it starts are in one, and it runs only if it is."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from actors.shell.process import ContainmentUnavailable, Process, ProcessSpec, check_containment

pytestmark = pytest.mark.skipif(sys.platform != "win32", reason="job objects are of Windows")

# A child in a console group and, as far as the system lets it, in a job of its own.
DETACHED = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(97)"], creationflags={flags},
    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(child.pid, flush=True)
{then}
"""
GROUP, BREAKAWAY = 0x200, 0x01000000


def spec(code: str) -> ProcessSpec:
    return ProcessSpec((sys.executable, "-c", code), os.getcwd(), dict(os.environ))


def becomes(ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not ready():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def process() -> Iterator[Process]:
    process = Process()
    yield process
    process.kill_group_leftovers()


def pumped(process: Process, code: str) -> tuple[list[int], bool]:
    """The pids that it printed, and whether it left something behind."""
    chunks: list[bytes] = []
    assert process.start(spec(code))
    ended = process.pump(lambda channel, data: chunks.append(data))
    assert ended.code == 0
    return [int(pid) for pid in b"".join(chunks).split()], ended.leftovers


def test_a_command_runs_and_leaves_nobody(process: Process) -> None:
    assert pumped(process, "print(7)") == ([7], False)
    assert process.leader is not None and process.leader.members() == []
    assert process.close() is False


def test_what_a_command_left_is_known_and_killed(process: Process) -> None:
    (pid,), leftovers = pumped(process, DETACHED.format(flags=GROUP, then=""))
    assert leftovers and process.leader is not None and process.leader.members() == [pid] and process.leader.has(pid)
    assert process.close() is True and psutil.pid_exists(pid)
    process.kill()
    becomes(lambda: not psutil.pid_exists(pid))
    becomes(lambda: process.close() is False)


def test_nobody_can_leave_a_job(process: Process) -> None:
    """Asking for it is refused by the system, or does not help."""
    code = (
        DETACHED.format(flags=GROUP, then="")
        .replace("child =", "try:\n    child =")
        .replace("print(child", "except OSError:\n    sys.exit(0)\nprint(child")
    )
    pids, _ = pumped(process, code.replace(str(GROUP), str(GROUP | BREAKAWAY)))
    process.kill()
    for pid in pids:
        becomes(lambda pid=pid: not psutil.pid_exists(pid))  # type: ignore[misc]


def test_a_kill_ends_the_whole_family_at_once(process: Process) -> None:
    assert process.start(spec(DETACHED.format(flags=GROUP, then="child.wait()")))
    leader = process.leader
    assert leader is not None
    becomes(lambda: len(leader.members()) > 0)
    (pid,) = leader.members()
    process.kill()
    ended = process.pump(lambda channel, data: None)
    assert ended.code == 1
    becomes(lambda: not psutil.pid_exists(pid))


def test_what_is_left_ends_when_its_job_is_let_go(process: Process) -> None:
    other = Process()
    (pid,), _ = pumped(other, DETACHED.format(flags=GROUP, then=""))
    assert other.leader is not None
    other.leader.close()
    becomes(lambda: not psutil.pid_exists(pid))


def test_a_command_that_no_job_takes_never_runs(
    process: Process, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from actors.shell import job

    def refuse(self: object, handle: int) -> None:
        raise job.JobRefused("AssignProcessToJobObject failed with error 5")

    monkeypatch.setattr("actors.shell.job.JobObject.take", refuse)
    before = {child.pid for child in psutil.Process().children()}
    with pytest.raises(ContainmentUnavailable, match="ContainmentUnavailable: AssignProcessToJobObject failed"):
        process.start(spec(f"open({str(tmp_path / 'ran')!r}, 'w')"))
    assert not (tmp_path / "ran").exists()
    assert {child.pid for child in psutil.Process().children()} == before


def test_a_handle_that_is_none_is_refused() -> None:
    from actors.shell.job import JobObject, JobRefused

    job = JobObject()
    with pytest.raises(JobRefused, match="AssignProcessToJobObject failed with error "):
        job.take(0)
    with pytest.raises(JobRefused, match="OpenProcess failed with error "):
        job.take_pid(0)
    assert job.members() == []
    job.close()
    job.close()
    job.terminate()
    assert job.members() == []


def test_more_members_than_fit_at_first_are_all_found() -> None:
    from actors.shell.job import JobObject

    job = JobObject()
    command = [sys.executable, "-c", "import time; time.sleep(97)"]
    children = [subprocess.Popen(command) for _ in range(70)]
    try:
        for child in children:
            job.take_pid(child.pid)
        assert sorted(job.members()) == sorted(child.pid for child in children)
    finally:
        job.close()
    for child in children:
        child.wait(20)


@pytest.mark.parametrize(
    "shell", ["C:\\Windows\\System32\\bash.exe", "c:/windows/sysnative/bash", "C:\\Users\\x\\WindowsApps\\bash.exe"]
)
def test_the_bash_that_is_a_door_to_linux_is_refused(shell: str) -> None:
    with pytest.raises(ContainmentUnavailable, match="run Atomic inside WSL"):
        check_containment(shell)
    check_containment("C:\\Program Files\\Git\\bin\\bash.exe")
