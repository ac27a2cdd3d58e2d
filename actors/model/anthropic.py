"""The Anthropic Messages dialect: its requests and its stream.

Pure. Source: contract "Types" and the facts on providers. `build_request` and `reader` are what `dialects` looks for.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from actors.model.partial_json import decode_event
from actors.model.prompt import (
    Credential,
    HttpRequest,
    ModelPrompt,
    RequestOptions,
    encode_body,
    merged_headers,
    model_headers,
    require_credential,
)
from actors.model.reply import Events, Reply, ReplyError, UnreadableEvent
from protocol.messages import StopReason, TextContent, ThinkingContent, ToolCall, Usage
from protocol.model import Model

REDACTED = "[Reasoning redacted]"
_STOPS: dict[str, StopReason] = {
    "end_turn": "stop",
    "pause_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "tool_use": "toolUse",
}
_EVENTS = {
    b"message_start",
    b"content_block_start",
    b"content_block_delta",
    b"content_block_stop",
    b"message_delta",
    b"message_stop",
    b"error",
}


def build_request(model: Model, prompt: ModelPrompt, options: RequestOptions, credential: Credential) -> HttpRequest:
    """Raises ValueError without a key."""
    from actors.model.anthropic_request import body, headers

    require_credential(model, credential)
    payload = body(model, prompt, options)
    base = model.base_url.rstrip("/")
    url = f"{base}/messages" if base.endswith("/v1") else f"{base}/v1/messages"
    own = headers(model, payload, credential)
    return HttpRequest(url, merged_headers(own, model_headers(model), credential.headers), encode_body(payload))


def reader(model: Model, now_ms: int) -> AnthropicReply:
    return AnthropicReply(model, now_ms)


class _Delta(Struct):
    type: str = ""
    text: str = ""
    thinking: str = ""
    partial_json: str = ""
    signature: str = ""


class _BlockDelta(Struct):
    index: int
    delta: _Delta


# Nearly every event is a content_block_delta. With this typed decode 20,000 of them, raw bytes to events, cost 3.1 us
# each (one event a chunk; 1.6 us in larger chunks); by the general decode they would cost 3 us more.
_decode_delta = msgspec.json.Decoder(_BlockDelta).decode


class AnthropicReply(Reply):
    """Reads one streamed reply."""

    early_end = "Anthropic stream ended before message_stop"

    def __init__(self, model: Model, now_ms: int) -> None:
        super().__init__(model, now_ms)
        self._blocks: dict[int, int] = {}  # the provider's index -> ours; blocks of unknown types are not in it
        self._refusal: str | None = None

    def _read(self, name: bytes, data: bytes, events: Events) -> None:
        if name == b"content_block_delta":
            try:
                event = _decode_delta(data)
            except (msgspec.DecodeError, ValueError, RecursionError):
                self._read_any(name, data, events)
            else:
                self._on_block_delta(event.index, event.delta, events)
        elif name == b"error":
            raise ReplyError(data.decode("utf-8", "replace"))
        elif name in _EVENTS or (name in (b"", b"message") and data != b"[DONE]"):
            self._read_any(name, data, events)

    def _read_any(self, name: bytes, data: bytes, events: Events) -> None:
        try:
            event = decode_event(data)
        except ValueError:
            label, shown = name.decode("utf-8", "replace"), data[:80].decode("utf-8", "replace")
            raise UnreadableEvent(f"Could not parse Anthropic SSE event {label}: {shown}") from None
        kind = event.get("type") or name.decode()
        if kind == "content_block_delta":
            delta = msgspec.convert(_no_nulls(event["delta"]), _Delta)
            self._on_block_delta(event["index"], delta, events)
        elif kind == "content_block_start":
            self._on_block_start(event["index"], event["content_block"], events)
        elif kind == "content_block_stop":
            index = self._blocks.pop(event["index"], None)
            if index is not None:
                self._finish(index, events)
        elif kind == "message_start":
            self._on_start(event["message"])
        elif kind == "message_delta":
            self._on_message_delta(event.get("delta") or {}, event.get("usage"))
        elif kind == "message_stop":
            self._conclude(events)
        elif kind == "error":
            raise ReplyError(data.decode("utf-8", "replace"))

    def _on_start(self, message: dict[str, Any]) -> None:
        self.started = True
        model = message.get("model")
        self.message = replace(
            self.message,
            response_id=message.get("id") or UNSET,
            response_model=model if model and model != self.message.model else UNSET,
        )
        self._count(message.get("usage"))

    def _on_block_start(self, number: int, block: dict[str, Any], events: Events) -> None:
        kind = block["type"]
        if kind == "text":
            index = self._blocks[number] = self._open(TextContent(""), events)
            self._grow(index, block.get("text") or "", events)
        elif kind == "thinking":
            signature = block.get("signature") or UNSET
            index = self._blocks[number] = self._open(ThinkingContent("", signature), events)
            self._grow(index, block.get("thinking") or "", events)
        elif kind == "redacted_thinking":
            self._blocks[number] = self._open(ThinkingContent(REDACTED, block["data"], True), events)
        elif kind == "tool_use":
            given = block.get("input")
            call = ToolCall(block["id"], block["name"], given if isinstance(given, dict) else {})
            self._blocks[number] = self._open(call, events)

    def _on_block_delta(self, number: int, delta: _Delta, events: Events) -> None:
        index = self._blocks.get(number)
        if index is None:
            return
        block = self.message.content[index]
        if delta.type == "text_delta" and isinstance(block, TextContent):
            self._grow(index, delta.text, events)
        elif delta.type == "input_json_delta" and isinstance(block, ToolCall):
            self._grow(index, delta.partial_json, events)
        elif delta.type == "thinking_delta" and isinstance(block, ThinkingContent):
            self._grow(index, delta.thinking, events)
        elif delta.type == "signature_delta" and isinstance(block, ThinkingContent):
            self._put(index, replace(block, thinking_signature=(block.thinking_signature or "") + delta.signature))

    def _on_message_delta(self, delta: dict[str, Any], usage: Any) -> None:
        self._count(usage)
        reason = delta.get("stop_reason")
        if reason is None:
            return
        self.message = replace(self.message, raw_stop_reason=str(reason))
        self._stop = _STOPS.get(reason, "error")
        if reason == "refusal":
            self._refusal = (delta.get("stop_details") or {}).get("explanation") or (
                "The model refused to complete the request"
            )
        elif reason == "sensitive":
            self._refusal = "Provider stopped with: sensitive"
        elif self._stop == "error":
            self._refusal = f"Unhandled stop reason: {reason}"

    def _shortfall(self) -> str | None:
        return self._refusal if self.finished and self._refusal is not None else super()._shortfall()

    def _count(self, told: dict[str, Any] | None) -> None:
        """Only what is told, and not as null, replaces what was counted before."""
        told = _no_nulls(told or {})
        old = self.message.usage
        cache = (told.get("cache_creation") or {}).get("ephemeral_1h_input_tokens")
        details = (told.get("output_tokens_details") or {}).get("thinking_tokens")
        usage = Usage(
            input=int(told.get("input_tokens", old.input)),
            output=int(told.get("output_tokens", old.output)),
            cache_read=int(told.get("cache_read_input_tokens", old.cache_read)),
            cache_write=int(told.get("cache_creation_input_tokens", old.cache_write)),
            cache_write_1h=_told(cache, old.cache_write_1h),
            reasoning=_told(details, old.reasoning),
        )
        usage.total_tokens = usage.input + usage.output + usage.cache_read + usage.cache_write
        self._set_usage(usage)


def _told(count: Any, before: int | UnsetType) -> int | UnsetType:
    return before if count is None else int(count)


def _no_nulls(record: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in record.items() if value is not None}
