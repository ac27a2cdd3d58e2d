"""Patterns that name models: exact ids first, then parts of a name, with an optional `:level` at the end.

Pure. Owns the rules of `--model` and of scopes (`enabledModels`), among them that the whole text is tried as an id
before a colon in it means a level. Source: sessions 4.8.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from protocol.model import THINKING_LEVELS, Model, ThinkingLevel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_DATED = r"(?a)-\d{8}$"  # compiled on first use, not at start


class Match(Struct, frozen=True):
    """`level` is the pattern's suffix; `warning` is one line about a suffix that is no level."""

    model: Model | None
    level: ThinkingLevel | None = None
    warning: str | None = None


class ScopedModel(Struct, frozen=True):
    """A model of the scope that `cycle_model` stays within; a level of its own overrides the session's."""

    model: Model
    level: ThinkingLevel | None = None


def as_level(text: str) -> ThinkingLevel | None:
    return text if text in THINKING_LEVELS else None


def parse_pattern(pattern: str, models: Sequence[Model], *, lenient: bool = False) -> Match:
    """The best model for `pattern`. A suffix that is no level means no match, or, when `lenient`, a warning."""
    if model := find_match(pattern, models):
        return Match(model)
    head, colon, suffix = pattern.rpartition(":")
    if not colon or not head:
        return Match(None)
    if level := as_level(suffix):
        match = parse_pattern(head, models, lenient=lenient)
        return replace(match, level=None if match.warning else level) if match.model else match
    if not lenient:
        return Match(None)
    match = parse_pattern(head, models, lenient=True)
    return Match(match.model, None, _no_level(suffix, pattern)) if match.model else match


def find_match(pattern: str, models: Sequence[Model]) -> Model | None:
    """An exact id, else the best of those that hold `pattern` in their id or name. Case does not matter."""
    if exact := exact_match(pattern, models):
        return exact
    part = pattern.strip().lower()
    if not part or len(_exact(part, models)) > 1:
        return None
    found = [model for model in models if part in model.id.lower() or part in model.name.lower()]
    undated = [model for model in found if model.id.endswith("-latest") or not re.search(_DATED, model.id)]
    return max(undated or found, key=lambda model: _collation(model.id), default=None)


def exact_match(pattern: str, models: Sequence[Model]) -> Model | None:
    """`provider/id` or a bare id; None when several providers have that id."""
    found = _exact(pattern.strip().lower(), models)
    return found[0] if len(found) == 1 else None


def scoped_models(
    patterns: Iterable[str], models: Sequence[Model], is_configured: Callable[[str], bool]
) -> tuple[list[ScopedModel], list[str]]:
    """The scope that a list of patterns spans, in its order, and one warning for each pattern in trouble."""
    patterns = list(patterns)
    available = [model for model in models if is_configured(model.provider)] if patterns else []
    scope: dict[tuple[str, str], ScopedModel] = {}
    warnings: list[str] = []
    for pattern in patterns:
        found, warning = _scope_of(pattern, available)
        if warning or not found:
            warnings.append(warning or f'No models match pattern "{pattern}"')
        for scoped in found:
            scope.setdefault((scoped.model.provider, scoped.model.id), scoped)
    return list(scope.values()), warnings


def _exact(wanted: str, models: Sequence[Model]) -> list[Model]:
    full = [model for model in models if f"{model.provider}/{model.id}".lower() == wanted]
    return full or [model for model in models if model.id.lower() == wanted]


def _scope_of(pattern: str, models: Sequence[Model]) -> tuple[list[ScopedModel], str | None]:
    """Exact ids win over globs: brackets may be part of an id."""
    head, _, suffix = pattern.rpartition(":")
    level = as_level(suffix) if head else None
    for text, own_level in ((pattern, None), (head if level else "", level)):
        if text and (exact := exact_match(text, models)):
            return [ScopedModel(exact, own_level)], None
    if any(mark in pattern for mark in "*?["):
        found = _globbed(head if level else pattern, models)
        is_bad = not (found or level) and bool(found := _globbed(head, models))
        return [ScopedModel(model, level) for model in found], _no_level(suffix, pattern) if is_bad else None
    match = parse_pattern(pattern, models, lenient=True)
    return [ScopedModel(match.model, match.level)] if match.model else [], match.warning


def _no_level(suffix: str, pattern: str) -> str:
    return f'Invalid thinking level "{suffix}" in pattern "{pattern}". Using default instead.'


def _globbed(pattern: str, models: Sequence[Model]) -> list[Model]:
    from fnmatch import fnmatchcase

    glob = pattern.lower()
    return [
        model
        for model in models
        if fnmatchcase(f"{model.provider}/{model.id}".lower(), glob) or fnmatchcase(model.id.lower(), glob)
    ]


def _collation(text: str) -> tuple[tuple[int, str], ...]:
    """The order of a dictionary, near enough: punctuation before digits before letters, case apart."""
    return tuple((2 if char.isalpha() else 1 if char.isdigit() else 0, char) for char in text.lower())
