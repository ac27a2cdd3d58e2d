"""The real actors in the simulated world: what `runtime.wiring` does for threads, for the scheduler.

One `House` plays one seed, and keeps what the invariants look at: the bytes on stdout, the lines on stderr, the mail.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from actors.base import Address, Child, Down
from actors.catalog import Catalog
from actors.catalog_data import SCRIPTED
from actors.catalog_view import Defaults
from actors.clock import Clock
from actors.intake import Intake
from actors.mail import (
    CatalogLate,
    CatalogLoaded,
    CatalogMail,
    ClockMail,
    CredentialRefused,
    Exported,
    ImagesFitted,
    IntakeMail,
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
    SurroundingsLoaded,
    Ticket,
    WriterMail,
)
from actors.model.actor import ModelCall
from actors.model.attempts import RequestLimits
from actors.model.dialects import http_error_text, reader_for
from actors.model.prompt import Credential
from actors.preferences import Preferences
from actors.session.actor import Session
from actors.session.compaction_work import worked
from actors.session.desk import SessionDesk
from actors.session.file import OpenedSession, Stamps
from actors.session.queue import Queue
from actors.session.services import Modes, Services, inheriting
from actors.session.surroundings import Surroundings
from actors.shell.actor import Shell
from actors.shell.desk import ShellDesk
from actors.shell.spill import Spill
from actors.tool.actor import ToolCall
from actors.tool.desk import MutationDesk
from actors.tool.schema import check_arguments
from actors.writer import Writer
from protocol.codec import Rejected
from protocol.commands import WithImages, command_name
from protocol.model import Model, ThinkingLevel
from protocol.responses import AuthStatus, ScopedModel
from runtime.root import Root
from runtime.simulation.disk import Disk, SimulatedOpener
from runtime.simulation.scheduler import Fault, Scheduler, SimulatedAddress
from runtime.simulation.script import Script
from runtime.simulation.world import Alarm, Client, Once, World, simulated_tools

NO_DEFAULTS = Defaults()
SURROUNDINGS = Surroundings(lambda model, level: "", session_summary=True, request_limits=RequestLimits(max_retries=1))
EPOCH_MS = 1_700_000_000_000
SLOWABLE = (
    "writer",
    "shells",
    "sessions",
    "session",
    "intake",
    "root",
    "queue",
    "model-call",
    "tool-call",
    "shell",
    "process",
    "stream",
    "tool",
    "session-open",
    "client",
)


class ForgottenFiles:
    """The files that a compaction leaves: nobody reads them here."""

    def back_up(self, session_path: str, label: str) -> str:
        return f"{session_path}.{label}.bak"

    def keep_answer(self, session_path: str, category: str, facts: dict[str, Any]) -> None:
        return None


class Plan(Struct, frozen=True):
    """How a seed is played. `crash` puts one exception into a handler, `disk` makes some append fail."""

    seed: int
    crash: bool = False
    disk: bool = False


class Parts:
    """The classes of the actors; a test puts a broken one in."""

    session: type[Session] = Session
    queue: type[Queue] = Queue
    shell: type[Shell] = Shell
    writer: type[Writer] = Writer
    intake: type[Intake] = Intake


class Chosen(Struct, frozen=True):
    """A session's model at its start."""

    model: Model | None = SCRIPTED
    thinking_level: ThinkingLevel = "off"
    message: str | None = None
    reason: Any = None


class OneModel:
    """A catalogue with the scripted model alone, whatever is read or written."""

    def available(self) -> list[Model]:
        return [SCRIPTED]

    def scope(self) -> tuple[ScopedModel, ...]:
        return ()

    def find(self, provider: str, model_id: str) -> Model | None:
        return SCRIPTED if (provider, model_id) == (SCRIPTED.provider, SCRIPTED.id) else None

    def knows(self, provider: str) -> bool:
        return provider == SCRIPTED.provider

    def refusal(self, model: Model | None) -> str | None:
        return None

    def choose(
        self,
        saved: tuple[str, str] | None,
        saved_level: ThinkingLevel | None,
        defaults: Defaults = NO_DEFAULTS,
        *,
        first: bool,
    ) -> Chosen:
        return Chosen()

    def auth_status(self, provider: str) -> AuthStatus:
        return AuthStatus(True)

    def authorize(self, model: Model) -> Credential:
        raise ValueError("the simulation sends no request")

    def reloaded(self, files: Any) -> OneModel:
        return self

    def logged_out(self, provider: str) -> OneModel:
        return self


