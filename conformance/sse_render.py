"""Turns a reply into the stream of one dialect: Anthropic Messages, OpenAI Chat Completions or OpenAI Responses.

Pure. A rendered stream is an iterator of events (bytes, each one whole SSE event) and of the steps that the server must
take between them (pauses, gates, controls). Shapes: what the providers' own SDKs read; see their streaming references.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from conformance.model_scripts import Control, Dialect, Reply, Step, Stop, StreamError, Text, Thinking, ToolUse, Usage

Item = bytes | Step
Block = Text | Thinking | ToolUse
Json = dict[str, Any]

_CREATED = 1_700_000_000
_ANTHROPIC_STOP: dict[Stop, str] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool": "tool_use",
    "refusal": "refusal",
}
_CHAT_STOP: dict[Stop, str] = {
    "stop": "stop",
    "length": "length",
    "tool": "tool_calls",
    "refusal": "content_filter",
}
_ANTHROPIC_ERRORS = {
    400: ("invalid_request_error", "invalid request"),
    401: ("authentication_error", "invalid x-api-key"),
    403: ("permission_error", "not allowed"),
    404: ("not_found_error", "no such model"),
    413: ("request_too_large", "request exceeds the maximum size"),
    429: ("rate_limit_error", "rate limit exceeded"),
    529: ("overloaded_error", "Overloaded"),
}
_OPENAI_ERRORS = {
    400: ("invalid_request_error", None, "invalid request"),
    401: ("invalid_request_error", "invalid_api_key", "incorrect API key provided"),
    404: ("invalid_request_error", "model_not_found", "no such model"),
    429: ("requests", "rate_limit_exceeded", "rate limit reached for requests"),
}


class Context(NamedTuple):
    """What rendering needs of the request: its number (ids are made of it), its model, and its body."""

    number: int
    model: str
    body: Mapping[str, Any]


def render(dialect: Dialect, reply: Reply, context: Context) -> Iterator[Item]:
    """The events of a streamed answer, in order."""
    if reply.raw is not None:
        return iter(reply.raw)
    return _RENDER[dialect](reply, context)


def error_body(dialect: Dialect, status: int, message: str = "") -> Json:
    """The JSON of an HTTP error as this provider words it."""
    if dialect == "anthropic":
        kind, usual = _ANTHROPIC_ERRORS.get(status, ("api_error", "internal server error"))
        return {"type": "error", "error": {"type": kind, "message": message or usual}}
    fallback = ("server_error", None, "the server had an error while processing the request")
    kind, code, usual = _OPENAI_ERRORS.get(status, fallback)
    return {"error": {"message": message or usual, "type": kind, "param": None, "code": code}}


def _blocks(reply: Reply) -> list[Block]:
    return [part for part in reply.parts if isinstance(part, Text | Thinking | ToolUse)]


def _content(block: Block) -> str:
    return "".join(delta for delta in block.deltas if isinstance(delta, str))


def _stop(reply: Reply) -> Stop:
    return reply.stop or ("tool" if any(isinstance(part, ToolUse) for part in reply.parts) else "stop")


def _usage(reply: Reply) -> Usage:
    deltas = [delta for block in _blocks(reply) for delta in block.deltas if isinstance(delta, str)]
    return reply.usage or Usage(output=len(deltas))


def _call_id(call: ToolUse, context: Context, index: int) -> str:
    return call.id or f"call_{context.number}_{index}"


def _event(data: Json, name: str | None = None) -> bytes:
    head = f"event: {name}\n" if name else ""
    try:
        body = json.dumps(data, separators=(",", ":"), ensure_ascii=False).encode()
    except UnicodeEncodeError:  # a lone surrogate travels only as an escape
        body = json.dumps(data, separators=(",", ":")).encode()
    return head.encode() + b"data: " + body + b"\n\n"


def _deltas(block: Block, event: Callable[[str], bytes], garbage: bytes) -> Iterator[Item]:
    for delta in block.deltas:
        if isinstance(delta, str):
            yield event(delta)
        else:
            yield garbage if delta is Control.GARBAGE else delta


# ---- Anthropic Messages --------------------------------------------------------------------------------------------

_ANTHROPIC_GARBAGE = b'event: content_block_delta\ndata: {"type": "content_block_delta", oops\n\n'


def _named(type_: str, **fields: Any) -> bytes:
    return _event({"type": type_, **fields}, type_)


def _anthropic(reply: Reply, context: Context) -> Iterator[Item]:
    usage = _usage(reply)
    yield _named("message_start", message=_anthropic_message(reply, context, usage))
    index = 0
    for part in reply.parts:
        if isinstance(part, Text | Thinking | ToolUse):
            yield from _anthropic_block(part, index, context)
            index += 1
        elif isinstance(part, StreamError):
            yield _named("error", error={"type": "overloaded_error", "message": part.message})
            return
        else:
            yield _ANTHROPIC_GARBAGE if part is Control.GARBAGE else part
    delta = {"stop_reason": _ANTHROPIC_STOP[_stop(reply)], "stop_sequence": None}
    yield _named("message_delta", delta=delta, usage={"output_tokens": usage.output})
    yield _named("message_stop")


def _anthropic_message(reply: Reply, context: Context, usage: Usage) -> Json:
    counts = {
        "input_tokens": usage.input,
        "output_tokens": min(1, usage.output),
        "cache_read_input_tokens": usage.cache_read,
        "cache_creation_input_tokens": usage.cache_write,
    }
    fixed: Json = {"type": "message", "role": "assistant", "content": [], "stop_reason": None, "stop_sequence": None}
    return {"id": f"msg_{context.number}", "model": context.model, "usage": counts, **fixed}


def _anthropic_block(block: Block, index: int, context: Context) -> Iterator[Item]:
    start: Json
    if isinstance(block, Text):
        start, kind, key = {"type": "text", "text": ""}, "text_delta", "text"
    elif isinstance(block, Thinking):
        start, kind, key = {"type": "thinking", "thinking": "", "signature": ""}, "thinking_delta", "thinking"
    else:
        start = {"type": "tool_use", "id": _call_id(block, context, index), "name": block.name, "input": {}}
        kind, key = "input_json_delta", "partial_json"

    def grow(kind: str, key: str, value: str) -> bytes:
        return _named("content_block_delta", index=index, delta={"type": kind, key: value})

    yield _named("content_block_start", index=index, content_block=start)
    yield from _deltas(block, lambda delta: grow(kind, key, delta), _ANTHROPIC_GARBAGE)
    if isinstance(block, Thinking) and block.signature:
        yield grow("signature_delta", "signature", block.signature)
    yield _named("content_block_stop", index=index)


# ---- OpenAI Chat Completions ---------------------------------------------------------------------------------------

_CHAT_GARBAGE = b'data: {"id": oops\n\n'


def _chat(reply: Reply, context: Context) -> Iterator[Item]:
    head = {"id": f"chatcmpl_{context.number}", "object": "chat.completion.chunk", "created": _CREATED}
    head["model"] = context.model

    def chunk(delta: Json, finish: str | None = None) -> bytes:
        return _event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    yield chunk({"role": "assistant", "content": ""})
    calls = 0
    for part in reply.parts:
        if isinstance(part, ToolUse):
            yield from _chat_call(part, calls, context, chunk)
            calls += 1
        elif isinstance(part, Text | Thinking):
            key = "content" if isinstance(part, Text) else "reasoning_content"
            yield from _deltas(part, lambda delta, key=key: chunk({key: delta}), _CHAT_GARBAGE)  # type: ignore[misc]
        elif isinstance(part, StreamError):
            yield _event({"error": {"message": part.message, "type": "server_error", "code": "overloaded"}})
            return
        else:
            yield _CHAT_GARBAGE if part is Control.GARBAGE else part
    yield chunk({}, _CHAT_STOP[_stop(reply)])
    if (context.body.get("stream_options") or {}).get("include_usage"):  # the provider tells it only when asked
        yield _event({**head, "choices": [], "usage": _chat_usage(_usage(reply))})
    yield b"data: [DONE]\n\n"


def _chat_call(call: ToolUse, index: int, context: Context, chunk: Callable[[Json], bytes]) -> Iterator[Item]:
    function = {"name": call.name, "arguments": ""}
    start = {"index": index, "id": _call_id(call, context, index), "type": "function", "function": function}
    yield chunk({"tool_calls": [start]})
    yield from _deltas(
        call, lambda delta: chunk({"tool_calls": [{"index": index, "function": {"arguments": delta}}]}), _CHAT_GARBAGE
    )


def _chat_usage(usage: Usage) -> Json:
    prompt = usage.input + usage.cache_read + usage.cache_write
    details = {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write}
    total = prompt + usage.output
    return {
        "prompt_tokens": prompt,
        "completion_tokens": usage.output,
        "total_tokens": total,
        "prompt_tokens_details": details,
    }


# ---- OpenAI Responses ----------------------------------------------------------------------------------------------

_RESPONSES_GARBAGE = b'event: response.output_text.delta\ndata: {"type": oops\n\n'


class _Numbered:
    """Names and numbers the events of one Responses stream."""

    def __init__(self) -> None:
        self._next = 0

    def __call__(self, type_: str, **fields: Any) -> bytes:
        number, self._next = self._next, self._next + 1
        return _named(type_, sequence_number=number, **fields)


def _responses(reply: Reply, context: Context) -> Iterator[Item]:
    event = _Numbered()
    response: Json = {"id": f"resp_{context.number}", "object": "response", "created_at": _CREATED}
    response |= {"model": context.model, "status": "in_progress", "output": []}
    yield event("response.created", response=response)
    yield event("response.in_progress", response=response)
    output: list[Json] = []
    for part in reply.parts:
        if isinstance(part, Text | Thinking | ToolUse):
            yield from _responses_item(part, len(output), context, event)
            output.append(_item(part, len(output), context, done=True))
        elif isinstance(part, StreamError):
            yield event("error", code="server_error", message=part.message, param=None)
            return
        else:
            yield _RESPONSES_GARBAGE if part is Control.GARBAGE else part
    end = _response_end(reply)
    yield event(f"response.{end['status']}", response={**response, "output": output, **end})


def _response_end(reply: Reply) -> Json:
    usage, stop = _usage(reply), _stop(reply)
    taken = usage.input + usage.cache_read + usage.cache_write
    counts: Json = {"input_tokens": taken, "output_tokens": usage.output, "total_tokens": taken + usage.output}
    counts["input_tokens_details"] = {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write}
    counts["output_tokens_details"] = {"reasoning_tokens": 0}
    if stop in ("length", "refusal"):
        reason = "max_output_tokens" if stop == "length" else "content_filter"
        return {"status": "incomplete", "incomplete_details": {"reason": reason}, "usage": counts}
    return {"status": "completed", "usage": counts}


def _item(block: Block, index: int, context: Context, *, done: bool) -> Json:
    """The output item of a block, empty as it begins or whole as it is `done`."""
    content = _content(block) if done else ""
    status = "completed" if done else "in_progress"
    if isinstance(block, Thinking):
        summary = [{"type": "summary_text", "text": content}] if done else []
        item: Json = {"type": "reasoning", "id": f"rs_{context.number}_{index}", "summary": summary}
        wants_sealed = "reasoning.encrypted_content" in (context.body.get("include") or [])
        return {**item, "encrypted_content": block.signature} if done and wants_sealed else item
    if isinstance(block, Text):
        parts = [{"type": "output_text", "text": content, "annotations": []}] if done else []
        head = {"type": "message", "id": f"msg_{context.number}_{index}", "role": "assistant"}
        return {**head, "status": status, "content": parts}
    call_id = _call_id(block, context, index)
    head = {"type": "function_call", "id": f"fc_{call_id}", "call_id": call_id, "name": block.name}
    return {**head, "arguments": content, "status": status}


def _responses_item(block: Block, index: int, context: Context, event: _Numbered) -> Iterator[Item]:
    yield event("response.output_item.added", output_index=index, item=_item(block, index, context, done=False))
    item = _item(block, index, context, done=True)
    where: Json = {"item_id": item["id"], "output_index": index}
    if isinstance(block, ToolUse):
        prefix, whole = "response.function_call_arguments", {"arguments": item["arguments"], "name": block.name}
    elif isinstance(block, Text):
        prefix, where = "response.output_text", {**where, "content_index": 0}
        whole = {"text": _content(block)}
        empty: Json = {"type": "output_text", "text": "", "annotations": []}
        yield event("response.content_part.added", **where, part=empty)
    else:
        prefix, where = "response.reasoning_summary_text", {**where, "summary_index": 0}
        whole = {"text": _content(block)}
        yield event("response.reasoning_summary_part.added", **where, part={"type": "summary_text", "text": ""})
    yield from _deltas(block, lambda delta: event(f"{prefix}.delta", **where, delta=delta), _RESPONSES_GARBAGE)
    yield event(f"{prefix}.done", **where, **whole)
    if isinstance(block, Text):
        yield event("response.content_part.done", **where, part=item["content"][0])
    elif isinstance(block, Thinking):
        yield event("response.reasoning_summary_part.done", **where, part=item["summary"][0])
    yield event("response.output_item.done", output_index=index, item=item)


_RENDER: dict[Dialect, Callable[[Reply, Context], Iterator[Item]]] = {
    "anthropic": _anthropic,
    "chat": _chat,
    "responses": _responses,
}
