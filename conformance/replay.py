"""Replays a recording: writes what the client wrote, each line when what caused it has appeared again, never by time.

Owns one replay. The causes of a line are all records before it in the recording: as many of each kind must have come,
and as much output of each shell request. Ids and paths of the recording are replaced by those that stand in their place
now.
"""

from __future__ import annotations

import json
import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from conformance.answers import read_answers
from conformance.conversation import sweep
from conformance.driver import Agent
from conformance.fault import KitError, NotStarted
from conformance.json_values import ABSENT, shorten
from conformance.model_play import Gates
from conformance.model_server import ModelServer
from conformance.model_turns import ModelPlay
from conformance.player import Target
from conformance.recorded_start import with_models
from conformance.recording import Line, Recording, raw_bytes
from conformance.stage import Stage

Record = dict[str, Any]
# How many of them there are, or whether they come at all, is a matter of timing or of the program's own extensions.
_NO_CAUSE = frozenset({"message_update", "tool_execution_update", "extension_ui_request", "bash_execution_update"})


class Replayed(NamedTuple):
    """`problems` say which causes never appeared, and what else went wrong; the records are there all the same."""

    lines: tuple[Line, ...]
    problems: tuple[str, ...]

    @property
    def records(self) -> list[Record]:
        return [line.value for line in self.lines if line.kind == "out"]


def kind_of(record: Record) -> tuple[str, ...] | None:
    """What makes two records the same step of a conversation; None for those that are no cause."""
    if record.get("type") in _NO_CAUSE:
        return None
    if record.get("type") == "response":
        return "response", shorten(record.get("id", ABSENT), 1000)
    message = record.get("message")
    role = message.get("role") if isinstance(message, dict) else None
    return tuple(str(word) for word in (record.get("type"), role, record.get("toolName")) if word is not None)


class Causes:
    """Counts records by kind, and the output of shell requests by id."""

    def __init__(self, records: Sequence[Record], ignore: Collection[str] = ()) -> None:
        kinds = (kind_of(record) for record in records if record.get("type") not in ignore)
        self.kinds = Counter(kind for kind in kinds if kind)
        self.output: Counter[str] = Counter()
        for record in records:
            if record.get("type") == "bash_execution_update":
                self.output[shorten(record.get("id", ABSENT))] += len(str(record.get("delta")))

    def lacking(self, have: Causes) -> Causes:
        """What `have` is short of."""
        short = Causes(())
        short.kinds, short.output = self.kinds - have.kinds, self.output - have.output
        return short

    def __bool__(self) -> bool:
        return bool(self.kinds or self.output)

    def __str__(self) -> str:
        return ", ".join([" ".join(kind) for kind in self.kinds] + [f"output of {id_}" for id_ in self.output])


def stand_ins(recorded: Sequence[Record], now: Sequence[Record]) -> dict[str, str]:
    """For each text of the recording the one that stands in its place now, from records of the same kind and turn."""
    found: dict[str, str] = {}
    turns: dict[tuple[str, ...], list[Record]] = {}
    for record in now:
        turns.setdefault(kind_of(record) or (), []).append(record)
    for record in recorded:
        waiting = turns.get(kind_of(record) or (), [])
        if kind_of(record) and waiting:
            found.update(_texts(record, waiting.pop(0)))
    return found


def _texts(old: Any, new: Any) -> Iterator[tuple[str, str]]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in old.keys() & new.keys():
            yield from _texts(old[key], new[key])
    elif isinstance(old, list) and isinstance(new, list):
        for one, other in zip(old, new, strict=False):
            yield from _texts(one, other)
    elif isinstance(old, str) and isinstance(new, str) and old != new:
        yield old, new


def translated(value: Any, words: dict[str, str]) -> Any:
    """A value with every text that is one of `words` replaced."""
    if isinstance(value, dict):
        return {key: part if key == "id" else translated(part, words) for key, part in value.items()}
    if isinstance(value, list):
        return [translated(part, words) for part in value]
    return words.get(value, value) if isinstance(value, str) else value