class CatalogReader:
    """The port of the Catalog: each job ends some steps later; a refresh may be late before, a write may fail."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def load(self, job: int, timeout_ms: float | None, to: Address[CatalogMail]) -> None:
        self._later(to, CatalogLoaded(job, float(self._scheduler.steps), None))
        if timeout_ms is not None:
            self._later(to, CatalogLate(job))

    def save(self, job: int, provider: str, credential: Mapping[str, Any], to: Address[CatalogMail]) -> None:
        self.remove(job, provider, to)

    def remove(self, job: int, provider: str, to: Address[CatalogMail]) -> None:
        if self._scheduler.rng.random() < 0.3:
            self._later(to, CredentialRefused(job, "simulated", committed=self._scheduler.rng.random() < 0.5))
        else:
            self.load(job, None, to)

    def _later(self, to: Address[CatalogMail], mail: CatalogMail) -> None:
        self._scheduler.add_pump(Once(lambda: to.tell(mail)), "catalog-pump")


class Sink:
    """Where the Writer writes. Each burst is kept with the number of lines that the journals held by then."""

    def __init__(self, disk: Disk, breaks_after: int | None, is_over: Callable[[], bool]) -> None:
        self.bursts: list[tuple[bytes, int]] = []
        self.broken = False
        self._disk = disk
        self._breaks_after = breaks_after
        self._is_over = is_over

    def write_all(self, burst: bytes) -> None:
        if self._is_over():
            return  # the process is gone
        if self._breaks_after is not None and len(self.bursts) >= self._breaks_after:
            self.broken = True
            raise BrokenPipeError
        self.bursts.append((burst, len(self._disk.log)))

    @property
    def written(self) -> int:
        return sum(len(burst) for burst, _ in self.bursts)


class Nobody:
    """Root's owner: there is none."""

    def tell(self, mail: Down) -> None:
        """Root's death is in the scheduler's list."""


