"""The body and the headers of an Anthropic Messages request.

Pure. Cache markers, thinking and tool settings follow the model's `compat` switches: `forceAdaptiveThinking`,
`supportsEagerToolInputStreaming`, `supportsLongCacheRetention`.
"""

from __future__ import annotations

import re
from typing import Any

from actors.model.output_limit import output_limit, thinking_budget
from actors.model.prompt import Credential, ModelPrompt, RequestOptions, ToolSpec
from actors.model.replay import ReplayMessage, asked
from protocol.messages import (
    AssistantContent,
    AssistantMessage,
    ImageContent,
    TextContent,
    ThinkingContent,
    ToolResultMessage,
    UserContent,
)
from protocol.model import Model

_VERSION = "2023-06-01"
_OAUTH_MARK = "sk-ant-oat"
_MAX_ID = 64
_THOUGHTS = ("thinking", "redacted_thinking")
_EFFORTS = {"minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "xhigh", "max": "max"}

Block = dict[str, Any]


def headers(model: Model, payload: dict[str, Any], credential: Credential) -> list[tuple[str, str]]:
    """Protocol and credential headers. A token of a subscription (`sk-ant-oat`) travels as Bearer."""
    is_oauth = _OAUTH_MARK in (credential.bearer or credential.api_key)
    token = credential.bearer or (credential.api_key if is_oauth else "")
    betas = _betas(model, payload, is_oauth)
    own = [
        ("content-type", "application/json"),
        ("accept", "text/event-stream"),
        ("user-agent", "atomic"),
        ("anthropic-version", _VERSION),
    ]
    if betas:
        own.append(("anthropic-beta", ",".join(betas)))
    if token:
        own.append(("authorization", f"Bearer {token}"))
    elif credential.api_key:
        own.append(("x-api-key", credential.api_key))
    return own


def _betas(model: Model, payload: dict[str, Any], is_oauth: bool) -> list[str]:
    betas = ["oauth-2025-04-20"] if is_oauth else []
    if payload.get("thinking", {}).get("type") == "enabled":
        betas.append("interleaved-thinking-2025-05-14")
    if payload.get("tools") and not _switch(model, "supportsEagerToolInputStreaming"):
        betas.append("fine-grained-tool-streaming-2025-05-14")
    return betas


def body(model: Model, prompt: ModelPrompt, options: RequestOptions) -> dict[str, Any]:
    """The request's JSON. Everything the model's `samplingParams` add is in it, the temperature only with
    thinking off."""
    mark = _cache_mark(model, options)
    limit = output_limit(model, prompt, options.max_tokens)
    payload: dict[str, Any] = {
        "model": model.id,
        "messages": _messages(prompt, model, mark),
        "max_tokens": limit,
        "stream": True,
    }
    if prompt.system.strip():
        payload["system"] = [{"type": "text", "text": prompt.system, **mark}]
    if prompt.tools:
        payload["tools"] = _tools(prompt.tools, model, mark)
    payload.update(_thinking(model, options, limit))
    is_thinking = payload.get("thinking", {}).get("type") in ("enabled", "adaptive")
    for key, value in (model.sampling_params or {}).items():
        if not (key == "temperature" and is_thinking):
            payload.setdefault(key, value)
    return payload


def _switch(model: Model, name: str) -> bool:
    return bool((model.compat or {}).get(name, True))


def _cache_mark(model: Model, options: RequestOptions) -> Block:
    if options.cache_retention == "none":
        return {}
    is_long = options.cache_retention == "long" and _switch(model, "supportsLongCacheRetention")
    return {"cache_control": {"type": "ephemeral", **({"ttl": "1h"} if is_long else {})}}


def _thinking(model: Model, options: RequestOptions, limit: int) -> dict[str, Any]:
    if not model.reasoning:
        return {}
    words = model.thinking_level_map or {}
    level = options.thinking_level
    if level == "off":
        return {} if words.get("off", "") is None else {"thinking": {"type": "disabled"}}
    if (model.compat or {}).get("forceAdaptiveThinking"):
        effort = words.get(level) or _EFFORTS[level]
        return {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": effort}}
    budget = thinking_budget(level, options, limit)
    return {"thinking": {"type": "enabled", "budget_tokens": budget}} if budget else {}


def _tools(tools: tuple[ToolSpec, ...], model: Model, mark: Block) -> list[Block]:
    eager = {"eager_input_streaming": True} if _switch(model, "supportsEagerToolInputStreaming") else {}
    listed = [
        {"name": tool.name, "description": tool.description, "input_schema": tool.parameters, **eager} for tool in tools
    ]
    listed[-1].update(mark)
    return listed


def _messages(prompt: ModelPrompt, model: Model, mark: Block) -> list[Block]:
    told: list[Block] = []
    was_result = False
    for message in asked(prompt.messages, model, _fitting_id):
        role, content = _message(message)
        if not content:
            continue
        is_result = isinstance(message, ToolResultMessage)
        if is_result and was_result:
            told[-1]["content"].extend(content)  # the results of one batch belong into one user message
        else:
            told.append({"role": role, "content": content})
        was_result = is_result
    told[-1]["content"][-1].update(mark)
    return told


def _message(message: ReplayMessage) -> tuple[str, list[Block]]:
    if isinstance(message, AssistantMessage):
        content = [_assistant_block(block) for block in message.content]
        while content and content[-1]["type"] in _THOUGHTS:  # "the final block cannot be thinking"
            content.pop()
        return "assistant", content
    if isinstance(message, ToolResultMessage):
        result = {
            "type": "tool_result",
            "tool_use_id": message.tool_call_id,
            "content": [_user_block(block) for block in message.content],
            "is_error": message.is_error,
        }
        return "user", [result]
    return "user", [_user_block(block) for block in message.content if not isinstance(block, str)]


def _fitting_id(call_id: str, message: AssistantMessage) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", call_id)[:_MAX_ID] or "call"


def _user_block(block: UserContent) -> Block:
    if isinstance(block, ImageContent):
        source = {"type": "base64", "media_type": block.mime_type, "data": block.data}
        return {"type": "image", "source": source}
    return {"type": "text", "text": block.text}


def _assistant_block(block: AssistantContent) -> Block:
    if isinstance(block, TextContent):
        return {"type": "text", "text": block.text}
    if isinstance(block, ThinkingContent):
        if not block.thinking_signature:
            return {"type": "text", "text": block.thinking}
        if block.redacted is True:
            return {"type": "redacted_thinking", "data": block.thinking_signature}
        return {"type": "thinking", "thinking": block.thinking, "signature": block.thinking_signature}
    return {"type": "tool_use", "id": block.id, "name": block.name, "input": block.arguments}
