"""OpenAI models on Azure: the responses dialect, asked of a deployment.

Pure. The address, its `api-version` and the key's header are the transport's business (`cloud_source`).
"""

from __future__ import annotations

from msgspec.structs import replace

from actors.model.cloud_request import SCHEME, CloudRequest
from actors.model.openai_responses import ResponsesReply
from actors.model.openai_responses_request import body
from actors.model.prompt import (
    Credential,
    ModelPrompt,
    RequestOptions,
    encode_body,
    merged_headers,
    model_headers,
    require_credential,
)
from protocol.model import Model

_DEPLOYMENTS = "AZURE_OPENAI_DEPLOYMENT_NAME_MAP"


def build_request(model: Model, prompt: ModelPrompt, options: RequestOptions, credential: Credential) -> CloudRequest:
    """Raises ValueError without a key or token, and for a value that no JSON can hold."""
    require_credential(model, credential)
    headers = merged_headers(model_headers(model), credential.headers)
    request = CloudRequest(SCHEME + model.api, headers, b"", model, credential)
    payload = body(model, prompt, options)
    payload["model"] = _deployment(model.id, request.variables.get(_DEPLOYMENTS, ""))
    return replace(request, body=encode_body(payload))


def reader(model: Model, now_ms: int) -> ResponsesReply:
    return ResponsesReply(model, now_ms)


def _deployment(model_id: str, names: str) -> str:
    """`names` is `model=deployment,model=deployment`; a model that is not in it is deployed under its own id."""
    pairs = (pair.partition("=") for pair in names.split(","))
    return next((name.strip() for model, _, name in pairs if model.strip() == model_id and name.strip()), model_id)
