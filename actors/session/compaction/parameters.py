"""How a compaction is done: the settings `compaction.*`, and the parameters of one run that follow from them.

Owns their defaults and which of explicit value, model's own budget, setting and default counts. `reserve_tokens`
decides only when a compaction begins. Pure. Source: contract, "Compaction reference", Parameters and Per-model budgets.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from actors.session.provider_view import trimmed
from protocol.compaction import CompactionParameters
from protocol.model import Model

GENERIC_QUERY = "the current task, its constraints, the decisions made so far and what is still open"


class ModelBudget(Struct, frozen=True):
    """What `compaction.modelOverrides` says for one model; None: the ordinary setting counts."""

    reserve_tokens: int | None = None
    preserve_recent: int | None = None


class CompactionSettings(Struct, frozen=True):
    """`model_budgets` are by exact `provider/modelId`. `query` None: what the user said last."""

    reserve_tokens: int = 16384
    compression_ratio: float = 0.5
    preserve_recent: int = 2
    query: str | None = None
    model_budgets: Mapping[str, ModelBudget] = {}

    def reserve_of(self, model: Model) -> int:
        """Tokens that must stay free in the window of `model`."""
        own = self._budget(model).reserve_tokens
        return self.reserve_tokens if own is None else own

    def wish(self, model: Model | None, explicit: Wish | None = None) -> Wish:
        """What a run with `model` shall do: `explicit` counts before the settings, each field by itself."""
        given = explicit or Wish()
        own = None if model is None else self._budget(model).preserve_recent
        recent = self.preserve_recent if own is None else own
        return Wish(
            self.compression_ratio if given.compression_ratio is None else given.compression_ratio,
            recent if given.preserve_recent is None else given.preserve_recent,
            _worded(given.query) or _worded(self.query),
        )

    def _budget(self, model: Model) -> ModelBudget:
        return self.model_budgets.get(f"{model.provider}/{model.id}", ModelBudget())


class Wish(Struct, frozen=True):
    """Parameters as somebody asked for them. None: not said."""

    compression_ratio: float | None = None
    preserve_recent: int | None = None
    query: str | None = None

    def effective(self, said_last: str) -> CompactionParameters:
        """The parameters of a run whose conversation `said_last` that: they stand in its result."""
        return CompactionParameters(
            0.5 if self.compression_ratio is None else self.compression_ratio,
            2 if self.preserve_recent is None else self.preserve_recent,
            self.query or _worded(said_last) or GENERIC_QUERY,
        )


def _worded(query: str | None) -> str | None:
    return trimmed(query) or None if query is not None else None
