"""The models of this process and who may use them, as sessions see them: a value made from what was read.

Owns how a view follows from settings, flags, `models.json` and credentials, at the start and after each reading. A file
that cannot be read any more leaves what it said before. The login of a base URL (`user:password@`) is in no model that
is shown; it travels with the credential of each request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET, Struct
from msgspec.structs import replace

from actors.catalog_view import Choice, Defaults
from actors.model.cloud_ambient import CLOUD_APIS
from actors.model.url_login import basic, login_in, without_login
from protocol.model import Model, ThinkingLevel
from runtime.choose_model import NamedModel, SavedModel, choose_model, find_model
from runtime.credentials import Credentials, no_api_key_text
from runtime.model_patterns import ScopedModel, scoped_models

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from actors.model.prompt import Credential
    from protocol.responses import AuthStatus
    from protocol.responses import ScopedModel as ToldModel
    from runtime.models import ProviderConfig
    from runtime.stored_credentials import StoredCredential

GRAMMAR_FLAGS = ("supportsOpenAIGrammarTools", "supportsGrammarTools")


class CatalogFiles(Struct, frozen=True):
    """What a pump has read. None: the file could not be read."""

    models: tuple[Model, ...] | None
    providers: Mapping[str, ProviderConfig]
    stored: Mapping[str, StoredCredential] | None


class Flags(Struct, frozen=True):
    """What the command line says about models. `patterns` span the scope: `--models`, else `enabledModels`."""

    named: NamedModel | None = None
    thinking: ThinkingLevel | None = None
    patterns: tuple[str, ...] = ()


class LoadedCatalog:
    """`actors.catalog_view.CatalogView`."""

    __slots__ = ("_credentials", "_flags", "_given", "_logins", "_models", "_providers", "_scope")

    def __init__(
        self,
        models: Sequence[Model],
        providers: Mapping[str, ProviderConfig],
        credentials: Credentials,
        flags: Flags,
        scope: Sequence[ScopedModel],
    ) -> None:
        self._given = tuple(models)
        self._models = tuple(_shown(model) for model in models)
        named = (flags.named.model,) if flags.named else ()
        self._logins = _logins((*named, *(scoped.model for scoped in scope), *models))
        self._providers = providers
        self._credentials = credentials
        self._flags = flags
        self._scope = tuple(scope)

    # -- what is there

    def available(self) -> list[Model]:
        return [model for model in self._models if self._is_available(model)]

    def scope(self) -> tuple[ToldModel, ...]:
        """A scoped model is shown as the catalogue has it now."""
        from protocol.responses import ScopedModel as ToldModel

        found = (
            (self.find(each.model.provider, each.model.id) or _shown(each.model), each.level) for each in self._scope
        )
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
        choice = choose_model(
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
        return replace(choice, model=_shown(choice.model)) if choice.model is not None else choice

    # -- credentials

    def auth_status(self, provider: str) -> AuthStatus:
        from protocol.responses import AuthStatus

        found = self._credentials.status(provider)
        return AuthStatus(found.configured, found.source or UNSET, found.label or UNSET)

    def authorize(self, model: Model) -> Credential:
        credential = self._credentials.resolve(model.provider, model)
        login = _login_for(model, self._logins)
        is_named = any(name.lower() == "authorization" for name, _ in credential.headers)
        if login is None or is_named or model.api in CLOUD_APIS:  # the clouds sign in a way of their own
            return credential
        return replace(credential, headers=(*credential.headers, ("authorization", basic(login))))

    def _is_available(self, model: Model) -> bool:
        return self._credentials.is_configured(model.provider)

    # -- what follows from a change

    def reloaded(self, files: CatalogFiles) -> LoadedCatalog:
        """The patterns of the scope are looked up again, in the models that are available now."""
        models = self._given if files.models is None else files.models
        providers = self._providers if files.models is None else files.providers
        credentials = self._credentials.renewed(providers, files.stored)
        scope, _ = scoped_models(self._flags.patterns, models, credentials.is_configured)
        return LoadedCatalog(models, providers, credentials, self._flags, scope)

    def logged_out(self, provider: str) -> LoadedCatalog:
        """What the scope has lost does not come back by another model that also fits its pattern."""
        credentials = self._credentials.with_runtime_key(provider, None)
        scope = [scoped for scoped in self._scope if credentials.is_configured(scoped.model.provider)]
        return LoadedCatalog(self._given, self._providers, credentials, self._flags, scope)


def _shown(model: Model) -> Model:
    """As sessions and clients may have it: without a login, the switches under all their names."""
    url = model.base_url
    if "@" in url and (shown := without_login(url)) != url:
        model = replace(model, base_url=shown)
    return _with_both_flags(model)


def _logins(models: Iterable[Model]) -> dict[tuple[str, ...], str]:
    """The logins of base URLs, by provider and address, and by the model's id besides: one that `--model` names may
    be no model of the catalogue."""
    found: dict[tuple[str, ...], str] = {}
    for model in models:
        if "@" in model.base_url and (login := login_in(model.base_url)):
            place = (model.provider, without_login(model.base_url))
            found[place] = found[(*place, model.id)] = login
    return found


def _login_for(model: Model, logins: Mapping[tuple[str, ...], str]) -> str | None:
    place = (model.provider, model.base_url)
    return logins.get((*place, model.id)) or logins.get(place)


def _with_both_flags(model: Model) -> Model:
    """The switch for grammar tools goes by two names; clients may look for either."""
    compat = model.compat
    if not compat:
        return model
    said = next((compat[name] for name in GRAMMAR_FLAGS if name in compat), None)
    if said is None or all(name in compat for name in GRAMMAR_FLAGS):
        return model
    return replace(model, compat={**compat, **dict.fromkeys(GRAMMAR_FLAGS, said)})
