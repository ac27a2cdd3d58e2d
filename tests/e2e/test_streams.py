"""When stdout takes nothing, whatever is printed: the exit code is 1, and stderr says why in one line or not at all."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import pytest

from conformance.model_server import ModelServer, text
from tests.e2e.conftest import ROOT, program

FULL = "atomic: stdout cannot be written: No space left on device\n"
CLOSED = "atomic: stdout cannot be written: it is closed\n"
GET_STATE = '{"type":"get_state"}\n'
# All that is printed goes through one function, which the linter sees to; these are its callers of different kinds.
SAYS = [["--help"], ["sessions", "--help"], ["doctor"], ["auth", "print-api-key", "--model", "fa/m"]]
RUNS = [["-p", "hi"], ["--mode", "json", "hi"], ["--mode", "rpc"]]


class Bench:
    """Starts one command line three times: with a stdout that is full, closed, and a pipe that nobody reads."""

    def __init__(self, home: Any, running: ExitStack) -> None:
        self._home, self._running = home, running

    def outcomes(self, argv: list[str], stdin: str = "") -> list[tuple[int, str]]:
        """Exit code and stderr of each."""
        source, gone = os.pipe()
        os.close(source)
        full = os.open("/dev/full", os.O_WRONLY)
        children = [self._start(argv, full), self._start(argv, subprocess.DEVNULL, "1>&-"), self._start(argv, gone)]
        os.close(gone)
        os.close(full)
        told = [child.communicate(stdin, timeout=30)[1] for child in children]
        return [(child.returncode, err) for child, err in zip(children, told, strict=True)]

    def code_without_stderr(self, argv: list[str]) -> int:
        child = self._start(argv, subprocess.DEVNULL, "2>/dev/full")
        child.communicate("", timeout=30)
        return child.returncode

    def _start(self, argv: list[str], stdout: int, redirection: str = "") -> subprocess.Popen[str]:
        command = ["sh", "-c", f'exec "$@" {redirection}', "sh", *program(), *argv]
        env = {**self._home.environment(), "PYTHONPATH": str(ROOT)}
        pipe = subprocess.PIPE
        child = subprocess.Popen(
            command, cwd=self._home.cwd, env=env, stdin=pipe, stdout=stdout, stderr=pipe, text=True
        )
        self._running.callback(child.kill)
        return child


@pytest.fixture
def bench(home: Any) -> Iterator[Bench]:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full")
    with ExitStack() as running:
        yield Bench(home, running)


@pytest.mark.parametrize("argv", SAYS, ids=" ".join)
def test_what_could_not_be_printed_is_no_success(bench: Bench, argv: list[str]) -> None:
    assert bench.outcomes(argv) == [(1, FULL), (1, CLOSED), (1, "")]


@pytest.mark.parametrize("argv", RUNS, ids=" ".join)
def test_an_answer_that_could_not_be_written_is_no_success(bench: Bench, server: ModelServer, argv: list[str]) -> None:
    server.script(text("one"), text("two"), text("three"))
    argv = ["--no-session", "--model", "fa/m", *argv]
    assert bench.outcomes(argv, GET_STATE if "rpc" in argv else "") == [(1, FULL), (1, CLOSED), (1, "")]


@pytest.mark.parametrize(("argv", "code"), [(["--nope"], 2), (["auth"], 2), (["--mode", "rpc", "--help"], 0)])
def test_a_stderr_that_takes_nothing_leaves_the_exit_code_as_it_is(bench: Bench, argv: list[str], code: int) -> None:
    assert bench.code_without_stderr(argv) == code


def test_a_trace_that_breaks_off_costs_one_line_and_not_the_answer(run: Any, server: ModelServer) -> None:
    server.script(text("answer"))
    code, out, err = run("-p", "--trace", "/dev/full", "hi")
    assert (code, out) == (1, "answer\n")
    assert err == "atomic: --trace /dev/full: the trace ends here: No space left on device\n"


def test_a_stderr_that_nobody_reads_holds_up_neither_a_command_nor_the_end(home: Any) -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with contextlib.suppress(BlockingIOError):
        while os.write(writing, bytes(4096)):
            pass
    os.set_blocking(writing, True)
    command = [*program(), "--mode", "rpc", "--provider", "fa", "--model", "m", "--session-dir", str(home.sessions)]
    pipe = subprocess.PIPE
    child = subprocess.Popen(
        command, cwd=home.cwd, env=home.environment(), stdin=pipe, stdout=pipe, stderr=writing, bufsize=0
    )
    os.close(writing)
    assert child.stdin is not None and child.stdout is not None
    try:
        child.stdin.write(b'{"type":"bash","command":"true"}\n')
        assert _answer(child.stdout)["success"]
        (file,) = home.session_files()
        file.unlink()
        child.stdin.write(b'{"type":"bash","command":"true"}\n')
        assert "removed or replaced" in _answer(child.stdout)["error"]
        child.stdin.write(b'{"type":"get_state"}\n')
        assert _answer(child.stdout)["success"]
        child.stdin.close()
        assert child.wait(20) == 0
    finally:
        child.kill()
        child.wait()
        os.close(reading)


def _answer(stdout: IO[bytes]) -> dict[str, Any]:
    for line in stdout:
        record: dict[str, Any] = json.loads(line)
        if record["type"] == "response":
            return record
    raise AssertionError("the program has ended")
