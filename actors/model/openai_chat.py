"""The OpenAI chat completions dialect, which many other providers speak too: its requests and its stream.

Pure. One text block and one thinking block in a reply; all blocks end together when the stream does.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from actors.model.openai_compat import switches
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

_STOPS: dict[str, StopReason] = {
    "stop": "stop",
    "end": "stop",
    "length": "length",
    "tool_calls": "toolUse",
    "function_call": "toolUse",
}
_REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_text")


def build_request(model: Model, prompt: ModelPrompt, options: RequestOptions, credential: Credential) -> HttpRequest:
    """Raises ValueError without a key."""
    from actors.model.openai_chat_request import body

    return openai_request(model, "chat/completions", body(model, prompt, options), credential)


def openai_request(model: Model, path: str, payload: dict[str, Any], credential: Credential) -> HttpRequest:
    """A POST to `path` under the model's base URL, with the headers that all OpenAI endpoints take."""
    require_credential(model, credential)
    own = [("content-type", "application/json"), ("accept", "text/event-stream"), ("user-agent", "atomic")]
    token = credential.bearer or credential.api_key
    if token:
        own.append(("authorization", f"Bearer {token}"))
    headers = merged_headers(own, model_headers(model), credential.headers)
    return HttpRequest(f"{model.base_url.rstrip('/')}/{path}", headers, encode_body(payload))


def reader(model: Model, now_ms: int) -> ChatReply:
    return ChatReply(model, now_ms)


