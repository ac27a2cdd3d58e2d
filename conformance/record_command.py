"""`atomic-conformance record --to FILE -- CMD`: stands between a client and an agent and writes a recording of both.

The client sees the bytes, streams, exit code and signals of the agent as if it had started it. Every record is written
before it is passed on, so a cause stands above its effect; secrets are masked in the recording alone.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import time
from typing import IO, Any

from conformance.cli import Misuse
from conformance.masking import Mask
from conformance.recorded_start import start_of
from conformance.recording import Line, Recording, raw_value
from conformance.relay import Relay
from protocol.lines import LineSplitter


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "%(prog)s --to FILE [--note TEXT] -- CMD ..."
    parser.add_argument("--to", required=True, metavar="FILE", help="the recording; a file that is there is replaced")
    parser.add_argument("--note", default="", help="a remark in the head of the recording")


def run(options: argparse.Namespace) -> int:
    """The agent's exit code."""
    if not options.command:
        raise Misuse("what is to be recorded stands behind --, such as: record --to talk.jsonl -- atomic --mode rpc")
    try:
        out = open(options.to, "wb", buffering=0)  # noqa: SIM115 - open for as long as the process
    except OSError as problem:
        raise Misuse(f"--to {options.to}: {problem.strerror}") from problem
    recorder = Recorder(out, options.command, options.note, Mask(os.environ, options.command))
    relay = Relay(options.command, recorder.client, recorder.agent, recorder.stderr, recorder)
    return relay.run()


class Recorder:
    """Writes the lines of a recording as they are seen, from three threads. A recording that can no longer be written
    ends with one line on stderr; the conversation goes on."""

    def __init__(self, out: IO[bytes], command: list[str], note: str, mask: Mask) -> None:
        self._out, self._mask = out, mask
        self._guard = threading.Lock()
        self._began = time.monotonic()
        self._failed = False
        masked = tuple(map(mask.text, command))
        self._put(Recording(masked, start_of(masked), note=note).head())
        self.client = _Lines(self, "in", "stdin")
        self.agent = _Lines(self, "out", "stdout")
        self.stderr = _Text(self)

    def write(self, kind: str, value: Any) -> None:
        """One line; what is under a secret's key, or was seen there before, is masked."""
        with self._guard:
            shown = self._mask.text(value) if isinstance(value, str) else self._mask.value(value)
            self._put(Line(kind, shown, time.monotonic() - self._began).encode())

    def write_raw(self, kind: str, data: bytes) -> None:
        """A line that is no record."""
        with self._guard:
            self._put(Line(kind, raw_value(self._mask.raw(data)), time.monotonic() - self._began).encode())

    def signalled(self, name: str) -> None:
        # In a thread of its own: the handler may have interrupted one that holds the guard.
        threading.Thread(target=self.write, args=("signal", name), daemon=True).start()

    def exited(self, status: int) -> None:
        self.write("exit", status)

    def _put(self, line: bytes) -> None:
        if self._failed:
            return
        try:
            self._out.write(line)
        except OSError as problem:
            self._failed = True
            print(f"atomic-conformance record: the recording ends here: {problem}", file=sys.stderr, flush=True)


class _Lines:
    """A stream of records: passed on as it comes, written line by line."""

    def __init__(self, recorder: Recorder, kind: str, name: str) -> None:
        self._recorder, self._kind, self._name = recorder, kind, name
        self._lines = LineSplitter()

    def take(self, data: bytes) -> bytes:
        for line in self._lines.feed(data):
            self._write(line, b"\n")
        return data

    def end(self) -> bytes:
        for line in self._lines.end():
            self._write(line, b"")
        self._recorder.write("end", self._name)
        return b""

    def _write(self, line: bytes, ending: bytes) -> None:
        record = record_of(line) if ending else None
        if record is not None:
            self._recorder.write(self._kind, record)
        else:
            whole = line + ending if self._kind == "in" else line
            self._recorder.write_raw(f"{self._kind}_raw", whole)


def record_of(line: bytes) -> dict[str, Any] | None:
    """The object on a line, `None` when it is none, or is nested deeper than a recording is read."""
    try:
        value = json.loads(line.decode(), parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


class _Text:
    """stderr: passed on as it comes, written by whole lines, so that no secret is cut in two and missed."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._rest = b""

    def take(self, data: bytes) -> bytes:
        lines, mark, self._rest = (self._rest + data).rpartition(b"\n")
        self._write(lines + mark)
        return data

    def end(self) -> bytes:
        self._write(self._rest)
        return b""

    def _write(self, text: bytes) -> None:
        if text:
            self._recorder.write("err", text.decode("utf-8", "replace"))
