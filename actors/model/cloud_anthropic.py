"""Anthropic models on Amazon Bedrock and Google Vertex: the same question and the same stream as at home.

Pure. Signing, addresses and Bedrock's frames are the transport's business (`cloud_source`).
"""

from __future__ import annotations

from msgspec.structs import replace

from actors.model.anthropic import AnthropicReply
from actors.model.anthropic_request import body, headers
from actors.model.cloud_request import SCHEME, CloudRequest
from actors.model.prompt import (
    Credential,
    ModelPrompt,
    RequestOptions,
    encode_body,
    merged_headers,
    model_headers,
)
from protocol.model import Model

_EAGER = "supportsEagerToolInputStreaming"


def build_request(model: Model, prompt: ModelPrompt, options: RequestOptions, credential: Credential) -> CloudRequest:
    """Raises ValueError for a value that no JSON can hold."""
    told = _as_the_clouds_take_it(model)
    payload = body(told, prompt, options)
    betas = [(name, value) for name, value in headers(told, payload, Credential()) if name == "anthropic-beta"]
    own = merged_headers(betas, model_headers(model), credential.headers)
    return CloudRequest(SCHEME + model.api, own, encode_body(payload), model, credential)


def reader(model: Model, now_ms: int) -> AnthropicReply:
    return AnthropicReply(model, now_ms)


def _as_the_clouds_take_it(model: Model) -> Model:
    """Bedrock refuses a tool with a field that it does not know; the beta header asks both for the same."""
    compat = model.compat or {}
    return model if _EAGER in compat else replace(model, compat={**compat, _EAGER: False})
