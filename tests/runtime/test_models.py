"""models.json over the built-in catalogue: what an entry adds, changes, and costs when it is wrong."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from actors.model import openai_compat
from protocol.model import THINKING_LEVELS, Model, supported_levels
from runtime.catalog import GRAMMAR_FLAGS
from runtime.model_fields import COMPAT, MODEL_FIELDS, PROVIDER_FIELDS
from runtime.models import LoadedModels, load_models, merge_models, read_models

BUILT_IN = read_models(b"{}", scripted=False).models


def loaded(**providers: Any) -> LoadedModels:
    return merge_models({"providers": providers}, scripted=False)


def model_of(result: LoadedModels, provider: str, model_id: str) -> Model:
    return next(model for model in result.models if (model.provider, model.id) == (provider, model_id))


LOCAL = {"baseUrl": "http://127.0.0.1:1", "api": "anthropic-messages", "apiKey": "k"}


def test_the_built_in_models_are_whole() -> None:
    for model in BUILT_IN:
        assert model.context_window >= model.max_tokens > 0
        assert model.cost.output > model.cost.input > 0
        assert model.base_url.startswith("https://")
    assert len({(model.provider, model.id) for model in BUILT_IN}) == len(BUILT_IN)
    assert {model.provider for model in BUILT_IN} == {"anthropic", "openai"}


def test_a_custom_model_has_defaults() -> None:
    result = loaded(fa={**LOCAL, "models": [{"id": "m"}]})
    assert result.warnings == []
    model = model_of(result, "fa", "m")
    assert (model.name, model.reasoning, model.input, model.context_window, model.max_tokens) == (
        "m",
        False,
        ("text",),
        128000,
        16384,
    )
    assert (model.api, model.base_url, model.cost.input) == ("anthropic-messages", "http://127.0.0.1:1", 0)
    assert result.models[-1] is model


def test_a_bad_entry_is_one_line_and_the_others_stand() -> None:
    models = [{"id": "good"}, {"id": "bad", "contextWindow": 0}, {"name": "nameless"}, 7, {"id": "also good"}]
    result = loaded(fa={**LOCAL, "models": models})
    assert [model.id for model in result.models if model.provider == "fa"] == ["good", "also good"]
    assert result.warnings == [
        'models.json: provider "fa", model "bad": contextWindow is 0; allowed: a whole number above 0',
        'models.json: provider "fa", models[2]: id is missing',
        'models.json: provider "fa", models[3] is 7; allowed: an object',
    ]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("api", "smoke-signals"),
        ("baseUrl", "ftp://x"),
        ("reasoning", "yes"),
        ("input", ["smell"]),
        ("input", []),
        ("cost", {"input": 1}),
        ("cost", {"input": -1, "output": 1, "cacheRead": 0, "cacheWrite": 0}),
        ("maxTokens", 1.5),
        ("thinkingLevelMap", {"low": 3}),
        ("thinkingLevelMap", {"hard": "x"}),
        ("compat", []),
        ("headers", {"x": 1}),
        ("name", ""),
    ],
)
def test_each_field_is_checked_and_named(field: str, value: Any) -> None:
    result = loaded(fa={**LOCAL, "models": [{"id": "m", field: value}, {"id": "n"}]})
    assert [model.id for model in result.models if model.provider == "fa"] == ["n"]
    assert len(result.warnings) == 1
    assert field in result.warnings[0]


def test_a_bad_provider_costs_only_its_own_overlay() -> None:
    result = loaded(openai={"baseUrl": 5}, empty={}, fa={**LOCAL, "models": [{"id": "m"}]})
    assert [line.startswith("models.json: ") for line in result.warnings] == [True, True]
    assert model_of(result, "openai", "gpt-5").base_url == "https://api.openai.com/v1"
    assert model_of(result, "fa", "m")
    assert (
        'Provider empty: must specify "baseUrl", "headers", "compat", "modelOverrides", or "models".'
        in result.warnings[1]
    )


def test_a_model_needs_an_api_and_an_address() -> None:
    result = loaded(a={"models": [{"id": "m"}]}, b={"models": [{"id": "m", "api": "openai-completions"}]})
    assert 'no "api" specified' in result.warnings[0]
    assert '"baseUrl" is required' in result.warnings[1]


@pytest.mark.parametrize(
    ("data", "begin"),
    [
        (b"{", "Failed to parse models.json: "),
        (b"\xff\xfe", "Failed to parse models.json: "),
        (b"[" * 4000, "Failed to parse models.json: "),
        (b"[]", "Invalid models.json schema:"),
        (b'{"providers": []}', "Invalid models.json schema:"),
    ],
)
def test_a_file_that_makes_no_sense_leaves_the_built_in_models(data: bytes, begin: str) -> None:
    result = read_models(data, scripted=False)
    assert result.models == BUILT_IN
    assert len(result.warnings) == 1
    assert result.warnings[0].startswith(begin)


def test_comments_and_trailing_commas_are_allowed_outside_strings() -> None:
    text = b"""{ // the file
      "providers": {"fa": {"baseUrl": "http://h//x,]", "api": "scripted", // "models": []
        "models": [{"id": "a,}",}, {"id": "b//c"},
        ], // end
      },},}"""
    result = read_models(text, scripted=False)
    assert result.warnings == []
    assert [model.id for model in result.models if model.provider == "fa"] == ["a,}", "b//c"]
    assert model_of(result, "fa", "b//c").base_url == "http://h//x,]"


def test_a_provider_entry_moves_the_built_in_models() -> None:
    result = loaded(anthropic={"baseUrl": "http://proxy", "compat": {"supportsStore": False}})
    model = model_of(result, "anthropic", "claude-opus-5-5")
    assert model.base_url == "http://proxy"
    assert model.compat == {"forceAdaptiveThinking": True, "supportsStore": False}
    assert [m.id for m in result.models] == [m.id for m in BUILT_IN]


def test_an_entry_with_a_built_in_id_replaces_the_model_in_its_place() -> None:
    result = loaded(anthropic={"models": [{"id": "claude-opus-5", "contextWindow": 7}, {"id": "new"}]})
    model = model_of(result, "anthropic", "claude-opus-5")
    assert (model.reasoning, model.context_window, model.cost.input, model.api) == (False, 7, 0, "anthropic-messages")
    ids = [m.id for m in result.models]
    assert ids.index("claude-opus-5") == [m.id for m in BUILT_IN].index("claude-opus-5")
    assert result.models[ids.index("new") + 1].provider == "openai"


def test_overrides_are_the_top_layer_and_merge() -> None:
    tier = {"inputTokensAbove": 5, "input": 1, "output": 2, "cacheRead": 3, "cacheWrite": 4}
    result = loaded(
        fa={
            **LOCAL,
            "models": [{"id": "m", "samplingParams": {"r": {"a": 1, "b": 2}}, "thinkingLevelMap": {"low": "l"}}],
            "modelOverrides": {
                "m": {
                    "samplingParams": {"r": {"b": 3}},
                    "thinkingLevelMap": {"high": None},
                    "cost": {"input": 9},
                    "name": "M",
                },
                "unknown": {"name": 5},
            },
        },
        openai={"modelOverrides": {"gpt-6.1-sol": {"cost": {"tiers": []}}, "gpt-5": {"cost": {"tiers": [tier]}}}},
    )
    assert result.warnings == []
    model = model_of(result, "fa", "m")
    assert model.sampling_params == {"r": {"a": 1, "b": 3}}
    assert model.thinking_level_map == {"low": "l", "high": None}
    assert (model.name, model.cost.input, model.cost.output) == ("M", 9, 0)
    assert model_of(result, "openai", "gpt-6.1-sol").cost.tiers == ()
    tiers = model_of(result, "openai", "gpt-5").cost.tiers
    assert tiers is not UNSET
    assert tiers[0].cache_write == 4


def test_header_values_stay_out_of_models_and_reprs() -> None:
    result = loaded(
        fa={
            **LOCAL,
            "apiKey": "s3cret",
            "headers": {"x-a": "s3cret"},
            "models": [{"id": "m", "headers": {"x-b": "s3cret"}}],
        },
        openai={"modelOverrides": {"gpt-5": {"headers": {"x-c": "s3cret"}}}},
    )
    assert "s3cret" not in repr(result)
    assert result.providers["fa"].headers == {"x-a": "s3cret"}
    assert result.providers["fa"].model_headers == {"m": {"x-b": "s3cret"}}
    assert result.providers["openai"].model_headers == {"gpt-5": {"x-c": "s3cret"}}


@pytest.mark.parametrize(
    "entry", [{"apiKey": ["s3cret"], "models": []}, {"headers": {"x": {"y": "s3cret"}}}, {"headers": "s3cret"}]
)
def test_a_wrong_secret_is_told_by_its_type_only(entry: dict[str, Any]) -> None:
    result = loaded(fa=entry)
    assert "of type" in result.warnings[0]
    assert "s3cret" not in result.warnings[0]


def test_the_scripted_model_is_there_only_when_named() -> None:
    assert all(model.provider != "scripted" for model in BUILT_IN)
    assert read_models(b"{}", scripted=True).models[-1].id == "scripted"
    named = loaded(scripted={"models": [{"id": "demo"}]})
    assert [(m.id, m.api) for m in named.models if m.provider == "scripted"] == [
        ("scripted", "scripted"),
        ("demo", "scripted"),
    ]


def test_the_file_is_read_from_the_agent_directory(tmp_path: Path) -> None:
    assert load_models(str(tmp_path), scripted=False).warnings == []
    (tmp_path / "models.json").write_text(
        json.dumps({"providers": {"fa": {**LOCAL, "models": [{"id": "m"}]}}}), "utf-8"
    )
    assert load_models(str(tmp_path), scripted=False).models[-1].id == "m"


def test_a_models_json_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "models.json").mkdir()
    result = load_models(str(tmp_path), scripted=False)
    assert result.models == BUILT_IN
    assert result.warnings[0].startswith(f"Failed to load {tmp_path}/models.json: ")


SECRET = "s3cret-in-a-wrong-place"
MISPLACED = (SECRET, [SECRET], {"x": SECRET}, {"x": {"y": SECRET}}, f"me:{SECRET}@host/v1", f"htps://me:{SECRET}@host")


@pytest.mark.parametrize("value", MISPLACED)
@pytest.mark.parametrize("field", [*MODEL_FIELDS, *PROVIDER_FIELDS])
def test_no_fault_tells_a_secret_whatever_field_it_stands_in(field: str, value: Any) -> None:
    """As a value; the keys of an object, and ids, are names."""
    for provider in (
        {**LOCAL, field: value},
        {**LOCAL, "models": [{"id": "m", field: value}] if field != "id" else [{"id": [value]}]},
        {**LOCAL, "models": [{"id": "m"}], "modelOverrides": {"m": {field: value} if field != "id" else value}},
        {**LOCAL, "models": [{"id": "m"}], "modelOverrides": {"m": {field: {"input": value, "tiers": [value]}}}},
    ):
        assert all(SECRET not in line for line in loaded(fa=provider).warnings)


@pytest.mark.parametrize("value", MISPLACED)
def test_nor_does_one_about_what_is_no_entry_at_all(value: Any) -> None:
    models = [{"id": "m"}, [value]] if isinstance(value, dict) else [{"id": "m"}, value]
    for document in (
        {"providers": {"anthropic": [value]}},
        {"providers": [value]},
        [value],
        {"providers": {"fa": {**LOCAL, "models": models, "modelOverrides": {"m": [value]}}}},
    ):
        result = merge_models(document, scripted=False)
        assert result.warnings and all(SECRET not in line for line in result.warnings)


def test_the_query_of_a_base_url_is_told_to_nobody_and_not_sent() -> None:
    url = f"https://me:{SECRET}@h/v1?key={SECRET}#{SECRET}"
    result = loaded(fa={**LOCAL, "baseUrl": url, "models": [{"id": "m"}, {"id": "n", "baseUrl": url}]})
    assert len(result.warnings) == 2
    assert "baseUrl: what follows the path" in result.warnings[0]
    assert SECRET not in "".join(result.warnings)
    assert {model.base_url for model in result.models if model.provider == "fa"} == {f"https://me:{SECRET}@h/v1"}
    assert result.providers["fa"].base_url == f"https://me:{SECRET}@h/v1"


@pytest.mark.parametrize(
    "url",
    ["http://h:99999", "http://", "http:///v1", "http://h:0/", "http://h h/", "http://h:x/", "https://[::1", "h/v1"],
)
def test_an_address_that_no_request_could_reach_is_refused(url: str) -> None:
    (line,) = loaded(fa={**LOCAL, "baseUrl": url, "models": [{"id": "m"}]}).warnings
    assert "baseUrl is of type string; allowed: an http:// or https:// URL with a host" in line


@pytest.mark.parametrize("url", ["http://h:1", "https://[::1]:8/v1", "https://u:p%40@h/v1", "https://{region}.h.com"])
def test_an_address_that_a_request_can_reach_counts(url: str) -> None:
    assert loaded(fa={**LOCAL, "baseUrl": url, "models": [{"id": "m"}]}).warnings == []


@pytest.mark.parametrize(
    "headers",
    [{"x": "a\r\nevil: 1"}, {"x": "a\nb"}, {"x": "a\0b"}, {"a b": "x"}, {"": "x"}, {f"a: {SECRET}": "x"}, {"ä": "x"}],
)
def test_headers_that_http_does_not_allow_are_refused(headers: dict[str, str]) -> None:
    for provider in ({**LOCAL, "headers": headers}, {**LOCAL, "models": [{"id": "m", "headers": headers}]}):
        (line,) = loaded(fa=provider).warnings
        assert "headers" in line and SECRET not in line


@pytest.mark.parametrize("name", COMPAT)
def test_a_switch_of_a_wrong_type_is_named_and_left_out(name: str) -> None:
    good = (COMPAT[name] or (True,))[0]
    for bad in ("yes", 1, 0, [], {}):
        entry = {**LOCAL, "compat": {name: bad}, "models": [{"id": "m"}, {"id": "n", "compat": {name: good}}]}
        result = loaded(fa=entry)
        (line,) = result.warnings
        assert f'provider "fa": compat.{name} is ' in line
        assert (model_of(result, "fa", "m").compat, model_of(result, "fa", "n").compat) == (UNSET, {name: good})


def test_switches_that_nobody_knows_are_one_line_and_no_claim() -> None:
    result = loaded(
        fa={**LOCAL, "models": [{"id": "m", "compat": {"suportsStore": True, "z": 1, "supportsStore": True}}]}
    )
    meant = '"suportsStore" (did you mean "supportsStore"?)'
    assert result.warnings == [f'models.json: provider "fa", model "m": compat: unknown keys {meant}, "z"']
    assert model_of(result, "fa", "m").compat == {"supportsStore": True}


def test_every_switch_of_the_dialects_is_known() -> None:
    assert openai_compat._DEFAULTS.keys() <= COMPAT.keys()
    read = {
        name
        for module in ("anthropic_request", "cloud_anthropic", "openai_chat", "openai_chat_request")
        for name in re.findall(
            r'"((?:supports|requires|force)[A-Z]\w+)"',
            Path(openai_compat.__file__).with_name(f"{module}.py").read_text(),
        )
    }
    assert read and read <= COMPAT.keys()
    assert set(GRAMMAR_FLAGS) <= COMPAT.keys()


def surrogates(field: str) -> list[dict[str, Any]]:
    odd = "\ud83d"
    return [{field: value} for value in (odd, {"low": odd}, {"x": odd}, {odd: "x"}, {"x": {"y": [odd]}})]


@pytest.mark.parametrize("field", [*MODEL_FIELDS, *PROVIDER_FIELDS])
def test_no_model_and_no_fault_holds_a_lone_surrogate(field: str) -> None:
    """They would end on stdout, which takes none."""
    for entry in surrogates(field):
        document = {"id": "m", **entry}
        result = loaded(
            fa={**LOCAL, "models": [document, {"id": "n"}], "modelOverrides": {"n": entry}},
            fb={**LOCAL, **entry},
            **{"f\ud83d": {**LOCAL, "models": [document]}},
        )
        for told in (result.models, result.warnings, result.faults):
            msgspec.json.encode(told)


FIELD_NAMES = (*MODEL_FIELDS, *PROVIDER_FIELDS, "providers", "tiers", "anthropic", "input", "output")
names = st.sampled_from(FIELD_NAMES)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | names,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=12,
)


@given(anything, st.dictionaries(names, anything, max_size=4))
def test_no_content_whatever_hides_the_built_in_providers(document: Any, provider: Any) -> None:
    for content in (document, {"providers": {"anthropic": provider}}, {"providers": {"fa": {**LOCAL, **provider}}}):
        result = merge_models(content, scripted=False)
        assert {"anthropic", "openai"} <= {model.provider for model in result.models}
        assert all("\n" not in line for line in result.warnings)


def test_a_warning_names_the_path_and_what_clients_are_told_does_not(tmp_path: Path) -> None:
    (tmp_path / "models.json").write_text('{"providers": {"fa": 7}}')
    result = load_models(str(tmp_path), scripted=False)
    assert result.warnings == [f'{tmp_path}/models.json: provider "fa" is 7; allowed: an object']
    assert result.faults == (("fa", 'models.json: provider "fa" is 7; allowed: an object'),)


def test_keys_that_nobody_reads_are_told_where_they_stand_and_cost_nothing_else() -> None:
    assert merge_models({"provider": {}}, scripted=False).warnings == [
        'models.json: unknown key "provider" (did you mean "providers"?)'
    ]
    entry = {**LOCAL, "baseURL": "x", "models": [{"id": "m", "contextwindow": 1, "zzz": 2}]}
    result = loaded(fa=entry)
    assert result.warnings == [
        'models.json: provider "fa": unknown key "baseURL" (did you mean "baseUrl"?)',
        'models.json: provider "fa", model "m": unknown keys "contextwindow" (did you mean "contextWindow"?), "zzz"',
    ]
    assert model_of(result, "fa", "m").context_window == 128000


def test_a_schema_beside_the_providers_is_not_told() -> None:
    assert merge_models({"$schema": "https://x", "providers": {}}, scripted=False).warnings == []


def test_a_scripted_model_may_have_a_file() -> None:
    entry = {"api": "scripted", "baseUrl": "scripted:replies.jsonl", "apiKey": "none", "models": [{"id": "demo"}]}
    result = loaded(demo=entry)
    assert (result.warnings, model_of(result, "demo", "demo").base_url) == ([], "scripted:replies.jsonl")


def test_a_model_whose_levels_are_all_switched_off_has_off_alone() -> None:
    words = dict.fromkeys(THINKING_LEVELS)
    model = {"id": "m", "reasoning": True, "thinkingLevelMap": words}
    assert supported_levels(model_of(loaded(x={**LOCAL, "models": [model]}), "x", "m")) == ("off",)