class House:
    """One seed from the first mail to the last."""

    def __init__(self, plan: Plan, parts: Parts | None = None) -> None:
        self.plan = plan
        self.parts = parts or Parts()
        self.rng = random.Random(plan.seed)
        self.stderr: list[str] = []
        self.fault = self._fault()
        slow = frozenset(self.rng.sample(SLOWABLE, self.rng.choice((0, 0, 1, 2, 4))))
        self.scheduler = Scheduler(self.rng, slow, self.rng.choice((0.0, 0.1, 0.3)), self.fault)
        stamps = Stamps(self._now, self._id, self._id)
        refuse_at = self.rng.randrange(1, 30) if plan.disk else 0
        self.disk = Disk(stamps, self.rng.random() < 0.15, refuse_at, self.rng.choice((1, 1, 10_000)))
        self.world = World(self.scheduler, self.rng)
        self.opener = SimulatedOpener(self.disk, self.scheduler, self.rng)
        self.alarm = Alarm()
        self.root = Root(self.stderr.append, lambda: self.sink.written, lambda: None)
        ending = self.rng.random()
        breaks = self.rng.randrange(0, 12) if ending > 0.9 else None
        self.sink = Sink(self.disk, breaks, lambda: self.root.phase == "over")
        self.heard_before_crash: int | None = None
        self.crashed_while_ending = False
        self._start(self.rng.randrange(1, 22) if 0.7 < ending <= 0.9 else None)

    def play(self) -> bool:
        """Whether Root came to its end. What is still under way then goes on to its end as well, unseen."""
        is_over = self._run_to_the_end()
        self.exit_code = self.root.exit_code
        self.gave_up = any(line.startswith("gave up after") for line in self.stderr)
        self.ended_at = len(self.scheduler.trace)
        self.scheduler.run(lambda: False)
        return is_over

    def _run_to_the_end(self) -> bool:
        while not self.scheduler.run(lambda: self.root.phase == "over"):
            if not self.alarm.ring():
                return False
        return True

    def _fault(self) -> Fault | None:
        if not self.plan.crash:
            return None
        moment = self.rng.choice(("before", "after", "inside"))
        return Fault(self.rng.randrange(1, 120), moment, frozenset({"root"}))

    # -- ports

    def _now(self) -> int:
        return EPOCH_MS + self.scheduler.steps

    def _id(self) -> str:
        return f"{self.rng.getrandbits(128):032x}"

    def _environment(
        self, session_id: str, session_file: str | None, model: Model | None, level: ThinkingLevel
    ) -> dict[str, str]:
        return {}

    def _fit_images(self, serial: int, command: WithImages, intake: Address[IntakeMail]) -> None:
        """Sometimes there is no way to make them smaller."""
        fitted: WithImages | Rejected = replace(command, images=())
        if self.rng.random() < 0.2:
            fitted = Rejected(bytes(command.id), command_name(command), "simulated: no such image")
        self.scheduler.add_pump(Once(lambda: intake.tell(ImagesFitted(serial, fitted))), "images-pump")

    # -- wiring

    def _start(self, signal_after: int | None) -> None:
        host = self.scheduler
        root: Child[RootMail] = host.start(self.root, "root", Nobody())
        writer_actor = self.parts.writer(self.sink.write_all, root)
        writer: Child[WriterMail] = host.start(writer_actor, "writer", root, "writer")
        clock = host.start(Clock(lambda: self.alarm.now, self.alarm.set), "clock", root, "clock")
        save = Preferences(lambda path, value: None, self.stderr.append)
        preferences: Child[PreferencesMail] = host.start(save, "preferences", root, "preferences")
        catalog_actor = Catalog(OneModel(), CatalogReader(self.scheduler))
        catalog: Child[CatalogMail] = host.start(catalog_actor, "catalog", root, "catalog")
        mutations: Child[MutationDeskMail] = host.start(MutationDesk(), "mutations", root, "mutation desk")
        shell_desk = ShellDesk(writer, root, lambda run, desk: self._start_shell(writer, run, desk))
        shells: Child[ShellDeskMail] = host.start(shell_desk, "shells", root, "shell desk")
        first = self.disk.new()
        desk_actor = SessionDesk(
            first,
            {"steering": "one-at-a-time", "followUp": "one-at-a-time"},
            writer,
            root,
            lambda key, opened, modes, inherited, desk: self._start_session(
                inheriting(self._services(writer, shells, preferences, clock, catalog, mutations, desk), inherited),
                key,
                opened,
                modes,
            ),
            self.opener.open,
            self._now,
            self.stderr.append,
        )
        desk: Child[SessionDeskMail] = host.start(desk_actor, "sessions", root, "session desk")
        intake = host.start(self.parts.intake(writer, desk, root, self._fit_images), "intake", root, "intake")
        writer_actor.connect(intake)
        shell_desk.connect(intake)
        self.root.connect(intake, desk, shells, writer, clock)
        desk_actor.connect(intake, shells)
        catalog_actor.connect(desk)
        desk.tell(OpenFirst())
        self.client = Client(Script(self.rng, self.disk).lines(), intake, root, signal_after, self.rng)
        host.add_pump(self.client, "client")
        if self.fault is not None:
            self.fault.on_strike = self._note_crash

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
                ModelCall(
                    request,
                    session,
                    self.world.open_stream,
                    lambda request: reader_for(request.model, self._now()),
                    http_error_text,
                    clock,
                    self.rng.random,
                ),
                f"model-call-{request.call}",
                session,
                request.call,
            ),
            start_tool_call=lambda request, session: host.start(
                ToolCall(request, session, mutations, self.world.start_tool),
                f"tool-call-{request.call}",
                session,
                request.call,
            ),
            now=self._now,
            uuid4=self._id,
            catalog=OneModel(),
            tools=simulated_tools(),
            check_arguments=check_arguments,
            surroundings=SURROUNDINGS,
            export=lambda ticket, _, session: session.tell(Exported(ticket, "page.html")),
            load_surroundings=lambda ticket, _, session: session.tell(SurroundingsLoaded(ticket, SURROUNDINGS)),
            environment=self._environment,
            complain=self.stderr.append,
            reopen=self.disk.reread,
            work=self._work,
            compaction_files=ForgottenFiles(),
        )

    def _work(self, job: int, task: Callable[[], Any], session: Address[SessionMail]) -> None:
        self.scheduler.add_pump(Once(lambda: session.tell(worked(job, task))), "compaction")

    def _load_surroundings(self, ticket: Ticket, cwd: str, session: Address[SessionMail]) -> None:
        loaded = SurroundingsLoaded(ticket, SURROUNDINGS)
        self.scheduler.add_pump(Once(lambda: session.tell(loaded)), "reload")

    def _start_session(self, services: Services, key: int, opened: OpenedSession, modes: Modes) -> Child[SessionMail]:
        session = self.parts.session(key, opened, services, modes)
        return self.scheduler.start(session, f"session-{key}", services.desk, key)

    def _start_queue(self, session: Address[SessionMail], modes: Modes) -> Child[QueueMail]:
        return self.scheduler.start(self.parts.queue(session, modes), "queue", session, "queue")

    def _start_shell(self, writer: Address[WriterMail], run: RunBash, desk: Address[ShellDeskMail]) -> Child[ShellMail]:
        home: Any = run.home
        assert isinstance(home, SimulatedAddress) and isinstance(home.actor, Session)
        journal = home.actor.history.journal

        def start_process(plan: Any, shell: Address[ShellMail]) -> Any:
            return self.world.start_process(plan, shell, journal)

        shell = self.parts.shell(run.ticket, run.plan, run.home, desk, writer, start_process, _no_spill, self._now)
        return self.scheduler.start(shell, f"shell-{run.ticket.serial}", desk, run.ticket.serial)


def _no_spill(session_id: str) -> Spill:
    """Never written to: the simulated output is short."""
    return Spill("/simulated", session_id, 0, lambda: "0" * 16)
