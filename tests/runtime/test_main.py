"""The process itself: what it prints when it cannot start, how it ends, and that its signals always arrive."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


class Bench:
    """Starts the program with a home of its own and the scripted model."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("project", "agent"):
            (root / name).mkdir()
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
        self._env = {
            **kept,
            "HOME": str(root),
            "PYTHONPATH": str(ROOT),
            "ATOMIC_CODING_AGENT_DIR": str(root / "agent"),
            "ATOMIC_OFFLINE": "1",
        }
        self.running: list[subprocess.Popen[bytes]] = []

    def start(self, *flags: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "runtime.main", "--mode", "rpc", "--no-session", *flags]
        pipe = subprocess.PIPE
        self.running.append(
            subprocess.Popen(command, cwd=self.root / "project", env=self._env, stdin=pipe, stdout=pipe, stderr=pipe)
        )
        return self.running[-1]

    def close(self) -> None:
        for process in self.running:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    stream.close()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    bench.close()


def ask(process: subprocess.Popen[bytes], **command: Any) -> dict[str, Any]:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(json.dumps(command).encode() + b"\n")
    process.stdin.flush()
    answer: dict[str, Any] = json.loads(process.stdout.readline())
    return answer


def test_the_end_of_input_is_exit_code_0_after_every_answer(bench: Bench) -> None:
    out, err = bench.start().communicate(b'{"type":"get_state","id":1}\n{"type":"get_messages","id":2}', timeout=30)
    assert [json.loads(line)["id"] for line in out.splitlines()] == [1, 2]
    assert bench.running[0].returncode == 0
    assert err == b""


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)], ids=["TERM", "HUP", "INT"]
)
def test_a_signal_ends_an_idle_program_with_its_code(bench: Bench, number: signal.Signals, code: int) -> None:
    process = bench.start()
    assert ask(process, type="get_state")["success"]
    process.send_signal(number)
    assert process.wait(30) == code


def test_a_program_that_cannot_start_says_why_on_stderr_and_nothing_on_stdout(bench: Bench) -> None:
    process = bench.start("--provider", "nosuch", "--model", "m")
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (1, b"")
    assert err.startswith(b'atomic: Unknown provider "nosuch".')
    assert b"Traceback" not in err


def test_warnings_are_lines_on_stderr_and_the_program_runs(bench: Bench) -> None:
    (bench.root / "agent" / "settings.json").write_text("{broken")
    out, err = bench.start().communicate(b'{"type":"get_state"}\n', timeout=30)
    assert json.loads(out)["success"] is True
    assert err.startswith(b"atomic: ") and b"settings.json" in err


def test_a_client_that_closes_its_end_of_stdout_ends_the_program_with_1(bench: Bench) -> None:
    process = bench.start()
    assert ask(process, type="get_state")["success"]
    assert process.stdin is not None and process.stdout is not None
    process.stdout.close()
    process.stdin.write(b'{"type":"get_state"}\n')
    process.stdin.flush()
    assert process.wait(30) == 1


def test_a_trace_tells_every_mail_in_a_private_file_and_no_text_of_the_user(bench: Bench) -> None:
    path = bench.root / "trace.jsonl"
    command = b'{"type":"bash","command":"echo my-secret","id":"b"}\n{"type":"get_state"}\n'
    process = bench.start("--trace", str(path))
    process.communicate(command, timeout=30)
    assert path.stat().st_mode & 0o777 == 0o600
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    told = {(line["from"], line["to"], line["mail"]) for line in lines}
    assert {("stdin", "intake", "StdinBytes"), ("intake", "session-1", "Commands")} <= told
    assert "my-secret" not in path.read_text()


def test_a_trace_that_cannot_be_written_is_one_line_and_the_program_does_not_start(bench: Bench) -> None:
    for path in (bench.root / "none" / "trace.jsonl", bench.root):
        out, err = bench.start("--trace", str(path)).communicate(timeout=30)
        assert out == b"" and err.startswith(f"atomic: --trace {path}: ".encode()) and err.count(b"\n") == 1
        assert not (bench.root / "none").exists()
