"""The body of an OpenAI responses request.

Pure. The history travels as items; reasoning items go back as they came, encrypted, since nothing is stored at the
provider.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

from actors.model.openai_compat import cache_fields, is_openai, switches
from actors.model.output_limit import output_limit
from actors.model.partial_json import decode_event
from actors.model.prompt import ModelPrompt, RequestOptions, encode_body
from actors.model.replay import asked, is_same_model
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

_MIN_OUTPUT_TOKENS = 16
_MAX_ID = 64

Item = dict[str, Any]


def body(model: Model, prompt: ModelPrompt, options: RequestOptions) -> Item:
    """The request's JSON."""
    told = switches(model)
    payload: Item = {
        "model": model.id,
        "input": _input(model, prompt, told),
        "stream": True,
        "store": False,
        "max_output_tokens": max(_MIN_OUTPUT_TOKENS, output_limit(model, prompt, options.max_tokens)),
    }
    if prompt.tools:
        payload["tools"] = [
            {
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
                "strict": False,
            }
            for tool in prompt.tools
        ]
    payload.update(_thinking(model, options))
    has_long = is_openai(model) and bool(told["supportsLongCacheRetention"])
    payload.update(cache_fields(options, has_key=True, has_long=has_long))
    for key, value in (model.sampling_params or {}).items():
        payload.setdefault(key, value)
    return payload


def _thinking(model: Model, options: RequestOptions) -> Item:
    if not model.reasoning:
        return {}
    words = model.thinking_level_map or {}
    level = options.thinking_level
    include = {"include": ["reasoning.encrypted_content"]}
    if level != "off":
        return {"reasoning": {"effort": words.get(level) or level, "summary": "auto"}, **include}
    word = words.get("off", "none")
    return {"reasoning": {"effort": word}, **include} if word is not None else include


def _input(model: Model, prompt: ModelPrompt, told: Item) -> list[Item]:
    items: list[Item] = []
    if prompt.system.strip():
        role = "developer" if model.reasoning and told["supportsDeveloperRole"] else "system"
        items.append({"role": role, "content": prompt.system})
    messages = asked(prompt.messages, model, lambda call_id, message: fitting_id(call_id, message, model))
    for number, message in enumerate(messages):
        if isinstance(message, AssistantMessage):
            items += _assistant_items(message, number)
        elif isinstance(message, ToolResultMessage):
            items.append(_output(message))
        else:
            parts = [_part(block) for block in message.content if not isinstance(block, str)]
            items.append({"role": "user", "content": parts})
    return items


def _assistant_items(message: AssistantMessage, number: int) -> list[Item]:
    items = [item for block in message.content if (item := _assistant_item(block, number)) is not None]
    while items and items[-1].get("type") == "reasoning":  # refused "without its required following item"
        items.pop()
    return items


def _assistant_item(block: AssistantContent, number: int) -> Item | None:
    if isinstance(block, ThinkingContent):
        return _record(block.thinking_signature)
    if isinstance(block, TextContent):
        part = {"type": "output_text", "text": block.text, "annotations": []}
        signature = _record(block.text_signature) or {}
        item = {"type": "message", "role": "assistant", "content": [part], "status": "completed"}
        item["id"] = str(signature.get("id") or f"msg_{number}")[:_MAX_ID]
        return {**item, "phase": signature["phase"]} if signature.get("phase") else item
    call_id, _, item_id = block.id.partition("|")
    arguments = encode_body(block.arguments).decode()
    item = {"type": "function_call", "call_id": call_id, "name": block.name, "arguments": arguments}
    return {**item, "id": item_id} if item_id else item


def _output(message: ToolResultMessage) -> Item:
    call_id = message.tool_call_id.partition("|")[0]
    output: str | list[Item] = [_part(block) for block in message.content]
    if not any(isinstance(block, ImageContent) for block in message.content):
        output = "\n".join(block.text for block in message.content if isinstance(block, TextContent))
    return {"type": "function_call_output", "call_id": call_id, "output": output}


def _part(block: UserContent) -> Item:
    if isinstance(block, ImageContent):
        url = f"data:{block.mime_type};base64,{block.data}"
        return {"type": "input_image", "detail": "auto", "image_url": url}
    return {"type": "input_text", "text": block.text}


def _record(signature: Any) -> Item | None:
    """The object that a signature holds, if it does."""
    if not isinstance(signature, str) or not signature.startswith("{"):
        return None
    try:
        value = decode_event(signature.encode("utf-8", "replace"))
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def fitting_id(call_id: str, message: AssistantMessage, model: Model) -> str:
    """`call id|item id` as `model` takes it: an item of another provider becomes a hash, one of another model of
    this provider is left out, since it belongs to a reasoning item that is not sent either."""
    if is_same_model(message, model):
        return call_id
    call, _, item = call_id.partition("|")
    call = re.sub(r"[^A-Za-z0-9_-]", "_", call)[:_MAX_ID] or "call"
    if not item or (message.provider, message.api) == (model.provider, model.api):
        return call
    digest = hashlib.sha256(item.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return f"{call}|fc_{digest}"
