"""A model as the wire shows it, and the thinking levels it can run at.

Source: contract `rpc-protocol.md`, "Model" and "set_thinking_level".
"""

from __future__ import annotations

from typing import Any, Literal, get_args

from msgspec import UNSET, Struct, UnsetType

ThinkingLevel = Literal["off", "minimal", "low", "medium", "high", "xhigh", "max"]
THINKING_LEVELS: tuple[ThinkingLevel, ...] = get_args(ThinkingLevel)
Modality = Literal["text", "image"]


class CostTier(Struct, rename="camel", frozen=True):
    """Prices for the whole request once its input (cache included) exceeds `input_tokens_above`."""

    input_tokens_above: int
    input: float
    output: float
    cache_read: float
    cache_write: float


class ModelCost(Struct, rename="camel", frozen=True):
    """US dollars per million tokens."""

    input: float = 0
    output: float = 0
    cache_read: float = 0
    cache_write: float = 0
    tiers: tuple[CostTier, ...] | UnsetType = UNSET


class Model(Struct, rename="camel", frozen=True):
    """`context_window` and `max_tokens` count tokens. `thinking_level_map` maps a level to the provider's word for
    it; `None` means that the level is not supported. `compat` holds the switches of an OpenAI-like endpoint."""

    id: str
    name: str
    api: str
    provider: str
    base_url: str
    reasoning: bool
    input: tuple[Modality, ...]
    cost: ModelCost
    context_window: int
    max_tokens: int
    thinking_level_map: dict[str, str | None] | UnsetType = UNSET
    headers: dict[str, str] | UnsetType = UNSET
    compat: dict[str, Any] | UnsetType = UNSET
    sampling_params: dict[str, Any] | UnsetType = UNSET


def supported_levels(model: Model | None) -> tuple[ThinkingLevel, ...]:
    """Levels that `model` can run at, in cycle order. Without a model all levels stand; `xhigh` and `max` need a
    word of the provider."""
    if model is None:
        return THINKING_LEVELS
    if not model.reasoning:
        return ("off",)
    words = model.thinking_level_map or {}
    found = tuple(
        level
        for level in THINKING_LEVELS
        if words.get(level, "") is not None and (level not in ("xhigh", "max") or level in words)
    )
    return found or ("off",)


def clamp_level(model: Model | None, wanted: ThinkingLevel) -> ThinkingLevel:
    """The supported level at or above `wanted`, else the nearest below it."""
    levels = supported_levels(model)
    rank = THINKING_LEVELS.index(wanted)
    above = [level for level in levels if THINKING_LEVELS.index(level) >= rank]
    if above:
        return above[0]
    return levels[-1] if levels else "off"
