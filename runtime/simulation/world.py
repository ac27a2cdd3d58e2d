"""What stands where the outside world is: commands, tools, model servers, the alarm and the client's pipes.

Each is a pump: a small object that tells its actor one thing a step, whenever the scheduler picks it, and that stops
where the real one would block: at a full window, or in a command that runs until it is killed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, Literal

from actors.base import Address
from actors.mail import (
    IntakeMail,
    ModelCallMail,
    ModelRequest,
    RootMail,
    ShellExited,
    ShellMail,
    ShellOutput,
    ShellPlan,
    SignalReceived,
    StdinBytes,
    StdinEnded,
    StreamBytes,
    StreamEnded,
    StreamHead,
    ToolCallMail,
    ToolRequest,
    ToolReturned,
    ToolUpdated,
    Woke,
)
from actors.model.scripted import Call, Cue, Record, plan_reply
from actors.pump import Ack, Window
from actors.tool.table import Tool, ToolContext, ToolOutput, text_output
from runtime.simulation.scheduler import Scheduler

SMALL_WINDOW = (64, 2)
"""Bytes and messages: pumps of the simulation meet the end of their window all the time."""


class CountedWindow(Window):
    """A window that can be looked at: a pump of the simulation must not wait in `admit`."""

    def has_room(self, size: int) -> bool:
        return self._closed or self._fits(size)

    @property
    def unsettled(self) -> int:
        return self._messages

    @property
    def is_closed(self) -> bool:
        return self._closed


class Pump:
    """Runs an iterator a step at a time. `None` from it means that it waits for something."""

    slow = False

    def __init__(self) -> None:
        self.is_over = False
        self._work = self._run()

    def step(self) -> bool:
        try:
            return next(self._work)
        except StopIteration:
            self.is_over = True
            return True

    def _run(self) -> Iterator[bool]:
        """Yields whether it moved."""
        raise NotImplementedError


class Once(Pump):
    """Does one thing, some time."""

    def __init__(self, work: Callable[[], None]) -> None:
        super().__init__()
        self._once = work

    def _run(self) -> Iterator[bool]:
        self._once()
        yield True


# ---- commands of the client --------------------------------------------------------------------------------------


class SimulatedProcess(Pump):
    """Puts out chunks that nobody else puts out, then exits, or lives until it is killed. `chunks` holds what it has
    put out so far."""

    def __init__(self, plan: ShellPlan, shell: Address[ShellMail], home: Any, rng: random.Random) -> None:
        super().__init__()
        self.plan = plan
        self.home = home
        self.chunks: list[tuple[str, str]] = []
        self.exited = False
        self.killed = False
        self.swept = False
        self.window = CountedWindow(*SMALL_WINDOW)
        self._shell = shell
        self.failed = rng.random() < 0.05
        self._hangs = rng.random() < 0.25
        self._lingers = rng.random() < 0.1
        self._planned = [rng.choice(("stdout", "stdout", "stderr")) for _ in range(rng.choice((0, 1, 2, 4)))]

    def _run(self) -> Iterator[bool]:
        if self.failed:
            self.exited = True
            self._shell.tell(ShellExited(None, "simulated: no such shell"))
            return
        for channel in self._planned:
            while not self.killed and not self.window.has_room(16):
                yield False
            if self.killed:
                break
            self._put_out(channel)
            yield True
        while self._hangs and not self.killed:
            yield False
        self.exited = True
        self._shell.tell(ShellExited(None if self.killed else len(self._planned)))

    def _put_out(self, channel: Any) -> None:
        text = f"{self.plan.command}:{len(self.chunks)};"
        ack = self.window.admit(len(text))
        if ack is not None:
            self.chunks.append((channel, text))
            self._shell.tell(ShellOutput(channel, text.encode(), ack))

    def kill(self) -> None:
        self.killed = True

    def close(self) -> bool:
        return self._lingers and not self.swept

    def kill_group_leftovers(self) -> None:
        self.swept = True


# ---- tools -------------------------------------------------------------------------------------------------------


class SimulatedTool(Pump):
    """Reports some progress and returns, or works until it is cancelled."""

    def __init__(self, request: ToolRequest, call: Address[ToolCallMail], rng: random.Random) -> None:
        super().__init__()
        self._request = request
        self._call = call
        self._cancelled = False
        self._hangs = rng.random() < 0.15
        self._updates = rng.choice((0, 0, 1, 2))
        self._ends = rng.random() < 0.1

    def _run(self) -> Iterator[bool]:
        for number in range(self._updates):
            self._call.tell(ToolUpdated(text_output(f"progress {number}")))
            yield True
        while self._hangs and not self._cancelled:
            yield False
        output = text_output(f"{self._request.tool.name} is done")
        self._call.tell(ToolReturned(ToolOutput(output.content, terminate=self._ends)))

    def cancel(self) -> None:
        self._cancelled = True


def _never_run(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    raise AssertionError("the simulation runs tools itself")


def _path_of(arguments: dict[str, Any], cwd: str) -> str | None:
    return str(arguments.get("path"))


def _no_path(arguments: dict[str, Any], cwd: str) -> str | None:
    return None


def simulated_tools() -> dict[str, Tool]:
    """One of each kind: parallel, one that changes a file, one that a cancel kills, and one that runs alone."""
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    free: dict[str, Any] = {"type": "object", "properties": {}}
    return {
        "read": Tool("read", "", "", free, _never_run, _no_path),
        "write": Tool("write", "", "", schema, _never_run, _path_of),
        "bash": Tool("bash", "", "", free, _never_run, _no_path),
        "alone": Tool("alone", "", "", free, _never_run, _no_path, parallel=False),
    }


# ---- model servers -----------------------------------------------------------------------------------------------

_CALLS = (
    Call("read"),
    Call("bash"),
    Call("write", {"path": "/simulated/a"}),
    Call("write", {"path": "/simulated/b"}),
    Call("write"),
    Call("alone"),
    Call("unknown"),
)


class SimulatedStream(Pump):
    """The bytes of one reply, cut anywhere; some servers fail, stop in the middle, or say nothing until they are
    cut off."""

    def __init__(self, number: int, call: Address[ModelCallMail], rng: random.Random) -> None:
        super().__init__()
        self.window = CountedWindow(*SMALL_WINDOW)
        self.released = False
        self._call = call
        self._cut = False
        record = _reply(rng)
        self._status, steps = plan_reply((record,), Cue("", 0, 1), number)
        body = b"".join(step.data for step in steps)
        self._stalls = rng.random() < 0.15
        self._breaks = rng.random() < 0.07
        if self._breaks or self._stalls:
            body = body[: rng.randrange(len(body))]
        self._chunks = _cut(body, rng)
        self._answered = bool(self._chunks) or not self._stalls

    def _run(self) -> Iterator[bool]:
        if self._answered:
            self._call.tell(StreamHead(self._status))
            yield True
        for chunk in self._chunks:
            while not self._is_left and not self.window.has_room(len(chunk)):
                yield False
            if self._is_left:
                break
            ack = self.window.admit(len(chunk))
            if ack is not None:
                self._call.tell(StreamBytes(chunk, ack))
            yield True
        while self._stalls and not self._is_left:
            yield False
        error = "Request was aborted" if self._cut else "the connection broke" if self._breaks else None
        self._call.tell(StreamEnded(error, unanswered=error is not None and not self._answered))

    @property
    def _is_left(self) -> bool:
        return self._cut or self.released

    def cut(self) -> None:
        self._cut = True
        self.window.close()

    def release(self) -> None:
        self.released = True


def _reply(rng: random.Random) -> Record:
    kind = rng.random()
    if kind < 0.45:
        return Record("two words", "hm" if kind < 0.1 else "")
    if kind < 0.85:
        count = rng.choice((1, 1, 2, 3))
        stop: Literal["stop", "length"] = "length" if kind > 0.82 else "stop"
        return Record("" if kind < 0.6 else "well", tools=tuple(rng.choice(_CALLS) for _ in range(count)), stop=stop)
    if kind < 0.9:
        return Record("too lo", stop="length")
    return Record("so", error="overloaded", status=200 if kind < 0.95 else 500)


def _cut(data: bytes, rng: random.Random) -> list[bytes]:
    places = sorted({0, len(data), *(rng.randrange(len(data) + 1) for _ in range(rng.choice((0, 1, 3))))})
    return [data[start:end] for start, end in pairwise(places)]


# ---- time and the client -----------------------------------------------------------------------------------------


class Alarm:
    """Virtual time stands still while anything can move. `ring` lets the earliest deadline come."""

    def __init__(self) -> None:
        self.now = 0.0
        self.rung = 0
        self._at: float | None = None
        self._to: Address[Woke] | None = None

    def set(self, at: float, to: Address[Woke]) -> None:
        self._at, self._to = at, to

    def ring(self) -> bool:
        if self._at is None or self._to is None:
            return False
        self.now, self._at = max(self.now, self._at), None
        self.rung += 1
        self._to.tell(Woke())
        return True


class Client(Pump):
    """Writes lines in pieces of any size, then closes stdin or sends a signal. `written` lines are whole; `heard` were
    written before the signal. It waits where the program's own reader would: at the window."""

    def __init__(
        self,
        lines: Iterator[bytes],
        intake: Address[IntakeMail],
        root: Address[RootMail],
        signal_after: int | None,
        rng: random.Random,
    ) -> None:
        super().__init__()
        self.window = CountedWindow(1 << 20, 2)
        self.sent: list[bytes] = []
        self.heard: int | None = None
        self.written = 0
        self._lines = lines
        self._intake = intake
        self._root = root
        self._signal_after = signal_after
        self._rng = rng

    def _run(self) -> Iterator[bool]:
        pending = b""
        for line in self._lines:
            self.sent.append(line)
            pending += line + b"\n"
            if self._rng.random() < 0.4:
                continue
            while not self.window.has_room(1):
                yield False
            cut = self._rng.choice((len(pending), len(pending), self._rng.randrange(len(pending))))
            self._write(pending[:cut])
            pending = pending[cut:]
            self._maybe_signal(len(self.sent) - pending.count(b"\n"))
            for _ in range(self._rng.choice((0, 0, 3, 30))):
                yield True
        if pending:
            ends_by_eof = self._signal_after is None and not pending.endswith(b"\n\n") and pending != b"\n"
            self._write(pending[:-1] if ends_by_eof else pending)
            yield True
        if self._signal_after is None:
            self._intake.tell(StdinEnded())
        elif self.heard is None:
            self._maybe_signal(len(self.sent) + self._signal_after)

    def _write(self, data: bytes) -> None:
        if data:
            self.written += data.count(b"\n")
            self._intake.tell(StdinBytes(data, self._ack(len(data))))

    def _ack(self, size: int) -> Ack | None:
        return self.window.admit(size) if self.window.has_room(size) else None

    def _maybe_signal(self, written: int) -> None:
        if self._signal_after is not None and self.heard is None and written >= self._signal_after:
            self.heard = min(written, len(self.sent))
            self._root.tell(SignalReceived(15))


class World:
    """Makes the pumps and keeps them for the invariants."""

    def __init__(self, scheduler: Scheduler, rng: random.Random) -> None:
        self._scheduler = scheduler
        self._rng = rng
        self.processes: list[SimulatedProcess] = []
        self.streams: list[SimulatedStream] = []

    def start_process(self, plan: ShellPlan, shell: Address[ShellMail], home: Any) -> SimulatedProcess:
        """`home` is the journal of the session that the request began in."""
        process = SimulatedProcess(plan, shell, home, self._rng)
        self.processes.append(process)
        self._scheduler.add_pump(process, "process")
        return process

    def start_tool(self, request: ToolRequest, call: Address[ToolCallMail]) -> SimulatedTool:
        tool = SimulatedTool(request, call, self._rng)
        self._scheduler.add_pump(tool, "tool")
        return tool

    def open_stream(self, request: ModelRequest, call: Address[ModelCallMail]) -> SimulatedStream:
        stream = SimulatedStream(len(self.streams), call, self._rng)
        self.streams.append(stream)
        self._scheduler.add_pump(stream, "stream")
        return stream
