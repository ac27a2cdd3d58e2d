"""How the replay of a recording begins: what the flags of the recorded command say, and which models its messages name.

Pure. A provider of the recording is played by the kit's own server, under the same name; one that is built into the
agent and speaks none of the known dialects is left to the agent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_VALUES = ("provider", "model")
_PATHS = {"anthropic-messages": "", "openai-completions": "/v1", "openai-responses": "/v1"}  # behind the url
_SIZE = {"contextWindow": 200_000, "maxTokens": 8000}


def start_of(command: Sequence[str]) -> dict[str, Any]:
    """Start conditions by the flags `--no-session`, `--provider` and `--model`; the last two only when both are there,
    since the kit names both or none."""
    flags = dict(_flags(command))
    start: dict[str, Any] = {"in_memory": True} if "--no-session" in command else {}
    return start | flags if flags.keys() == set(_VALUES) else start


def _flags(command: Sequence[str]) -> Iterator[tuple[str, str]]:
    for index, word in enumerate(command):
        for name in _VALUES:
            if word == f"--{name}" and index + 1 < len(command):
                yield name, command[index + 1]
            elif word.startswith(f"--{name}="):
                yield name, word.partition("=")[2]


def with_models(start: Mapping[str, Any], records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The start conditions with the providers and models that the recorded messages name, at the kit's server. What
    `start` says itself stays."""
    found: dict[str, Any] = {}
    for provider, model, api in _used(records):
        fields = {"baseUrl": "{{url}}" + _PATHS[api], "api": api, "apiKey": "key-of-the-replay", "models": []}
        models = found.setdefault(provider, fields)["models"]
        if model not in [each["id"] for each in models]:
            models.append({"id": model, **_SIZE})
    given = {name: fields for name, fields in found.items() if name not in ("fa", "fo", "fr")}
    models = given | start.get("models", {})
    return {**start, "models": models} if models else dict(start)


def _used(records: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str, str]]:
    for record in records:
        message = record.get("message")
        if isinstance(message, dict) and message.get("role") == "assistant" and message.get("api") in _PATHS:
            provider, model = message.get("provider"), message.get("model")
            if isinstance(provider, str) and isinstance(model, str):
                yield provider, model, message["api"]
