"""What the actors reach besides mail: the settings file, surroundings, exports and stdout.

Each is the smallest thing that keeps the promises of the real one. What takes time there is a pump here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from actors.base import Address
from actors.mail import (
    Exported,
    ImagesFitted,
    IntakeMail,
    Remains,
    RemainsKilled,
    Reread,
    SessionMail,
    ShellDeskMail,
    SurroundingsLoaded,
    Ticket,
)
from actors.model.attempts import RequestLimits
from actors.session.answering import made
from actors.session.compaction_work import worked
from actors.session.expansion import Expander, Origin, Skill, Template
from actors.session.file import OpenedSession
from actors.session.retry import RetryPolicy
from actors.session.surroundings import Surroundings
from protocol.codec import Rejected
from protocol.commands import WithImages, command_name
from protocol.model import Model, ThinkingLevel
from runtime.simulation.chances import Chances, Dice
from runtime.simulation.pumps import Once
from runtime.simulation.scheduler import Scheduler

# ---- settings and surroundings -----------------------------------------------------------------------------------


class SettingsFile:
    """What `Preferences` writes to."""

    def __init__(self, chances: Chances) -> None:
        self._chances = chances
        self._writes = 0

    def save(self, path: tuple[str, ...], value: Any) -> None:
        self._writes += 1
        if self._chances.dice(f"setting {self._writes}").strikes("settings: cannot be written", 0.15):
            raise ValueError("simulated: permission denied")


_ORIGIN = Origin("user", "user", "auto", "/simulated")
_SKILL = Skill("here", "", "/simulated/here", "/simulated/here", "/simulated", "do it", _ORIGIN)
_EXPANDER = Expander((_SKILL,), (Template("template", "", "/simulated/template.md", "filled with $1", _ORIGIN),))


def _system_prompt(model: Model, level: ThinkingLevel) -> str:
    return ""


def simulated_surroundings(dice: Dice) -> Surroundings:
    """Skills and templates, and how often a request is tried again."""
    retries = dice.strikes("settings: retries", 0.8)
    return Surroundings(
        _system_prompt,
        _EXPANDER,
        RetryPolicy(retries, dice.choice((1, 2, 3))),
        request_limits=RequestLimits(dice.choice((0, 1, 2))),
        fallback_models=("quick", "spare/spare:high") if dice.strikes("settings: fallback models", 0.4) else (),
        session_summary=dice.strikes("settings: session summaries", 0.3),
        warnings=("simulated warning",) if dice.strikes("settings: a warning", 0.1) else (),
    )


class SlowPorts:
    """`reload`, `export_html`, large images, compactions and what is left of commands: they end some steps later, and
    may fail."""

    def __init__(self, scheduler: Scheduler, chances: Chances) -> None:
        self._scheduler = scheduler
        self._chances = chances

    def load_surroundings(self, ticket: Ticket, cwd: str, session: Address[SessionMail]) -> None:
        dice = self._chances.dice(f"reload {ticket.serial}")
        loaded = SurroundingsLoaded(ticket, simulated_surroundings(dice))
        if dice.strikes("reload: fails", 0.2):
            loaded = SurroundingsLoaded(ticket, None, "simulated")
        self._scheduler.add_pump(Once(lambda: session.tell(loaded)), "reload")

    def reread(self, ticket: Ticket, read: Callable[[], OpenedSession], session: Address[SessionMail]) -> None:
        dice = self._chances.dice(f"reread {ticket.serial}")

        def work() -> None:
            session.tell(
                Reread(ticket, None, "simulated") if dice.strikes("reread: fails", 0.1) else Reread(ticket, read())
            )

        self._scheduler.add_pump(Once(work), "reread")

    def make_answer(self, ticket: Ticket, make: Callable[[], Any], session: Address[SessionMail]) -> None:
        self._scheduler.add_pump(Once(lambda: session.tell(made(ticket, make))), "answer")

    def fit_images(self, serial: int, command: WithImages, intake: Address[IntakeMail]) -> None:
        """Sometimes there is no way to make them smaller."""
        fitted: WithImages | Rejected = replace(command, images=())
        if self._chances.dice(f"images {serial}").strikes("images: cannot be made smaller", 0.2):
            fitted = Rejected(bytes(command.id), command_name(command), "simulated: no such image")
        self._scheduler.add_pump(Once(lambda: intake.tell(ImagesFitted(serial, fitted))), "images-pump")

    def work(self, job: int, task: Callable[[], Any], session: Address[SessionMail]) -> None:
        """The heavy parts of a compaction."""
        self._scheduler.add_pump(Once(lambda: session.tell(worked(job, task))), "compaction")

    def kill_remains(self, remains: Sequence[Remains], desk: Address[ShellDeskMail]) -> None:
        def kill() -> None:
            for each in remains:
                each.kill_group_leftovers()
            desk.tell(RemainsKilled())

        self._scheduler.add_pump(Once(kill), "remains")

    def export(self, ticket: Ticket, plan: Any, session: Address[SessionMail]) -> None:
        dice = self._chances.dice(f"export {ticket.serial}")
        exported = Exported(ticket, "page.html")
        if dice.strikes("export: fails", 0.2):
            exported = Exported(ticket, None, "simulated")
        self._scheduler.add_pump(Once(lambda: session.tell(exported)), "export")


class CompactionFiles:
    """The files that a compaction leaves: nobody reads them here."""

    def __init__(self, chances: Chances) -> None:
        self._chances = chances
        self._made = 0

    def back_up(self, session_path: str, label: str) -> str:
        self._made += 1
        if self._chances.dice(f"backup {self._made}").strikes("compaction: no backup", 0.1):
            raise OSError("simulated: no space left")
        return f"{session_path}.{label}.bak"

    def keep_answer(self, session_path: str, category: str, facts: dict[str, Any]) -> None:
        return None


# ---- stdout ------------------------------------------------------------------------------------------------------


class Sink:
    """Where the Writer writes. Each burst is kept with the number of lines that the journals held by then. `hold` keeps
    the Writer from its next mail, as a full pipe would."""

    def __init__(
        self,
        written_lines: Callable[[], int],
        is_over: Callable[[], bool],
        hold: Callable[[bool], None],
        closes: int | None,
        stops: int | None,
        pauses: tuple[int, ...],
    ) -> None:
        self.bursts: list[tuple[bytes, int]] = []
        self.broken = False
        self.stopped = False
        self.paused = False
        self._written_lines = written_lines
        self._is_over = is_over
        self._hold = hold
        self._closes = closes
        self._stops = stops
        self._pauses = pauses

    def write_all(self, burst: bytes) -> None:
        if self._is_over():
            return  # the process is gone
        if self._closes is not None and len(self.bursts) >= self._closes:
            self.broken = True
            raise BrokenPipeError
        self.bursts.append((burst, self._written_lines()))
        self._maybe_stop(len(self.bursts))

    def _maybe_stop(self, bursts: int) -> None:
        self.stopped = self.stopped or bursts == self._stops
        self.paused = self.paused or bursts in self._pauses
        if self.stopped or self.paused:
            self._hold(True)

    def read_on(self) -> bool:
        """Nothing else can move: whether the client had paused, and now reads on."""
        was_paused, self.paused = self.paused and not self.stopped, False
        if was_paused:
            self._hold(False)
        return was_paused

    @property
    def written(self) -> int:
        return sum(len(burst) for burst, _ in self.bursts)
