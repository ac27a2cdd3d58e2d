"""Choosing a model: names and patterns, the first model of a session, and a saved one that is gone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.model import Model, ModelCost
from runtime.choose_model import (
    UNSUPPORTED_DEFAULT,
    Choice,
    ModelChoiceError,
    SavedModel,
    choose_model,
    names_scripted,
    resolve_named,
)
from runtime.model_patterns import find_match, parse_pattern, scoped_models
from runtime.models import merge_models


def model(full_id: str, *, reasoning: bool = True, name: str = "") -> Model:
    provider, model_id = full_id.split("/", 1)
    return Model(
        id=model_id,
        name=name or model_id,
        api="openai-completions",
        provider=provider,
        base_url="http://h",
        reasoning=reasoning,
        input=("text",),
        cost=ModelCost(),
        context_window=1,
        max_tokens=1,
    )


MODELS = [
    model("anthropic/claude-opus-5-5"),
    model("anthropic/claude-sonnet-4-5-20250929"),
    model("anthropic/claude-sonnet-4-5", name="Sonnet"),
    model("anthropic/claude-sonnet-4-6"),
    model("openai/gpt-5", reasoning=False),
    model("local/qwen3-coder:exacto"),
    model("local/fast:high"),
    model("gateway/openai/gpt-5"),
    model("gateway/some[free]"),
    model("a/twin"),
    model("b/twin"),
]


def only(*providers: str) -> Callable[[str], bool]:
    return set(providers).__contains__


def named(pattern: str, provider: str | None = None, authed: tuple[str, ...] = ()) -> tuple[str, str | None]:
    found = resolve_named(MODELS, only(*authed), provider, pattern)
    return f"{found.model.provider}/{found.model.id}", found.level


@pytest.mark.parametrize(
    ("pattern", "full_id", "level"),
    [
        ("claude-sonnet-4-5", "anthropic/claude-sonnet-4-5", None),
        ("Anthropic/CLAUDE-opus-5-5", "anthropic/claude-opus-5-5", None),
        ("opus:high", "anthropic/claude-opus-5-5", "high"),
        ("sonnet", "anthropic/claude-sonnet-4-6", None),
        ("qwen3-coder:exacto:high", "local/qwen3-coder:exacto", "high"),
        ("fast:high", "local/fast:high", None),
        ("fast:high:low", "local/fast:high", "low"),
        ("gateway/openai/gpt-5", "gateway/openai/gpt-5", None),
        ("openai/gpt-5", "openai/gpt-5", None),
        ("some[free]", "gateway/some[free]", None),
    ],
)
def test_a_pattern_names_a_model(pattern: str, full_id: str, level: str | None) -> None:
    assert named(pattern) == (full_id, level)


def test_a_provider_flag_narrows_the_search() -> None:
    assert named("twin", "b") == ("b/twin", None)
    assert named("B/twin", "b") == ("b/twin", None)
    assert named("opus", "ANTHROPIC") == ("anthropic/claude-opus-5-5", None)


def test_of_twins_the_one_with_a_key_is_meant() -> None:
    assert named("twin", authed=("b",)) == ("b/twin", None)
    assert named("twin:low", authed=("a", "local")) == ("a/twin", "low")


@pytest.mark.parametrize("authed", [(), ("a", "b")])
def test_twins_that_cannot_be_told_apart_are_an_error(authed: tuple[str, ...]) -> None:
    with pytest.raises(ModelChoiceError) as failure:
        named("twin", authed=authed)
    assert str(failure.value) == 'Model "twin" is ambiguous across providers: a/twin, b/twin'


def test_an_unknown_provider_is_an_error() -> None:
    with pytest.raises(ModelChoiceError) as failure:
        named("x", "nobody")
    assert str(failure.value) == 'Unknown provider "nobody". Use --list-models to see available providers/models.'


@pytest.mark.parametrize("pattern", ["nothing-like-it", "opus:hard", "", " ", "nobody/x"])
def test_an_unknown_model_is_an_error(pattern: str) -> None:
    with pytest.raises(ModelChoiceError) as failure:
        named(pattern)
    assert str(failure.value) == f'Model "{pattern}" not found. Use --list-models to see available models.'


def test_an_unknown_id_of_a_known_provider_is_taken_at_its_word() -> None:
    found = resolve_named(MODELS, only(), "openai", "gpt-9")
    assert (found.model.id, found.model.name, found.model.base_url) == ("gpt-9", "gpt-9", "http://h")
    assert found.warning == 'Model "gpt-9" not found for provider "openai". Using custom model id.'
    assert not found.model.reasoning
    thinking = resolve_named(MODELS, only(), None, "openai/gpt-9:high")
    assert (thinking.model.id, thinking.level, thinking.model.reasoning) == ("gpt-9", "high", True)


@given(st.text(max_size=20))
def test_any_pattern_yields_a_model_or_one_clear_error(pattern: str) -> None:
    try:
        found = resolve_named(MODELS, only("a"), None, pattern)
    except ModelChoiceError as error:
        assert pattern in str(error)
    else:
        assert found.model in MODELS or found.warning


def test_an_undated_id_is_preferred_and_case_does_not_matter() -> None:
    found = find_match("SONNET-4-5", MODELS)
    assert found is not None
    assert found.id == "claude-sonnet-4-5"


def test_a_lenient_pattern_warns_about_a_suffix_that_is_no_level() -> None:
    match = parse_pattern("opus:hard", MODELS, lenient=True)
    assert match.model is MODELS[0]
    assert match.warning == 'Invalid thinking level "hard" in pattern "opus:hard". Using default instead.'


@pytest.mark.parametrize(
    "pattern", ["anthropic/*:ultra", "opus:ultra", "anthropic/claude-opus-5-5:ultra", "local/f*:x"]
)
def test_a_suffix_of_a_scope_that_is_no_level_is_told_and_ignored(pattern: str) -> None:
    scope, warnings = scoped_models([pattern], MODELS, lambda _: True)
    plain, _ = scoped_models([pattern.rpartition(":")[0]], MODELS, lambda _: True)
    assert scope == plain != []
    assert warnings == [
        f'Invalid thinking level "{pattern.rpartition(":")[2]}" in pattern "{pattern}". Using default instead.'
    ]


def test_a_glob_with_a_colon_of_an_id_is_no_level() -> None:
    scope, warnings = scoped_models(["local/*:exacto"], MODELS, lambda _: True)
    assert ([scoped.model.id for scoped in scope], warnings) == (["qwen3-coder:exacto"], [])


def test_a_scope_follows_its_patterns_and_keeps_each_model_once() -> None:
    scope, warnings = scoped_models(
        ["some[free]", "anthropic/*sonnet*:low", "claude-opus-5-5", "opus", "nothing"],
        MODELS,
        only("anthropic", "gateway"),
    )
    assert [(entry.model.id, entry.level) for entry in scope] == [
        ("some[free]", None),
        ("claude-sonnet-4-5-20250929", "low"),
        ("claude-sonnet-4-5", "low"),
        ("claude-sonnet-4-6", "low"),
        ("claude-opus-5-5", None),
    ]
    assert warnings == ['No models match pattern "nothing"']


# ---- the first model


def chosen(authed: tuple[str, ...], **more: Any) -> tuple[str, str, str | None]:
    choice = choose_model(MODELS, only(*authed), **more)
    assert choice.model is not None
    return f"{choice.model.provider}/{choice.model.id}", choice.thinking_level, choice.reason


def test_a_named_model_wins_over_all_else() -> None:
    flag = resolve_named(MODELS, only(), None, "opus:low")
    saved = SavedModel("local", "fast:high")
    assert chosen(("local",), named=flag, saved=saved) == ("anthropic/claude-opus-5-5", "low", None)
    assert chosen((), named=flag, thinking="high")[1] == "high"


def test_the_sessions_model_comes_before_the_defaults() -> None:
    saved = SavedModel("local", "fast:high")
    defaults = {"default_provider": "anthropic", "default_model": "claude-opus-5-5"}
    assert chosen(("local", "anthropic"), saved=saved, saved_level="low", **defaults) == (
        "local/fast:high",
        "low",
        None,
    )


def test_a_saved_model_that_cannot_be_had_is_replaced_with_a_message() -> None:
    choice = choose_model(MODELS, only("local"), saved=SavedModel("gone", "m"))
    assert choice.message == "Could not restore model gone/m. Using local/qwen3-coder:exacto"
    assert choice.reason == "session-restore"


def test_the_default_of_the_settings_needs_a_key() -> None:
    defaults = {"default_provider": "openai", "default_model": "gpt-5"}
    assert chosen(("openai", "anthropic"), **defaults)[0] == "openai/gpt-5"
    assert chosen(("anthropic",), **defaults)[0] == "anthropic/claude-opus-5-5"


def test_a_default_of_an_unknown_provider_is_never_replaced_in_silence() -> None:
    choice = choose_model(MODELS, only("anthropic"), default_provider="gone", default_model="m")
    assert choice == Choice(None, "off", UNSUPPORTED_DEFAULT, "configured-provider-unsupported")


def test_half_a_default_does_not_lock() -> None:
    assert chosen(("local",), default_provider="gone")[0] == "local/qwen3-coder:exacto"


def test_without_any_key_there_is_no_model() -> None:
    choice = choose_model(MODELS, only())
    assert (choice.model, choice.thinking_level, choice.reason) == (None, "off", "no-models-available")
    assert choice.message is not None
    assert choice.message.startswith("No API key found for the selected model.\n\n")


def test_a_scope_counts_for_a_new_session_only() -> None:
    scope, _ = scoped_models(["claude-sonnet-4-6:low", "claude-opus-5-5"], MODELS, only("anthropic"))
    assert chosen(("anthropic",), scope=scope)[:2] == ("anthropic/claude-sonnet-4-6", "low")
    defaults = {"default_provider": "anthropic", "default_model": "claude-opus-5-5"}
    assert chosen(("anthropic",), scope=scope, **defaults)[0] == "anthropic/claude-opus-5-5"
    saved = SavedModel("local", "fast:high")
    assert chosen(("anthropic", "local"), scope=scope, saved=saved)[0] == "local/fast:high"


def test_the_level_is_clamped_to_what_the_model_can() -> None:
    assert chosen(("openai",), thinking="high")[1] == "off"
    assert chosen(("local",), thinking="max")[1] == "high"
    assert chosen(("local",), default_level="low")[1] == "low"


def test_the_scripted_model_is_never_chosen_unless_it_is_there() -> None:
    everything = merge_models({}, scripted=False).models
    assert choose_model(everything, only("scripted")).model is None
    with_it = merge_models({}, scripted=True).models
    assert choose_model(with_it, only("scripted")).model == with_it[-1]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (("scripted", None), True),
        ((None, "Scripted/scripted:high"), True),
        ((None, "scripted:low"), True),
        ((None, None), False),
        (("fa", "unscripted"), False),
    ],
)
def test_the_scripted_model_is_recognised_by_name(values: tuple[str | None, ...], expected: bool) -> None:
    assert names_scripted(*values) is expected
