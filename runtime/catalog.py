"""The models of this process and who may use them, as sessions see them: a value made from what was read.

Owns how a view follows from settings, flags, `models.json` and credentials, at the start and after each reading. A file
that cannot be read any more leaves what it said before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec import UNSET, Struct
from msgspec.structs import replace

from actors.catalog_view import Choice, Defaults
from protocol.model import Model, ThinkingLevel
from protocol.responses import AuthStatus
from protocol.responses import ScopedModel as ToldModel
from runtime.choose_model import NamedModel, SavedModel, choose_model, find_model
from runtime.credentials import Credentials, no_api_key_text
from runtime.model_patterns import ScopedModel, scoped_models

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from actors.model.prompt import Credential
    from runtime.models import ProviderConfig
    from runtime.stored_credentials import StoredCredential

GRAMMAR_FLAGS = ("supportsOpenAIGrammarTools", "supportsGrammarTools")


class CatalogFiles(Struct, frozen=True):
    """What a pump has read. None: the file could not be read."""

    models: tuple[Model, ...] | None
    providers: Mapping[str, ProviderConfig]
    stored: Mapping[str, StoredCredential] | None


class Flags(NamedTuple):
    """What the command line says about models. `patterns` span the scope: `--models`, else `enabledModels`."""

    named: NamedModel | None = None
    thinking: ThinkingLevel | None = None
    patterns: tuple[str, ...] = ()


class LoadedCatalog:
    """`actors.catalog_view.CatalogView`."""

    __slots__ = ("_credentials", "_flags", "_models", "_providers", "_scope")

    def __init__(
        self,
        models: Sequence[Model],
        providers: Mapping[str, ProviderConfig],
        credentials: Credentials,
        flags: Flags,
        scope: Sequence[ScopedModel],
    ) -> None:
        self._models = tuple(_with_both_flags(model) for model in models)
        self._providers = providers
        self._credentials = credentials
        self._flags = flags
        self._scope = tuple(scope)

    # -- what is there

    def available(self) -> list[Model]:
        return [model for model in self._models if self._is_available(model)]

    def scope(self) -> tuple[ToldModel, ...]:
        """A scoped model is shown as the catalogue has it now."""
        found = ((self.find(model.provider, model.id) or model, level) for model, level in self._scope)
        return tuple(ToldModel(model, level or UNSET) for model, level in found if self._is_available(model))

    def find(self, provider: str, model_id: str) -> Model | None:
        return find_model(self._models, provider, model_id)

    def knows(self, provider: str) -> bool:
        return any(model.provider == provider for model in self._models)

    def refusal(self, model: Model | None) -> str | None:
        if model is None:
            return no_api_key_text("unknown")
        return None if self._is_available(model) else no_api_key_text(model.provider)

    def choose(
        self, saved: tuple[str, str] | None, saved_level: ThinkingLevel | None, defaults: Defaults, *, first: bool
    ) -> Choice:
        speak = first or saved is None
        return choose_model(
            self._models,
            self._credentials.is_configured,
            named=self._flags.named if speak else None,
            saved=SavedModel(*saved) if saved else None,
            scope=self._scope,
            default_provider=defaults.provider,
            default_model=defaults.model,
            thinking=self._flags.thinking if speak else None,
            saved_level=saved_level,
            default_level=defaults.level,
            model_levels=defaults.levels,
        )

    # -- credentials

    def auth_status(self, provider: str) -> AuthStatus:
        configured, source, label = self._credentials.status(provider)
        return AuthStatus(configured, source or UNSET, label or UNSET)

    def authorize(self, model: Model) -> Credential:
        return self._credentials.resolve(model.provider, model)

    def _is_available(self, model: Model) -> bool:
        return self._credentials.is_configured(model.provider)

    # -- what follows from a change

    def reloaded(self, files: CatalogFiles) -> LoadedCatalog:
        """The patterns of the scope are looked up again, in the models that are available now."""
        models = self._models if files.models is None else files.models
        providers = self._providers if files.models is None else files.providers
        credentials = self._credentials.renewed(providers, files.stored)
        scope, _ = scoped_models(self._flags.patterns, models, credentials.is_configured)
        return LoadedCatalog(models, providers, credentials, self._flags, scope)

    def logged_out(self, provider: str) -> LoadedCatalog:
        """What the scope has lost does not come back by another model that also fits its pattern."""
        credentials = self._credentials.with_runtime_key(provider, None)
        scope = [scoped for scoped in self._scope if credentials.is_configured(scoped.model.provider)]
        return LoadedCatalog(self._models, self._providers, credentials, self._flags, scope)


def _with_both_flags(model: Model) -> Model:
    """The switch for grammar tools goes by two names; clients may look for either."""
    compat = model.compat
    if not compat:
        return model
    said = next((compat[name] for name in GRAMMAR_FLAGS if name in compat), None)
    if said is None or all(name in compat for name in GRAMMAR_FLAGS):
        return model
    return replace(model, compat={**compat, **dict.fromkeys(GRAMMAR_FLAGS, said)})
