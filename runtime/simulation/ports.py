"""What the actors reach besides mail: the model catalogue, the settings file, surroundings, exports and stdout.

Each is the smallest thing that keeps the promises of the real one. What takes time there is a pump here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from actors.base import Address
from actors.catalog_data import SCRIPTED
from actors.catalog_view import Defaults, FallbackReason
from actors.mail import (
    CatalogLate,
    CatalogLoaded,
    CatalogMail,
    CredentialRefused,
    Exported,
    ImagesFitted,
    IntakeMail,
    SessionMail,
    SurroundingsLoaded,
    Ticket,
)
from actors.model.attempts import RequestLimits
from actors.model.prompt import Credential
from actors.session.compaction_work import worked
from actors.session.expansion import Expander, Origin, Skill, Template
from actors.session.retry import RetryPolicy
from actors.session.surroundings import Surroundings
from protocol.codec import Rejected
from protocol.commands import WithImages, command_name
from protocol.model import Model, ThinkingLevel, clamp_level
from protocol.responses import AuthStatus, ScopedModel
from runtime.simulation.chances import Chances, Dice
from runtime.simulation.scheduler import Scheduler
from runtime.simulation.world import Once

# ---- models and credentials --------------------------------------------------------------------------------------

MODELS = (
    SCRIPTED,
    replace(SCRIPTED, id="quick", name="Quick replies", reasoning=False),
    replace(SCRIPTED, id="spare", name="Spare replies", provider="spare"),
)
PROVIDERS = frozenset(model.provider for model in MODELS)
NO_DEFAULTS = Defaults()


class Chosen(Struct, frozen=True):
    """A session's model at its start."""

    model: Model | None
    thinking_level: ThinkingLevel = "off"
    message: str | None = None
    reason: FallbackReason | None = None


class SimulatedCatalog(Struct, frozen=True):
    """Three models of two providers; `keyed` are those with a credential. `lacks_default` blocks the first session."""

    keyed: frozenset[str] = PROVIDERS
    has_scope: bool = False
    lacks_default: bool = False

    def available(self) -> list[Model]:
        return [model for model in MODELS if model.provider in self.keyed]

    def scope(self) -> tuple[ScopedModel, ...]:
        return tuple(ScopedModel(model, "low") for model in self.available()[:2]) if self.has_scope else ()

    def find(self, provider: str, model_id: str) -> Model | None:
        return next((model for model in MODELS if (model.provider, model.id) == (provider, model_id)), None)

    def knows(self, provider: str) -> bool:
        return provider in PROVIDERS

    def refusal(self, model: Model | None) -> str | None:
        if model is None:
            return "No model selected."
        return None if model.provider in self.keyed else f"No API key for provider: {model.provider}"

    def choose(
        self,
        saved: tuple[str, str] | None,
        saved_level: ThinkingLevel | None,
        defaults: Defaults = NO_DEFAULTS,
        *,
        first: bool,
    ) -> Chosen:
        if first and self.lacks_default:
            return Chosen(None, "off", "Configured default model is unavailable.", "configured-provider-unsupported")
        available = self.available()
        wanted = saved or (defaults.provider, defaults.model)
        model = next((model for model in available if (model.provider, model.id) == wanted), None)
        model = model or (available[0] if available else None)
        if model is None:
            return Chosen(None, "off", "No models available.", "no-models-available")
        return Chosen(model, clamp_level(model, saved_level or defaults.level_of(model)))

    def auth_status(self, provider: str) -> AuthStatus:
        return AuthStatus(provider in self.keyed)

    def authorize(self, model: Model) -> Credential:
        raise ValueError("the simulation sends no request")

    def reloaded(self, files: Any) -> SimulatedCatalog:
        return replace(self, keyed=files)

    def logged_out(self, provider: str) -> SimulatedCatalog:
        return replace(self, keyed=self.keyed - {provider})


def simulated_catalog(dice: Dice) -> SimulatedCatalog:
    """What the program starts with."""
    keyless = dice.strikes("models: no credential at the start", 0.08)
    return SimulatedCatalog(
        frozenset() if keyless else PROVIDERS,
        has_scope=dice.strikes("models: a scope", 0.2),
        lacks_default=dice.strikes("models: the default is not supported", 0.05),
    )


class CatalogReader:
    """The port of the Catalog: each job ends some steps later; a refresh may be late before, a write may fail."""

    def __init__(self, keyed: frozenset[str], scheduler: Scheduler, chances: Chances) -> None:
        self._keyed = keyed
        self._scheduler = scheduler
        self._chances = chances

    def load(self, job: int, timeout_ms: float | None, to: Address[CatalogMail]) -> None:
        errors = (("models.json", "simulated"),) if self._strikes(job, "models: a file is broken", 0.2) else ()
        self._later(to, CatalogLoaded(job, float(self._scheduler.steps), self._keyed, errors))
        if timeout_ms is not None and self._strikes(job, "models: refresh is late", 0.7):
            self._later(to, CatalogLate(job))

    def save(self, job: int, provider: str, credential: Mapping[str, Any], to: Address[CatalogMail]) -> None:
        self._write(job, self._keyed | {provider}, to)

    def remove(self, job: int, provider: str, to: Address[CatalogMail]) -> None:
        self._write(job, self._keyed - {provider}, to)

    def _write(self, job: int, keyed: frozenset[str], to: Address[CatalogMail]) -> None:
        if self._strikes(job, "credentials: not written", 0.15):
            self._later(to, CredentialRefused(job, "simulated"))
            return
        self._keyed = keyed
        if self._strikes(job, "credentials: written, then not read", 0.15):
            self._later(to, CredentialRefused(job, "simulated", committed=True))
        else:
            self.load(job, None, to)

    def _strikes(self, job: int, what: str, probability: float) -> bool:
        return self._chances.dice(f"catalog job {job} {what}").strikes(what, probability)

    def _later(self, to: Address[CatalogMail], mail: CatalogMail) -> None:
        self._scheduler.add_pump(Once(lambda: to.tell(mail)), "catalog-pump")


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
    """`reload`, `export_html`, large images and compactions: they end some steps later, and may fail."""

    def __init__(self, scheduler: Scheduler, chances: Chances) -> None:
        self._scheduler = scheduler
        self._chances = chances

    def load_surroundings(self, ticket: Ticket, cwd: str, session: Address[SessionMail]) -> None:
        dice = self._chances.dice(f"reload {ticket.serial}")
        loaded = SurroundingsLoaded(ticket, simulated_surroundings(dice))
        if dice.strikes("reload: fails", 0.2):
            loaded = SurroundingsLoaded(ticket, None, "simulated")
        self._scheduler.add_pump(Once(lambda: session.tell(loaded)), "reload")

    def fit_images(self, serial: int, command: WithImages, intake: Address[IntakeMail]) -> None:
        """Sometimes there is no way to make them smaller."""
        fitted: WithImages | Rejected = replace(command, images=())
        if self._chances.dice(f"images {serial}").strikes("images: cannot be made smaller", 0.2):
            fitted = Rejected(bytes(command.id), command_name(command), "simulated: no such image")
        self._scheduler.add_pump(Once(lambda: intake.tell(ImagesFitted(serial, fitted))), "images-pump")

    def work(self, job: int, task: Callable[[], Any], session: Address[SessionMail]) -> None:
        """The heavy parts of a compaction."""
        self._scheduler.add_pump(Once(lambda: session.tell(worked(job, task))), "compaction")

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
