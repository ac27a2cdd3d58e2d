"""Which model a subagent runs on, and which take over if that one cannot.

Pure. The call's wish comes before the definition's, that before the parent's model; then the definition's fallbacks,
and at last the parent's model, each once. What is not available is passed over, and told. Source: `tasks.md` 3.3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from actors.session.fallback import Place, model_key, resolve
from protocol.model import clamp_level

if TYPE_CHECKING:
    from actors.mail import ParentView
    from actors.task.definition import AgentDefinition
    from protocol.model import Model, ThinkingLevel


class Candidates(Struct, frozen=True):
    """`places` in the order in which they are tried; none: nothing can run. `skipped` are lines about the others."""

    places: tuple[Place, ...]
    skipped: tuple[str, ...]


def candidates(wanted: str | None, agent: AgentDefinition, parent: ParentView) -> Candidates:
    """`wanted` is what the call says."""
    first = wanted or agent.model
    own = Place(parent.model, parent.level) if parent.model is not None else None
    places: list[Place] = []
    skipped: list[str] = []
    if first is None and own is not None:
        places.append(Place(own.model, clamp_level(own.model, agent.thinking or own.level)))
    available = parent.catalog.available()
    for entry in (*filter(None, (first,)), *agent.fallback_models):
        model, level = resolve(entry.strip(), available, own.model.provider if own is not None else "")
        if model is None:
            skipped.append(f"{entry}: no model of that name is available")
        else:
            places.append(Place(model, _level(model, level or (None if wanted else agent.thinking), parent)))
    if own is not None:
        places.append(own)
    return Candidates(_each_once(places), tuple(dict.fromkeys(skipped)))


def _level(model: Model, wanted: ThinkingLevel | None, parent: ParentView) -> ThinkingLevel:
    """A model that was named does not take over the parent's level."""
    return clamp_level(model, wanted or parent.defaults.level_of(model))


def _each_once(places: list[Place]) -> tuple[Place, ...]:
    found: dict[str, Place] = {}
    for place in places:
        found.setdefault(model_key(place.model), place)
    return tuple(found.values())
