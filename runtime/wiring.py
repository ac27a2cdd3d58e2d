"""Starts the actors and hands each what it may reach: the only file that does.

The order is that of the flow back to the client: the Writer first, stdin last. Nobody looks anybody up; the arrows
are the constructors' parameters and the few `connect` calls that close circles before the first mail.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from actors.base import Address, Child, StartPump
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
    Woke,
    WriterMail,
)
from actors.preferences import Preferences
from actors.session.actor import Session
from actors.session.compaction_files import DiskFiles
from actors.session.desk import DOOR, SessionDesk
from actors.session.file import OpenedSession, Stamps, read_session
from actors.session.queue import Queue
from actors.session.services import Modes, Services, inheriting
from actors.shell.desk import ShellDesk
from actors.tool.desk import MutationDesk
from actors.writer import Writer
from protocol.model import Model, ThinkingLevel
from runtime.catalog_files import PumpedFiles
from runtime.load_catalog import start_defaults
from runtime.root import Root
from runtime.settings import Settings, save_setting
from runtime.startup import Startup
from runtime.stdio import StdoutSink, complain, leave_stdin, read_stdin
from runtime.surroundings import SurroundingsPump
from runtime.threads import ThreadHost
from runtime.uuid7 import uuid7

if TYPE_CHECKING:
    from actors.inspector.door import WayIn
    from actors.mail import Ticket
    from actors.model.stream import StreamOpener
    from actors.model.transport import Transport, TransportSettings
    from actors.session.desk import Target
    from actors.session.exporting import ExportPlan
    from actors.session.surroundings import Surroundings
    from actors.shell.launch import ProcessLauncher
    from actors.shell.spill import Spill
    from actors.task.launch import CommandLauncher
    from actors.task.subagent.child_road import ChildRoad
    from actors.task.worktree import Worktrees
    from actors.tool.actor import RunningTool
    from actors.tool.table import Tool
    from protocol.commands import WithImages
    from protocol.tasks import TaskKind, TaskRef
    from runtime.oneshot import OneShotPlan


def now_ms() -> int:
    return time.time_ns() // 1_000_000


STAMPS = Stamps(now_ms, lambda: str(uuid7()), lambda: str(uuid.uuid4()))


# By then a client has mostly gone quiet. Loading (25 ms) beside what it asks at once made a first switch_session twice
# as long (45 ms for 20), and a prompt that comes sooner waits no longer for its own loading than for this one.
WARM_AFTER_S = 1.0


CHILD_KEY = 0
"""Of a subagent's session; those of the desk count from 1, and the first one speaks for the command line."""


class Shared(Struct, frozen=True):
    """The permanent actors that sessions reach, those of subagents too."""

    writer: Address[WriterMail]
    shells: Address[ShellDeskMail]
    preferences: Address[PreferencesMail]
    clock: Address[ClockMail]
    catalog: Address[CatalogMail]
    mutations: Address[MutationDeskMail]


