"""The real actors in the simulated world: what `runtime.wiring` does for threads, for the scheduler.

One `House` plays one seed, and keeps what the invariants look at: the bytes on stdout, the lines on stderr, the mail.
"""

from __future__ import annotations

import random
from functools import partial
from itertools import count
from typing import Any

from actors.base import Address, Child, Down
from actors.catalog import Catalog
from actors.clock import Clock
from actors.intake import Intake
from actors.mail import (
    AgentPlan,
    CatalogMail,
    ClockMail,
    MutationDeskMail,
    OpenFirst,
    PreferencesMail,
    QueueMail,
    RootMail,
    RunBash,
    SessionDeskMail,
    SessionMail,
    ShellDeskMail,
    ShellMail,
    ShellTaskMail,
    ShellTaskPlan,
    SubagentMail,
    TaskDeskMail,
    ToolCallMail,
    WriterMail,
)
from actors.model.actor import ModelCall
from actors.model.dialects import http_error_text, reader_for
from actors.preferences import Preferences
from actors.session.actor import Session
from actors.session.desk import SessionDesk
from actors.session.file import OpenedSession, Stamps
from actors.session.queue import Queue
from actors.session.services import Modes, Services, inheriting
from actors.shell.actor import Shell
from actors.shell.desk import ShellDesk
from actors.shell.spill import Spill
from actors.task.desk import TaskDesk
from actors.task.effects import Budgets
from actors.task.shell import ShellTask
from actors.tool.actor import ToolCall
from actors.tool.desk import MutationDesk
from actors.tool.schema import check_arguments
from actors.writer import Writer
from protocol.model import Model, ThinkingLevel
from protocol.tasks import TaskRef
from runtime.root import Root
from runtime.simulation.catalogue import CatalogReader, SimulatedCatalog, simulated_catalog
from runtime.simulation.chances import Chances
from runtime.simulation.client import Client
from runtime.simulation.commands import SimulatedCommand
from runtime.simulation.course import Course, Refusals
from runtime.simulation.disk import Disk, SimulatedOpener
from runtime.simulation.order import GivenOrder, Order, SeededOrder
from runtime.simulation.ports import (
    CompactionFiles,
    SettingsFile,
    Sink,
    SlowPorts,
    simulated_surroundings,
)
from runtime.simulation.pumps import Pump
from runtime.simulation.scheduler import Fault, Scheduler, SimulatedAddress
from runtime.simulation.world import Alarm, World, simulated_tools

EPOCH_MS = 1_700_000_000_000


class Parts:
    """The classes of the actors; a test puts a broken one in."""

    session: type[Session] = Session
    queue: type[Queue] = Queue
    shell: type[Shell] = Shell
    writer: type[Writer] = Writer
    intake: type[Intake] = Intake
    desk: type[SessionDesk] = SessionDesk
    preferences: type[Preferences] = Preferences
    model_call: type[ModelCall] = ModelCall
    tool_call: type[ToolCall] = ToolCall
    shell_desk: type[ShellDesk] = ShellDesk
    catalog: type[Catalog] = Catalog


class Nobody:
    """Root's owner: there is none."""

    def tell(self, mail: Down) -> None:
        """Root's death is in the scheduler's list."""


