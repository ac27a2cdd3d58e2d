"""What subagents cost: memory of those that are over and kept, time beside a bare loop, and the launch of one.

    .venv/bin/python -m tests.performance.subagent_times [runs]

The model is a process of its own on 127.0.0.1. Each child has three turns: two calls of `read` and an answer of 1.4 KB.
Prints what goes into docs/performance.md. Loads two cores for some minutes.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.e2e.conftest import Home, program
from tests.performance.subagent_server import FILE

TURNS = 3
Line = tuple[float, dict[str, Any]]


class Program:
    """The program under measure, and when each of its lines came (seconds since the epoch)."""

    def __init__(self, home: Home) -> None:
        pipe = subprocess.PIPE
        command = [*program(), "--mode", "rpc", "--provider", "fa", "--model", "m", "--session-dir", str(home.sessions)]
        self._process = subprocess.Popen(command, cwd=home.cwd, env=home.environment(), stdin=pipe, stdout=pipe)
        self.send(type="set_task_subscription", enabled=True)
        self.send(type="get_state", id="started")
        self.until(lambda record: record.get("id") == "started")

    def send(self, **command: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command).encode() + b"\n")
        self._process.stdin.flush()

    def until(self, is_last: Any) -> list[Line]:
        assert self._process.stdout is not None
        lines: list[Line] = []
        for raw in self._process.stdout:
            lines.append((time.time(), json.loads(raw)))
            if is_last(lines[-1][1]):
                return lines
        raise AssertionError("the program has ended")

    def launch(self, count: int) -> list[Line]:
        """All lines until `count` agents have ended, and the parent has come to rest after their notices."""
        notices: list[str] = []

        def is_last(record: dict[str, Any]) -> bool:
            assert record.get("success") is not False, record
            if record["type"] == "message_end" and record["message"]["role"] == "custom":
                assert record["message"]["details"]["notification"]["status"] == "completed", record
                notices.append(record["message"]["details"]["taskId"])
            return len(notices) == count and record["type"] == "agent_settled"

        self.send(type="prompt", message=f"launch {count}")
        return self.until(is_last)

    def wait_for(self, count: int) -> list[Line]:
        """The same, but the parent waits for them, and there are no notices."""
        self.send(type="prompt", message=f"await {count}")
        return self.until(lambda record: record["type"] == "agent_settled")

    def cpu(self) -> float:
        """Seconds, from the clock that the kernel keeps for the process, to the nanosecond."""
        return time.clock_gettime((~self._process.pid << 3) | 2)

    def hold(self, count: int, log: Path) -> float:
        """Launches agents whose first request stays unanswered: the CPU, in seconds, until all of these have left and
        the parent is at rest."""
        log.write_bytes(b"")
        before = self.cpu()
        self.send(type="prompt", message=f"hold {count}")
        self.until(lambda record: record["type"] == "agent_settled")
        while len(child_requests(log)) < count:
            time.sleep(0.01)
        return self.cpu() - before

    def memory(self) -> dict[str, float]:
        """PSS in MB, and threads."""
        found = re.search(r"^Pss: +(\d+)", Path(f"/proc/{self._process.pid}/smaps_rollup").read_text(), re.MULTILINE)
        assert found is not None
        return {"pss": int(found[1]) / 1024, "threads": len(os.listdir(f"/proc/{self._process.pid}/task"))}

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.read()
        self._process.stdout.close()
        self._process.wait()


@contextmanager
def bench() -> Iterator[tuple[Home, str, Path]]:
    """A home, the address of a model server for it, and the log of that."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "requests.jsonl"
        server = [sys.executable, "-m", "tests.performance.subagent_server", str(log)]
        with subprocess.Popen(server, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdin is not None and process.stdout is not None
            url = process.stdout.readline().strip()
            home = Home(Path(folder), url)
            (home.cwd / FILE).write_text("a line of notes\n" * 40)
            yield home, url, log
            process.stdin.close()


def child_requests(log: Path) -> list[dict[str, Any]]:
    return [each for line in log.read_bytes().splitlines() if "You are a subagent" in str(each := json.loads(line))]


def kept_memory(agents: int, at_once: int = 50) -> None:
    with bench() as (home, _, _):
        running = Program(home)
        running.launch(4)  # what loads with the first one is no price of the others
        time.sleep(1)
        before = running.memory()
        for _ in range(agents // at_once):
            running.launch(at_once)
        time.sleep(1)
        after = running.memory()
        running.close()
    print(f"{agents} kept: PSS {before['pss']:.1f} -> {after['pss']:.1f} MB, +{after['pss'] - before['pss']:.1f} MB,")
    print(f"  threads {before['threads']} -> {after['threads']}")


def _began(lines: list[Line]) -> float:
    return next(at for at, record in lines if record["type"] == "tool_execution_start")


def _wall(lines: list[Line]) -> float:
    """From the call of the tool to the end of the last agent."""
    begun = _began(lines)
    return max(at for at, record in lines if record["type"] == "task_update") - begun


def beside_bare_loops(agents: int, runs: int) -> None:
    """Agents that their parent waits for, agents in the background beside whose parent answers each of their notices,
    and loops that make the requests of the agents alone."""
    walls: dict[str, list[float]] = {"waited for": [], "in the background": [], "httpx2": [], "h11": []}
    cpus: dict[str, list[float]] = {name: [] for name in walls}
    with bench() as (home, url, log):
        running = Program(home)
        running.launch(4)
        for _ in range(runs):
            for name, run in (("in the background", running.launch), ("waited for", running.wait_for)):
                log.write_bytes(b"")
                before = running.cpu()
                walls[name].append(_wall(run(agents)))
                cpus[name].append(running.cpu() - before)
            requests = child_requests(log)  # before the loops add theirs
            for client in ("httpx2", "h11"):
                wall, cpu = _bare(client, home, url, requests)
                walls[client].append(wall)
                cpus[client].append(cpu)
        running.close()
    for name in walls:
        print(f"{agents} agents of {TURNS} turns, {name}: {_milliseconds(walls[name])},", end="")
        print(f" CPU {_milliseconds(cpus[name])}")
    for name in ("waited for", "in the background"):
        for client in ("httpx2", "h11"):
            pairs = [ours / bare for ours, bare in zip(walls[name], walls[client], strict=True)]
            print(f"  {name} beside {client}, pair by pair: {_shown(pairs, '')}")


def _bare(client: str, home: Home, url: str, requests: list[dict[str, Any]]) -> tuple[float, float]:
    """The same requests and lines. Which of them belong together does not matter: the jobs are alike."""
    by_turn: list[list[Any]] = [[] for _ in range(TURNS)]
    for request in requests:
        by_turn[len(request["body"]["messages"]) // 2].append(request["body"])
    newest = sorted(home.sessions.rglob("subagents/*/*.jsonl"), key=lambda file: file.stat().st_mtime)
    files = newest[-len(by_turn[0]) :]
    # Not removed before the end: a file system may look at all that were just removed when it makes one.
    folder = Path(tempfile.mkdtemp(dir=home.path))
    jobs = folder / "jobs"
    with jobs.open("wb") as out:
        for bodies, file in zip(zip(*by_turn, strict=True), files, strict=True):
            lines = [json.loads(line) for line in file.read_bytes().splitlines()]
            job = {"bodies": bodies, "lines": lines, "reads": str(home.cwd / FILE)}
            out.write(json.dumps(job, separators=(",", ":")).encode() + b"\n")
    host, _, port = url.removeprefix("http://").rpartition(":")
    command = [sys.executable, "-m", "tests.performance.bare_loop", client, host, port, str(jobs), str(folder)]
    wall, cpu = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return float(wall), float(cpu)


def launches(runs: int) -> None:
    """Wall: of one agent after the other, from the news of the call to its first request at the server. CPU: by
    how much three at once cost more than one, of agents that come no further than that request; half of it."""
    wall, cpu = [], []
    for _ in range(runs):
        with bench() as (home, _, log):
            running = Program(home)
            running.launch(4)
            for _ in range(10):
                log.write_bytes(b"")
                wall.append(_left(log, running.launch(1)))
            one, three = running.hold(1, log), running.hold(3, log)
            cpu.append((three - one) / 2)
            running.close()
    print(f"a launch: {_milliseconds(wall)}, CPU {_milliseconds(cpu)}")


def _left(log: Path, lines: list[Line]) -> float:
    return min(float(request["time"]) for request in child_requests(log)) - _began(lines)


def _milliseconds(seconds: list[float]) -> str:
    return _shown([1000 * each for each in seconds], " ms")


def _shown(values: list[float], unit: str) -> str:
    low, high = min(values), max(values)
    return f"{statistics.median(values):.2f}{unit} ({low:.2f} to {high:.2f})"


def main(runs: int) -> None:
    kept_memory(200)
    beside_bare_loops(50, runs)
    launches(runs)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