class House:
    """All that the actors share: values and ports, no state of theirs. With `one_shot` nobody drives the program: the
    prompts are there, and OneShot and Printer stand where Intake and Writer do."""

    def __init__(
        self,
        startup: Startup,
        host: ThreadHost,
        env: Mapping[str, str],
        pump: StartPump,
        one_shot: OneShotPlan | None = None,
    ) -> None:
        self._startup = startup
        self._one_shot = one_shot
        self._host = host
        self._env = dict(env)  # each command copies it, and os.environ decodes every value each time: 5 % of a request
        self._pump = pump
        self._transport = _LazyTransport(startup.settings)
        self._tools = startup.tools
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
            Preferences(partial(save_setting, self._startup.agent_dir), complain), "preferences", root, "preferences"
        )
        files = PumpedFiles(
            self._pump, self._startup.agent_dir, time.monotonic, scripted=self._startup.catalog.scripted
        )
        catalog_actor = Catalog(self._startup.catalog.catalog, files)
        catalog: Child[CatalogMail] = host.start(catalog_actor, "catalog", root, "catalog")
        mutations: Child[MutationDeskMail] = host.start(MutationDesk(), "mutations", root, "mutation desk")
        shell_desk = ShellDesk(writer, root, partial(self._start_shell, writer))
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
            self._open_session,
            now_ms,
            complain,
            partial(self._start_door, clock),
        )
        desk: Child[SessionDeskMail] = host.start(desk_actor, "sessions", root, "session desk")
        intake: Address[IntakeMail]
        if self._one_shot is not None:
            intake = one_shot
        else:
            fitter = self._fit_images if settings.auto_resize_images else None
            intake = host.start(Intake(writer, desk, root, fitter), "intake", root, "intake")
            writer_actor.connect(intake)
        shell_desk.connect(intake)
        actor.connect(intake, desk, shells, writer, clock)
        desk_actor.connect(intake, shells)
        catalog_actor.connect(desk)
        desk.tell(OpenFirst())
        is_read = self._one_shot is None or self._one_shot.reads_stdin
        self._pump("stdin", lambda: read_stdin(intake) if is_read else leave_stdin(intake))

    def _start_one_shot(self, plan: OneShotPlan, root: Child[RootMail]) -> Child[OneShotMail]:
        from actors.oneshot import OneShot

        return self._host.start(OneShot(plan.prompts, root, complain), "one-shot", root, "intake")

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
        """Loads what asks a model, the HTTP stack most of all, a while after the first response has left: nobody should
        wait for it. TLS is loaded too if the model of a new session is behind it. The request of a one-shot run is
        under way by then."""
        choice = self._startup.catalog.catalog.choose(None, None, start_defaults(self._startup.settings), first=True)
        url = choice.model.base_url if choice.model is not None else ""
        if self._one_shot is None and url.startswith("http"):
            self._pump("warm", lambda: self._warm_later(secure=url.startswith("https:")))

    def _warm_later(self, *, secure: bool) -> None:
        time.sleep(WARM_AFTER_S)
        import actors.model.actor
        import actors.model.stream  # noqa: F401  # loading what a first prompt needs is the purpose

        self._transport.get().warm(secure=secure)

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
            tools=self._tools,
            check_arguments=_check_arguments,
            surroundings=self._startup.surroundings,
            load_surroundings=SurroundingsPump(self._pump, self._startup.reader).load,
            export=self._export,
            environment=self._environment,
            complain=complain,
            reopen=_reread,
            work=self._work,
            compaction_files=DiskFiles(now_ms, STAMPS.uuid7),
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
        door = Door(desk, way_in, partial(self._start_visitor, clock), complain)
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

        call = ModelCall(request, session, self._streams.open, _reader, http_error_text, clock, _chance)
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
        from actors.tool.launch import ToolLauncher

        settings = self._startup.settings
        tools = ToolLauncher(
            self._pump, shells, time.monotonic, _spill, settings.shell_path, settings.shell_command_prefix
        )
        start = self._plan_subagents if request.parent is not None else tools.start
        call = ToolCall(request, session, mutations, start, supervisor)
        return self._host.start(call, f"tool-call-{request.call}", session, request.call)

    def _plan_subagents(self, request: ToolRequest, call: Address[ToolCallMail]) -> RunningTool:
        from actors.task.planning import AgentPlanner

        reader = self._startup.reader
        root, new_run = self._worktrees().root, lambda: uuid.uuid4().hex[:8]
        return AgentPlanner(self._pump, reader.agents, reader.change_agent, root, new_run, reader.folder).start(
            request, call
        )

    def _worktrees(self) -> Worktrees:
        from actors.task.git import Git
        from actors.task.worktree import Worktrees
        from actors.task.worktree_hook import Hook

        settings = self._startup.settings
        hook = Hook(settings.worktree_hook, settings.worktree_hook_timeout_ms) if settings.worktree_hook else None
        return Worktrees(os.path.join(self._startup.agent_dir, "worktrees"), Git(os.environ), time.time, hook)

    def _start_task_desk(
        self, shared: Shared, scope: str, key: str, session: Address[SessionMail]
    ) -> Child[TaskDeskMail]:
        from actors.task.child_history import ChildHistories
        from actors.task.desk import TaskDesk
        from actors.task.effects import Budgets, Room
        from actors.task.launch import CommandLauncher

        settings = self._startup.settings
        wait = Budgets(
            settings.task_command_budget_ms, settings.task_agent_budget_ms, settings.task_wait == "until-settled"
        )
        launcher = CommandLauncher(
            self._pump, settings.shell_path, settings.shell_command_prefix, _which, time.monotonic, time.sleep
        )
        start_shell = partial(self._start_shell_task, shared.clock, launcher)
        start_agent = partial(self._start_subagent, shared)
        room: dict[TaskKind, Room] = {"agent": Room(running=settings.running_subagents)}
        self._pump("task-sweep", _sweep_logs)
        read = ChildHistories(self._pump, lambda path: read_session(path, STAMPS.uuid4).entries).read
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

        open_log = partial(_open_log, plan.session_id, plan.shell)
        task = ShellTask(ref, plan, desk, observer, clock, launcher.start, open_log, time.monotonic)
        return self._host.start(task, ref.task_id, desk, ref.task_id)

    def _start_subagent(
        self, shared: Shared, ref: TaskRef, plan: AgentPlan, desk: Address[TaskDeskMail]
    ) -> Child[SubagentMail]:
        from actors.task.subagent.actor import Subagent
        from actors.task.subagent.child_files import ChildFiles

        files = ChildFiles(self._pump, STAMPS, self._startup.reader.for_agent, self._worktrees())
        start_child = partial(self._start_child, shared)
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
        """A session like any other, whose Writer and desk are its subagent, and that owns no tasks."""
        from actors.session.fallback import Place
        from actors.tool.contact_call import contact_tool
        from actors.tool.subagent import REFUSED, looking_tool
        from actors.tool.talk_schema import CONTACT

        for warning in surroundings.warnings:
            complain(warning)
        settings = self._startup.settings
        known = {**self._tools, CONTACT: contact_tool()}
        offered = {name: known[name] for name in plan.tools}
        if "subagent" in offered:
            offered["subagent"] = looking_tool(self._startup.reader.agents)
        given = replace(
            self._services(shared, road),
            writer=road,
            shells=road,
            start_task_desk=None,
            start_tool_call=partial(self._start_tool_call, shared.mutations, road, supervisor=subagent),
            catalog=plan.parent.catalog,
            defaults=plan.parent.defaults,
            tools=offered,
            surroundings=surroundings,
            name=None,
            pi_compat=False,
            place=Place(plan.model, plan.level),
            absent_tools={"subagent": REFUSED},
        )
        modes: Modes = {"steering": settings.steering_mode, "followUp": settings.follow_up_mode}
        return self._host.start(Session(CHILD_KEY, opened, given, modes), "subagent-session", subagent, CHILD_KEY)

    def _start_shell(self, writer: Address[WriterMail], run: RunBash, desk: Address[ShellDeskMail]) -> Child[ShellMail]:
        from actors.shell.actor import Shell

        shell = Shell(run.ticket, run.plan, run.home, desk, writer, self._processes.start, _spill, now_ms)
        return self._host.start(shell, f"shell-{run.ticket.serial}", desk, run.ticket.serial)

    # -- ports, which load what they use when they are first asked

    @cached_property
    def _streams(self) -> StreamOpener:
        from actors.model.stream import StreamOpener

        return StreamOpener(self._pump, self._transport.get, now_ms)

    @cached_property
    def _processes(self) -> ProcessLauncher:
        from actors.shell.launch import ProcessLauncher

        settings = self._startup.settings
        return ProcessLauncher(self._pump, settings.shell_path, settings.shell_command_prefix, _which)

    def _open_session(self, number: int, target: Target, desk: Address[SessionDeskMail]) -> None:
        from actors.session.opening import Opener

        startup = self._startup
        Opener(self._pump, STAMPS, startup.directory, startup.cwd, startup.reader.read).open(number, target, desk)

    def _fit_images(self, serial: int, command: WithImages, intake: Address[IntakeMail]) -> None:
        from actors.image_fitter import ImageFitter

        ImageFitter(self._pump).start(serial, command, intake)

    def _export(self, ticket: Ticket, plan: ExportPlan, session: Address[SessionMail]) -> None:
        from actors.session.exporting import Exporter

        Exporter(self._pump, self._startup.cwd, os.path.expanduser("~")).start(ticket, plan, session)

    def _work(self, job: int, task: Callable[[], Any], session: Address[SessionMail]) -> None:
        from actors.session.compaction_work import CompactionWorker
        from runtime.memory import give_back

        CompactionWorker(self._pump, give_back).start(job, task, session)

    def _environment(
        self, session_id: str, session_file: str | None, model: Model | None, level: ThinkingLevel
    ) -> Mapping[str, str]:
        from actors.shell.environment import shell_environment

        return shell_environment(
            {**self._env, **dict(self._startup.settings.child_variables)},
            agent_bin=os.path.join(self._startup.agent_dir, "bin"),
            session_id=session_id,
            session_file=session_file,
            provider=model.provider if model else None,
            model=model.id if model else None,
            level=level,
        )


