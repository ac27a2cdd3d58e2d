"""Choosing the model of a session: the first one, the one that flags name, and the one that a saved session had.

Pure. Owns the order of preference, and the state of a session that has no model. Promises that a default which names
an unknown provider is never replaced without a word. Source: sessions 4.6, 4.7 and 4.8; rpc 2.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from actors.catalog_data import DEFAULT_MODELS, SCRIPTED
from protocol.model import Model, ThinkingLevel, clamp_level
from runtime.credentials import no_api_key_text
from runtime.model_patterns import as_level, exact_match, parse_pattern

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from runtime.model_patterns import ScopedModel

FallbackReason = Literal["configured-provider-unsupported", "session-restore", "no-models-available"]
UNSUPPORTED_DEFAULT = (
    "Configured default model is unavailable or unsupported. Update defaultProvider/defaultModel or use /model."
)


class ModelChoiceError(Exception):
    """A flag names a model that cannot be had: a start-up error."""


class SavedModel(Struct, frozen=True):
    """What the entries of a session say about its model."""

    provider: str
    model_id: str


class Choice(Struct, frozen=True):
    """A session's model and level. Without a model the level is `off`, and `reason` says why. While the reason is
    `configured-provider-unsupported`, every prompt fails with `message`; with `no-models-available` as well."""

    model: Model | None
    thinking_level: ThinkingLevel
    message: str | None = None
    reason: FallbackReason | None = None


class NamedModel(Struct, frozen=True):
    """What `--provider` and `--model` name; `level` is the pattern's suffix, `warning` one line or None."""

    model: Model
    level: ThinkingLevel | None = None
    warning: str | None = None


def choose_model(
    models: Sequence[Model],
    is_configured: Callable[[str], bool],
    *,
    named: NamedModel | None = None,
    saved: SavedModel | None = None,
    scope: Sequence[ScopedModel] = (),
    default_provider: str | None = None,
    default_model: str | None = None,
    thinking: ThinkingLevel | None = None,
    saved_level: ThinkingLevel | None = None,
    default_level: ThinkingLevel = "medium",
    model_levels: Mapping[str, ThinkingLevel] | None = None,
) -> Choice:
    """The model a session starts with. `thinking` is the flag's level, `saved` and `saved_level` are the session's;
    `scope` counts only for a session that has no model of its own yet; `model_levels` are defaults by `provider/id`."""

    def chosen(model: Model, *levels: ThinkingLevel | None) -> Choice:
        default = (model_levels or {}).get(f"{model.provider}/{model.id}", default_level)
        return _chosen(model, next((level for level in levels if level), default))

    if named:
        return chosen(named.model, thinking, named.level, saved_level)
    if saved is None and (scoped := _from_scope(scope, default_provider, default_model)):
        return chosen(scoped.model, thinking, scoped.level, saved_level)
    available = [model for model in models if is_configured(model.provider)]
    if saved and (model := find_model(available, saved.provider, saved.model_id)):
        return chosen(model, thinking, saved_level)
    choice = _initial(models, available, default_provider, default_model)
    if choice.model is not None:
        choice = chosen(choice.model, thinking)
    return _restored_instead(choice, saved) if saved else choice


def find_model(models: Iterable[Model], provider: str, model_id: str) -> Model | None:
    return next((model for model in models if model.provider == provider and model.id == model_id), None)


def resolve_named(
    models: Sequence[Model], is_configured: Callable[[str], bool], provider: str | None, pattern: str
) -> NamedModel:
    """The model of `--model`, with or without `--provider`. Raises ModelChoiceError. Source: sessions 4.8."""
    providers = {model.provider.lower(): model.provider for model in reversed(models)}
    if provider is not None and provider.lower() not in providers:
        raise ModelChoiceError(f'Unknown provider "{provider}". Use --list-models to see available providers/models.')
    known = providers[provider.lower()] if provider is not None else None
    prefix, _, rest = pattern.partition("/")
    if known is None and rest and prefix.lower() in providers:
        return _resolve_prefixed(models, providers[prefix.lower()], pattern, rest)
    if known is not None:
        own = [model for model in models if model.provider == known]
        return _resolve_within(own, rest if rest and prefix.lower() == known.lower() else pattern, known)
    return _resolve_anywhere(models, is_configured, pattern)


