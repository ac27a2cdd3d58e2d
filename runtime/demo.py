"""The demonstration: a short conversation with a real `atomic --mode rpc`, printed as a timeline while it happens.

It is a client like any other: it starts a process, writes commands to its stdin and reads records from its stdout. The
model is the built-in scripted one, so no key and no network are needed. It works in a folder of its own that is gone
afterwards, waits for records and never sleeps, ends in ten seconds at most, and exits with 0 only if what should have
happened did, or if its reader left before the end.

`python -m runtime.demo [COMMAND...]` plays it against another command that takes the same flags.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from io import TextIOWrapper
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final

import msgspec

from runtime.timeline import Line, Paint, Record, Timeline, command_line, describe, text_of

TIME_LIMIT_S: Final = 9.0
LAST_WORDS_S: Final = 1.0
FLAGS: Final = ("--mode", "rpc", "--provider", "scripted", "--model", "scripted", "--session-dir")

NOTES: Final = "The build is green since Tuesday.\n"
OPENING: Final = """\
This starts one agent, `atomic --mode rpc`, and drives it as your program would:
→ is a command that goes to its stdin, ← a record that comes from its stdout.
Each is one JSON object on a line; here they are cut short."""
NEXT: Final = """
What next: README.md, "By hand", talks to it from your shell; docs/guide.md has
a whole program, docs/reference.md every command. `.venv/bin/atomic doctor`
tells what a model needs, `.venv/bin/atomic -p "..."` asks one question."""
ANSWER: Final = "This answer arrives in pieces, each a record."
READING: Final = 'TOOL read {"path": "notes.txt"}\nSAY The build is green.'
# The first request waits at a named pipe that the demonstration opens once the session has been replaced.
PATIENT: Final = "echo before the new session; read word < gate; echo $word the new session"
ENDLESS: Final = "echo this would take ten minutes; sleep 600"


class Stalled(Exception):
    """What was waited for did not come: the time is up, or the agent is gone."""


class Conversation:
    """One agent process and all that was said so far. Every record is printed as it is taken from the pipe."""

    def __init__(self, command: list[str], workspace: Path, env: Mapping[str, str], paint: Paint) -> None:
        self.records: list[Record] = []
        self.failures = 0
        self._timeline = Timeline(paint)
        self._begun = time.monotonic()
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - it is read when the child has ended
        self._child = subprocess.Popen(
            command, cwd=workspace, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._stderr
        )
        self._incoming: SimpleQueue[bytes] = SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._child.stdout
        for line in self._child.stdout:
            self._incoming.put(line)
        self._incoming.put(b"")

    def title(self, text: str) -> None:
        show(self._timeline.title(text))

    def send(self, *commands: Record) -> None:
        """Write commands to the agent in one go."""
        assert self._child.stdin
        for command in commands:
            self._row("→", command_line(command))
        try:
            self._child.stdin.write(b"".join(msgspec.json.encode(command) + b"\n" for command in commands))
            self._child.stdin.flush()
        except OSError as broken:
            raise Stalled(f"the agent does not read: {broken.strerror}") from broken

    def wait(self, what: str, holds: Callable[[Record], bool], since: int = 0) -> Record:
        """The first record from index `since` on for which `holds`; raises `Stalled` when it does not come."""
        while True:
            while since < len(self.records):
                record, since = self.records[since], since + 1
                if holds(record):
                    return record
            self._take(what)

    def _take(self, what: str) -> None:
        left = self._begun + TIME_LIMIT_S - time.monotonic()
        try:
            line = self._incoming.get(timeout=max(left, 0.001))
        except Empty:
            raise Stalled(f"the time is up while waiting for {what}") from None
        if not line:
            raise Stalled(f"the agent ended while it should have sent {what}")
        record: Record = msgspec.json.decode(line)
        self.records.append(record)
        self._row("←", describe(record))

    def _row(self, arrow: str, line: Line) -> None:
        show(self._timeline.line(time.monotonic() - self._begun, arrow, line))

    def response(self, id: str) -> Record:
        return self.wait(
            f"the response to {id}", lambda record: record["type"] == "response" and record.get("id") == id
        )

    def ask(self, id: str, type: str, **fields: Any) -> Record:
        """Send one command and wait for its response; the data of that."""
        self.send({"id": id, "type": type, **fields})
        data: Record = self.response(id).get("data") or {}
        return data

    def check(self, text: str, holds: bool) -> None:
        """Say whether what should have happened did, and remember it."""
        self.failures += not holds
        show(self._timeline.verdict(text, holds))

    def finish(self) -> int:
        """Close stdin, which asks the agent to stop; its exit code."""
        assert self._child.stdin
        with contextlib.suppress(BrokenPipeError):  # it is gone: its exit code tells
            self._child.stdin.close()
        return self._child.wait(max(self._begun + TIME_LIMIT_S - time.monotonic(), 0.001))

    def abandon(self) -> str:
        """End what is left of the agent after a failure; what it wrote on stderr."""
        if self._child.poll() is None:
            self._child.terminate()
            try:
                self._child.wait(LAST_WORDS_S)
            except subprocess.TimeoutExpired:
                self._child.kill()
        self._stderr.seek(0)
        return self._stderr.read().decode(errors="replace")


class ReaderLeft(Exception):
    """Nobody reads the demonstration any more."""


def show(text: str) -> None:
    """Write a part of the timeline, at once. Raises `ReaderLeft`."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise ReaderLeft from None


