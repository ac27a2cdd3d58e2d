"""The real actors in the simulated world, wired: what `runtime.wiring` does for threads, for the scheduler."""

from __future__ import annotations

from functools import partial
from typing import Any

from msgspec.structs import replace

from actors.base import Address, Child, Down
from actors.clock import Clock
from actors.mail import (
    AgentPlan,
    CatalogMail,
    ClockMail,
    Connection,
    DoorMail,
    ModelCallMail,
    ModelRequest,
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
    ToolRequest,
    VisitorMail,
    WriterMail,
)
from actors.model.dialects import http_error_text, reader_for
from actors.session.actor import Session
from actors.session.desk.door_side import DOOR
from actors.session.file import OpenedSession
from actors.session.services import Modes, Services, Shared, inheriting
from actors.session.surroundings import Surroundings
from actors.shell.spill import Spill
from actors.task.child_history import ChildHistories
from actors.task.effects import Room
from actors.task.shell import ShellTask
from actors.task.subagent.child_road import ChildRoad
from actors.task.subagent.services import CHILD_KEY, child_services
from actors.tool.desk import MutationDesk
from actors.tool.schema import check_arguments
from protocol.tasks import TaskKind, TaskRef
from runtime.simulation.agents import AgentRun, SimulatedChildFiles, SimulatedPlanner, load_agents
from runtime.simulation.catalogue import CatalogReader, simulated_catalog
from runtime.simulation.client import Client
from runtime.simulation.commands import SimulatedCommand
from runtime.simulation.course import Course
from runtime.simulation.disk import Disk, SimulatedOpener
from runtime.simulation.model_server import Role, SimulatedStream
from runtime.simulation.parts import Parts
from runtime.simulation.ports import (
    CompactionFiles,
    SettingsFile,
    SlowPorts,
    simulated_surroundings,
)
from runtime.simulation.premises import Premises
from runtime.simulation.scheduler import SimulatedAddress
from runtime.simulation.visitors import SimulatedConnection, SimulatedWayIn
from runtime.simulation.world import SimulatedTool, simulated_tools

MODES: Modes = {"steering": "one-at-a-time", "followUp": "one-at-a-time"}


class Nobody:
    """Root's owner: there is none."""

    def tell(self, mail: Down) -> None:
        """Root's death is in the scheduler's list."""


