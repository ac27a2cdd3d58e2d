"""`atomic --list-models [SEARCH]`: the models that can be used now, as a table on stdout."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.stdio import plain, say

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from protocol.model import Model

HEAD = ("provider", "model", "context", "max-out", "thinking", "images")
NONE_AVAILABLE = "No models available. Set an API key, or give a provider an apiKey in models.json."


def print_models(models: Sequence[Model], search: str) -> None:
    """Prints those that hold every word of `search` in provider, id or name."""
    say(models_table(models, search))


def models_table(models: Sequence[Model], search: str) -> str:
    """The table, or one line that says why there is none."""
    if not models:
        return NONE_AVAILABLE
    found = [model for model in models if _fits(model, search.lower().split())]
    if not found:
        return f'No models matching "{plain(search)}"'
    return "\n".join(_lines([HEAD, *map(_row, sorted(found, key=lambda model: (model.provider, model.id)))]))


def _fits(model: Model, words: Iterable[str]) -> bool:
    text = f"{model.provider}/{model.id} {model.name}".lower()
    return all(word in text for word in words)


def _row(model: Model) -> tuple[str, ...]:
    return (
        plain(model.provider),
        plain(model.id),
        _tokens(model.context_window),
        _tokens(model.max_tokens),
        "yes" if model.reasoning else "no",
        "yes" if "image" in model.input else "no",
    )


def _tokens(count: int) -> str:
    """1000000 as 1M, 200000 as 200K."""
    for unit, name in ((1_000_000, "M"), (1000, "K")):
        if count >= unit:
            return f"{count / unit:.1f}".removesuffix(".0") + name
    return str(count)


def _lines(rows: Sequence[tuple[str, ...]]) -> Iterable[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
