"""The catalogue as it stands when the process starts: from `models.json`, `auth.json`, settings and flags.

A model that a flag names and that cannot be had is a `ModelChoiceError`; all else is a warning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from actors.catalog_view import Defaults
from runtime.catalog import Flags, LoadedCatalog
from runtime.choose_model import ModelChoiceError, names_scripted, resolve_named
from runtime.config_values import shown
from runtime.credentials import Credentials
from runtime.model_patterns import scoped_models
from runtime.models import load_models
from runtime.settings import file_of
from runtime.stored_credentials import load_stored

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from protocol.model import Model
    from runtime.choose_model import NamedModel
    from runtime.cli import Options
    from runtime.settings import Settings

NO_MODEL_FOR_KEY = "--api-key requires a model to be specified via --model, --provider/--model, or --models"


class StartCatalog(Struct, frozen=True):
    """`scripted` tells that the scripted model was named, `named` what `--model` means."""

    catalog: LoadedCatalog
    scripted: bool
    named: NamedModel | None
    warnings: list[str]


def load_catalog(options: Options, env: Mapping[str, str], agent_dir: str, settings: Settings) -> StartCatalog:
    """Runs no commands and touches no network. Raises ModelChoiceError."""
    patterns = _split(options.models) if options.models is not None else (settings.enabled_models or ())
    scripted = names_scripted(
        options.provider, options.model, settings.default_provider, settings.default_model, *patterns
    )
    loaded = load_models(agent_dir, scripted=scripted)
    stored, faults = load_stored(agent_dir)
    warnings = [*loaded.warnings, *faults]
    credentials = Credentials(env, loaded.providers, stored, _run_command)
    named: NamedModel | None = None
    if options.model is not None:
        named = resolve_named(loaded.models, credentials.is_configured, options.provider, options.model)
        warnings += [named.warning] if named.warning else []
    if options.api_key is not None:
        provider = _provider_of_key(named, options, loaded.models)
        credentials = credentials.with_runtime_key(provider, options.api_key)
    scope, complaints = scoped_models(patterns, loaded.models, credentials.is_configured)
    flags = Flags(named, options.thinking, tuple(patterns))
    catalog = LoadedCatalog(loaded.models, loaded.providers, credentials, flags, scope)
    if named is None and not scope:
        warnings += _unsupported_default(catalog, settings)
    return StartCatalog(catalog, scripted, named, [*warnings, *complaints])


def _unsupported_default(catalog: LoadedCatalog, settings: Settings) -> list[str]:
    """What the refusal of every prompt (`choose_model.UNSUPPORTED_DEFAULT`) leaves open: which names, from where."""
    provider, model = settings.default_provider, settings.default_model
    if not (provider and model) or catalog.knows(provider):
        return []
    file = file_of(settings, "defaultProvider") or "settings.json"
    return [
        f"{file}: there is no provider {shown(provider)}, so the default model {shown(f'{provider}/{model}')} cannot "
        "be used; change defaultProvider and defaultModel, give --model, or add the provider to models.json"
    ]


def start_defaults(settings: Settings) -> Defaults:
    """What the settings say where commands may say otherwise later."""
    return Defaults(
        settings.default_provider,
        settings.default_model,
        settings.default_thinking_level or "medium",
        settings.model_thinking_levels,
        settings.compaction_enabled,
        settings.retry_enabled,
    )


def _split(patterns: str) -> tuple[str, ...]:
    return tuple(pattern.strip() for pattern in patterns.split(",") if pattern.strip())


def _provider_of_key(named: NamedModel | None, options: Options, models: Sequence[Model]) -> str:
    """The key is for the model that the session starts with; of a scope that is the first one."""
    if named is not None:
        return named.model.provider
    scope, _ = scoped_models(_split(options.models or ""), models, lambda _: True)
    if not scope:
        raise ModelChoiceError(NO_MODEL_FOR_KEY)
    return scope[0].model.provider


def _run_command(command: str) -> str | None:
    from runtime.secret_command import run_command

    return run_command(command)
