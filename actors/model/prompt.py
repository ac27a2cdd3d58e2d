"""What a model is asked, and the HTTP request that it becomes.

Owns the values that cross from the session into a provider dialect. Secrets live in `Credential` and in header
values; neither shows in a `repr`, so a traceback or a log line cannot give them away.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import msgspec
from msgspec import Struct

from protocol.messages import Message
from protocol.model import Model, ThinkingLevel


class ToolSpec(Struct, frozen=True):
    """A tool as a model sees it. `parameters` is a JSON schema of type object."""

    name: str
    description: str
    parameters: dict[str, Any]


class ModelPrompt(Struct, frozen=True):
    """One question: everything that the model will see. Only user, assistant and tool result messages are sent on;
    the session has turned the other kinds into user messages before."""

    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...]


class RequestOptions(Struct, frozen=True):
    """How to ask. `max_tokens` limits the answer (None: as much as the model and its window allow),
    `thinking_budgets` maps a thinking level to tokens."""

    thinking_level: ThinkingLevel = "off"
    session_id: str = ""
    cache_retention: Literal["none", "short", "long"] = "short"
    max_tokens: int | None = None
    thinking_budgets: dict[str, int] | None = None


class Credential(Struct, frozen=True):
    """What proves us to a provider: a key, or a token that only ever travels as `Authorization: Bearer`."""

    api_key: str = ""
    bearer: str = ""
    headers: tuple[tuple[str, str], ...] = ()

    def __repr__(self) -> str:
        names = ", ".join(name for name, _ in self.headers)
        return f"Credential(api_key={_told(self.api_key)}, bearer={_told(self.bearer)}, headers=[{names}])"


class HttpRequest(Struct, frozen=True):
    """A POST that is ready to send. `headers` are in the order of sending, names in lower case and unique."""

    url: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def __repr__(self) -> str:
        names = ", ".join(name for name, _ in self.headers)
        return f"HttpRequest(url={self.url.partition('?')[0]!r}, headers=[{names}], body={len(self.body)} bytes)"


def _told(secret: str) -> str:
    return "<set>" if secret else "<none>"


def merged_headers(*layers: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """One header list out of several; a later layer wins over an earlier one, names compare without case."""
    merged: dict[str, str] = {}
    for layer in layers:
        merged.update((name.lower(), value) for name, value in layer)
    return tuple(merged.items())


def model_headers(model: Model) -> list[tuple[str, str]]:
    """The headers that the catalogue gives to `model`."""
    return list((model.headers or {}).items())


def require_credential(model: Model, credential: Credential) -> None:
    """Raises ValueError when nothing in `credential` or in the model's own headers could identify the caller."""
    names = {name.lower() for name, _ in (*credential.headers, *model_headers(model))}
    if not (credential.api_key or credential.bearer or names & {"authorization", "x-api-key", "api-key"}):
        raise ValueError(f"No API key for provider: {model.provider}")


def mend_text(text: str) -> str:
    """`text` with surrogate pairs joined and lone surrogates as U+FFFD, so that it is valid Unicode."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def mend(value: Any) -> Any:
    """`mend_text` for every string in a JSON value, keys too."""
    if isinstance(value, str):
        return mend_text(value)
    if isinstance(value, dict):
        return {mend(key): mend(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [mend(item) for item in value]
    return value


def encode_body(body: dict[str, Any]) -> bytes:
    """The JSON of a request. Lone surrogates, which no provider accepts, become U+FFFD. Raises ValueError for a
    value that is nested too deeply."""
    try:
        try:
            return msgspec.json.encode(body)
        except UnicodeEncodeError:
            return msgspec.json.encode(mend(body))
    except RecursionError:
        raise ValueError("The request cannot be written: a value in it is nested too deeply") from None
