"""The models of this process as sessions see them: who may use them, which one a session starts with, and changes."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from actors.catalog_view import Defaults
from protocol.model import Model, ModelCost
from runtime.catalog import GRAMMAR_FLAGS, CatalogFiles, Flags, LoadedCatalog
from runtime.choose_model import NamedModel
from runtime.credentials import Credentials, no_api_key_text
from runtime.model_patterns import scoped_models
from runtime.models import ProviderConfig


def model(provider: str, model_id: str, **changes: Any) -> Model:
    api = "openai-completions"
    return Model(model_id, model_id, api, provider, "", True, ("text",), ModelCost(), 1, 1, **changes)


SONNET, HAIKU, GPT = model("anthropic", "sonnet"), model("anthropic", "haiku"), model("openai", "gpt")
MODELS = (SONNET, HAIKU, GPT)
BOTH = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY")
NO_FLAGS = Flags()
FLAGS = Flags(NamedModel(GPT), "high")


def catalog(*keys: str, flags: Flags = NO_FLAGS, models: tuple[Model, ...] = MODELS) -> LoadedCatalog:
    credentials = Credentials({key: "k" for key in keys}, {}, {}, lambda command: None)
    scope, _ = scoped_models(flags.patterns, models, credentials.is_configured)
    return LoadedCatalog(models, {}, credentials, flags, scope)


def scope(view: LoadedCatalog) -> list[str]:
    return [scoped.model.id for scoped in view.scope()]


def test_only_models_whose_provider_has_a_credential_are_available() -> None:
    assert catalog("OPENAI_API_KEY").available() == [GPT]
    assert catalog().available() == []


def test_a_model_is_found_whether_it_is_available_or_not() -> None:
    assert catalog().find("anthropic", "sonnet") == SONNET
    assert catalog().find("anthropic", "gpt") is None
    assert catalog().knows("anthropic") and not catalog().knows("mistral")


def test_a_model_without_credential_or_no_model_at_all_is_refused_with_help() -> None:
    assert catalog("OPENAI_API_KEY").refusal(GPT) is None
    assert catalog("OPENAI_API_KEY").refusal(SONNET) == no_api_key_text("anthropic")
    assert catalog().refusal(None) == no_api_key_text("unknown")


def test_the_flags_speak_for_the_first_session_even_against_what_it_saved() -> None:
    choice = catalog(*BOTH, flags=FLAGS).choose(("anthropic", "sonnet"), "low", Defaults(), first=True)
    assert (choice.model, choice.thinking_level) == (GPT, "high")


def test_a_later_session_comes_back_with_what_it_saved() -> None:
    choice = catalog(*BOTH, flags=FLAGS).choose(("anthropic", "sonnet"), "low", Defaults(), first=False)
    assert (choice.model, choice.thinking_level) == (SONNET, "low")


def test_a_later_session_that_saved_no_model_follows_the_flags() -> None:
    choice = catalog(*BOTH, flags=FLAGS).choose(None, None, Defaults(), first=False)
    assert (choice.model, choice.thinking_level) == (GPT, "high")


def test_without_flags_the_defaults_of_the_user_choose_model_and_level() -> None:
    defaults = Defaults("openai", "gpt", "low", {"openai/gpt": "high"})
    choice = catalog(*BOTH).choose(None, None, defaults, first=True)
    assert (choice.model, choice.thinking_level) == (GPT, "high")


def test_the_scope_shows_only_what_is_available() -> None:
    flags = Flags(patterns=("sonnet", "gpt"))
    assert scope(catalog(*BOTH, flags=flags)) == ["sonnet", "gpt"]
    assert scope(catalog("OPENAI_API_KEY", flags=flags)) == ["gpt"]
    assert scope(catalog(*BOTH)) == []


def test_after_a_reading_new_models_are_there_and_the_scope_is_looked_up_again() -> None:
    opus = model("anthropic", "opus")
    before = catalog(*BOTH, flags=Flags(patterns=("anthropic/*",)))
    after = before.reloaded(CatalogFiles((*MODELS, opus), {}, {}))
    assert scope(after) == ["sonnet", "haiku", "opus"]
    assert scope(before) == ["sonnet", "haiku"]  # a view never changes


def test_files_that_cannot_be_read_any_more_leave_what_they_said_before() -> None:
    after = catalog(*BOTH).reloaded(CatalogFiles(None, {}, None))
    assert after.available() == list(MODELS)


def test_a_status_tells_where_a_credential_comes_from() -> None:
    assert catalog("OPENAI_API_KEY").auth_status("openai").configured is True
    none = catalog().auth_status("openai")
    assert (none.configured, none.source, none.label) == (False, UNSET, UNSET)


def test_the_switch_for_grammar_tools_is_shown_under_both_its_names() -> None:
    for name in GRAMMAR_FLAGS:
        (shown,) = catalog(*BOTH, models=(model("openai", "g", compat={name: False}),)).available()
        assert shown.compat == dict.fromkeys(GRAMMAR_FLAGS, False)


def with_login(login: str = "user:pass%3Aword@", **changes: Any) -> Model:
    return replace(model("openai", "g"), base_url=f"http://{login}gateway:8080/v1", **changes)


def test_the_login_of_a_base_url_is_shown_to_nobody() -> None:
    named = replace(with_login(), id="another")
    flags = Flags(NamedModel(named), patterns=("g",))
    view = catalog(*BOTH, models=(with_login(),), flags=flags)
    choices = [view.choose(None, None, Defaults(), first=first).model for first in (True, False)]
    shown = [*view.available(), view.find("openai", "g"), view.scope()[0].model, *choices]
    assert {one.base_url for one in shown if one is not None} == {"http://gateway:8080/v1"}
    assert None not in shown
    for later in (view.reloaded(CatalogFiles(None, {}, None)), view.logged_out("mistral")):
        assert [one.base_url for one in later.available()] == ["http://gateway:8080/v1"]


def test_the_login_of_a_base_url_goes_with_each_request_to_that_address() -> None:
    view = catalog(*BOTH, models=(with_login(),), flags=Flags(NamedModel(replace(with_login(), id="another"))))
    sent = ("authorization", "Basic dXNlcjpwYXNzOndvcmQ=")
    for now in (view, view.reloaded(CatalogFiles(None, {}, None)), view.logged_out("mistral")):
        (shown,) = now.available()
        assert now.authorize(shown).headers == (sent,)
    another = view.choose(None, None, Defaults(), first=True).model
    assert another is not None and (another.id, view.authorize(another).headers) == ("another", (sent,))
    assert view.authorize(replace(shown, base_url="http://elsewhere/v1")).headers == ()


def test_a_header_that_the_user_names_wins_over_the_login_of_the_url() -> None:
    config = ProviderConfig("openai", "openai", headers={"Authorization": "Token of-the-user"})
    credentials = Credentials({"OPENAI_API_KEY": "k"}, {"openai": config}, {}, lambda command: None)
    view = LoadedCatalog([with_login()], {"openai": config}, credentials, NO_FLAGS, ())
    assert view.authorize(view.available()[0]).headers == (("Authorization", "Token of-the-user"),)


def test_the_address_of_a_script_is_no_login() -> None:
    script = replace(model("openai", "s"), api="scripted", base_url="scripted:/home/a@b/script.jsonl")
    assert catalog(*BOTH, models=(script,)).available() == [script]