LONGEST_SLEEP_S = 86_400.0
"""A deadline may be any number of milliseconds ahead, a wait of the system may not."""


class Alarm:
    """The clock's pump: one thread, made with the first deadline, that sleeps until the latest time it was given."""

    def __init__(self, pump: StartPump) -> None:
        self._pump = pump
        self._changed = threading.Condition()
        self._at: float | None = None
        self._running = False
        self._to: Address[Woke] | None = None

    def set(self, at: float, to: Address[Woke]) -> None:
        with self._changed:
            self._at, self._to = at, to
            self._changed.notify()
            if not self._running:
                self._running = True
                self._pump("alarm", self._sleep)

    def _sleep(self) -> None:
        with self._changed:
            while True:
                rest = None if self._at is None else self._at - time.monotonic()
                if rest is None or rest > 0:
                    self._changed.wait(None if rest is None else min(rest, LONGEST_SLEEP_S))
                    continue
                self._at = None
                assert self._to is not None
                self._to.tell(Woke())


def _chance() -> float:
    """From 0 to 1."""
    from random import random

    return random()


def _reader(request: ModelRequest) -> Any:
    from actors.model.dialects import reader_for

    return reader_for(request.model, now_ms())


def _reread(opened: OpenedSession) -> OpenedSession:
    """The same session with what its file says now; its journal and lock stay."""
    journal = opened.journal
    if journal.path is None or not journal.exists_on_disk:
        return opened
    stored = read_session(journal.path, STAMPS.uuid4)
    assert stored.header is not None
    return OpenedSession(stored.header, stored.entries, journal)