class _Replay:
    def __init__(
        self, recording: Recording, target: Target, agent: Agent, gates: Gates, ignore: Collection[str]
    ) -> None:
        self._recording, self._target, self._agent, self._gates = recording, target, agent, gates
        self._ignore = ignore
        self._opens = read_answers(recording.lines).gates if recording.replies is None else {}
        self._sent: list[tuple[int, Line]] = []  # with how many records there were
        self._given_up = Causes(())
        self.problems: list[str] = []

    def run(self) -> None:
        """What never appears is told once, and not awaited again."""
        before: list[Record] = []
        for index, line in enumerate(self._recording.lines):
            if line.kind == "out":
                before.append(line.value)
            elif line.kind in ("in", "in_raw", "signal") or line == line._replace(kind="end", value="stdin"):
                self._await(before, index + 2)
                self._write(line, before)
                if index in self._opens:
                    self._gates[self._opens[index]].open()

    def _await(self, before: Sequence[Record], line: int) -> None:
        wanted = Causes(before, self._ignore).lacking(self._given_up)
        self._agent.until(lambda now: not wanted.lacking(Causes(now)) or None, self._target.deadline)
        missing = wanted.lacking(Causes(self._agent.records))
        if missing:
            self.problems.append(f"before line {line} of the recording there should be: {missing}")
            self._given_up.kinds += missing.kinds
            self._given_up.output += missing.output

    def _write(self, line: Line, before: Sequence[Record]) -> None:
        now = self._agent.records
        if line.kind == "in":
            line = line._replace(value=translated(line.value, stand_ins(before, now)))
        self._sent.append((len(now), line))
        try:
            if line.kind == "end":
                self._agent.close_stdin()
            elif line.kind == "signal":
                self._agent.terminate(getattr(signal, f"SIG{line.value}"))
            elif line.kind == "in":
                self._agent.send_raw(json.dumps(line.value).encode() + b"\n")
            else:
                self._agent.send_raw(raw_bytes(line.value))
        except (OSError, ValueError):
            return  # it has ended or its stdin is closed: what is missing will be told

    def lines(self) -> Iterator[Line]:
        """What happened, in order."""
        records = self._agent.records
        at = 0
        for count, line in [*self._sent, (len(records), Line("end", "stdout"))]:
            yield from (Line("out", record) for record in records[at:count])
            yield line
            at = count
        yield Line("exit", self._agent.exit_code)


def replay(recording: Recording, target: Target, ignore: Collection[str] = ()) -> Replayed:
    """Replay against a program. KitError when it does not start."""
    root = Path(tempfile.mkdtemp(prefix="conformance-"))
    try:
        with ModelServer() as server:
            return _replay(recording, target, server, root, ignore)
    except AssertionError as problem:
        raise KitError(str(problem)) from problem
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _replay(recording: Recording, target: Target, server: ModelServer, root: Path, ignore: Collection[str]) -> Replayed:
    stage = Stage(root, server.url, target.profile, with_models(recording.start, recording.records))
    gates = Gates()
    replies = recording.replies if recording.replies is not None else read_answers(recording.lines).replies
    server.default = play = ModelPlay(replies, gates, {})
    play.end()  # no step binds a name
    command = stage.command(target.command, {}, stage.names)
    try:
        agent = Agent(command, cwd=stage.cwd, env=stage.environment({}, stage.names))
    except OSError as problem:
        raise NotStarted(problem) from problem
    run = _Replay(recording, target, agent, gates, ignore)
    try:
        run.run()
    finally:
        gates.open_all()
        faults = _end(agent)
    return Replayed(tuple(run.lines()), (*run.problems, *faults))


def _end(agent: Agent) -> list[str]:
    try:
        agent.close()
    except AssertionError as fault:
        return [str(fault).partition("\n")[0]]
    finally:
        sweep(agent)
    return []
