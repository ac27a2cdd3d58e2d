"""What the client's tests share: the program itself, and a small agent that does what a plan says, good or bad."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]

STATE = {
    "model": None,
    "thinkingLevel": "off",
    "isStreaming": False,
    "isCompacting": False,
    "steeringMode": "all",
    "followUpMode": "all",
    "sessionId": "s",
    "autoCompactionEnabled": True,
    "messageCount": 0,
    "pendingMessageCount": 0,
}

# A plan has steps for command types, for "START" and for "EOF"; get_state is answered, and so is what has no steps.
AGENT = r"""
import json, os, signal, subprocess, sys, time

plan = json.loads(sys.argv[1])

def write(data):
    while data:
        data = data[os.write(1, data):]

def say(**record):
    write(json.dumps(record).encode() + b"\n")

def answer(command, **more):
    say(id=command.get("id"), type="response", command=command["type"], **more)

def do(step, command):
    kind, value = step if isinstance(step, list) else (step, None)
    if kind == "ok": answer(command, success=True, **({} if value is None else {"data": value}))
    elif kind == "no": answer(command, success=False, error=value)
    elif kind == "event": say(**value)
    elif kind == "delta": say(type="bash_execution_update", id=command["id"], channel="stdout", delta=value)
    elif kind == "raw": write(value.encode())
    elif kind == "flood": write(value[0].encode() * value[1])
    elif kind == "stderr": sys.stderr.write(value); sys.stderr.flush()
    elif kind == "exit": os._exit(value)
    elif kind == "kill": os.kill(os.getpid(), value); time.sleep(60)
    elif kind == "close": os.close(value)
    elif kind == "ignore": signal.signal(value, signal.SIG_IGN)
    elif kind == "sleep": time.sleep(value)
    elif kind == "spawn": print(subprocess.Popen(["sleep", "60"], **value).pid, file=sys.stderr, flush=True)
    elif kind == "other": say(id=value, type="response", command=command["type"], success=True)

ANSWERED = {"get_state": [["ok", plan.pop("STATE")]]}
for step in plan.get("START", []): do(step, {})
while True:
    line = sys.stdin.buffer.readline()
    if not line: break
    command = json.loads(line)
    kind = command["type"]
    each = plan.get("each", {}).get(kind)
    steps = each.pop(0) if each else plan.get(kind, ANSWERED.get(kind, ["ok"]))
    for step in steps: do(step, command)
for step in plan.get("EOF", []): do(step, {})
"""


@pytest.fixture
def agent(tmp_path: Path) -> Callable[..., list[str]]:
    """`agent(prompt=[...], START=[...])` is the command of an agent with that plan; `each={"prompt": [[...], [...]]}`
    has steps for the first time, the second time and so on."""
    path = tmp_path / "agent.py"
    path.write_text(AGENT)

    def command(**plan: Any) -> list[str]:
        plan.setdefault("STATE", STATE)
        return [sys.executable, "-S", "-E", str(path), json.dumps(plan)]

    return command


@pytest.fixture
def atomic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The command of the program itself with its scripted model, in a home of its own."""
    for name in list(os.environ):
        if name.startswith(("ATOMIC_", "PI_", "ANTHROPIC", "OPENAI")) or name.endswith("_API_KEY"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ATOMIC_CODING_AGENT_DIR", str(tmp_path / "agent-dir"))
    script = Path(sys.executable).with_name("atomic")
    if not script.exists():
        monkeypatch.setenv("PYTHONPATH", str(ROOT))
    start = [str(script)] if script.exists() else [sys.executable, "-m", "runtime.main"]
    return [*start, "--mode", "rpc", "--provider", "scripted", "--model", "scripted", "--no-session"]


def in_thread(work: Callable[[], object]) -> tuple[threading.Thread, list[Any]]:
    """`work` in a thread of its own: the thread, and a list that gets what it returned or raised."""
    results: list[Any] = []

    def run() -> None:
        try:
            results.append(work())
        except Exception as error:
            results.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, results
