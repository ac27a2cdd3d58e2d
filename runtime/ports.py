"""The ports of the real program: what its actors reach files, processes and providers through.

Each loads what it uses when it is first asked, so that no start waits for it.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from actors.base import Address, StartPump
from actors.mail import IntakeMail, ModelRequest, SessionDeskMail, SessionMail, ShellDeskMail
from actors.session.file import OpenedSession, read_session
from protocol.model import Model, ThinkingLevel
from runtime.load_catalog import start_defaults
from runtime.settings import Settings
from runtime.stamps import STAMPS, now_ms
from runtime.startup import Startup

if TYPE_CHECKING:
    from actors.mail import Remains, Ticket
    from actors.model.stream import StreamOpener
    from actors.model.transport import Transport
    from actors.session.compaction_files import CompactionFiles
    from actors.session.exporting import ExportPlan
    from actors.session.target import Target
    from actors.shell.launch import ProcessLauncher
    from actors.task.child_history import ChildHistories
    from actors.task.launch import CommandLauncher
    from actors.task.planning import AgentPlanner
    from actors.task.subagent.child_files import ChildFiles
    from actors.task.worktree import Worktrees
    from actors.tool.launch import ToolLauncher
    from actors.tool.table import Tool
    from protocol.commands import WithImages

# By then a client has mostly gone quiet. Loading (25 ms) beside what it asks at once made a first switch_session twice
# as long (45 ms for 20), and a prompt that comes sooner waits no longer for its own loading than for this one.
WARM_AFTER_S = 1.0


class Ports:
    """`pump` runs what takes long on a thread of its own."""

    def __init__(self, startup: Startup, env: Mapping[str, str], pump: StartPump) -> None:
        self._startup = startup
        self._env = dict(env)  # each command copies it, and os.environ decodes every value each time: 5 % of a request
        self._pump = pump
        self._transport = LazyTransport(startup.settings)

    # -- models

    @cached_property
    def streams(self) -> StreamOpener:
        from actors.model.stream import StreamOpener

        return StreamOpener(self._pump, self._transport.get, now_ms)

    def warm(self) -> None:
        """Loads what asks a model, the HTTP stack most of all, a while after the first response has left: nobody should
        wait for it. TLS is loaded too if the model of a new session is behind it."""
        choice = self._startup.catalog.catalog.choose(None, None, start_defaults(self._startup.settings), first=True)
        url = choice.model.base_url if choice.model is not None else ""
        if url.startswith("http"):
            self._pump("warm", lambda: self._warm_later(secure=url.startswith("https:")))

    def _warm_later(self, *, secure: bool) -> None:
        time.sleep(WARM_AFTER_S)
        import actors.model.actor
        import actors.model.stream  # noqa: F401  # loading what a first prompt needs is the purpose

        self._transport.get().warm(secure=secure)

    # -- tools, commands, subagents

    @cached_property
    def processes(self) -> ProcessLauncher:
        from actors.shell.launch import ProcessLauncher

        settings = self._startup.settings
        return ProcessLauncher(self._pump, settings.shell_path, settings.shell_command_prefix, _which)

    def commands(self) -> CommandLauncher:
        from actors.task.launch import CommandLauncher

        settings = self._startup.settings
        return CommandLauncher(
            self._pump, settings.shell_path, settings.shell_command_prefix, _which, time.monotonic, time.sleep
        )

    def tools(self, shells: Address[ShellDeskMail]) -> ToolLauncher:
        """`shells` takes what a command leaves running."""
        from actors.tool.launch import ToolLauncher
        from runtime.output_files import spill

        settings = self._startup.settings
        return ToolLauncher(
            self._pump, shells, time.monotonic, spill, settings.shell_path, settings.shell_command_prefix
        )

    def planner(self) -> AgentPlanner:
        from actors.task.planning import AgentPlanner

        reader = self._startup.reader
        root, new_run = self.worktrees().root, lambda: uuid.uuid4().hex[:8]
        return AgentPlanner(self._pump, reader.agents, reader.change_agent, root, new_run, reader.folder)

    def worktrees(self) -> Worktrees:
        from actors.task.git import Git
        from actors.task.worktree import Worktrees
        from actors.task.worktree_hook import Hook

        settings = self._startup.settings
        hook = Hook(settings.worktree_hook, settings.worktree_hook_timeout_ms) if settings.worktree_hook else None
        return Worktrees(os.path.join(self._startup.agent_dir, "worktrees"), Git(os.environ), time.time, hook)

    def child_files(self) -> ChildFiles:
        from actors.task.subagent.child_files import ChildFiles

        return ChildFiles(self._pump, STAMPS, self._startup.reader.for_agent, self.worktrees())

    def child_histories(self) -> ChildHistories:
        from actors.task.child_history import ChildHistories

        return ChildHistories(self._pump, lambda path: read_session(path, STAMPS.uuid4).entries)

    def environment(
        self, session_id: str, session_file: str | None, model: Model | None, level: ThinkingLevel
    ) -> Mapping[str, str]:
        """Of commands."""
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

    # -- sessions

    def kill_remains(self, remains: Sequence[Remains], desk: Address[ShellDeskMail]) -> None:
        from actors.shell.remains import RemainsKiller

        RemainsKiller(self._pump).kill(remains, desk)

    def open_session(self, number: int, target: Target, desk: Address[SessionDeskMail]) -> None:
        from actors.session.opening import Opener

        startup = self._startup
        Opener(self._pump, STAMPS, startup.directory, startup.cwd, startup.reader.read).open(number, target, desk)

    def reread(self, ticket: Ticket, opened: OpenedSession, session: Address[SessionMail]) -> None:
        from actors.session.opening import Rereader

        Rereader(self._pump, STAMPS.uuid4).start(ticket, opened, session)

    def make_answer(self, ticket: Ticket, make: Callable[[], Any], session: Address[SessionMail]) -> None:
        from actors.session.answering import Answerer

        Answerer(self._pump).start(ticket, make, session)

    def fit_images(self, serial: int, command: WithImages, intake: Address[IntakeMail]) -> None:
        from actors.image_fitter import ImageFitter

        ImageFitter(self._pump).start(serial, command, intake)

    def export(self, ticket: Ticket, plan: ExportPlan, session: Address[SessionMail]) -> None:
        from actors.session.exporting import Exporter

        Exporter(self._pump, self._startup.cwd, os.path.expanduser("~")).start(ticket, plan, session)

    def work(self, job: int, task: Callable[[], Any], session: Address[SessionMail]) -> None:
        from actors.session.compaction_work import CompactionWorker
        from runtime.memory import give_back

        CompactionWorker(self._pump, give_back).start(job, task, session)

    def compaction_files(self) -> CompactionFiles:
        from actors.session.compaction_files import DiskFiles

        return DiskFiles(now_ms, STAMPS.uuid7)


class LazyTransport:
    """The one transport, made in the first pump that needs it: its imports cost 10 ms that no start should pay."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._made: list[Transport] = []

    def get(self) -> Transport:
        if not self._made:
            from actors.model.transport import Transport
            from runtime.transport_settings import transport_settings

            # two pumps may both make one; the first in the list is the one that all use
            self._made.append(Transport(transport_settings(self._settings)))
        return self._made[0]


def chance() -> float:
    """From 0 to 1."""
    from random import random

    return random()


def reader(request: ModelRequest) -> Any:
    """Of the reply to it."""
    from actors.model.dialects import reader_for

    return reader_for(request.model, now_ms())


def check_arguments(tool: Tool, arguments: dict[str, Any]) -> str | None:
    """What is wrong with them."""
    from actors.tool.schema import check_arguments

    return check_arguments(tool, arguments)


def _which(name: str) -> str | None:
    from shutil import which

    return which(name)
