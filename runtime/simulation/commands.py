"""The commands of tasks in the simulated world: what stands where a task's process and its pump are."""

from __future__ import annotations

from collections.abc import Iterator

from actors.base import Address
from actors.mail import (
    CommandBegun,
    CommandExited,
    CommandOutput,
    CommandSwept,
    InputTaken,
    InputTyping,
    ShellTaskMail,
    ShellTaskPlan,
)
from actors.task.command_road import CommandRoad
from runtime.simulation.chances import Dice
from runtime.simulation.pumps import SMALL_WINDOW, CountedWindow, Pump


class SimulatedCommand(Pump):
    """It fails to start, or puts out something and exits, or lives until it is asked to end, or until it is killed.
    Some leave processes behind that take a while to end."""

    def __init__(self, plan: ShellTaskPlan, task: Address[ShellTaskMail], dice: Dice) -> None:
        super().__init__()
        self.plan = plan
        self.is_reaped = False
        self.window = CountedWindow(*SMALL_WINDOW)
        self._task = task
        self._asked = self._killed = False
        self._fails = dice.strikes("task: does not start", 0.05)
        self._lives = dice.strikes("task: runs until it is asked to end", 0.4)
        self._resists = dice.strikes("task: runs until it is killed", 0.15)
        self._leaves = dice.strikes("task: leaves a process that is slow to end", 0.1)
        self._outputs = dice.choice((0, 0, 1, 3))
        self._code = dice.choice((0, 0, 1))

    @property
    def task_id(self) -> str:
        assert isinstance(self._task, CommandRoad)
        return self._task.task_id

    def _run(self) -> Iterator[bool]:
        if self._fails:
            self._task.tell(CommandExited(None, error="simulated: no such shell"))
        elif self._killed or self._asked:
            self._task.tell(CommandExited(None, 9))
        else:
            self._task.tell(CommandBegun())
            yield from self._live()
        yield True
        if self._leaves:
            self._task.tell(CommandSwept(("process group 7",)))
            yield True
        self.is_reaped = True
        self._task.tell(CommandSwept())

    def _live(self) -> Iterator[bool]:
        yield True
        for number in range(self._outputs):
            while not self.window.has_room(8) and not self._has_to_go:
                yield False
            ack = self.window.admit(8) if self.window.has_room(8) else None
            if ack is not None:
                self._task.tell(CommandOutput("stdout", b"output %d" % number, ack))
            yield True
        while not (self._has_to_go or self._asked):
            yield False
        yield from (True for _ in range(5) if not self._has_to_go)  # the time until it is killed
        stopped = self._killed or self._asked
        self._task.tell(CommandExited(None, 9) if stopped else CommandExited(self._code))

    @property
    def _has_to_go(self) -> bool:
        return self._killed or (self._asked and not self._resists) or not (self._lives or self._resists)

    def stop(self) -> None:
        self._asked = True

    def kill(self) -> None:
        self._killed = True

    def abandon(self) -> None:
        self._killed = True
        self.window.close()

    def type(self, data: bytes) -> None:
        if len(data) > 1:
            self._task.tell(InputTyping(len(data) // 2))
        self._task.tell(InputTaken(len(data)))

    def resize(self, columns: int, rows: int) -> bool:
        return True
