"""The model catalogue of a simulated house, and the files behind it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from actors.base import Address
from actors.catalog_data import SCRIPTED
from actors.catalog_view import Defaults, FallbackReason
from actors.mail import CatalogLate, CatalogLoaded, CatalogMail, CredentialRefused
from actors.model.prompt import Credential
from protocol.model import Model, ThinkingLevel, clamp_level
from protocol.responses import AuthStatus, ScopedModel
from runtime.simulation.chances import Chances, Dice
from runtime.simulation.pumps import Once
from runtime.simulation.scheduler import Scheduler

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
