"""Which model takes over when the session's own cannot answer.

Pure. `FallbackChain` remembers, for one prompt cycle, where it began and what was tried; the session switches models.
Promises that no model is asked twice at the same level, and that a model which failed for good is not asked at all.
Source: `sessions.md` 3.6 and 4.8 (entries are matched exactly, case counts).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence

from msgspec import UNSET, Struct

from actors.session.retry import classify
from protocol.events import ModelFallbackEnd, ModelFallbackStart
from protocol.messages import AssistantMessage
from protocol.model import THINKING_LEVELS, Model, ThinkingLevel, clamp_level

# The account or the model is what failed: another thinking level does not mend that.
_FOR_GOOD = ("auth", "quota", "model")


class Place(Struct, frozen=True):
    """A model, and the level that it runs at."""

    model: Model
    level: ThinkingLevel

    @property
    def key(self) -> str:
        """`provider/id:level`, as settings write it."""
        return f"{model_key(self.model)}:{self.level}"


class Fallback(Struct, frozen=True):
    """Tell `event`, then go on with `place`."""

    place: Place
    event: ModelFallbackStart


class Restore(Struct, frozen=True):
    """The cycle is over: go back to `home`, unless it is None (the user chose a model meanwhile), then tell `event`."""

    home: Place | None
    event: ModelFallbackEnd


class FallbackChain:
    """The fallbacks of one prompt cycle. `entries` is the setting `fallbackModels`; `models` are all known ones;
    `is_configured` tells whether a provider has credentials; `default_level` is the setting `defaultThinkingLevel`."""

    def __init__(
        self,
        entries: Sequence[str],
        models: Sequence[Model],
        is_configured: Callable[[str], bool],
        default_level: ThinkingLevel | None,
    ) -> None:
        self._entries = entries
        self._models = models
        self._is_configured = is_configured
        self._default_level = default_level
        self._tried: set[str] = set()
        self._condemned: set[str] = set()
        self._home: Place | None = None
        self._steps: list[ModelFallbackStart] = []

    def advance(self, current: Place, failed: AssistantMessage, reason: str) -> Fallback | None:
        """The model that takes over from `current`, or None. `reason` is the error as the client shall read it."""
        place = self.next_place(current, failed)
        self._tried.add(current.key)
        if classify(failed) in _FOR_GOOD:
            self._condemned.add(model_key(current.model))
        if place is None:
            return None
        self._tried.add(place.key)
        self._home = self._home or current
        event = ModelFallbackStart(place.key, reason, len(self._steps) + 1, from_=current.key)
        self._steps.append(event)
        return Fallback(place, event)

    def model_chosen(self) -> None:
        """`set_model` or `cycle_model`: the user's choice stays, and is where a later fallback comes back to."""
        self._home = None

    def level_chosen(self, level: ThinkingLevel) -> None:
        """The user changed the level: the first model comes back with it, as far as it can."""
        if self._home is not None:
            self._home = Place(self._home.model, clamp_level(self._home.model, level))

    def finish(self, reply: AssistantMessage | None) -> Restore | None:
        """The prompt cycle is over, with this last reply; None if no fallback was used."""
        if not self._steps:
            return None
        first, last = self._steps[0], self._steps[-1]
        answered = reply is not None and reply.stop_reason not in ("error", "aborted")
        error = (reply.error_message if reply is not None and not answered else None) or UNSET
        event = ModelFallbackEnd(answered, from_=first.from_, to=last.to, final_error=error)
        return Restore(self._home, event)

    def next_place(self, current: Place, failed: AssistantMessage) -> Place | None:
        """Where `advance` is going to; nothing changes."""
        available = [model for model in self._models if self._is_configured(model.provider)] if self._entries else []
        condemned = {model_key(current.model)} if classify(failed) in _FOR_GOOD else set()
        return next_fallback(
            self._entries,
            available,
            current,
            self._default_level,
            tried=self._tried | {current.key},
            condemned=self._condemned | condemned,
        )


def next_fallback(
    entries: Sequence[str],
    models: Sequence[Model],
    current: Place,
    default_level: ThinkingLevel | None,
    *,
    tried: Container[str],
    condemned: Container[str],
) -> Place | None:
    """The first usable entry. `models` are those with credentials; `tried` holds `Place.key`, `condemned` holds
    `model_key`."""
    for entry in entries:
        model, level = resolve(entry.strip(), models, current.model.provider)
        if model is None or model_key(model) in condemned:
            continue
        place = Place(model, clamp_level(model, level or default_level or current.level))
        if place != current and place.key not in tried:
            return place
    return None


def model_key(model: Model) -> str:
    return f"{model.provider}/{model.id}"


def resolve(entry: str, models: Sequence[Model], provider: str) -> tuple[Model | None, ThinkingLevel | None]:
    """The model that an entry names, with the level at its end. The whole text is tried as an id before its end is
    taken for a level: ids may hold colons. Of several with a bare id that of `provider` is meant."""
    if model := _find(entry, models, provider):
        return model, None
    name, _, suffix = entry.rpartition(":")
    level = next((known for known in THINKING_LEVELS if known == suffix), None)
    return (_find(name, models, provider), level) if level else (None, None)


def _find(name: str, models: Sequence[Model], provider: str) -> Model | None:
    for model in models:
        if model_key(model) == name:
            return model
    found = [model for model in models if model.id == name]
    own = [model for model in found if model.provider == provider]
    return own[0] if own else found[0] if len(found) == 1 else None