def names_scripted(*values: str | None) -> bool:
    """Whether a flag or a setting names the scripted model: only then is it there at all."""
    return any((value or "").lower().split("/")[0].split(":")[0] == SCRIPTED.id for value in values)


def _chosen(model: Model, level: ThinkingLevel) -> Choice:
    return Choice(model, clamp_level(model, level))


def _from_scope(scope: Sequence[ScopedModel], provider: str | None, model_id: str | None) -> ScopedModel | None:
    for scoped in scope:
        if (scoped.model.provider, scoped.model.id) == (provider, model_id):
            return scoped
    return scope[0] if scope else None


def _initial(
    models: Sequence[Model],
    available: Sequence[Model],
    provider: str | None,
    model_id: str | None,
) -> Choice:
    """Its level is not chosen yet."""
    if provider and model_id:
        if all(model.provider != provider for model in models):
            return Choice(None, "off", UNSUPPORTED_DEFAULT, "configured-provider-unsupported")
        if model := find_model(available, provider, model_id):
            return Choice(model, "off")
    preferred = (model for model in available if DEFAULT_MODELS.get(model.provider) == model.id)
    if model := next(preferred, available[0] if available else None):
        return Choice(model, "off")
    return Choice(None, "off", no_api_key_text("unknown"), "no-models-available")


def _restored_instead(choice: Choice, saved: SavedModel) -> Choice:
    """The choice of a session whose own model could not be had."""
    lost = f"Could not restore model {saved.provider}/{saved.model_id}."
    if choice.model is None:
        return replace(choice, message=f"{lost} {choice.message}") if choice.reason == "no-models-available" else choice
    message = f"{lost} Using {choice.model.provider}/{choice.model.id}"
    return replace(choice, message=message, reason="session-restore")


def _resolve_prefixed(models: Sequence[Model], provider: str, pattern: str, rest: str) -> NamedModel:
    """`provider/...`: an id of that provider, else a whole id elsewhere (gateways have ids with slashes)."""
    own = [model for model in models if model.provider == provider]
    if exact := exact_match(rest, own) or exact_match(pattern, models):
        return NamedModel(exact)
    return _resolve_within(own, rest, provider)


def _resolve_within(own: Sequence[Model], pattern: str, provider: str) -> NamedModel:
    match = parse_pattern(pattern, own)
    return NamedModel(match.model, match.level) if match.model else _custom(own, pattern, provider)


def _resolve_anywhere(models: Sequence[Model], is_configured: Callable[[str], bool], pattern: str) -> NamedModel:
    head, _, suffix = pattern.rpartition(":")
    for text, level in ((pattern, None), (head, as_level(suffix))):
        twins = [model for model in models if text and model.id.lower() == text.lower()]
        if len(twins) > 1 and (level or text == pattern):
            return NamedModel(_only_configured(twins, is_configured, text), level)
    match = parse_pattern(pattern, models)
    if match.model is None:
        raise ModelChoiceError(f'Model "{pattern}" not found. Use --list-models to see available models.')
    return NamedModel(match.model, match.level)


def _only_configured(twins: Sequence[Model], is_configured: Callable[[str], bool], pattern: str) -> Model:
    configured = [model for model in twins if is_configured(model.provider)]
    if len(configured) != 1:
        names = ", ".join(f"{model.provider}/{model.id}" for model in twins)
        raise ModelChoiceError(f'Model "{pattern}" is ambiguous across providers: {names}')
    return configured[0]


def _custom(own: Sequence[Model], pattern: str, provider: str) -> NamedModel:
    """An id that the catalogue does not know, at a provider that it knows: newer than the catalogue, most likely."""
    if not pattern.strip():
        raise ModelChoiceError(f'Model "{pattern}" not found. Use --list-models to see available models.')
    head, _, suffix = pattern.rpartition(":")
    level = as_level(suffix) if head else None
    model_id = head if level else pattern
    base = find_model(own, provider, DEFAULT_MODELS.get(provider, "")) or own[0]
    thinks = base.reasoning or level not in (None, "off")
    model = replace(base, id=model_id, name=model_id, reasoning=thinks)
    return NamedModel(model, level, f'Model "{model_id}" not found for provider "{provider}". Using custom model id.')
