"""One conversation with an agent under test: its processes one after another, what was sent, what came, who took what.

Owns the records of a case over restarts and which of them an expectation has taken. Promises that a wait depends on the
records alone, never on when they came: an expectation looks behind everything that had been awaited before the last
step that did something, and no record is taken twice.
"""

from __future__ import annotations

import errno
import json
import os
import signal
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from conformance.driver import Agent, Record
from conformance.fault import Fault, KitError, NotStarted, Unmet, missing_record
from conformance.json_values import ABSENT, same, shorten
from conformance.names import Names
from conformance.shapes import match


class Sent(NamedTuple):
    """A line that went to the agent. `id` is ABSENT, and `command` None, where there is none. `at` is how many records
    had come by then; `process` counts restarts."""

    line: bytes
    id: Any
    command: str | None
    process: int
    at: int


def read_sent(line: bytes, process: int, at: int) -> Sent:
    try:
        value = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        return Sent(line, ABSENT, None, process, at)
    type_ = value.get("type")
    return Sent(line, value.get("id", ABSENT), type_ if isinstance(type_, str) else None, process, at)


class Conversation:
    def __init__(self) -> None:
        self.sent: list[Sent] = []
        self.lossy: set[int] = set()  # indexes of `sent` whose response may be lost
        self.stderr = ""
        self.faults: list[str] = []
        self.starts: list[int] = []  # how many records there were when each process began
        self._past: list[Record] = []
        self._past_lines: list[bytes] = []
        self._agent: Agent | None = None
        self._tail = b""
        self._taken: set[int] = set()
        self._awaited = self._floor = 0

    # ---- processes ---------------------------------------------------------------------------------------------

    @property
    def agent(self) -> Agent:
        if self._agent is None:
            raise KitError("no process runs")
        return self._agent

    @property
    def records(self) -> list[Record]:
        return self._past + (self._agent.records if self._agent else [])

    @property
    def lines(self) -> list[bytes]:
        """Every line of stdout so far, those included that are no record."""
        return self._past_lines + (self._agent.raw_lines if self._agent else [])

    def begin(self, command: Sequence[str], cwd: Path, env: Mapping[str, str]) -> None:
        try:
            self._agent = Agent(command, cwd=cwd, env=env)
        except OSError as problem:
            if self.starts or problem.errno == errno.E2BIG:  # it has been started, or the case asks too much
                raise KitError(f"the command does not start: {problem}") from problem
            raise NotStarted(problem) from problem
        self.starts.append(len(self._past))
        self._tail = b""

    def end(self, deadline: float) -> None:
        """Close stdin, wait for the exit, keep what there was to read, and kill whatever is left of it."""
        agent, self._agent = self._agent, None
        if agent is None:
            return
        try:
            agent.close(deadline)
        except AssertionError as problem:
            self.faults.append(str(problem).partition("\n")[0])
        self._past += agent.records
        self._past_lines += agent.raw_lines
        self.stderr += agent.stderr
        sweep(agent)

    def kill(self) -> None:
        """The process that runs, if there is one. From another thread."""
        agent = self._agent
        if agent is not None:
            with suppress(ProcessLookupError):
                agent.terminate(signal.SIGKILL)

    # ---- sending -----------------------------------------------------------------------------------------------

    def act(self) -> None:
        """Something is done now: what was awaited so far is behind every later expectation."""
        self._floor = self._awaited

    def write(self, data: bytes, deadline: float) -> None:
        """Send bytes in one write, and keep the lines that they complete. Unmet when nobody reads them."""
        self.act()
        at = len(self.records)
        *lines, self._tail = (self._tail + data).split(b"\n")
        self.sent += [read_sent(line, len(self.starts), at) for line in lines]
        try:
            self.agent.send_raw(data, deadline)
        except OSError as problem:
            raise Unmet(Fault("stdin takes no more", came=str(problem))) from problem

    def lose(self) -> None:
        """From here on the open commands of this process may stay without a response."""
        answered = [record.get("id", ABSENT) for record in self.agent.records if record.get("type") == "response"]
        for index, one in enumerate(self.sent):
            if one.process == len(self.starts) and one.id not in answered:
                self.lossy.add(index)

    # ---- waiting -----------------------------------------------------------------------------------------------

    def floor(self, since: int | None, answer: Any = ABSENT) -> int:
        """From where an expectation looks. The response to a command is its outcome from the moment when it was sent,
        whatever else was done since."""
        if since is not None or answer is ABSENT:
            return self._floor if since is None else since
        return min([self._floor, *(one.at for one in self._sent_as(answer))])

    def _sent_as(self, id_: Any) -> list[Sent]:
        """The commands of this process with this id."""
        mine = [one for one in self.sent if one.process == len(self.starts) and one.id is not ABSENT]
        return [one for one in mine if same(one.id, id_)]

    def take(self, indexes: Sequence[int]) -> None:
        self._taken.update(indexes)
        self._awaited = max(self._awaited, *(index + 1 for index in indexes))

    def claim(
        self, shape: Any, names: Names, since: int | None, deadline: float, line: int
    ) -> tuple[int, dict[str, Any]]:
        """The first record from `since` on (default: `floor`) that matches and is not taken; takes it and returns its
        index and the names that it bound. Unmet after `deadline`, at the end of stdout, or as soon as the response
        that the shape names by id has come otherwise."""
        wanted = _answer_of(shape, names)
        next_ = first = self.floor(since, wanted)
        only = wanted is not ABSENT and len(self._sent_as(wanted)) == 1  # of two with one id, another may still come

        def look(index: int, record: Record) -> tuple[int, dict[str, Any]] | str | None:
            if index in self._taken:
                return None
            found = match(shape, record, names)
            if found.difference is None:
                return index, found.bound
            if only and record.get("type") == "response" and same(record.get("id", ABSENT), wanted):
                return "its response is another"
            return None

        def scan(records: list[Record]) -> tuple[int, dict[str, Any]] | str | None:
            nonlocal next_
            while next_ < len(self._past) + len(records):
                index, next_ = next_, next_ + 1
                said = look(index, self._record(index, records))
                if said is not None:
                    return said
            return None

        said = self.until(scan, deadline)
        if isinstance(said, tuple):
            self.take([said[0]])
            return said
        why = said or self.why(deadline)
        seen = [record for index, record in enumerate(self.records) if index >= first and index not in self._taken]
        raise Unmet(missing_record(shape, seen, names, line, why))

    def until(self, look: Callable[[list[Record]], Any], deadline: float) -> Any:
        """Like `Agent.until`; when no process runs, `look` is asked once."""
        return look([]) if self._agent is None else self._agent.until(look, deadline)

    def at(self, index: int, current: list[Record]) -> Record:
        return self._record(index, current)

    def count(self, current: list[Record]) -> int:
        return len(self._past) + len(current)

    def why(self, deadline: float) -> str:
        """Why a wait ended without success."""
        code = self._agent.exit_code if self._agent else None
        return f"within {deadline:g} s" if code is None and self._agent else f"before it ended with exit code {code}"

    def _record(self, index: int, current: list[Record]) -> Record:
        return self._past[index] if index < len(self._past) else current[index - len(self._past)]

    # ---- what is open ------------------------------------------------------------------------------------------

    def unanswered(self, records: Sequence[Record]) -> list[Sent]:
        """The commands that should have a response and have none, of a list that holds all records."""
        left = [
            (bisect_right(self.starts, index), key_of(record.get("id", ABSENT)))
            for index, record in enumerate(records)
            if record.get("type") == "response"
        ]
        open_: list[Sent] = []
        for index, one in enumerate(self.sent):
            answers = [(one.process, key) for key in keys(one.id) if (one.process, key) in left]
            if answers:
                left.remove(answers[0])
            elif one.command != "extension_ui_response" and index not in self.lossy:
                open_.append(one)
        return open_

    def settle(self, deadline: float) -> None:
        """Wait until every command has its response."""
        if self._agent is not None:
            self._agent.until(lambda current: not self.unanswered(self._past + current) or None, deadline)


def key_of(id_: Any) -> str:
    """An id as text, so that 1 and "1" are two."""
    return shorten(id_, 10_000)


def keys(id_: Any) -> list[str]:
    """What the response to a command with this id may carry: an id that is no scalar may be echoed or left out."""
    return [key_of(id_)] + ([key_of(ABSENT)] if isinstance(id_, dict | list) else [])


def _answer_of(shape: Any, names: Names) -> Any:
    """The id of the command whose response a shape asks for, ABSENT when it does not name one."""
    if not isinstance(shape, dict) or shape.get("type") != "response":
        return ABSENT
    id_ = shape.get("id", ABSENT)
    return id_ if isinstance(id_, str | int) and "{{" not in str(id_) else ABSENT


def sweep(agent: Agent) -> None:
    """Kill, by their ids, all that the agent started and that still lives."""
    with suppress(NotImplementedError):
        for process in agent.orphans():
            with suppress(OSError):
                os.kill(process.pid, signal.SIGKILL)
