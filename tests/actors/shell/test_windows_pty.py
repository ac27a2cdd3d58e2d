"""Terminals of Windows: a command on one, what is typed at it, and a library that fails in its own way."""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.shell.process import ContainmentUnavailable, Exit, ProcessSpec, SpawnError
from actors.shell.pty import Terminal
from actors.shell.windows_pty import whole_characters

windows = pytest.mark.skipif(sys.platform != "win32", reason="pywinpty is of Windows")
DEADLINE_S = 30


@given(st.text(min_size=1), st.integers(1, 300))
def test_what_is_cut_into_pieces_and_typed_is_typed_whole(text: str, size: int) -> None:
    data = text.encode(errors="replace")
    typed, taken = "", 0
    while taken < len(data):
        piece = whole_characters(data[taken : taken + max(size, 4)])
        assert piece
        typed += piece.decode()
        taken += len(piece)
    assert typed.encode() == data


@pytest.mark.parametrize(
    ("data", "whole"), [(b"", b""), (b"a\xe2\x80", b"a"), (b"\xe2\x80", b"\xe2\x80"), (b"\xff", b"\xff")]
)
def test_a_character_that_is_never_whole_holds_nothing_up(data: bytes, whole: bytes) -> None:
    assert whole_characters(data) == whole


def spec(code: str) -> ProcessSpec:
    return ProcessSpec((sys.executable, "-X", "utf8", "-c", code), os.getcwd(), dict(os.environ))


class Running:
    """A command on a terminal, and all that it has written."""

    def __init__(self, code: str) -> None:
        self.terminal = Terminal()
        self.output = b""
        self.ends: list[Exit] = []
        self._changed = threading.Condition()
        assert self.terminal.start(spec(code))
        self._pump = threading.Thread(target=self._run, daemon=True)
        self._pump.start()

    def _run(self) -> None:
        def take(_: Any, data: bytes) -> None:
            with self._changed:
                self.output += data
                self._changed.notify_all()

        self.ends.append(self.terminal.pump(take))

    def shows(self, text: str) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: text.encode() in self.output, DEADLINE_S), self.output

    def end(self) -> Exit:
        self._pump.join(DEADLINE_S)
        (ended,) = self.ends
        self.terminal.close()
        self.terminal.close()
        return ended


@windows
def test_a_command_sees_a_terminal_and_its_exit_is_told() -> None:
    running = Running("import sys; print(sys.stdin.isatty(), sys.stdout.isatty()); sys.exit(3)")
    running.shows("True True")
    assert running.end() == Exit(3)


@windows
def test_what_is_typed_is_read_and_longer_than_a_piece() -> None:
    running = Running("print('ready'); line = input(); print(len(line), line.count('—'), 'seen')")
    running.shows("ready")
    text = "é—" * 100 + "\r"
    data, taken = text.encode(), 0
    while taken < len(data):
        taken += running.terminal.write(data[taken : taken + 256])
    running.shows("200 100 seen")
    assert running.end() == Exit(0)


@windows
def test_output_that_comes_late_is_waited_for() -> None:
    running = Running("print('first'); input(); print('second')")
    running.shows("first")
    running.terminal.write(b"\r")
    running.shows("second")
    assert running.end() == Exit(0)


@windows
def test_a_kill_ends_the_command_and_the_pump() -> None:
    running = Running("import time; print('up', flush=True); time.sleep(600)")
    running.shows("up")
    assert running.terminal.resize(90, 30)
    running.terminal.kill()
    assert running.end() == Exit(1)
    running.terminal.kill()


@windows
def test_one_that_is_over_takes_nothing_and_has_no_size() -> None:
    running = Running("pass")
    assert running.end() == Exit(0)
    with pytest.raises(OSError):
        running.terminal.write(b"late\r")
    assert running.terminal.resize(90, 30) is False


@windows
def test_a_read_of_nothing_is_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library reads nothing when it has been woken for nothing."""
    from winpty import PtyProcess

    real, reads = PtyProcess.read, []

    def read(*given: Any) -> str:
        reads.append(given)
        return "" if len(reads) % 2 else str(real(*given))

    monkeypatch.setattr(PtyProcess, "read", read)
    running = Running("print('first'); input(); print('second')")
    running.shows("first")
    running.terminal.write(b"\r")
    running.shows("second")
    assert running.end() == Exit(0)


@windows
def test_a_terminal_that_cannot_be_had_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    import winpty

    with pytest.raises(SpawnError, match=r"Cannot open a terminal for 'C:\\\\no\\\\shell.exe'"):
        Terminal().start(ProcessSpec(("C:\\no\\shell.exe",), os.getcwd(), {}))

    def refuse(*_: Any, **__: Any) -> None:
        raise winpty.WinptyError("agent died")

    monkeypatch.setattr(winpty.PtyProcess, "spawn", refuse)
    with pytest.raises(SpawnError, match=r"Cannot open a terminal for .*: agent died"):
        Terminal().start(spec("pass"))


@windows
def test_a_command_that_ended_before_it_could_be_put_into_its_job_is_no_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from actors.shell.job import JobObject, JobRefused

    def take_pid(self: JobObject, pid: int) -> None:
        """As the system does for one that has ended."""
        import psutil

        until = time.monotonic() + DEADLINE_S
        while psutil.pid_exists(pid):
            assert time.monotonic() < until
        raise JobRefused("AssignProcessToJobObject failed with error 5")

    monkeypatch.setattr(JobObject, "take_pid", take_pid)
    running = Running("print('short')")
    running.shows("short")
    assert running.end() == Exit(0)


@windows
def test_a_command_that_no_job_takes_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    from actors.shell.job import JobObject, JobRefused

    pids = []

    def take_pid(self: JobObject, pid: int) -> None:
        pids.append(pid)
        raise JobRefused("AssignProcessToJobObject failed with error 5")

    monkeypatch.setattr(JobObject, "take_pid", take_pid)
    with pytest.raises(ContainmentUnavailable, match="ContainmentUnavailable: AssignProcessToJobObject failed"):
        Terminal().start(spec("import time; time.sleep(600)"))
    import psutil

    until = time.monotonic() + DEADLINE_S
    while psutil.pid_exists(pids[0]):
        assert time.monotonic() < until
