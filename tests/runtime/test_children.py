"""The last sweep: no process that we started outlives us, wherever it hid."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).resolve().parents[2]


class Watched:
    """A process that lives. Where the system has pidfds its end is seen at once, reaped or not."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._process = psutil.Process(pid)
        self._fd = os.pidfd_open(pid) if hasattr(os, "pidfd_open") else None

    def is_gone(self) -> bool:
        """Waits for its end; kills it if it does not come."""
        if self._fd is None:
            ended = not psutil.wait_procs([self._process], timeout=10)[1]
        else:
            ended = bool(select.select([self._fd], [], [], 10)[0])
            os.close(self._fd)
        if not ended:
            self._process.kill()
        return ended


USE_UP = """
        import resource
        resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
        taken = []
        try:
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        except OSError:
            pass
"""


def swept(command: str, before: str = "") -> list[Watched]:
    """What was below a program that started a shell command, did what `before` says, and swept; the command prints the
    pids of interest."""
    code = f"""
        import os, subprocess, sys
        from runtime.children import kill_descendants, mark_children
        mark_children()
        shell = subprocess.Popen({command!r}, shell=True, stdout=subprocess.PIPE)
        pids = [shell.stdout.readline() for _ in range(2)]
        sys.stdout.write(b"".join(pids).decode())
        sys.stdout.flush()
        sys.stdin.readline()
        {before}
        kill_descendants()
        sys.exit(7)
        """
    program = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert program.stdout is not None and program.stdin is not None
    processes = [Watched(int(program.stdout.readline())) for _ in range(2)]
    program.stdin.write(b"go\n")
    program.stdin.close()
    assert program.wait(30) == 7  # it did not sweep itself
    program.stdout.close()
    return processes


def assert_gone(processes: list[Watched]) -> None:
    assert [process.pid for process in processes if not process.is_gone()] == []


def test_children_and_grandchildren_that_ignore_term_are_killed() -> None:
    assert_gone(swept("trap '' TERM; sh -c 'trap \"\" TERM; echo $$; sleep 600' & echo $$; wait"))


def test_a_process_that_moved_into_a_session_of_its_own_is_killed_too(needs: Callable[..., None]) -> None:
    needs("setsid")
    assert_gone(swept("(setsid sh -c 'echo $$; sleep 600' &) ; echo $$; sleep 600"))


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such limit")
def test_without_a_descriptor_left_they_are_killed_all_the_same(needs: Callable[..., None]) -> None:
    needs("setsid")
    assert_gone(swept("(setsid sh -c 'echo $$; sleep 600' &) ; echo $$; sleep 600", USE_UP))


def test_a_process_of_nobody_below_us_is_left_alone() -> None:
    other = subprocess.Popen(["sleep", "600"], env={"PATH": os.environ["PATH"], "ATOMIC_RUN": "1-1"})
    try:
        assert_gone(swept("sleep 600 & echo $!; echo $$; wait"))
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()
