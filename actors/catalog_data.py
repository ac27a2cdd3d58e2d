"""The built-in models of Anthropic and OpenAI, and the scripted one.

Owns facts only: ids, limits, prices in dollars per million tokens, and the thinking levels that a model knows. Checked
against the vendors' model pages and the model lists of their SDKs in November 2026; `models.json` corrects what has
changed since. Source: sessions 4.5 and 4.6.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from protocol.model import CostTier, Model, ModelCost

if TYPE_CHECKING:
    from collections.abc import Iterator

# The model that a provider's user gets who never said which.
DEFAULT_MODELS = {"anthropic": "claude-opus-5-5", "openai": "gpt-6.1-sol", "scripted": "scripted"}

Words = dict[str, str | None]
Rates = tuple[float, float, float, float]
# id, name, context window, output limit, rates (input, output, cache read, cache write), tier, thinking words
Row = tuple[str, str, int, int, Rates, tuple[int, Rates] | None, Words | None]

SCRIPTED = Model(
    id="scripted",
    name="Scripted replies",
    api="scripted",
    provider="scripted",
    base_url="",
    reasoning=True,
    input=("text", "image"),
    cost=ModelCost(),
    context_window=200000,
    max_tokens=16384,
)

# Claude 4.6 and later think adaptively, at an effort instead of a budget; the newest cannot stop thinking.
_TO_MAX: Words = {"minimal": None, "max": "max"}
_TO_XHIGH_MAX: Words = {"minimal": None, "xhigh": "xhigh", "max": "max"}
_ALWAYS: Words = {"off": None, **_TO_XHIGH_MAX}
# OpenAI: no `none` where a model always reasons, `minimal` only in GPT-5.
_FROM_MINIMAL: Words = {"off": None}
_FROM_LOW: Words = {"off": None, "minimal": None}
_NONE_TO_HIGH: Words = {"minimal": None}
_NONE_TO_XHIGH: Words = {"minimal": None, "xhigh": "xhigh"}
_NONE_TO_MAX: Words = {"minimal": None, "xhigh": "xhigh", "max": "max"}
_LOW_TO_MAX: Words = {"off": None, **_NONE_TO_MAX}

_MILLION, _LONG = 1_000_000, 1_050_000
_HAIKU_TIER = (100_000, (0.5, 2.5, 0.05, 0.625))

# An empty map: a model that thinks within a budget, at minimal to high.
_ANTHROPIC: tuple[Row, ...] = (
    ("claude-opus-5-5", "Claude Opus 5.5", _MILLION, 128000, (4, 20, 0.2, 5), None, _ALWAYS),
    ("claude-sonnet-5-5", "Claude Sonnet 5.5", _MILLION, 128000, (2, 10, 0.1, 2.5), None, _TO_XHIGH_MAX),
    ("claude-haiku-5-5", "Claude Haiku 5.5", _MILLION, 128000, (0.1, 0.5, 0.01, 0.125), _HAIKU_TIER, _TO_XHIGH_MAX),
    ("claude-fable-5-2", "Claude Fable 5.2", _MILLION, 128000, (8, 40, 0.2, 10), None, _ALWAYS),
    ("claude-fable-5-1", "Claude Fable 5.1", _MILLION, 128000, (10, 50, 0.25, 12.5), None, _ALWAYS),
    ("claude-opus-5", "Claude Opus 5", _MILLION, 128000, (5, 25, 0.5, 6.25), None, _TO_XHIGH_MAX),
    ("claude-sonnet-5", "Claude Sonnet 5", _MILLION, 128000, (2, 10, 0.2, 2.5), None, _TO_XHIGH_MAX),
    ("claude-opus-4-8", "Claude Opus 4.8", _MILLION, 128000, (5, 25, 0.5, 6.25), None, _TO_XHIGH_MAX),
    ("claude-opus-4-7", "Claude Opus 4.7", _MILLION, 128000, (5, 25, 0.5, 6.25), None, _TO_XHIGH_MAX),
    ("claude-opus-4-6", "Claude Opus 4.6", _MILLION, 128000, (5, 25, 0.5, 6.25), None, _TO_MAX),
    ("claude-sonnet-4-6", "Claude Sonnet 4.6", _MILLION, 64000, (3, 15, 0.3, 3.75), None, _TO_MAX),
    ("claude-haiku-4-5", "Claude Haiku 4.5", 200000, 64000, (1, 5, 0.1, 1.25), None, {}),
    ("claude-opus-4-5", "Claude Opus 4.5", 200000, 64000, (5, 25, 0.5, 6.25), None, {}),
    ("claude-sonnet-4-5", "Claude Sonnet 4.5", 200000, 64000, (3, 15, 0.3, 3.75), None, {}),
)


def _long_tier(rates: Rates) -> tuple[int, Rates]:
    """Above 272,000 input tokens OpenAI takes twice the input price and one and a half times the output price."""
    return 272_000, (rates[0] * 2, rates[1] * 1.5, rates[2] * 2, rates[3] * 2)


def _long(model_id: str, name: str, rates: Rates, words: Words) -> Row:
    return (model_id, name, _LONG, 128000, rates, _long_tier(rates), words)


_OPENAI: tuple[Row, ...] = (
    _long("gpt-6.1-sol", "GPT-6.1 Sol", (2, 10, 0.1, 2.5), _LOW_TO_MAX),
    _long("gpt-6.1-terra", "GPT-6.1 Terra", (1, 5, 0.05, 1.25), _NONE_TO_MAX),
    _long("gpt-6-astra", "GPT-6 Astra", (10, 50, 1, 12.5), _LOW_TO_MAX),
    _long("gpt-6-sol", "GPT-6 Sol", (2, 10, 0.2, 2.5), _NONE_TO_MAX),
    _long("gpt-6-luna", "GPT-6 Luna", (0.1, 0.5, 0.01, 0.125), _NONE_TO_MAX),
    _long("gpt-5.6-sol", "GPT-5.6 Sol", (4, 20, 0.4, 5), _NONE_TO_MAX),
    _long("gpt-5.6-terra", "GPT-5.6 Terra", (2, 12, 0.2, 2.5), _NONE_TO_MAX),
    _long("gpt-5.6-luna", "GPT-5.6 Luna", (0.2, 1.2, 0.02, 0.25), _NONE_TO_MAX),
    _long("gpt-5.5", "GPT-5.5", (5, 30, 0.5, 0), _NONE_TO_XHIGH),
    _long("gpt-5.4", "GPT-5.4", (2.5, 15, 0.25, 0), _NONE_TO_XHIGH),
    ("gpt-5.4-mini", "GPT-5.4 mini", 400000, 128000, (0.75, 4.5, 0.075, 0), None, _NONE_TO_XHIGH),
    ("gpt-5.4-nano", "GPT-5.4 nano", 400000, 128000, (0.2, 1.25, 0.02, 0), None, _NONE_TO_XHIGH),
    ("gpt-5.2", "GPT-5.2", 400000, 128000, (1.75, 14, 0.175, 0), None, _NONE_TO_XHIGH),
    ("gpt-5.1", "GPT-5.1", 400000, 128000, (1.25, 10, 0.125, 0), None, _NONE_TO_HIGH),
    ("gpt-5", "GPT-5", 400000, 128000, (1.25, 10, 0.125, 0), None, _FROM_MINIMAL),
    ("gpt-5-mini", "GPT-5 mini", 400000, 128000, (0.25, 2, 0.025, 0), None, _FROM_MINIMAL),
    ("gpt-5-nano", "GPT-5 nano", 400000, 128000, (0.05, 0.4, 0.005, 0), None, _FROM_MINIMAL),
    ("o3", "o3", 200000, 100000, (2, 8, 0.5, 0), None, _FROM_LOW),
    ("gpt-4.1", "GPT-4.1", 1047576, 32768, (2, 8, 0.5, 0), None, None),
    ("gpt-4.1-mini", "GPT-4.1 mini", 1047576, 32768, (0.4, 1.6, 0.1, 0), None, None),
    ("gpt-4o", "GPT-4o", 128000, 16384, (2.5, 10, 1.25, 0), None, None),
    ("gpt-4o-mini", "GPT-4o mini", 128000, 16384, (0.15, 0.6, 0.075, 0), None, None),
)


def built_in_models() -> Iterator[Model]:
    """Every built-in model in catalogue order, the scripted one apart."""
    for row in _ANTHROPIC:
        yield _model(row, "anthropic", "anthropic-messages", "https://api.anthropic.com")
    for row in _OPENAI:
        yield _model(row, "openai", "openai-responses", "https://api.openai.com/v1")


def _model(row: Row, provider: str, api: str, base_url: str) -> Model:
    model_id, name, window, limit, rates, tier, words = row
    compat: dict[str, Any] = {"forceAdaptiveThinking": True} if provider == "anthropic" and words else {}
    return Model(
        id=model_id,
        name=name,
        api=api,
        provider=provider,
        base_url=base_url,
        reasoning=words is not None,
        input=("text", "image"),
        cost=ModelCost(*rates, (CostTier(tier[0], *tier[1]),) if tier else UNSET),
        context_window=window,
        max_tokens=limit,
        thinking_level_map=words or UNSET,
        compat=compat or UNSET,
    )
