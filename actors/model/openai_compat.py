"""What an OpenAI-like endpoint understands.

Pure. A model's explicit `compat` keys win; the rest is told from the provider's name or the host of its base URL.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from actors.model.prompt import RequestOptions
from actors.model.route import host_of
from protocol.model import Model

_MAX_CACHE_KEY = 64


class _Host(Struct, frozen=True):
    """A provider, told by its name or by the end of its host name, and the switches that differ from OpenAI's."""

    provider: str
    domain: str
    switches: dict[str, Any]


# Endpoints that take the plain chat format only.
_PLAIN = {"supportsStore": False, "supportsDeveloperRole": False}
_HOSTS = (
    _Host("cerebras", "cerebras.ai", _PLAIN),
    _Host("xai", "x.ai", {**_PLAIN, "supportsReasoningEffort": False}),
    _Host("zai", "z.ai", {**_PLAIN, "supportsReasoningEffort": False, "thinkingFormat": "zai"}),
    _Host("deepseek", "deepseek.com", {**_PLAIN, "thinkingFormat": "deepseek"}),
    _Host("mistral", "mistral.ai", {**_PLAIN, "maxTokensField": "max_tokens", "supportsReasoningEffort": False}),
    _Host("chutes", "chutes.ai", {**_PLAIN, "maxTokensField": "max_tokens"}),
    _Host("together", "together.xyz", {**_PLAIN, "maxTokensField": "max_tokens", "supportsStrictMode": False}),
    _Host("moonshotai", "moonshot.ai", {**_PLAIN, "maxTokensField": "max_tokens", "supportsStrictMode": False}),
    _Host("groq", "groq.com", _PLAIN),
    _Host("fireworks", "fireworks.ai", {**_PLAIN, "maxTokensField": "max_tokens"}),
    _Host("openrouter", "openrouter.ai", {**_PLAIN, "thinkingFormat": "openrouter"}),
)
_DEFAULTS: dict[str, Any] = {
    "supportsStore": True,
    "supportsDeveloperRole": True,
    "supportsReasoningEffort": True,
    "supportsUsageInStreaming": True,
    "supportsStrictMode": True,
    "supportsFinishReason": True,
    "supportsLongCacheRetention": True,
    "maxTokensField": "max_completion_tokens",
    "thinkingFormat": "openai",
    "requiresToolResultName": False,
    "requiresAssistantAfterToolResult": False,
    "requiresThinkingAsText": False,
    "cacheControlFormat": None,
}


def switches(model: Model) -> dict[str, Any]:
    """Every switch of `model`, the unknown ones of its `compat` included."""
    told: dict[str, Any] = dict(_DEFAULTS)
    host = host_of(model.base_url)
    for known in _HOSTS:
        if model.provider == known.provider or host == known.domain or host.endswith(f".{known.domain}"):
            told.update(known.switches)
    if told["thinkingFormat"] == "openrouter" and model.id.startswith("anthropic/"):
        told["cacheControlFormat"] = "anthropic"
    return {**told, **(model.compat or {})}


def is_openai(model: Model) -> bool:
    return host_of(model.base_url) == "api.openai.com"


def cache_fields(options: RequestOptions, *, has_key: bool, has_long: bool) -> dict[str, Any]:
    """The fields that let a provider find the session's cached prefix."""
    if options.cache_retention == "none":
        return {}
    fields: dict[str, Any] = {}
    if has_key and options.session_id:
        fields["prompt_cache_key"] = options.session_id[:_MAX_CACHE_KEY]
    if has_long and options.cache_retention == "long":
        fields["prompt_cache_retention"] = "24h"
    return fields
