"""What stands where the outside world is: commands, tools, model servers and the alarm.

Each is a pump: a small object that tells its actor one thing a step, whenever the scheduler picks it, and that stops
where the real one would block: at a full window, or in a command that runs until it is killed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from actors.base import Address
from actors.mail import (
    LeftBehind,
    ModelCallMail,
    ModelRequest,
    ShellDeskMail,
    ShellExited,
    ShellMail,
    ShellOutput,
    ShellPlan,
    ToolCallMail,
    ToolRequest,
    ToolReturned,
    ToolUpdated,
    Woke,
)
from actors.session.turn import failure
from actors.tool.table import Tool, ToolContext, ToolOutput, builtin_tools, text_output
from runtime.simulation.chances import Chances, Dice
from runtime.simulation.model_server import Role, SimulatedStream
from runtime.simulation.pumps import SMALL_WINDOW, CountedWindow, Once, Pump
from runtime.simulation.scheduler import Scheduler

# ---- commands of the client --------------------------------------------------------------------------------------


class SimulatedProcess(Pump):
    """Puts out chunks that nobody else puts out, then exits, or lives until it is killed. `chunks` holds what it has
    put out so far; one that `lingers` leaves something in the background."""

    def __init__(self, plan: ShellPlan, shell: Address[ShellMail], home: Any, dice: Dice) -> None:
        super().__init__()
        self.plan = plan
        self.home = home
        self.chunks: list[tuple[str, str]] = []
        self.exited = False
        self.killed = False
        self.swept = False
        self.window = CountedWindow(*SMALL_WINDOW)
        self._shell = shell
        self.failed = dice.strikes("shell: does not start", 0.05)
        self._hangs = dice.strikes("shell: runs until it is killed", 0.25)
        self.lingers = dice.strikes("shell: leaves a process in the background", 0.1)
        count = dice.choice((0, 1, 2, 4)) if dice.strikes("shell: puts out", 0.8) else 0
        self._planned = [dice.choice(("stdout", "stdout", "stderr")) for _ in range(count)]

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
        return self.lingers and not self.swept

    def kill_group_leftovers(self) -> None:
        self.swept = True


class SimulatedRemains:
    """What a command of a subagent left in the background."""

    def __init__(self) -> None:
        self.swept = False

    def close(self) -> bool:
        return not self.swept

    def kill_group_leftovers(self) -> None:
        self.swept = True


# ---- tools -------------------------------------------------------------------------------------------------------


class SimulatedTool(Pump):
    """Reports some progress and returns, or works until it is cancelled. With `shells` it may leave something behind,
    and tells so."""

    def __init__(
        self,
        request: ToolRequest,
        call: Address[ToolCallMail],
        dice: Dice,
        shells: Address[ShellDeskMail] | None = None,
    ) -> None:
        super().__init__()
        self.name = request.tool.name
        self.remains: SimulatedRemains | None = None
        self._call = call
        self._shells = shells
        self.cancelled = False
        self._hangs = dice.strikes("tool: works until it is cancelled", 0.15)
        self._updates = dice.choice((1, 2)) if dice.strikes("tool: reports progress", 0.5) else 0
        self._ends = dice.strikes("tool: ends the run", 0.1)
        self._fails = dice.strikes("tool: fails", 0.15)
        runs_commands = shells is not None and self.name == "bash"
        self._leaves = runs_commands and dice.strikes("agent: a command leaves something behind", 0.2)

    def _run(self) -> Iterator[bool]:
        for number in range(self._updates):
            self._call.tell(ToolUpdated(text_output(f"progress {number}")))
            yield True
        while self._hangs and not self.cancelled:
            yield False
        if self._leaves and self._shells is not None:
            self.remains = SimulatedRemains()
            self._shells.tell(LeftBehind(self.remains))
        self._call.tell(ToolReturned(self._output()))

    def _output(self) -> ToolOutput:
        if self._fails:
            return failure(f"{self.name} failed")
        return ToolOutput(text_output(f"{self.name} is done").content, terminate=self._ends)

    def cancel(self) -> None:
        self.cancelled = True


_BUILTIN = builtin_tools()


def _never_run(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    raise AssertionError("the simulation runs tools itself")


def _path_of(arguments: dict[str, Any], cwd: str) -> str | None:
    return str(arguments.get("path"))


def _no_path(arguments: dict[str, Any], cwd: str) -> str | None:
    return None


def simulated_tools() -> dict[str, Tool]:
    """One of each kind: parallel, one that changes a file, those that tasks own, and one that runs alone."""
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    free: dict[str, Any] = {"type": "object", "properties": {}}
    return {
        "read": Tool("read", "", "", free, _never_run, _no_path),
        "write": Tool("write", "", "", schema, _never_run, _path_of),
        "bash": Tool("bash", "", "", free, _never_run, _no_path, owned=True),
        "kill": Tool("kill", "", "", free, _never_run, _no_path, owned=True),
        "subagent": _BUILTIN["subagent"],
        "intercom": _BUILTIN["intercom"],
        "alone": Tool("alone", "", "", free, _never_run, _no_path, parallel=False),
    }


# ---- time --------------------------------------------------------------------------------------------------------


MOST_EARLY = 60


class Alarm:
    """The earliest deadline comes when nothing else can move. With `early` it may also come sooner, as if the others
    had been slow; not while the program ends, whose deadline would then pass, and only so often: a clock that is set
    again each time it rings would leave the others no rest."""

    def __init__(self, early: Callable[[Pump], None] | None, is_running: Callable[[], bool]) -> None:
        self.now = 0.0
        self._early = early
        self._early_left = MOST_EARLY
        self._is_running = is_running
        self._at: float | None = None
        self._to: Address[Woke] | None = None

    def set(self, at: float, to: Address[Woke]) -> None:
        self._at, self._to = at, to
        if self._early is not None and self._early_left > 0:
            self._early_left -= 1
            self._early(Once(self._ring_early))

    def ring(self) -> bool:
        if self._at is None or self._to is None:
            return False
        self.now, self._at = max(self.now, self._at), None
        self._to.tell(Woke())
        return True

    def _ring_early(self) -> None:
        if self._is_running():
            self.ring()


class World:
    """Makes the pumps and keeps them for the invariants."""

    def __init__(self, scheduler: Scheduler, chances: Chances) -> None:
        self._scheduler = scheduler
        self._chances = chances
        self.processes: list[SimulatedProcess] = []
        self.streams: list[SimulatedStream] = []
        self.tools: list[SimulatedTool] = []
        self._counts: Counter[str] = Counter()

    def start_process(self, plan: ShellPlan, shell: Address[ShellMail], home: Any) -> SimulatedProcess:
        """`home` is the journal of the session that the request began in."""
        process = SimulatedProcess(plan, shell, home, self._chances.dice(f"process {plan.command}"))
        self.processes.append(process)
        self._scheduler.add_pump(process, "process")
        return process

    def start_tool(
        self,
        request: ToolRequest,
        call: Address[ToolCallMail],
        whose: str = "",
        shells: Address[ShellDeskMail] | None = None,
    ) -> SimulatedTool:
        """`whose`: of one subagent's, or of no subagent's."""
        tool = SimulatedTool(request, call, self._chances.dice(f"{whose}tool {self._count(whose + 'tool')}"), shells)
        self.tools.append(tool)
        self._scheduler.add_pump(tool, "tool")
        return tool

    def open_stream(
        self,
        request: ModelRequest,
        call: Address[ModelCallMail],
        role: Role = "plain",
        whose: str = "",
        task_of: Callable[[str, int], str] = lambda kind, number: "task-of-another",
    ) -> SimulatedStream:
        dice = self._chances.dice(f"{whose}stream {self._count(whose + 'stream')}")
        stream = SimulatedStream(len(self.streams), request, call, dice, role, task_of)
        self.streams.append(stream)
        self._scheduler.add_pump(stream, "stream")
        return stream

    def _count(self, things: str) -> int:
        """How many there were before."""
        self._counts[things] += 1
        return self._counts[things] - 1

    def sweep(self) -> None:
        """The program ends at once: every process below it is killed."""
        for process in self.processes:
            process.kill()
            process.kill_group_leftovers()
        for tool in self.tools:
            if tool.remains is not None:
                tool.remains.kill_group_leftovers()
