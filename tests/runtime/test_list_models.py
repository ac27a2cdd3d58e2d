"""The table of models: whole words narrow it, and numbers are short."""

from __future__ import annotations

from protocol.model import Model, ModelCost
from runtime.list_models import NONE_AVAILABLE, models_table


def model(provider: str, model_id: str, window: int, *, reasoning: bool = False) -> Model:
    return Model(model_id, model_id, "scripted", provider, "", reasoning, ("text", "image"), ModelCost(), window, 900)


MODELS = [model("b", "long-name", 1_000_000, reasoning=True), model("a", "x", 131_072)]


def test_the_table_is_sorted_and_aligned() -> None:
    assert models_table(MODELS, "").splitlines() == [
        "provider  model      context  max-out  thinking  images",
        "a         x          131.1K   900      no        yes",
        "b         long-name  1M       900      yes       yes",
    ]


def test_every_word_of_a_search_must_occur() -> None:
    assert len(models_table(MODELS, "NAME b/").splitlines()) == 2
    assert models_table(MODELS, "name zzz") == 'No models matching "name zzz"'


def test_an_id_does_not_move_the_cursor_or_begin_a_line() -> None:
    evil = model("p\x9b2J", "\x1b]0;title\x07\n\ud83d", 1000)
    lines = models_table([evil], "").splitlines()
    assert len(lines) == 2 and all(map(str.isprintable, lines))
    assert models_table([evil], "\x1b").splitlines() == lines
    assert models_table(MODELS, "\x1b[31m").isprintable()


def test_without_a_model_it_says_what_to_do() -> None:
    assert models_table([], "x") == NONE_AVAILABLE
