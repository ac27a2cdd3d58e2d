"""The catalogue at the start: what --model, --models and --api-key make of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runtime.choose_model import ModelChoiceError
from runtime.cli import Options
from runtime.load_catalog import NO_MODEL_FOR_KEY, StartCatalog, load_catalog, start_defaults
from runtime.settings import Settings

ENDPOINT = {"baseUrl": "http://h", "api": "anthropic-messages"}
PROVIDERS: dict[str, Any] = {
    "fa": {**ENDPOINT, "apiKey": "k", "models": [{"id": "m"}, {"id": "think", "reasoning": True}]},
    "closed": {**ENDPOINT, "models": [{"id": "x"}]},
}
NO_SETTINGS = Settings()


def load(folder: Path, settings: Settings = NO_SETTINGS, **options: Any) -> StartCatalog:
    (folder / "models.json").write_text(json.dumps({"providers": PROVIDERS}))
    return load_catalog(Options(**options), {}, str(folder), settings)


def scope(start: StartCatalog) -> list[tuple[str, Any]]:
    return [(f"{one.model.provider}/{one.model.id}", one.thinking_level or None) for one in start.catalog.scope()]


def test_the_flag_spans_the_scope_with_levels(tmp_path: Path) -> None:
    start = load(tmp_path, models=" think:high , fa/*, nope")
    assert scope(start) == [("fa/think", "high"), ("fa/m", None)]
    assert start.warnings == ['No models match pattern "nope"']


def test_the_setting_spans_it_unless_the_flag_does(tmp_path: Path) -> None:
    settings = Settings(enabled_models=("m",))
    assert scope(load(tmp_path, settings)) == [("fa/m", None)]
    assert scope(load(tmp_path, settings, models="think")) == [("fa/think", None)]


def test_a_session_starts_with_the_first_model_of_the_scope_unless_the_default_is_in_it(tmp_path: Path) -> None:
    first = load(tmp_path, models="think:low,m")
    choice = first.catalog.choose(None, None, start_defaults(NO_SETTINGS), first=True)
    assert choice.model is not None
    assert (choice.model.id, choice.thinking_level) == ("think", "low")
    settings = Settings(default_provider="fa", default_model="m")
    choice = first.catalog.choose(None, None, start_defaults(settings), first=True)
    assert choice.model is not None and choice.model.id == "m"


@pytest.mark.parametrize("options", [{"model": "closed/x"}, {"provider": "closed", "model": "x"}, {"models": "x,m"}])
def test_a_key_on_the_command_line_opens_the_provider_of_the_first_model(
    tmp_path: Path, options: dict[str, str]
) -> None:
    start = load(tmp_path, api_key="s3cret", **options)
    model = start.catalog.find("closed", "x")
    assert model is not None
    assert start.catalog.authorize(model).api_key == "s3cret"
    assert start.catalog.auth_status("closed").source == "runtime"
    assert start.catalog.auth_status("fa").source == "models_json_key"
    assert start.catalog.logged_out("closed").refusal(model) is not None


@pytest.mark.parametrize("options", [{}, {"models": "nope"}])
def test_a_key_for_no_model_is_refused(tmp_path: Path, options: dict[str, str]) -> None:
    with pytest.raises(ModelChoiceError) as failure:
        load(tmp_path, api_key="s3cret", **options)
    assert str(failure.value) == NO_MODEL_FOR_KEY


def test_a_saved_level_of_a_model_outranks_the_default_and_yields_to_the_flag(tmp_path: Path) -> None:
    settings = Settings(default_thinking_level="low", model_thinking_levels={"fa/think": "high"})
    defaults = start_defaults(settings)
    plain = load(tmp_path, settings, model="think")
    assert plain.catalog.choose(None, None, defaults, first=True).thinking_level == "high"
    flagged = load(tmp_path, settings, model="think", thinking="minimal")
    assert flagged.catalog.choose(None, None, defaults, first=True).thinking_level == "minimal"


def test_a_default_of_a_provider_that_is_not_there_is_told_with_its_file(tmp_path: Path) -> None:
    settings = Settings(
        default_provider="gone", default_model="m", documents=(("/h/settings.json", {"defaultProvider": "gone"}),)
    )
    (line,) = load(tmp_path, settings).warnings
    assert line.startswith(
        '/h/settings.json: there is no provider "gone", so the default model "gone/m" cannot be used'
    )
    assert load(tmp_path, settings, model="fa/m").warnings == []
    assert load(tmp_path, Settings(default_provider="fa", default_model="none")).warnings == []
