"""The OpenAI responses dialect: its requests and its stream.

Pure. Output items stream side by side in slots; an item's last event is taken as the truth about it.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from actors.model.openai_chat import openai_request
from actors.model.partial_json import decode_event
from actors.model.prompt import Credential, HttpRequest, ModelPrompt, RequestOptions
from actors.model.reply import Events, Reply, ReplyError, UnreadableEvent
from protocol.messages import AssistantContent, TextContent, ThinkingContent, ToolCall, Usage
from protocol.model import Model

_GROWS = {
    "response.output_text.delta",
    "response.refusal.delta",
    "response.function_call_arguments.delta",
    "response.reasoning_summary_text.delta",
    "response.reasoning_text.delta",
}
_ENDS = {"response.completed", "response.incomplete", "response.failed", "response.cancelled", "response.done"}


def build_request(model: Model, prompt: ModelPrompt, options: RequestOptions, credential: Credential) -> HttpRequest:
    """Raises ValueError without a key."""
    from actors.model.openai_responses_request import body

    return openai_request(model, "responses", body(model, prompt, options), credential)


def reader(model: Model, now_ms: int) -> ResponsesReply:
    return ResponsesReply(model, now_ms)


class ResponsesReply(Reply):
    """Reads one streamed reply."""

    early_end = "OpenAI Responses stream ended before a terminal response event"

    def __init__(self, model: Model, now_ms: int) -> None:
        super().__init__(model, now_ms)
        self._slots: dict[Any, int] = {}  # output_index, or item id -> content index of an open block
        self._reasoning: dict[str, int] = {}  # item id -> content index, for what only the last event tells
        self._failure: str | None = None

    def _read(self, name: bytes, data: bytes, events: Events) -> None:
        if data == b"[DONE]":
            return
        try:
            event = decode_event(data)
        except ValueError:
            label, shown = name.decode("utf-8", "replace"), data[:80].decode("utf-8", "replace")
            raise UnreadableEvent(f"Could not parse OpenAI Responses event {label}: {shown}") from None
        kind = event.get("type") or name.decode()
        if kind in _GROWS:
            index = self._slot(event)
            if index is not None:
                self._grow(index, event.get("delta") or "", events)
        elif kind == "response.output_item.added":
            self._on_added(event, event["item"], events)
        elif kind == "response.output_item.done":
            self._on_done(event, event["item"], events)
        elif kind == "response.reasoning_summary_part.added":
            self._on_part(event, events)
        elif kind in _ENDS:
            self._on_end(event.get("response") or {}, kind, events)
        elif kind == "error":
            raise ReplyError(_failure_text(event.get("error") or event))
        elif isinstance(event.get("response"), dict):
            self._on_head(event["response"])

    def _on_head(self, response: dict[str, Any]) -> None:
        self.started = True
        model = response.get("model")
        self.message = replace(
            self.message,
            response_id=response.get("id") or self.message.response_id,
            response_model=model if model and model != self.message.model else self.message.response_model,
        )

    def _slot(self, event: dict[str, Any]) -> int | None:
        return self._slots.get(_key(event, event.get("item_id")))

    def _on_added(self, event: dict[str, Any], item: dict[str, Any], events: Events) -> None:
        self.started = True
        block = _block(item)
        if block is not None:
            self._slots[_key(event, item.get("id"))] = self._open(block, events)

    def _on_part(self, event: dict[str, Any], events: Events) -> None:
        index = self._slot(event)
        if index is not None and self._pieces[index]:
            self._grow(index, "\n\n", events)

    def _on_done(self, event: dict[str, Any], item: dict[str, Any], events: Events) -> None:
        key = _key(event, item.get("id"))
        if key not in self._slots:
            self._on_added(event, item, events)
        index = self._slots.pop(key, None)
        if index is None:
            return
        self._complete_text(index, _whole_text(item), events)
        block = self.message.content[index]
        if isinstance(block, TextContent):
            self._put(index, replace(block, text_signature=_text_signature(item)))
        elif isinstance(block, ThinkingContent):
            self._put(index, replace(block, thinking_signature=_json(item)))
            self._reasoning[str(item.get("id"))] = index
        else:
            self._put(index, replace(block, id=_call_id(item) or block.id, name=item.get("name") or block.name))
        self._finish(index, events)

    def _complete_text(self, index: int, whole: str, events: Events) -> None:
        """The item's own text wins over the deltas: some servers send none, or only some."""
        so_far = "".join(self._pieces[index])
        if whole.startswith(so_far):
            self._grow(index, whole[len(so_far) :], events)
        elif whole:
            self._pieces[index] = []
            self._held.pop(index, None)
            self._pieces[index].append(whole.encode("utf-8", "replace").decode())

    def _on_end(self, response: dict[str, Any], kind: str, events: Events) -> None:
        self._on_head(response)
        self._backfill(response.get("output") or [])
        self._count(response.get("usage"), response.get("service_tier"))
        status = response.get("status") or kind.removeprefix("response.")
        self.message = replace(self.message, raw_stop_reason=str(status))
        if status in ("completed", "done"):
            self._stop = "toolUse" if self.message.tool_calls else "stop"
        elif status == "incomplete":
            self._on_incomplete((response.get("incomplete_details") or {}).get("reason"))
        else:
            self._failure = _failure_text(response.get("error") or {"code": status, "message": "no details given"})
        self._conclude(events)

    def _on_incomplete(self, reason: Any) -> None:
        if reason is not None:
            self.message = replace(self.message, raw_stop_reason=str(reason))
        if reason == "max_output_tokens":
            self._stop = "length"
        else:
            self._failure = f"Response incomplete: {reason or 'no reason given'}"

    def _shortfall(self) -> str | None:
        return self._failure if self._failure is not None else super()._shortfall()

    def _backfill(self, output: list[dict[str, Any]]) -> None:
        """Encrypted reasoning may come only with the last event; without it the item cannot be sent back."""
        for item in output:
            index = self._reasoning.get(str(item.get("id")))
            if item.get("type") == "reasoning" and item.get("encrypted_content") and index is not None:
                block = self.message.content[index]
                if isinstance(block, ThinkingContent):
                    self._put(index, replace(block, thinking_signature=_json(item)))

    def _count(self, told: dict[str, Any] | None, tier: Any) -> None:
        if not told:
            return
        details = told.get("input_tokens_details") or {}
        read, write = int(details.get("cached_tokens") or 0), int(details.get("cache_write_tokens") or 0)
        reasoning = (told.get("output_tokens_details") or {}).get("reasoning_tokens")
        usage = Usage(
            input=max(0, int(told.get("input_tokens") or 0) - read - write),
            output=int(told.get("output_tokens") or 0),
            cache_read=read,
            cache_write=write,
            total_tokens=int(told.get("total_tokens") or 0),
            reasoning=UNSET if reasoning is None else int(reasoning),
        )
        self._set_usage(usage, _tier_factor(self._model.id, tier))


