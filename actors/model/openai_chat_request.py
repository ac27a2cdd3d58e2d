"""The body of an OpenAI chat completions request.

Pure. `openai_compat.switches` says what the endpoint behind the model understands.
"""

from __future__ import annotations

import re
from typing import Any

from actors.model.openai_compat import cache_fields, is_openai, switches
from actors.model.output_limit import output_limit
from actors.model.partial_json import decode_event
from actors.model.prompt import ModelPrompt, RequestOptions, encode_body
from actors.model.replay import ReplayMessage, asked
from protocol.messages import (
    AssistantMessage,
    ImageContent,
    TextContent,
    ThinkingContent,
    ToolResultMessage,
    UserContent,
    UserMessage,
)
from protocol.model import Model

_MAX_ID = 40
_REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_text")
_SEE_IMAGES = "(image in the next user message)"
_TOOL_IMAGES = "Images that the tools returned:"
_RESULTS_READ = "The tool results have been read."
_CACHE_MARK = {"cache_control": {"type": "ephemeral"}}

Item = dict[str, Any]


def body(model: Model, prompt: ModelPrompt, options: RequestOptions) -> Item:
    """The request's JSON."""
    told = switches(model)
    payload: Item = {"model": model.id, "messages": _messages(model, prompt, told), "stream": True}
    if told["supportsUsageInStreaming"]:
        payload["stream_options"] = {"include_usage": True}
    if told["supportsStore"]:
        payload["store"] = False
    payload[told["maxTokensField"]] = output_limit(model, prompt, options.max_tokens)
    tools = _tools(prompt, told)
    if tools or any(message["role"] == "tool" for message in payload["messages"]):
        payload["tools"] = tools
    payload.update(_thinking(model, options, told))
    is_own, is_long = is_openai(model), options.cache_retention == "long" and told["supportsLongCacheRetention"]
    payload.update(cache_fields(options, has_key=is_own or is_long, has_long=bool(is_long)))
    if told.get("openRouterRouting"):
        payload["provider"] = told["openRouterRouting"]
    if told["cacheControlFormat"] == "anthropic" and options.cache_retention != "none":
        _mark_cached(payload)
    for key, value in (model.sampling_params or {}).items():
        payload.setdefault(key, value)
    return payload


def _thinking(model: Model, options: RequestOptions, told: Item) -> Item:
    if not model.reasoning:
        return {}
    level, form = options.thinking_level, told["thinkingFormat"]
    words = model.thinking_level_map or {}
    effort = words.get(level) if level == "off" else words.get(level) or level
    switch = {"type": "disabled" if level == "off" else "enabled"}
    if form == "openrouter":
        return {"reasoning": {"effort": effort or "none"}}
    fields: Item = {"reasoning_effort": effort} if effort and told["supportsReasoningEffort"] else {}
    if form in ("zai", "deepseek"):
        fields["thinking"] = switch
    elif form == "qwen":
        fields = {"enable_thinking": level != "off"}
    elif form == "qwen-chat-template":
        fields = {"chat_template_kwargs": {"enable_thinking": level != "off"}}
    return fields


def _tools(prompt: ModelPrompt, told: Item) -> list[Item]:
    strict = {"strict": False} if told["supportsStrictMode"] else {}
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters, **strict},
        }
        for tool in prompt.tools
    ]


def _messages(model: Model, prompt: ModelPrompt, told: Item) -> list[Item]:
    messages: list[Item] = []
    if prompt.system.strip():
        role = "developer" if model.reasoning and told["supportsDeveloperRole"] else "system"
        messages.append({"role": role, "content": prompt.system})
    images: list[UserContent] = []
    for message in asked(prompt.messages, model, _fitting_id):
        if isinstance(message, ToolResultMessage):
            messages.append(_result(message, told))
            images += [block for block in message.content if isinstance(block, ImageContent)]
            continue
        _add_images(messages, images, told)
        if isinstance(message, UserMessage) and messages and messages[-1]["role"] == "tool":
            _answer_results(messages, told)
        messages += _told(message, told)
    _add_images(messages, images, told)
    return messages


def _add_images(messages: list[Item], images: list[UserContent], told: Item) -> None:
    """After the run of tool messages, since those can hold text only."""
    if images:
        _answer_results(messages, told)
        parts = [{"type": "text", "text": _TOOL_IMAGES}, *map(_part, images)]
        messages.append({"role": "user", "content": parts})
        images.clear()


def _answer_results(messages: list[Item], told: Item) -> None:
    if told["requiresAssistantAfterToolResult"]:
        messages.append({"role": "assistant", "content": _RESULTS_READ})


def _result(message: ToolResultMessage, told: Item) -> Item:
    text = "\n".join(block.text for block in message.content if isinstance(block, TextContent))
    item = {"role": "tool", "tool_call_id": message.tool_call_id, "content": text or _SEE_IMAGES}
    return {**item, "name": message.tool_name} if told["requiresToolResultName"] else item


def _told(message: ReplayMessage, told: Item) -> list[Item]:
    if isinstance(message, AssistantMessage):
        item = _assistant(message, told)
        # Thoughts alone are no message: servers want content or calls.
        return [item] if item["content"] or "tool_calls" in item else []
    blocks = [block for block in message.content if not isinstance(block, str)]
    if len(blocks) == 1 and isinstance(blocks[0], TextContent):
        return [{"role": "user", "content": blocks[0].text}]
    return [{"role": "user", "content": [_part(block) for block in blocks]}]


def _assistant(message: AssistantMessage, told: Item) -> Item:
    thoughts = [block for block in message.content if isinstance(block, ThinkingContent)]
    texts = [block.text for block in message.content if isinstance(block, TextContent)]
    if told["requiresThinkingAsText"] and thoughts:
        texts = ["\n\n".join(block.thinking for block in thoughts), *texts]
        thoughts = []
    item: Item = {"role": "assistant", "content": "".join(texts) or None}
    item.update(_reasoning(thoughts))
    calls = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": encode_body(call.arguments).decode()},
        }
        for call in message.tool_calls
    ]
    return {**item, "tool_calls": calls} if calls else item


def _reasoning(thoughts: list[ThinkingContent]) -> Item:
    """Thinking goes back in the field that it came in: the signature names it, or holds the structured form."""
    signature = (thoughts[0].thinking_signature or "") if thoughts else ""
    if signature in _REASONING_FIELDS:
        return {signature: "\n".join(block.thinking for block in thoughts)}
    if signature.startswith("["):
        try:
            return {"reasoning_details": decode_event(signature.encode("utf-8", "replace"))}
        except ValueError:
            return {}
    return {}


def _fitting_id(call_id: str, message: AssistantMessage) -> str:
    """OpenAI takes 40 characters; an id of the responses dialect has its item behind a bar."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", call_id.partition("|")[0])[:_MAX_ID] or "call"


def _part(block: UserContent) -> Item:
    if isinstance(block, ImageContent):
        return {"type": "image_url", "image_url": {"url": f"data:{block.mime_type};base64,{block.data}"}}
    return {"type": "text", "text": block.text}


def _mark_cached(payload: Item) -> None:
    """Anthropic's cache markers, for a gateway to one of its models: system, last tool, last user text."""
    messages = payload["messages"]
    ends = [item for item in messages if item["role"] in ("system", "developer")][:1]
    ends += [item for item in messages if item["role"] == "user"][-1:]
    for item in ends:
        if isinstance(item["content"], str):
            item["content"] = [{"type": "text", "text": item["content"]}]
        item["content"][-1].update(_CACHE_MARK)
    if payload.get("tools"):
        payload["tools"][-1].update(_CACHE_MARK)