class Wired(Premises):
    """One house, ready to run. `path`: of the session that is the first; without it that is a new one."""

    def __init__(
        self, course: Course, parts: Parts | None = None, disk: Disk | None = None, path: str | None = None
    ) -> None:
        super().__init__(course, disk)
        self.parts = parts or Parts()
        self._planner = SimulatedPlanner(self.scheduler, self.chances)
        self._opener = SimulatedOpener(self.disk, self.scheduler, self.chances)
        self._ports = SlowPorts(self.scheduler, self.chances)
        self.way_in = SimulatedWayIn(
            course.onlookers, self.chances, self.scheduler.add_pump, lambda: self.client.referents()
        )
        self._start(self.disk.new() if path is None else self.disk.opened(path))

    def _note_crash(self) -> None:
        self.heard_before_crash = self.client.written
        self.crashed_while_ending = self.root.phase != "running"

    # -- the permanent actors

    def _start(self, first: OpenedSession) -> None:
        host = self.scheduler
        root: Child[RootMail] = host.start(self.root, "root", Nobody())
        writer_actor = self.parts.writer(self.sink.write_all, root)
        writer: Child[WriterMail] = host.start(writer_actor, "writer", root, "writer")
        self._writer: Any = writer
        clock = host.start(Clock(lambda: self.alarm.now, self.alarm.set), "clock", root, "clock")
        save = self.parts.preferences(SettingsFile(self.chances).save, self.stderr.append)
        preferences: Child[PreferencesMail] = host.start(save, "preferences", root, "preferences")
        self._view = simulated_catalog(self.dice)
        catalog_actor = self.parts.catalog(self._view, CatalogReader(self._view.keyed, host, self.chances))
        catalog: Child[CatalogMail] = host.start(catalog_actor, "catalog", root, "catalog")
        mutations: Child[MutationDeskMail] = host.start(MutationDesk(), "mutations", root, "mutation desk")
        shell_desk = self.parts.shell_desk(
            writer, root, lambda run, desk: self._start_shell(writer, run, desk), self._ports.kill_remains
        )
        shells: Child[ShellDeskMail] = host.start(shell_desk, "shells", root, "shell desk")
        shared = Shared(writer, shells, preferences, clock, catalog, mutations)
        desk_actor = self.parts.desk(
            first,
            MODES,
            writer,
            root,
            lambda key, opened, modes, inherited, desk: self._start_session(
                inheriting(self._services(shared, desk), inherited), key, opened, modes
            ),
            self._opener.open,
            self._now,
            self.stderr.append,
            partial(self._start_door, clock) if self.course.onlookers else None,
        )
        desk: Child[SessionDeskMail] = host.start(desk_actor, "sessions", root, "session desk")
        intake = host.start(self.parts.intake(writer, desk, root, self._ports.fit_images), "intake", root, "intake")
        writer_actor.connect(intake)
        shell_desk.connect(intake)
        self.root.connect(intake, desk, shells, writer, clock)
        desk_actor.connect(intake, shells)
        catalog_actor.connect(desk)
        desk.tell(OpenFirst())
        self.client = Client(self.course, self.disk, intake, root, host.add_pump, self._task_ids, self._question)
        host.add_pump(self.client, "client")
        if self.fault is not None:
            self.fault.on_strike = self._note_crash

    # -- what sessions and desks start

    def _start_door(self, clock: Address[ClockMail], desk: Address[SessionDeskMail]) -> Child[DoorMail]:
        door = self.parts.door(desk, self.way_in, partial(self._start_visitor, clock), self.stderr.append)
        return self.scheduler.start(door, "door", desk, DOOR)

    def _start_visitor(
        self, clock: Address[ClockMail], number: int, connection: Connection, door: Address[DoorMail]
    ) -> Child[VisitorMail]:
        assert isinstance(connection, SimulatedConnection)
        visitor = self.parts.visitor(number, connection, door, clock, 1, self.way_in.most_unread)
        connection.number, connection.visitor = number, visitor
        return self.scheduler.start(visitor, f"visitor-{number}", door, number)

    def _services(self, shared: Shared, desk: Address[SessionDeskMail]) -> Services:
        compaction_files = CompactionFiles(self.chances)
        return Services(
            writer=shared.writer,
            shells=shared.shells,
            desk=desk,
            preferences=shared.preferences,
            clock=shared.clock,
            catalog_owner=shared.catalog,
            start_queue=self._start_queue,
            start_model_call=partial(self._start_model_call, shared.clock, self._open_stream),
            start_task_desk=partial(self._start_task_desk, shared),
            start_tool_call=partial(self._start_tool_call, shared.mutations, self.world.start_tool),
            now=self._now,
            uuid4=self._id,
            catalog=self._view,
            tools=simulated_tools(),
            check_arguments=check_arguments,
            surroundings=simulated_surroundings(self.chances.dice("surroundings")),
            load_surroundings=self._ports.load_surroundings,
            export=self._ports.export,
            environment=self._environment,
            complain=self.stderr.append,
            reread=lambda ticket, opened, session: self._ports.reread(
                ticket, partial(self.disk.reread, opened), session
            ),
            work=self._ports.work,
            compaction_files=lambda: compaction_files,
            make_answer=self._ports.make_answer,
            long=self.long,
            pi_compat=self.pi_compat,
        )

    def _start_session(self, services: Services, key: int, opened: OpenedSession, modes: Modes) -> Child[SessionMail]:
        session = self.parts.session(key, opened, services, modes)
        return self.scheduler.start(session, f"session-{key}", services.desk, key)

    def _start_queue(self, session: Address[SessionMail], modes: Modes) -> Child[QueueMail]:
        return self.scheduler.start(self.parts.queue(session, modes), "queue", session, "queue")

    def _open_stream(self, request: ModelRequest, call: Address[ModelCallMail]) -> SimulatedStream:
        role: Role = "delegating" if self.course.delegates else "plain"
        return self.world.open_stream(request, call, role, task_of=self._task_of)

    def _start_model_call(
        self, clock: Address[ClockMail], open_stream: Any, request: ModelRequest, session: Address[SessionMail]
    ) -> Child[ModelCallMail]:
        call = self.parts.model_call(
            request,
            session,
            open_stream,
            lambda request: reader_for(request.model, self._now()),
            http_error_text,
            clock,
            self._waits,
        )
        return self.scheduler.start(call, f"model-call-{request.call}", session, request.call)

    def _start_tool_call(
        self,
        mutations: Address[MutationDeskMail],
        start_tool: Any,
        request: ToolRequest,
        session: Address[SessionMail],
        supervisor: Address[SubagentMail] | None = None,
    ) -> Child[ToolCallMail]:
        start = self._planner.start if request.parent is not None else start_tool
        call = self.parts.tool_call(request, session, mutations, start, supervisor)
        return self.scheduler.start(call, f"tool-call-{request.call}", session, request.call)

    def _start_shell(self, writer: Address[WriterMail], run: RunBash, desk: Address[ShellDeskMail]) -> Child[ShellMail]:
        home: Any = run.home
        assert isinstance(home, SimulatedAddress) and isinstance(home.actor, Session)
        journal = home.actor.history.journal

        def start_process(plan: Any, shell: Address[ShellMail]) -> Any:
            return self.world.start_process(plan, shell, journal)

        shell = self.parts.shell(run.ticket, run.plan, run.home, desk, writer, start_process, _no_spill, self._now)
        return self.scheduler.start(shell, f"shell-{run.ticket.serial}", desk, run.ticket.serial)

    # -- tasks

    def _start_task_desk(
        self, shared: Shared, scope: str, key: str, session: Address[SessionMail]
    ) -> Child[TaskDeskMail]:
        start_shell, start_agent = partial(self._start_shell_task, shared.clock), partial(self._start_subagent, shared)
        room: dict[TaskKind, Room] = {"agent": Room(running=self.most_agents)}
        read = ChildHistories(self._pump, lambda path: self.disk.read(path)[1]).read
        desk = self.parts.task_desk(
            scope,
            self._budgets,
            session,
            shared.clock,
            start_shell,
            start_agent,
            self._seconds,
            room,
            read_history=read,
        )
        return self.scheduler.start(desk, key, session, key)

    def _start_shell_task(
        self,
        clock: Address[ClockMail],
        ref: TaskRef,
        plan: ShellTaskPlan,
        desk: Address[TaskDeskMail],
        observer: Address[ToolCallMail],
    ) -> Child[ShellTaskMail]:
        task = ShellTask(ref, plan, desk, observer, clock, self._start_command, _no_log, self._seconds)
        return self.scheduler.start(task, ref.task_id, desk, ref.task_id)

    def _start_command(self, plan: ShellTaskPlan, task: Address[ShellTaskMail]) -> SimulatedCommand:
        command = SimulatedCommand(plan, task, self.chances.dice(f"command {len(self.commands)}"))
        self.commands.append(command)
        self.scheduler.add_pump(command, "command")
        return command

    def _start_subagent(
        self, shared: Shared, ref: TaskRef, plan: AgentPlan, desk: Address[TaskDeskMail]
    ) -> Child[SubagentMail]:
        whose = f"agent {len(self.agents)} "
        self.agents.append(AgentRun(ref.task_id, plan, len(self.scheduler.trace)))
        files = SimulatedChildFiles(self.disk, self.scheduler, self.chances.dice(f"{whose}files"))
        start_child = partial(self._start_child, shared, whose)
        subagent = self.parts.subagent(ref, plan, desk, shared.clock, files, start_child, self._seconds)
        return self.scheduler.start(subagent, f"agent-{ref.task_id}", desk, ref.task_id)

    def _start_child(
        self,
        shared: Shared,
        whose: str,
        plan: AgentPlan,
        opened: OpenedSession,
        surroundings: Surroundings,
        road: ChildRoad,
        subagent: Address[SubagentMail],
    ) -> Child[SessionMail]:
        def open_stream(request: ModelRequest, call: Address[ModelCallMail]) -> SimulatedStream:
            return self.world.open_stream(request, call, "child", whose)

        def start_tool(request: ToolRequest, call: Address[ToolCallMail]) -> SimulatedTool:
            return self.world.start_tool(request, call, whose, road)

        self.stderr.extend(surroundings.warnings)
        services = replace(
            self._services(shared, road), start_model_call=partial(self._start_model_call, shared.clock, open_stream)
        )
        start_tool_call = partial(self._start_tool_call, shared.mutations, start_tool, supervisor=subagent)
        given = child_services(services, plan, surroundings, road, start_tool_call, load_agents)
        session = self.parts.session(CHILD_KEY, opened, given, MODES)
        return self.scheduler.start(session, f"subagent-session-{len(self.disk.children)}", subagent, CHILD_KEY)


def _no_log() -> tuple[int, str]:
    raise OSError("the simulation has no files")


def _no_spill(session_id: str) -> Spill:
    """Never written to: the simulated output is short."""
    return Spill("/simulated", session_id, 0, lambda: "0" * 16)