class ChatReply(Reply):
    """Reads one streamed reply."""

    def __init__(self, model: Model, now_ms: int) -> None:
        super().__init__(model, now_ms)
        self._text = -1
        self._thinking = -1
        self._calls: dict[int | str, int] = {}  # the provider's index or id -> content index
        self._last_call = -1
        self._details: list[dict[str, Any]] = []
        self._refusal: str | None = None

    def _read(self, name: bytes, data: bytes, events: Events) -> None:
        if data == b"[DONE]":
            self._conclude(events)
            return
        try:
            chunk = decode_event(data)
        except ValueError:
            shown = data[:80].decode("utf-8", "replace")
            raise UnreadableEvent(f"Could not parse OpenAI stream chunk: {shown}") from None
        if chunk.get("error"):
            raise ReplyError(_error_text(chunk["error"]))
        self._on_head(chunk)
        choices = chunk.get("choices")
        choice = (choices[0] if choices else None) or {}
        usage = chunk.get("usage") or choice.get("usage")
        if usage:
            self._count(usage)
        if choice.get("delta"):
            self._on_delta(choice["delta"], events)
        if choice.get("finish_reason"):
            self._on_finish(choice["finish_reason"])

    def _on_head(self, chunk: dict[str, Any]) -> None:
        self.started = True
        message = self.message
        if message.response_id is UNSET and chunk.get("id"):
            self.message = message = replace(message, response_id=str(chunk["id"]))
        model = chunk.get("model")
        if message.response_model is UNSET and model and model != message.model:
            self.message = replace(message, response_model=str(model))

    def _on_delta(self, delta: dict[str, Any], events: Events) -> None:
        thought = next((field for field in _REASONING_FIELDS if delta.get(field)), None)
        if thought is not None:
            if self._thinking < 0:
                self._thinking = self._open(ThinkingContent("", thought), events)
            self._grow(self._thinking, delta[thought], events)
        for detail in delta.get("reasoning_details") or ():
            self._on_detail(detail, events)
        text = _text(delta.get("content")) or delta.get("refusal")
        if text:
            if self._text < 0:
                self._text = self._open(TextContent(""), events)
            self._grow(self._text, text, events)
        for part in delta.get("tool_calls") or ():
            self._on_call(part, events)

    def _on_detail(self, detail: dict[str, Any], events: Events) -> None:
        """Pieces of one structured thought are put together, so that the provider gets it back in one."""
        if self._thinking < 0:
            self._thinking = self._open(ThinkingContent(""), events)
        last = self._details[-1] if self._details else {}
        if (last.get("type"), last.get("index")) != (detail.get("type"), detail.get("index")):
            self._details.append(dict(detail))
        else:
            for key, value in detail.items():
                is_piece = key in ("text", "summary", "data") and isinstance(last.get(key), str)
                last[key] = last[key] + value if is_piece and isinstance(value, str) else value
        signature = msgspec.json.encode(self._details).decode()
        block = self.message.content[self._thinking]
        if isinstance(block, ThinkingContent):
            self._put(self._thinking, replace(block, thinking_signature=signature))

    def _on_call(self, part: dict[str, Any], events: Events) -> None:
        function = part.get("function") or {}
        call_id, name = part.get("id") or "", function.get("name") or ""
        index = self._find_call(part.get("index"), call_id, name)
        if index < 0:
            index = self._open(ToolCall(call_id, name, {}), events)
        call = self.message.content[index]
        assert isinstance(call, ToolCall)
        if (call_id and not call.id) or (name and not call.name):
            self._put(index, replace(call, id=call.id or call_id, name=call.name or name))
        for key in (part.get("index"), call_id):
            if key not in (None, ""):
                self._calls[key] = index
        self._last_call = index
        arguments = function.get("arguments")
        self._grow(index, arguments if isinstance(arguments, str) else _as_json(arguments), events)

    def _find_call(self, number: int | None, call_id: str, name: str) -> int:
        """The content index of the call that a piece belongs to, -1 for a new one. Some servers give no index, others
        give every call the index 0: a name with another id is a new call."""
        if number is None:
            if call_id:
                return self._calls.get(call_id, -1)
            return -1 if name else self._last_call
        index = self._calls.get(number, self._calls.get(call_id, -1) if call_id else -1)
        known = self.message.content[index] if index >= 0 else None
        is_other = isinstance(known, ToolCall) and bool(call_id and name and known.id) and known.id != call_id
        return -1 if is_other else index

    def _on_finish(self, reason: str) -> None:
        self.message = replace(self.message, raw_stop_reason=str(reason))
        self._stop = _STOPS.get(reason, "error")
        self._refusal = f"Provider finish_reason: {reason}" if self._stop == "error" else None

    def _shortfall(self) -> str | None:
        if self._refusal is not None:
            return self._refusal
        if self._stop == "pending" and self.started and not switches(self._model)["supportsFinishReason"]:
            self._stop = "toolUse" if self.message.tool_calls else "stop"
        if self._stop == "pending":
            return "Stream ended without finish_reason"
        self._name_calls()
        return None

    def _name_calls(self) -> None:
        """A call without an id gets one, since its result has to name it."""
        for index, block in enumerate(self.message.content):
            if isinstance(block, ToolCall) and not block.id:
                self._put(index, replace(block, id=f"call_{self.message.timestamp}_{index}"))

    def _count(self, told: dict[str, Any]) -> None:
        details = told.get("prompt_tokens_details") or {}
        read = _first(details.get("cached_tokens"), told.get("prompt_cache_hit_tokens"), told.get("cached_tokens"))
        write = details.get("cache_write_tokens") or 0
        reasoning = (told.get("completion_tokens_details") or {}).get("reasoning_tokens")
        usage = Usage(
            input=max(0, int(told.get("prompt_tokens") or 0) - read - write),
            output=int(told.get("completion_tokens") or 0),
            cache_read=read,
            cache_write=int(write),
            reasoning=UNSET if reasoning is None else int(reasoning),
        )
        usage.total_tokens = usage.input + usage.output + usage.cache_read + usage.cache_write
        self._set_usage(usage)


def _first(*counts: Any) -> int:
    return next((int(count) for count in counts if count is not None), 0)


def _text(content: Any) -> str:
    """Some servers send parts where OpenAI sends a string."""
    if isinstance(content, list):
        return "".join(part.get("text") or "" for part in content if isinstance(part, dict) and part.get("text"))
    return content or ""


def _as_json(arguments: Any) -> str:
    """Some servers send the arguments as an object."""
    return "" if arguments is None else encode_body(arguments).decode()


def _error_text(error: Any) -> str:
    """The provider's words, its code (which tells a spent quota from a rate limit) and what a gateway passes on."""
    if not isinstance(error, dict):
        return str(error)
    raw = (error.get("metadata") or {}).get("raw")
    code = error.get("code") or error.get("type")
    text = str(error.get("message") or "The provider reported an error")
    return text + (f" ({code})" if code else "") + (f" {raw}" if raw else "")
