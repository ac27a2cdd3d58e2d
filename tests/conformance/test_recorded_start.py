"""How a replay begins: by the flags of the recorded command, and with the models that its messages name."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.recorded_start import start_of, with_models


@pytest.mark.parametrize(
    ("words", "start"),
    [
        ("atomic --mode rpc", {}),
        ("atomic --mode rpc --no-session", {"in_memory": True}),
        ("atomic --provider a --model=b", {"provider": "a", "model": "b"}),
        ("atomic --no-session --provider=a --model b", {"in_memory": True, "provider": "a", "model": "b"}),
        ("atomic --model b", {}),
        ("atomic --provider a --model", {}),
    ],
)
def test_flags_become_start_conditions(words: str, start: dict[str, Any]) -> None:
    assert start_of(words.split()) == start


def said(provider: str, model: str, api: str) -> dict[str, Any]:
    return {"type": "message_end", "message": {"role": "assistant", "provider": provider, "model": model, "api": api}}


def test_the_providers_of_the_messages_are_played_by_the_kit() -> None:
    records = [
        said("acme", "one", "anthropic-messages"),
        said("acme", "two", "anthropic-messages"),
        said("acme", "two", "anthropic-messages"),
        said("other", "x", "openai-responses"),
        said("given", "x", "openai-responses"),
        said("scripted", "scripted", "scripted"),
        said("fa", "m", "anthropic-messages"),
        {"type": "message_end", "message": "odd"},
    ]
    start = with_models({"in_memory": True, "models": {"given": {"api": "mine"}}}, records)
    assert start["in_memory"] is True
    assert {name: fields.get("baseUrl") for name, fields in start["models"].items()} == {
        "acme": "{{url}}",
        "other": "{{url}}/v1",
        "given": None,
    }
    assert [model["id"] for model in start["models"]["acme"]["models"]] == ["one", "two"]
    assert with_models({}, []) == {}
