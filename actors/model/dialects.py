"""Which dialect a model speaks, by its `api`.

The one door between the session and the providers. A dialect is imported when the first model that speaks it is
asked. Pure: no I/O, no clock.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, cast

from actors.model import http_errors
from actors.model.prompt import Credential, HttpRequest, ModelPrompt, RequestOptions
from actors.model.reply import ReplyReader
from protocol.model import Model

_MODULES = {
    "anthropic-messages": "actors.model.anthropic",
    "azure-openai-responses": "actors.model.cloud_azure",
    "bedrock-converse-stream": "actors.model.cloud_anthropic",
    "google-vertex": "actors.model.cloud_anthropic",
    "openai-completions": "actors.model.openai_chat",
    "openai-responses": "actors.model.openai_responses",
    "scripted": "actors.model.scripted",
}


def build_request(model: Model, prompt: ModelPrompt, options: RequestOptions, credential: Credential) -> HttpRequest:
    """The request that asks `prompt` of `model`. Raises ValueError with a text for the user: an api that is not
    known, a missing key, a value that no JSON can hold."""
    return cast(HttpRequest, _dialect(model).build_request(model, prompt, options, credential))


def reader_for(model: Model, now_ms: int) -> ReplyReader:
    """A reader for one reply of `model` that begins at `now_ms` (milliseconds since the epoch). Raises ValueError
    for an api that is not known."""
    return cast(ReplyReader, _dialect(model).reader(model, now_ms))


def http_error_text(api: str, status: int, body: bytes) -> str:
    """The text of an HTTP error answer, in the words of the api that `api` is a guise of."""
    return http_errors.http_error_text("openai-responses" if api == "azure-openai-responses" else api, status, body)


def _dialect(model: Model) -> Any:
    name = _MODULES.get(model.api)
    if name is None:
        allowed = ", ".join(_MODULES)
        raise ValueError(f"Model {model.provider}/{model.id}: api {model.api[:80]!r} is not supported, only {allowed}")
    return import_module(name)