def _spill(session_id: str) -> Spill:
    import tempfile

    from actors.shell.spill import Spill

    uid = os.getuid() if hasattr(os, "getuid") else 0
    return Spill(tempfile.gettempdir(), session_id, uid, lambda: os.urandom(8).hex())


def _open_log(session_id: str, shell: str) -> tuple[int, str]:
    """The file of a task's whole output, open, and its path. Raises `OSError`."""
    import tempfile

    from actors.shell.spill import directory_name, open_private

    uid = os.getuid() if hasattr(os, "getuid") else 0
    root, folders = tempfile.gettempdir(), (f"atomic-{uid}", directory_name(session_id))
    name = f"atomic-{shell}-{os.urandom(8).hex()}.log"
    return open_private(root, folders, name, uid), os.path.join(root, *folders, name)


def _sweep_logs() -> None:
    import tempfile

    from actors.task.housekeeping import sweep_logs

    sweep_logs(tempfile.gettempdir(), os.getuid() if hasattr(os, "getuid") else 0, time.time())


def _check_arguments(tool: Tool, arguments: dict[str, Any]) -> str | None:
    from actors.tool.schema import check_arguments

    return check_arguments(tool, arguments)


def _which(name: str) -> str | None:
    from shutil import which

    return which(name)


class _LazyTransport:
    """The one transport, made in the first pump that needs it: its imports cost 10 ms that no start should pay."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._made: list[Transport] = []

    def get(self) -> Transport:
        if not self._made:
            from actors.model.transport import Transport

            # two pumps may both make one; the first in the list is the one that all use
            self._made.append(Transport(_transport_settings(self._settings)))
        return self._made[0]


def _transport_settings(settings: Settings) -> TransportSettings:
    from actors.model.transport import TransportSettings

    def seconds(milliseconds: int) -> float | None:
        return milliseconds / 1000 or None

    answer_ms = settings.provider_timeout_ms
    return TransportSettings(
        proxy=settings.http_proxy,
        no_proxy=settings.no_proxy,
        ca_file=settings.ca_file,
        connect_timeout_s=seconds(settings.http_connect_timeout_ms),
        answer_timeout_s=(settings.http_idle_timeout_ms if answer_ms is None else answer_ms) / 1000,
        idle_timeout_s=seconds(settings.http_idle_timeout_ms),
        event_timeout_s=seconds(settings.stream_deadline_ms),
        total_timeout_s=seconds(settings.http_total_timeout_ms),
    )
