"""Starts the actors and hands each what it may reach: the only file that does.

The order is that of the flow back to the client: the Writer first, stdin last. Nobody looks anybody up; the arrows
are the constructors' parameters and the few `connect` calls that close circles before the first mail.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from actors.base import Address, Child, Host, StartPump
from actors.catalog import Catalog
from actors.catalog_view import Inherited
from actors.clock import Clock
from actors.intake import Intake
from actors.mail import (
    AgentPlan,
    CatalogMail,
    ClockMail,
    Connection,
    DoorMail,
    IntakeMail,
    ModelCallMail,
    ModelRequest,
    MutationDeskMail,
    OneShotMail,
    OpenFirst,
    PreferencesMail,
    PrinterMail,
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
from actors.preferences import Preferences
from actors.session.actor import Session
from actors.session.desk.actor import SessionDesk
from actors.session.desk.door_side import DOOR
from actors.session.file import OpenedSession
from actors.session.queue import Queue
from actors.session.services import Modes, Services, Shared, inheriting
from actors.shell.desk import ShellDesk
from actors.tool.desk import MutationDesk
from actors.writer import Writer
from runtime.alarm import Alarm
from runtime.catalog_files import PumpedFiles
from runtime.load_catalog import start_defaults
from runtime.ports import Ports, chance, check_arguments, reader
from runtime.root import Root
from runtime.settings import save_setting
from runtime.stamps import STAMPS, now_ms
from runtime.startup import Startup
from runtime.stdio import StdoutSink, leave_stdin, read_stdin
from runtime.surroundings import SurroundingsPump

if TYPE_CHECKING:
    from actors.inspector.door import WayIn
    from actors.session.surroundings import Surroundings
    from actors.task.launch import CommandLauncher
    from actors.task.subagent.child_road import ChildRoad
    from protocol.tasks import TaskKind, TaskRef
    from runtime.oneshot import OneShotPlan


class House:
    """All that the actors share: values and ports, no state of theirs. With `one_shot` nobody drives the program: the
    prompts are there, and OneShot and Printer stand where Intake and Writer do."""

    def __init__(
        self,
        startup: Startup,
        host: Host,
        env: Mapping[str, str],
        pump: StartPump,
        complain: Callable[[str], None],
        one_shot: OneShotPlan | None = None,
    ) -> None:
        self._startup = startup
        self._complain = complain
        self._one_shot = one_shot
        self._host = host
        self._pump = pump
        self._ports = Ports(startup, env, pump)
        self._ways_in: list[WayIn] = []

    def tidy(self) -> None:
        """Whichever way the program ends: nothing of it stays where others would find it."""
        for way_in in self._ways_in:
            way_in.close()

    def start(self, root: Child[RootMail], actor: Root, sink: StdoutSink) -> None:
        settings = self._startup.settings
        host = self._host
        writer_actor = Writer(sink.write_all, root, self._warm)
        stdout = host.start(writer_actor, "writer", root, "writer")
        clock: Child[ClockMail] = host.start(Clock(time.monotonic, Alarm(self._pump).set), "clock", root, "clock")
        writer: Address[WriterMail] = stdout
        if self._one_shot is not None:
            one_shot = self._start_one_shot(self._one_shot, root)
            writer = self._start_printer(self._one_shot, stdout, clock, one_shot, root)
        preferences: Child[PreferencesMail] = host.start(
            Preferences(partial(save_setting, self._startup.agent_dir), self._complain),
            "preferences",
            root,
            "preferences",
        )
        files = PumpedFiles(
            self._pump, self._startup.agent_dir, time.monotonic, scripted=self._startup.catalog.scripted
        )
        catalog_actor = Catalog(self._startup.catalog.catalog, files)
        catalog: Child[CatalogMail] = host.start(catalog_actor, "catalog", root, "catalog")
        mutations: Child[MutationDeskMail] = host.start(MutationDesk(), "mutations", root, "mutation desk")
        shell_desk = ShellDesk(writer, root, partial(self._start_shell, writer), self._ports.kill_remains)
        shells: Child[ShellDeskMail] = host.start(shell_desk, "shells", root, "shell desk")
        shared = Shared(writer, shells, preferences, clock, catalog, mutations)
        services = partial(self._services, shared)
        modes: Modes = {"steering": settings.steering_mode, "followUp": settings.follow_up_mode}
        desk_actor = SessionDesk(
            self._startup.session,
            modes,
            writer,
            root,
            partial(self._start_session, services),
            self._ports.open_session,
            now_ms,
            self._complain,
            partial(self._start_door, clock),
        )
        desk: Child[SessionDeskMail] = host.start(desk_actor, "sessions", root, "session desk")
        intake: Address[IntakeMail]
        if self._one_shot is not None:
            intake = one_shot
        else:
            fitter = self._ports.fit_images if settings.auto_resize_images else None
            intake = host.start(Intake(writer, desk, root, fitter), "intake", root, "intake")
            writer_actor.connect(intake)
        shell_desk.connect(intake)
        actor.connect(intake, desk, shells, writer, clock)
        desk_actor.connect(intake, shells)
        catalog_actor.connect(desk)
        desk.tell(OpenFirst())
        is_read = self._one_shot is None or self._one_shot.reads_stdin
        ends = root if self._one_shot is None else None
        self._pump("stdin", lambda: read_stdin(intake, ends) if is_read else leave_stdin(intake))

    def _start_one_shot(self, plan: OneShotPlan, root: Child[RootMail]) -> Child[OneShotMail]:
        from actors.oneshot import OneShot

        return self._host.start(OneShot(plan.prompts, root, self._complain), "one-shot", root, "intake")

    def _start_printer(
        self,
        plan: OneShotPlan,
        writer: Address[WriterMail],
        clock: Address[ClockMail],
        one_shot: Address[OneShotMail],
        root: Child[RootMail],
    ) -> Child[PrinterMail]:
        from actors.printer import Printer

        return self._host.start(Printer(plan.form, plan.last, writer, clock, one_shot), "printer", root, "printer")

    def _warm(self) -> None:
        """The request of a one-shot run is under way by then."""
        if self._one_shot is None:
            self._ports.warm()

    # -- what sessions and desks start

    def _services(self, shared: Shared, desk: Address[SessionDeskMail]) -> Services:
        settings = self._startup.settings
        return Services(
            writer=shared.writer,
            shells=shared.shells,
            desk=desk,
            preferences=shared.preferences,
            clock=shared.clock,
            catalog_owner=shared.catalog,
            start_queue=self._start_queue,
            start_model_call=partial(self._start_model_call, shared.clock),
            start_task_desk=partial(self._start_task_desk, shared),
            start_tool_call=partial(self._start_tool_call, shared.mutations, shared.shells),
            now=now_ms,
            uuid4=STAMPS.uuid4,
            catalog=self._startup.catalog.catalog,
            tools=self._startup.tools,
            check_arguments=check_arguments,
            surroundings=self._startup.surroundings,
            load_surroundings=SurroundingsPump(self._pump, self._startup.reader).load,
            export=self._ports.export,
            environment=self._ports.environment,
            complain=self._complain,
            reread=self._ports.reread,
            make_answer=self._ports.make_answer,
            work=self._ports.work,
            compaction_files=self._ports.compaction_files,
            defaults=start_defaults(settings),
            name=self._startup.options.name,
            pi_compat=self._startup.options.rpc_compat == "pi",
        )

    def _start_session(
        self,
        services: Callable[[Address[SessionDeskMail]], Services],
        key: int,
        opened: OpenedSession,
        modes: Modes,
        inherited: Inherited,
        desk: Address[SessionDeskMail],
    ) -> Child[SessionMail]:
        given = inheriting(services(desk), inherited)
        return self._host.start(Session(key, opened, given, modes), f"session-{key}", desk, key)

    def _start_door(self, clock: Address[ClockMail], desk: Address[SessionDeskMail]) -> Child[DoorMail]:
        from actors.inspector.door import Door

        if sys.platform == "win32":
            from runtime.local_pipe import LocalPipe as LocalWayIn
        else:
            from runtime.local_socket import LocalSocket as LocalWayIn
        way_in = LocalWayIn(self._pump)
        self._ways_in.append(way_in)
        door = Door(desk, way_in, partial(self._start_visitor, clock), self._complain)
        return self._host.start(door, "door", desk, DOOR)

    def _start_visitor(
        self, clock: Address[ClockMail], number: int, connection: Connection, door: Address[DoorMail]
    ) -> Child[VisitorMail]:
        from actors.inspector.visitor import Visitor

        visitor = Visitor(number, connection, door, clock, os.getpid())
        return self._host.start(visitor, f"visitor-{number}", door, number)

    def _start_queue(self, session: Address[SessionMail], modes: Modes) -> Child[QueueMail]:
        return self._host.start(Queue(session, modes), "queue", session, "queue")

    def _start_model_call(
        self, clock: Address[ClockMail], request: ModelRequest, session: Address[SessionMail]
    ) -> Child[ModelCallMail]:
        from actors.model.actor import ModelCall
        from actors.model.dialects import http_error_text

        call = ModelCall(request, session, self._ports.streams.open, reader, http_error_text, clock, chance)
        return self._host.start(call, f"model-call-{request.call}", session, request.call)

    def _start_tool_call(
        self,
        mutations: Address[MutationDeskMail],
        shells: Address[ShellDeskMail],
        request: ToolRequest,
        session: Address[SessionMail],
        supervisor: Address[SubagentMail] | None = None,
    ) -> Child[ToolCallMail]:
        """`shells` takes what a command leaves running."""
        from actors.tool.actor import ToolCall

        delegates = request.parent is not None
        start = self._ports.planner().start if delegates else self._ports.tools(shells).start
        call = ToolCall(request, session, mutations, start, supervisor)
        return self._host.start(call, f"tool-call-{request.call}", session, request.call)

    def _start_task_desk(
        self, shared: Shared, scope: str, key: str, session: Address[SessionMail]
    ) -> Child[TaskDeskMail]:
        from actors.task.desk import TaskDesk
        from actors.task.effects import Budgets, Room
        from runtime.output_files import sweep_old_logs

        settings = self._startup.settings
        wait = Budgets(
            settings.task_command_budget_ms, settings.task_agent_budget_ms, settings.task_wait == "until-settled"
        )
        start_shell = partial(self._start_shell_task, shared.clock, self._ports.commands())
        start_agent = partial(self._start_subagent, shared)
        room: dict[TaskKind, Room] = {"agent": Room(running=settings.running_subagents)}
        self._pump("task-sweep", sweep_old_logs)
        read = self._ports.child_histories().read
        desk = TaskDesk(
            scope, wait, session, shared.clock, start_shell, start_agent, time.monotonic, room, read_history=read
        )
        return self._host.start(desk, key, session, key)

    def _start_shell_task(
        self,
        clock: Address[ClockMail],
        launcher: CommandLauncher,
        ref: TaskRef,
        plan: ShellTaskPlan,
        desk: Address[TaskDeskMail],
        observer: Address[ToolCallMail],
    ) -> Child[ShellTaskMail]:
        from actors.task.shell import ShellTask
        from runtime.output_files import open_log

        open_its_log = partial(open_log, plan.session_id, plan.shell)
        task = ShellTask(ref, plan, desk, observer, clock, launcher.start, open_its_log, time.monotonic)
        return self._host.start(task, ref.task_id, desk, ref.task_id)

    def _start_subagent(
        self, shared: Shared, ref: TaskRef, plan: AgentPlan, desk: Address[TaskDeskMail]
    ) -> Child[SubagentMail]:
        from actors.task.subagent.actor import Subagent

        files, start_child = self._ports.child_files(), partial(self._start_child, shared)
        subagent = Subagent(ref, plan, desk, shared.clock, files, start_child, time.monotonic)
        return self._host.start(subagent, ref.task_id, desk, ref.task_id)

    def _start_child(
        self,
        shared: Shared,
        plan: AgentPlan,
        opened: OpenedSession,
        surroundings: Surroundings,
        road: ChildRoad,
        subagent: Address[SubagentMail],
    ) -> Child[SessionMail]:
        from actors.task.subagent.services import CHILD_KEY, child_services

        for warning in surroundings.warnings:
            self._complain(warning)
        settings, load_agents = self._startup.settings, self._startup.reader.agents
        start_tool_call = partial(self._start_tool_call, shared.mutations, road, supervisor=subagent)
        services = self._services(shared, road)
        given = child_services(services, plan, surroundings, road, start_tool_call, load_agents)
        modes: Modes = {"steering": settings.steering_mode, "followUp": settings.follow_up_mode}
        return self._host.start(Session(CHILD_KEY, opened, given, modes), "subagent-session", subagent, CHILD_KEY)

    def _start_shell(self, writer: Address[WriterMail], run: RunBash, desk: Address[ShellDeskMail]) -> Child[ShellMail]:
        from actors.shell.actor import Shell
        from runtime.output_files import spill

        shell = Shell(run.ticket, run.plan, run.home, desk, writer, self._ports.processes.start, spill, now_ms)
        return self._host.start(shell, f"shell-{run.ticket.serial}", desk, run.ticket.serial)