def _key(event: dict[str, Any], item_id: Any) -> Any:
    number = event.get("output_index")
    return item_id if number is None else number


def _block(item: dict[str, Any]) -> AssistantContent | None:
    kind = item.get("type")
    if kind == "reasoning":
        return ThinkingContent("")
    if kind == "message":
        return TextContent("")
    return ToolCall(_call_id(item), item.get("name") or "", {}) if kind == "function_call" else None


def _call_id(item: dict[str, Any]) -> str:
    call_id, item_id = item.get("call_id") or item.get("id") or "", item.get("id")
    return f"{call_id}|{item_id}" if item_id else call_id


def _whole_text(item: dict[str, Any]) -> str:
    if item["type"] == "function_call":
        return item.get("arguments") or ""
    parts = item.get("summary") or item.get("content") or []
    texts = [part.get("text") or part.get("refusal") or "" for part in parts]
    return ("\n\n" if item["type"] == "reasoning" else "").join(texts)


def _text_signature(item: dict[str, Any]) -> str:
    phase = {"phase": item["phase"]} if item.get("phase") else {}
    return _json({"v": 1, "id": item.get("id"), **phase})


def _json(value: dict[str, Any]) -> str:
    return msgspec.json.encode(value).decode()


def _tier_factor(model_id: str, tier: Any) -> float:
    if tier == "priority":
        return 2.5 if model_id == "gpt-5.5" else 2
    return 0.5 if tier == "flex" else 1


def _failure_text(error: Any) -> str:
    if not isinstance(error, dict):
        return str(error)
    code, text = error.get("code") or error.get("type") or "unknown", error.get("message") or "no message"
    return f"{code}: {text}"