def streamed_answer(talk: Conversation) -> None:
    talk.title("A streamed answer")
    talk.send({"id": "hello", "type": "prompt", "message": f"PACE 30\nSAY {ANSWER}"})
    talk.wait("agent_settled", lambda record: record["type"] == "agent_settled")
    changes = [record["assistantMessageEvent"] for record in talk.records if record["type"] == "message_update"]
    deltas = [change["delta"] for change in changes if change["type"] == "text_delta"]
    accepted = talk.response("hello")["success"]
    whole = len(deltas) > 1 and "".join(deltas) == ANSWER
    talk.check(f"the prompt was accepted, and {len(deltas)} pieces add up to the answer", accepted and whole)


def tool_call(talk: Conversation) -> None:
    talk.title("A tool call")
    mark = len(talk.records)
    talk.send({"id": "look", "type": "prompt", "message": READING})
    talk.wait("agent_settled", lambda record: record["type"] == "agent_settled", mark)
    ended = [record for record in talk.records[mark:] if record["type"] == "tool_execution_end"]
    last = [record["message"] for record in talk.records[mark:] if record["type"] == "message_end"][-1]
    has_read = [NOTES.strip() in text_of(record["result"]) for record in ended] == [True]
    talk.check("the model read the file, then it answered", has_read and text_of(last) == READING.partition("SAY ")[2])


def shell_requests(talk: Conversation, gate: Path) -> None:
    talk.title("Two shell requests at once, across a new session")
    old = talk.ask("before", "get_state")
    talk.send(
        {"id": "patient", "type": "bash", "command": PATIENT}, {"id": "endless", "type": "bash", "command": ENDLESS}
    )
    talk.wait("output of the patient request", lambda record: output_of(record, "patient") != "")
    talk.wait("output of the endless request", lambda record: output_of(record, "endless") != "")
    talk.ask("replace", "new_session")
    new = talk.ask("after", "get_state")
    mark = len(talk.records)
    open_gate(gate, "after")
    patient = talk.response("patient")
    talk.ask("cancel", "abort_bash", requestId="endless")
    endless = talk.response("endless")
    later = "".join(output_of(record, "patient") for record in talk.records[mark:])
    talk.check("the session was replaced", old["sessionId"] != new["sessionId"])
    ended_well = patient["data"]["exitCode"] == 0 and not patient["data"]["cancelled"]
    talk.check("the patient request lived on and ended well", later == "after the new session\n" and ended_well)
    talk.check("the endless one was cancelled by its id", endless["success"] and endless["data"]["cancelled"])
    kept = commands_in(old) == [PATIENT, ENDLESS] and commands_in(new) == []
    talk.check("both are on record where they began, and not in the new session", kept)


def output_of(record: Record, id: str) -> str:
    """What a record adds to the output of the shell request `id`."""
    ours = record["type"] == "bash_execution_update" and record.get("id") == id
    return str(record["delta"]) if ours else ""


def commands_in(state: Record) -> list[str]:
    """The shell commands on record in the file of a session."""
    file = Path(state["sessionFile"])
    entries = [msgspec.json.decode(line) for line in file.read_bytes().splitlines()] if file.exists() else []
    messages = [entry["message"] for entry in entries if entry["type"] == "message"]
    return [message["command"] for message in messages if message["role"] == "bashExecution"]


def open_gate(gate: Path, word: str) -> None:
    """Let whoever reads the named pipe go on, now or when it comes to that."""
    # Open for both, so that neither this nor the write waits for a reader. It stays open until the process ends:
    # closed before the reader has opened it, the pipe would forget the word.
    os.write(os.open(gate, os.O_RDWR), word.encode() + b"\n")


def default_command() -> list[str]:
    """`atomic` where it is installed beside this interpreter, else the module."""
    script = Path(sys.executable).with_name("atomic")
    return [str(script)] if script.exists() else [sys.executable, "-m", "runtime.main"]


def play(command: list[str], workspace: Path, paint: Paint) -> int:
    """Play the whole conversation in an empty folder; the exit code."""
    (workspace / "notes.txt").write_text(NOTES, encoding="utf-8")
    os.mkfifo(workspace / "gate")
    env = {name: value for name, value in os.environ.items() if not name.startswith(("ATOMIC_", "PI_"))}
    env["ATOMIC_CODING_AGENT_DIR"] = str(workspace / "agent")
    talk = Conversation([*command, *FLAGS, str(workspace / "sessions")], workspace, env, paint)
    try:
        streamed_answer(talk)
        tool_call(talk)
        shell_requests(talk, workspace / "gate")
        talk.check("the end of its input ended the agent, with exit code 0", talk.finish() == 0)
    except (Stalled, subprocess.TimeoutExpired, LookupError, OSError, msgspec.DecodeError) as failure:
        talk.check(f"all records as expected ({type(failure).__name__}: {failure})", False)
    finally:
        said = talk.abandon()
    if talk.failures and said:
        show("\nThe agent wrote on stderr:\n" + said)
    return min(talk.failures, 1)


def main(arguments: list[str]) -> int:
    """Play the demonstration; 0 if all was as expected or nobody wanted to see the end, 130 after Ctrl-C, else 1."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    try:
        show(OPENING + "\n")
        with tempfile.TemporaryDirectory(prefix="atomic-demo-") as folder:
            code = play(arguments or default_command(), Path(folder), Paint(sys.stdout, os.environ))
        show("\n" + ("Something was not as it should be.\n" if code else f"All was as it should be.\n{NEXT}\n"))
    except ReaderLeft:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is buffered still wants to leave when the process ends
        return 0
    except KeyboardInterrupt:
        return 130
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