class House:
    """One course from the first mail to the last."""

    def __init__(self, course: Course, parts: Parts | None = None) -> None:
        self.course = course
        self.parts = parts or Parts()
        self.stderr: list[str] = []
        self.chances = Chances(course.seed, course.excluded)
        self.dice = self.chances.dice("house")
        self.fault = None if course.crash is None else Fault(course.crash.at, course.crash.moment, frozenset({"root"}))
        self.scheduler = Scheduler(_order_of(course), course.slow, self.fault)
        self.pi_compat = self.dice.strikes("client: of pi", 0.2)
        self._ids = count(1)
        self._waits = random.Random(course.seed).random
        stamps = Stamps(self._now, self._id, self._id)
        refusals = course.refusals or Refusals(0, 1)
        in_memory = self.dice.strikes("session: in memory alone", 0.1)
        self.disk = Disk(stamps, in_memory, refusals.at, refusals.count)
        self.world = World(self.scheduler, self.chances)
        self.commands: list[SimulatedCommand] = []
        self.opener = SimulatedOpener(self.disk, self.scheduler, self.chances)
        self.ports = SlowPorts(self.scheduler, self.chances)
        self.root = Root(self.stderr.append, lambda: self.sink.written, self.world.sweep)
        early = self.dice.strikes("time: passes while others are under way", 0.5)
        self.alarm = Alarm(self._pass_time if early else None, lambda: self.root.phase == "running")
        reader = course.reader
        self.sink = Sink(
            lambda: len(self.disk.log), self._is_over, self._hold, reader.closes, reader.stops, reader.pauses
        )
        self.heard_before_crash: int | None = None
        self.crashed_while_ending = False
        self._start()

    def play(self) -> bool:
        """Whether Root came to its end. What is still under way then goes on to its end as well, unseen."""
        is_over = self._run_to_the_end()
        self.exit_code = self.root.exit_code
        self.gave_up = any(line.startswith("gave up after") for line in self.stderr)
        self.ended_at = len(self.scheduler.trace)
        self.locked = self.disk.locked
        if not self.is_cut_off:
            self.scheduler.run(lambda: False)
        return is_over

    def _run_to_the_end(self) -> bool:
        while not self.scheduler.run(self._is_over):
            if not (self.sink.read_on() or self.client.wake() or self.alarm.ring()):
                return False
        return True

    def _is_over(self) -> bool:
        return self.root.phase == "over"

    def _hold(self, held: bool) -> None:
        self._writer.is_held = held

    @property
    def is_cut_off(self) -> bool:
        """A second signal ends the program where it stands, and so does its deadline."""
        return self.client.signalled > 1 or self.gave_up

    @property
    def is_heard_out(self) -> bool:
        """Whether the client got to read all that the program had to say."""
        return not (self.sink.broken or self.sink.stopped or self.is_cut_off)

    # -- ports

    def _pass_time(self, pump: Pump) -> None:
        self.scheduler.add_pump(pump, "alarm")

    def _now(self) -> int:
        return EPOCH_MS + self.scheduler.steps

    def _id(self) -> str:
        return f"{next(self._ids) * 0x9E3779B97F4A7C15F39CC0605CEDC835 % (1 << 128):032x}"

    def _environment(
        self, session_id: str, session_file: str | None, model: Model | None, level: ThinkingLevel
    ) -> dict[str, str]:
        return {}

    # -- wiring

    def _start(self) -> None:
        host = self.scheduler
        root: Child[RootMail] = host.start(self.root, "root", Nobody())
        writer_actor = self.parts.writer(self.sink.write_all, root)
        writer: Child[WriterMail] = host.start(writer_actor, "writer", root, "writer")
        self._writer: Any = writer
        clock = host.start(Clock(lambda: self.alarm.now, self.alarm.set), "clock", root, "clock")
        save = self.parts.preferences(SettingsFile(self.chances).save, self.stderr.append)
        preferences: Child[PreferencesMail] = host.start(save, "preferences", root, "preferences")
        view = simulated_catalog(self.dice)
        catalog_actor = self.parts.catalog(view, CatalogReader(view.keyed, host, self.chances))
        catalog: Child[CatalogMail] = host.start(catalog_actor, "catalog", root, "catalog")
        mutations: Child[MutationDeskMail] = host.start(MutationDesk(), "mutations", root, "mutation desk")
        shell_desk = self.parts.shell_desk(writer, root, lambda run, desk: self._start_shell(writer, run, desk))
        shells: Child[ShellDeskMail] = host.start(shell_desk, "shells", root, "shell desk")
        first = self.disk.new()
        services = partial(self._services, writer, shells, preferences, clock, catalog, mutations, view)
        desk_actor = self.parts.desk(
            first,
            {"steering": "one-at-a-time", "followUp": "one-at-a-time"},
            writer,
            root,
            lambda key, opened, modes, inherited, desk: self._start_session(
                inheriting(services(desk), inherited),
                key,
                opened,
                modes,
            ),
            self.opener.open,
            self._now,
            self.stderr.append,
        )
        desk: Child[SessionDeskMail] = host.start(desk_actor, "sessions", root, "session desk")
        intake = host.start(self.parts.intake(writer, desk, root, self.ports.fit_images), "intake", root, "intake")
        writer_actor.connect(intake)
        shell_desk.connect(intake)
        self.root.connect(intake, desk, shells, writer, clock)
        desk_actor.connect(intake, shells)
        catalog_actor.connect(desk)
        desk.tell(OpenFirst())
        self.client = Client(self.course, self.disk, intake, root, host.add_pump, self._task_ids)
        host.add_pump(self.client, "client")
        if self.fault is not None:
            self.fault.on_strike = self._note_crash

    def _task_ids(self) -> list[str]:
        """Last those that run, on a terminal if there is one: of them a client has most to ask."""
        by_use = sorted(self.commands, key=lambda command: (not command.is_reaped, command.plan.pty))
        return [command.task_id for command in by_use]

    def _note_crash(self) -> None:
        self.heard_before_crash = self.client.written
        self.crashed_while_ending = self.root.phase != "running"

    def _services(
        self,
        writer: Address[WriterMail],
        shells: Address[ShellDeskMail],
        preferences: Address[PreferencesMail],
        clock: Address[ClockMail],
        catalog: Address[CatalogMail],
        mutations: Address[MutationDeskMail],
        view: SimulatedCatalog,
        desk: Address[SessionDeskMail],
    ) -> Services:
        host = self.scheduler
        return Services(
            writer=writer,
            shells=shells,
            desk=desk,
            preferences=preferences,
            clock=clock,
            catalog_owner=catalog,
            start_queue=self._start_queue,
            start_model_call=lambda request, session: host.start(
                self.parts.model_call(
                    request,
                    session,
                    self.world.open_stream,
                    lambda request: reader_for(request.model, self._now()),
                    http_error_text,
                    clock,
                    self._waits,
                ),
                f"model-call-{request.call}",
                session,
                request.call,
            ),
            start_task_desk=lambda scope, key, session: self._start_task_desk(clock, scope, key, session),
            start_tool_call=lambda request, session: host.start(
                self.parts.tool_call(request, session, mutations, self.world.start_tool),
                f"tool-call-{request.call}",
                session,
                request.call,
            ),
            now=self._now,
            uuid4=self._id,
            catalog=view,
            tools=simulated_tools(),
            check_arguments=check_arguments,
            surroundings=simulated_surroundings(self.chances.dice("surroundings")),
            load_surroundings=self.ports.load_surroundings,
            export=self.ports.export,
            environment=self._environment,
            complain=self.stderr.append,
            reopen=self.disk.reread,
            work=self.ports.work,
            compaction_files=CompactionFiles(self.chances),
            pi_compat=self.pi_compat,
        )

    def _start_session(self, services: Services, key: int, opened: OpenedSession, modes: Modes) -> Child[SessionMail]:
        session = self.parts.session(key, opened, services, modes)
        return self.scheduler.start(session, f"session-{key}", services.desk, key)

    def _start_queue(self, session: Address[SessionMail], modes: Modes) -> Child[QueueMail]:
        return self.scheduler.start(self.parts.queue(session, modes), "queue", session, "queue")

    def _start_task_desk(
        self, clock: Address[ClockMail], scope: str, key: str, session: Address[SessionMail]
    ) -> Child[TaskDeskMail]:
        began = self._now()

        def seconds() -> float:
            return (self._now() - began) / 1000

        def start_task(
            ref: TaskRef, plan: ShellTaskPlan, desk: Address[TaskDeskMail], observer: Address[ToolCallMail]
        ) -> Child[ShellTaskMail]:
            task = ShellTask(ref, plan, desk, observer, clock, self._start_command, _no_log, seconds)
            return self.scheduler.start(task, ref.task_id, desk, ref.task_id)

        desk = TaskDesk(scope, Budgets(), session, clock, start_task, _no_subagent, seconds)
        return self.scheduler.start(desk, key, session, key)

    def _start_command(self, plan: ShellTaskPlan, task: Address[ShellTaskMail]) -> SimulatedCommand:
        command = SimulatedCommand(plan, task, self.chances.dice(f"command {len(self.commands)}"))
        self.commands.append(command)
        self.scheduler.add_pump(command, "command")
        return command

    def _start_shell(self, writer: Address[WriterMail], run: RunBash, desk: Address[ShellDeskMail]) -> Child[ShellMail]:
        home: Any = run.home
        assert isinstance(home, SimulatedAddress) and isinstance(home.actor, Session)
        journal = home.actor.history.journal

        def start_process(plan: Any, shell: Address[ShellMail]) -> Any:
            return self.world.start_process(plan, shell, journal)

        shell = self.parts.shell(run.ticket, run.plan, run.home, desk, writer, start_process, _no_spill, self._now)
        return self.scheduler.start(shell, f"shell-{run.ticket.serial}", desk, run.ticket.serial)


def _no_subagent(ref: TaskRef, plan: AgentPlan, desk: Address[TaskDeskMail]) -> Child[SubagentMail]:
    raise RuntimeError("the simulated model starts no subagents")


def _no_log() -> tuple[int, str]:
    raise OSError("the simulation has no files")


def _no_spill(session_id: str) -> Spill:
    """Never written to: the simulated output is short."""
    return Spill("/simulated", session_id, 0, lambda: "0" * 16)


def _order_of(course: Course) -> Order:
    if course.choices is not None:
        return GivenOrder(course.choices)
    return SeededOrder(random.Random(f"{course.seed} order {course.order or 0}"), course.preempting)
