"""What a simulated house stands on before there is an actor in it: scheduler, disk, world, clock, stdout, ids."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import count
from typing import Any

from actors.session.file import Stamps
from actors.session.services import LONG
from actors.task.effects import Budgets
from protocol.model import Model, ThinkingLevel
from runtime.root import Root
from runtime.simulation.agents import AgentRun
from runtime.simulation.chances import Chances
from runtime.simulation.commands import SimulatedCommand
from runtime.simulation.course import Course, Refusals
from runtime.simulation.disk import Disk
from runtime.simulation.order import GivenOrder, Order, SeededOrder
from runtime.simulation.ports import Sink
from runtime.simulation.pumps import Once, Pump
from runtime.simulation.scheduler import Fault, Scheduler
from runtime.simulation.task_book import TaskBook
from runtime.simulation.world import Alarm, World

EPOCH_MS = 1_700_000_000_000


class Premises:
    """`disk`: not an empty one, but what an earlier house left."""

    _writer: Any

    def __init__(self, course: Course, disk: Disk | None = None) -> None:
        self.course = course
        self.stderr: list[str] = []
        self.chances = Chances(course.seed, course.excluded)
        self.dice = self.chances.dice("house")
        self.fault = None if course.crash is None else Fault(course.crash.at, course.crash.moment, frozenset({"root"}))
        self.scheduler = Scheduler(_order_of(course), course.slow, self.fault)
        self.pi_compat = self.dice.strikes("client: of pi", 0.2)
        self._ids = count(1 if disk is None else 1 + disk.ids)
        self._waits = random.Random(course.seed).random
        stamps = Stamps(self._now, self._id, self._id)
        refusals = course.refusals or Refusals(0, 1)
        in_memory = self.dice.strikes("session: in memory alone", 0.1)
        self.disk = Disk(stamps, in_memory and disk is None, refusals.at, refusals.count)
        if disk is not None:
            self.disk.files = disk.files
        self.world = World(self.scheduler, self.chances)
        self.commands: list[SimulatedCommand] = []
        self.agents: list[AgentRun] = []
        self.task_book = TaskBook(self.scheduler.trace)
        self._budgets = _budgets(self.chances) if course.delegates else Budgets()
        self.long = self.chances.dice("answers").choice((0, 4, LONG))
        self.most_agents = self.chances.dice("agents").choice((4, 4, 4, 1))
        self.root = Root(self.stderr.append, lambda: self.sink.written, self.world.sweep)
        early = self.dice.strikes("time: passes while others are under way", 0.5)
        self.alarm = Alarm(self._pass_time if early else None, lambda: self.root.phase == "running")
        reader = course.reader
        self.sink = Sink(
            lambda: len(self.disk.log), self._is_over, self._hold, reader.closes, reader.stops, reader.pauses
        )
        self.heard_before_crash: int | None = None
        self.crashed_while_ending = False

    def _is_over(self) -> bool:
        return self.root.phase == "over"

    # -- ports

    def _hold(self, held: bool) -> None:
        self._writer.is_held = held

    def _pass_time(self, pump: Pump) -> None:
        self.scheduler.add_pump(pump, "alarm")

    def _now(self) -> int:
        return EPOCH_MS + self.scheduler.steps

    def _pump(self, name: str, work: Callable[[], None]) -> None:
        self.scheduler.add_pump(Once(work), name)

    def _seconds(self) -> float:
        return self.scheduler.steps / 1000

    def _id(self) -> str:
        self.disk.ids = next(self._ids)
        return f"{self.disk.ids * 0x9E3779B97F4A7C15F39CC0605CEDC835 % (1 << 128):032x}"

    def _environment(
        self, session_id: str, session_file: str | None, model: Model | None, level: ThinkingLevel
    ) -> dict[str, str]:
        return {}

    def _task_ids(self) -> list[str]:
        """Last those that run, on a terminal if there is one: of them a client has most to ask."""
        commands = [(command.task_id, command.is_reaped, command.plan.pty) for command in self.commands]
        agents = [(task_id, is_over, False) for task_id, is_over in self.task_book.agents()]
        return [task_id for task_id, _, _ in sorted(agents + commands, key=lambda one: (not one[1], one[2]))]

    def _question(self, number: int) -> str:
        return self._task_of("question", number)

    def _task_of(self, kind: str, number: int) -> str:
        """A task, or a question, that a model or a client names."""
        agents = [task_id for task_id, _ in self.task_book.agents()]
        commands = [command.task_id for command in self.commands]
        named = {"agent": agents, "command": commands, "question": self.task_book.questions}
        known = named.get(kind, agents + commands)
        return known[-1 - number % len(known)] if known else "task-none"


def _budgets(chances: Chances) -> Budgets:
    """Those of the settings."""
    dice = chances.dice("budgets")
    until_settled = dice.strikes("settings: waits until tasks have settled", 0.15)
    return Budgets(dice.choice((10_000, 10_000, 1)), dice.choice((30_000, 30_000, 1)), until_settled)


def _order_of(course: Course) -> Order:
    if course.choices is not None:
        return GivenOrder(course.choices)
    return SeededOrder(random.Random(f"{course.seed} order {course.order or 0}"), course.preempting)
