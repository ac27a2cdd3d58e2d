"""Streams are read as the providers' own SDKs read them, in any chunks, and whatever breaks ends in a message.

The oracle: the same bytes go through the anthropic and openai SDKs and through our readers.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.model.dialects import reader_for
from actors.model.reply import ReplyReader
from protocol.events import TextDelta, ThinkingDelta, ToolCallDelta, ToolCallEnd
from protocol.messages import AssistantMessage, TextContent, ThinkingContent, ToolCall
from protocol.model import Model

APIS = ("anthropic-messages", "openai-completions", "openai-responses")
Block = tuple[str, Any]

TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
ARGUMENTS = st.dictionaries(TEXT, TEXT | st.integers(-99, 99) | st.booleans(), max_size=3)
BLOCKS = st.lists(
    st.one_of(
        st.tuples(st.just("text"), TEXT),
        st.tuples(st.just("thinking"), TEXT),
        st.tuples(st.just("tool"), ARGUMENTS),
    ),
    min_size=1,
    max_size=4,
)


def sse(event: dict[str, Any]) -> bytes:
    named = f"event: {event['type']}\n" if "type" in event else ""
    return f"{named}data: {json.dumps(event)}\n\n".encode()


def pieces(text: str) -> list[str]:
    return [text[i : i + 3] for i in range(0, len(text), 3)]


# ---- the same blocks as each provider would stream them


def anthropic_stream(blocks: list[Block]) -> bytes:
    usage = {"input_tokens": 7, "output_tokens": 1, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 2}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage}
    out = [sse({"type": "message_start", "message": message}), sse({"type": "ping"})]
    for i, (kind, value) in enumerate(blocks):
        start: dict[str, Any] = {"type": kind, kind: ""}
        deltas = [{"type": f"{kind}_delta", kind: piece} for piece in pieces(value)] if kind != "tool" else []
        if kind == "thinking":
            start["signature"] = ""
            deltas.append({"type": "signature_delta", "signature": "sig"})
        if kind == "tool":
            start = {"type": "tool_use", "id": f"t{i}", "name": "bash", "input": {}}
            deltas = [{"type": "input_json_delta", "partial_json": p} for p in ["", *pieces(json.dumps(value))]]
        out.append(sse({"type": "content_block_start", "index": i, "content_block": start}))
        out += [sse({"type": "content_block_delta", "index": i, "delta": delta}) for delta in deltas]
        out.append(sse({"type": "content_block_stop", "index": i}))
    stop = "tool_use" if any(kind == "tool" for kind, _ in blocks) else "end_turn"
    out.append(sse({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 9}}))
    return b"".join([*out, sse({"type": "message_stop"})])


def chat_stream(blocks: list[Block]) -> bytes:
    def chunk(delta: dict[str, Any], reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return sse({"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]})

    out = [chunk({"role": "assistant", "content": ""})]
    calls = 0
    for kind, value in blocks:
        if kind == "tool":
            function = {"name": "bash", "arguments": ""}
            out.append(chunk({"tool_calls": [{"index": calls, "id": f"t{calls}", "function": function}]}))
            for p in pieces(json.dumps(value)):
                out.append(chunk({"tool_calls": [{"index": calls, "function": {"arguments": p}}]}))
            calls += 1
        else:
            out += [chunk({"content" if kind == "text" else "reasoning_content": p}) for p in pieces(value)]
    out.append(chunk({}, "tool_calls" if calls else "stop"))
    usage = {
        "prompt_tokens": 12,
        "completion_tokens": 9,
        "total_tokens": 21,
        "prompt_tokens_details": {"cached_tokens": 3},
    }
    out.append(
        sse({"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [], "usage": usage})
    )
    return b"".join([*out, b"data: [DONE]\n\n"])


def responses_item(i: int, kind: str, value: Any, *, is_done: bool) -> dict[str, Any]:
    if kind == "tool":
        arguments = json.dumps(value) if is_done else ""
        return {
            "type": "function_call",
            "id": f"fc{i}",
            "call_id": f"t{i}",
            "name": "bash",
            "arguments": arguments,
            "status": "completed" if is_done else "in_progress",
        }
    if kind == "thinking":
        return {"type": "reasoning", "id": f"rs{i}", "summary": [{"type": "summary_text", "text": value}] * is_done}
    part = {"type": "output_text", "text": value, "annotations": [], "logprobs": []}
    return {"type": "message", "id": f"msg{i}", "role": "assistant", "status": "completed", "content": [part] * is_done}


def responses_stream(blocks: list[Block]) -> bytes:
    base: dict[str, Any] = {
        "id": "r1",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "output": [],
        "tools": [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
    }
    out: list[dict[str, Any]] = [{"type": "response.created", "response": {**base, "status": "in_progress"}}]
    items = []
    for i, (kind, value) in enumerate(blocks):
        item = responses_item(i, kind, value, is_done=True)
        at: dict[str, Any] = {"output_index": i, "item_id": item["id"]}
        fresh = responses_item(i, kind, value, is_done=False)
        out.append({"type": "response.output_item.added", "output_index": i, "item": fresh})
        if kind == "tool":
            kinds = "response.function_call_arguments.delta"
        elif kind == "thinking":
            part = {"type": "summary_text", "text": ""}
            out.append({"type": "response.reasoning_summary_part.added", **at, "summary_index": 0, "part": part})
            kinds, at["summary_index"] = "response.reasoning_summary_text.delta", 0
        else:
            part = {"type": "output_text", "text": ""}
            out.append({"type": "response.content_part.added", **at, "content_index": 0, "part": part})
            kinds, at["content_index"] = "response.output_text.delta", 0
        whole = json.dumps(value) if kind == "tool" else value
        out += [{"type": kinds, **at, "delta": p, "logprobs": []} for p in pieces(whole)]
        out.append({"type": "response.output_item.done", "output_index": i, "item": item})
        items.append(item)
    usage = {
        "input_tokens": 12,
        "output_tokens": 9,
        "total_tokens": 21,
        "input_tokens_details": {"cached_tokens": 3},
        "output_tokens_details": {"reasoning_tokens": 4},
    }
    out.append(
        {"type": "response.completed", "response": {**base, "status": "completed", "output": items, "usage": usage}}
    )
    return b"".join(sse({**event, "sequence_number": i}) for i, event in enumerate(out))


STREAMS: dict[str, Callable[[list[Block]], bytes]] = dict(
    zip(APIS, (anthropic_stream, chat_stream, responses_stream), strict=True)
)

# ---- what the SDKs make of them: (texts, thoughts, calls, input, output and cached tokens)

Summary = tuple[list[str], list[str], list[tuple[str, Any]], tuple[int, int, int]]


def answering(body: bytes) -> httpx2.Client:
    headers = {"content-type": "text/event-stream"}
    return httpx2.Client(transport=httpx2.MockTransport(lambda _: httpx2.Response(200, headers=headers, content=body)))


def anthropic_oracle(body: bytes) -> Summary:
    client = anthropic.Anthropic(api_key="k", http_client=answering(body))
    with client.messages.stream(model="m", max_tokens=9, messages=[{"role": "user", "content": "x"}]) as stream:
        message = stream.get_final_message()
    content = message.content
    return (
        [block.text for block in content if block.type == "text"],
        [block.thinking for block in content if block.type == "thinking"],
        [(block.id, block.input) for block in content if block.type == "tool_use"],
        (message.usage.input_tokens, message.usage.output_tokens, message.usage.cache_read_input_tokens or 0),
    )


def chat_oracle(body: bytes) -> Summary:
    client = openai.OpenAI(api_key="k", http_client=answering(body))
    with client.chat.completions.stream(model="m", messages=[{"role": "user", "content": "x"}]) as stream:
        completion = stream.get_final_completion()
    message, usage = completion.choices[0].message, completion.usage
    assert usage is not None and usage.prompt_tokens_details is not None
    cached = usage.prompt_tokens_details.cached_tokens or 0
    return (
        [message.content] if message.content else [],
        [thoughts] if (thoughts := getattr(message, "reasoning_content", None)) else [],
        [(call.id, json.loads(call.function.arguments)) for call in message.tool_calls or []],
        (usage.prompt_tokens - cached, usage.completion_tokens, cached),
    )


def responses_oracle(body: bytes) -> Summary:
    client = openai.OpenAI(api_key="k", http_client=answering(body))
    with client.responses.stream(model="m", input="x") as stream:
        response = stream.get_final_response()
    usage = response.usage
    assert usage is not None
    cached = usage.input_tokens_details.cached_tokens
    return (
        [
            part.text
            for item in response.output
            if item.type == "message"
            for part in item.content
            if part.type == "output_text"
        ],
        ["\n\n".join(part.text for part in item.summary) for item in response.output if item.type == "reasoning"],
        [
            (f"{item.call_id}|{item.id}", json.loads(item.arguments))
            for item in response.output
            if item.type == "function_call"
        ],
        (usage.input_tokens - cached, usage.output_tokens, cached),
    )


ORACLES: dict[str, Callable[[bytes], Summary]] = dict(
    zip(APIS, (anthropic_oracle, chat_oracle, responses_oracle), strict=True)
)


def summary(message: AssistantMessage) -> Summary:
    return (
        [block.text for block in message.content if isinstance(block, TextContent)],
        [block.thinking for block in message.content if isinstance(block, ThinkingContent)],
        [(block.id, block.arguments) for block in message.tool_calls],
        (message.usage.input, message.usage.output, message.usage.cache_read),
    )


def read(reader: ReplyReader, *chunks: bytes) -> tuple[AssistantMessage, list[Any]]:
    events = [event for chunk in chunks for event in reader.feed(chunk)]
    events += reader.drain()
    return reader.end(), events


def cut(stream: bytes, cuts: list[int]) -> list[bytes]:
    bounds = sorted(c % (len(stream) + 1) for c in cuts)
    return [stream[a:b] for a, b in zip([0, *bounds], [*bounds, len(stream)], strict=True)]


def grown(message: AssistantMessage, events: list[Any]) -> list[str]:
    """What a client that only adds deltas up has at the end, by content index."""
    texts = ["" for _ in message.content]
    for event in events:
        if isinstance(event, TextDelta | ThinkingDelta | ToolCallDelta):
            texts[event.content_index] += event.delta
    return texts


@pytest.mark.parametrize("api", APIS)
@settings(max_examples=25)
@given(blocks=BLOCKS, cuts=st.lists(st.integers(0, 10_000), max_size=12))
def test_a_reply_is_read_as_the_providers_own_sdk_reads_it(
    model_of: Callable[..., Model], api: str, blocks: list[Block], cuts: list[int]
) -> None:
    stream = STREAMS[api](blocks)
    message, events = read(reader_for(model_of(api), 5), *cut(stream, cuts))
    assert summary(message) == ORACLES[api](stream)
    assert message.stop_reason == ("toolUse" if message.tool_calls else "stop")
    ended = [event.tool_call for event in events if isinstance(event, ToolCallEnd)]
    assert ended == message.tool_calls
    for text, block in zip(grown(message, events), message.content, strict=True):
        if isinstance(block, TextContent | ThinkingContent):
            assert text == (block.text if isinstance(block, TextContent) else block.thinking)


@pytest.mark.parametrize("api", APIS)
def test_every_single_cut_gives_the_same_message(model_of: Callable[..., Model], api: str) -> None:
    stream = STREAMS[api]([("thinking", "hm\u20ac"), ("text", "a\U0001f600b"), ("tool", {"command": "ls \u20ac"})])
    whole, _ = read(reader_for(model_of(api), 5), stream)
    assert len(whole.content) == 3
    for position in range(len(stream)):
        assert read(reader_for(model_of(api), 5), stream[:position], stream[position:])[0] == whole
    assert read(reader_for(model_of(api), 5), *(bytes([byte]) for byte in stream))[0] == whole


JUNK = st.sampled_from(
    [
        b"null",
        b"[]",
        b"3",
        b'"x"',
        b"{}",
        b"{",
        b'{"type":"content_block_start"}',
        b'{"choices":[null]}',
        b'{"choices":{"a":1}}',
        b'{"choices":[{"delta":[]}]}',
        b'{"choices":[{"delta":{"tool_calls":[7]}}]}',
        b'{"type":"message_start","message":[]}',
        b'{"type":"content_block_delta","index":0,"delta":null}',
        b'{"type":"content_block_start","index":0,"content_block":{"type":"tool_use"}}',
        b'{"type":"response.output_item.added","item":{"type":"message"}}',
        b'{"type":"response.completed"}',
        b'{"type":"response.output_text.delta","item_id":[]}',
        b'{"error":{"metadata":5}}',
        b"[" * 3000,
        b'{"usage":{"prompt_tokens":"x"},"choices":[]}',
        b'{"type":"message_delta","usage":{"input_tokens":1e999}}',
        b'{"choices":[{"delta":{"content":"\xff\\ud83d"}}]}',
        b'{"choices":[{"finish_reason":{}}]}',
    ]
)


@pytest.mark.parametrize("api", APIS)
@settings(max_examples=60)
@given(parts=st.lists(st.one_of(JUNK, st.binary(max_size=20)), max_size=6), at=st.integers(0, 10_000))
def test_no_bytes_make_it_raise(model_of: Callable[..., Model], api: str, parts: list[bytes], at: int) -> None:
    stream = STREAMS[api]([("text", "abc"), ("tool", {"a": 1})])
    events = stream.split(b"\n\n")
    place = at % len(events)
    junk = [b"data: " + part for part in parts]
    message, _ = read(reader_for(model_of(api), 5), b"\n\n".join([*events[:place], *junk, *events[place:]]))
    assert message.stop_reason in ("stop", "toolUse", "error")
    assert (message.stop_reason == "error") == bool(message.error_message)


@pytest.mark.parametrize(
    ("api", "text"),
    [
        ("anthropic-messages", "Anthropic stream ended before message_stop"),
        ("openai-completions", "Stream ended without finish_reason"),
        ("openai-responses", "OpenAI Responses stream ended before a terminal response event"),
    ],
)
def test_a_stream_that_ends_early_is_an_error_that_keeps_what_came(
    model_of: Callable[..., Model], api: str, text: str
) -> None:
    stream = STREAMS[api]([("text", "half a reply")])
    message, _ = read(reader_for(model_of(api), 5), stream[: stream.index(b'y"') + 60])
    assert (message.stop_reason, message.error_message) == ("error", text)
    assert summary(message)[0] == ["half a reply"]


@pytest.mark.parametrize("api", APIS)
def test_an_abort_keeps_the_blocks_so_far(model_of: Callable[..., Model], api: str) -> None:
    stream = STREAMS[api]([("text", "abcdef"), ("tool", {"command": "ls"})])
    reader = reader_for(model_of(api), 5)
    events = reader.feed(stream[: stream.index(b"def")] + b'def"}')
    message = reader.fail("Request was aborted", aborted=True)
    assert (message.stop_reason, message.error_message) == ("aborted", "Request was aborted")
    assert summary(message)[0] == ["".join(grown(message, events))] == ["abc"]
    assert reader.feed(stream) == []


def test_the_partial_message_is_a_value_that_later_bytes_do_not_change(model_of: Callable[..., Model]) -> None:
    stream = anthropic_stream([("text", "abc")])
    reader = reader_for(model_of(), 5)
    reader.feed(stream[: stream.index(b"event: content_block_start")])
    partial = reader.message
    assert (reader.started, partial.stop_reason, partial.content, partial.usage.input) == (True, "pending", [], 7)
    reader.feed(stream)
    assert (partial.content, partial.usage.output) == ([], 1)


def test_half_a_surrogate_pair_waits_for_its_other_half(model_of: Callable[..., Model]) -> None:
    out = [
        sse({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        sse({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a\ud83d"}}),
        sse({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "\ude00b\ud83d"}}),
        sse({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}),
        sse({"type": "message_stop"}),
    ]
    message, events = read(reader_for(model_of(), 5), *out)
    assert message.content == [TextContent("a\U0001f600b\ufffd")]
    assert [event.delta for event in events if isinstance(event, TextDelta)] == ["a", "\U0001f600b"]


# ---- Anthropic


def anthropic_end(delta: dict[str, Any]) -> bytes:
    return sse({"type": "message_delta", "delta": delta}) + sse({"type": "message_stop"})


@pytest.mark.parametrize(
    ("delta", "stop", "error"),
    [
        ({"stop_reason": "pause_turn"}, "stop", None),
        ({"stop_reason": "stop_sequence"}, "stop", None),
        ({"stop_reason": "max_tokens"}, "length", None),
        ({"stop_reason": "refusal"}, "error", "The model refused to complete the request"),
        ({"stop_reason": "refusal", "stop_details": {"explanation": "no"}}, "error", "no"),
        ({"stop_reason": "sensitive"}, "error", "Provider stopped with: sensitive"),
        ({"stop_reason": "galaxy"}, "error", "Unhandled stop reason: galaxy"),
    ],
)
def test_anthropic_stop_reasons(
    model_of: Callable[..., Model], delta: dict[str, Any], stop: str, error: str | None
) -> None:
    message, _ = read(reader_for(model_of(), 5), anthropic_end(delta))
    assert (message.stop_reason, message.error_message or None) == (stop, error)
    assert message.raw_stop_reason == delta["stop_reason"]


def test_an_anthropic_error_event_is_told_in_the_providers_words(model_of: Callable[..., Model]) -> None:
    data = '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}'
    message, _ = read(reader_for(model_of(), 5), f"event: error\ndata: {data}\n\n".encode())
    assert (message.stop_reason, message.error_message) == ("error", data)


def test_unknown_anthropic_events_blocks_and_what_follows_the_end_are_ignored(model_of: Callable[..., Model]) -> None:
    stream = anthropic_stream([("text", "OK")])
    noise = b": hi\n\nevent: vendor\ndata: not json\n\n" + sse(
        {"type": "content_block_start", "index": 9, "content_block": {"type": "server_tool_use", "id": "x"}}
    )
    delta = {"type": "input_json_delta", "partial_json": "{"}
    noise += sse({"type": "content_block_delta", "index": 9, "delta": delta})
    message, _ = read(reader_for(model_of(), 5), noise + stream + b"event: done\ndata: [DONE]\n\ndata: [DONE]\n\n")
    assert (summary(message)[0], message.stop_reason) == (["OK"], "stop")


def test_usage_that_is_null_or_missing_does_not_change_a_count(model_of: Callable[..., Model]) -> None:
    usage = {
        "input_tokens": 5,
        "output_tokens": 1,
        "cache_creation_input_tokens": 8,
        "cache_creation": {"ephemeral_1h_input_tokens": 6},
    }
    start = sse({"type": "message_start", "message": {"usage": usage}})
    nulls = sse({"type": "message_delta", "delta": {}, "usage": {"input_tokens": None, "output_tokens": None}})
    told = {"output_tokens": 4, "output_tokens_details": {"thinking_tokens": 2}}
    thinking = sse({"type": "message_delta", "delta": {}, "usage": told})
    message, _ = read(reader_for(model_of(), 5), start + nulls + thinking + anthropic_end({"stop_reason": "end_turn"}))
    counts = message.usage
    assert (counts.input, counts.output, counts.cache_write, counts.total_tokens) == (5, 4, 8, 17)
    assert (counts.cache_write_1h, counts.reasoning) == (6, 2)
    assert counts.cost.cache_write == pytest.approx((2 * 3.75 + 6 * 6) / 1e6)


def test_a_redacted_thought_keeps_its_payload(model_of: Callable[..., Model]) -> None:
    block = {"type": "redacted_thinking", "data": "secret"}
    start = sse({"type": "content_block_start", "index": 0, "content_block": block})
    message, _ = read(reader_for(model_of(), 5), start + anthropic_end({"stop_reason": "end_turn"}))
    assert message.content == [ThinkingContent("[Reasoning redacted]", "secret", True)]


# ---- OpenAI chat


def chat(*deltas: dict[str, Any], reason: str | None = "stop") -> bytes:
    choices: list[dict[str, Any]] = [{"delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"delta": {}, "finish_reason": reason})
    return b"".join(sse({"choices": [choice]}) for choice in choices)


def piece(arguments: str, **known: Any) -> dict[str, Any]:
    name = known.pop("name", None)
    return {"tool_calls": [{**known, "function": {"arguments": arguments, **({"name": name} if name else {})}}]}


@pytest.mark.parametrize(
    "deltas",
    [
        [
            piece("", index=0, id="A", name="bash"),
            piece("", index=1, id="B", name="bash"),
            piece('{"c":', index=0),
            piece('{"c":2', index=1),
            piece("1}", index=0),
            piece("}", index=1),
        ],
        [piece('{"c":1}', index=0, id="A", name="bash"), piece('{"c":2}', index=0, id="B", name="bash")],
        [piece('{"c":', id="A", name="bash"), piece("1}"), piece('{"c":', id="B", name="bash"), piece("2}", id="B")],
        [
            piece('{"c":', index=0),
            piece("1}", index=0, id="A", name="bash"),
            piece('{"c":2}', index=1, id="B", name="bash"),
        ],
    ],
    ids=["interleaved", "one index for all", "no index", "late id and name"],
)
def test_chat_tool_calls_are_put_together(model_of: Callable[..., Model], deltas: list[dict[str, Any]]) -> None:
    message, _ = read(reader_for(model_of("openai-completions"), 5), chat(*deltas, reason="tool_calls"))
    assert message.tool_calls == [ToolCall("A", "bash", {"c": 1}), ToolCall("B", "bash", {"c": 2})]


def test_chat_chunks_without_choices_and_null_deltas_are_harmless(model_of: Callable[..., Model]) -> None:
    odd = sse({"id": "c"}) + sse({"choices": []}) + sse({"choices": [{"delta": None}]})
    usage = {"prompt_tokens": 3, "completion_tokens": 1, "prompt_tokens_details": None}
    last = sse({"choices": [], "usage": usage}) + b"data: [DONE]"
    stream = odd + chat({"content": None}, {"content": "OK"}) + last
    message, _ = read(reader_for(model_of("openai-completions"), 5), stream)
    assert (summary(message)[0], message.usage.total_tokens, message.stop_reason) == (["OK"], 4, "stop")


@pytest.mark.parametrize(
    ("compat", "reason", "stop", "error"),
    [
        ({}, "end", "stop", None),
        ({}, "length", "length", None),
        ({}, "function_call", "toolUse", None),
        ({}, "galaxy_brain", "error", "Provider finish_reason: galaxy_brain"),
        ({}, None, "error", "Stream ended without finish_reason"),
        ({"supportsFinishReason": False}, None, "stop", None),
    ],
)
def test_chat_finish_reasons(
    model_of: Callable[..., Model], compat: dict[str, Any], reason: str | None, stop: str, error: str | None
) -> None:
    reader = reader_for(model_of("openai-completions", compat=compat), 5)
    message, _ = read(reader, chat({"content": "x"}, reason=reason))
    assert (message.stop_reason, message.error_message or None) == (stop, error)


def test_a_chat_error_chunk_keeps_the_code_that_the_retry_rules_need(model_of: Callable[..., Model]) -> None:
    error = {"message": "no more", "code": "insufficient_quota", "metadata": {"raw": "upstream says so"}}
    message, _ = read(reader_for(model_of("openai-completions"), 5), sse({"error": error}))
    assert message.error_message == "no more (insufficient_quota) upstream says so"


def test_structured_reasoning_is_kept_for_its_way_back(model_of: Callable[..., Model]) -> None:
    def detail(text: str) -> dict[str, Any]:
        return {"reasoning": text, "reasoning_details": [{"type": "reasoning.text", "index": 0, "text": text}]}

    message, _ = read(reader_for(model_of("openai-completions"), 5), chat(detail("a"), detail("b")))
    (block,) = message.content
    assert isinstance(block, ThinkingContent)
    assert block.thinking == "ab"
    assert json.loads(str(block.thinking_signature)) == [{"type": "reasoning.text", "index": 0, "text": "ab"}]


# ---- OpenAI responses


@pytest.mark.parametrize(
    ("response", "stop", "error"),
    [
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "length", None),
        (
            {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}},
            "error",
            "Response incomplete: content_filter",
        ),
        ({"status": "failed", "error": {"code": "server_error", "message": "boom"}}, "error", "server_error: boom"),
    ],
)
def test_responses_that_do_not_complete(
    model_of: Callable[..., Model], response: dict[str, Any], stop: str, error: str | None
) -> None:
    stream = sse({"type": f"response.{response['status']}", "response": response})
    message, _ = read(reader_for(model_of("openai-responses"), 5), stream)
    assert (message.stop_reason, message.error_message or None) == (stop, error)


def test_encrypted_reasoning_that_comes_last_is_filled_in(model_of: Callable[..., Model]) -> None:
    item = {
        "type": "reasoning",
        "id": "rs",
        "summary": [{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}],
    }
    done = sse({"type": "response.output_item.done", "output_index": 0, "item": item})
    whole = {**item, "encrypted_content": "xyz"}
    end = sse({"type": "response.completed", "response": {"status": "completed", "output": [whole]}})
    message, _ = read(reader_for(model_of("openai-responses"), 5), done + end)
    (block,) = message.content
    assert isinstance(block, ThinkingContent)
    assert block.thinking == "a\n\nb"
    assert json.loads(str(block.thinking_signature)) == whole


def test_a_service_tier_changes_the_price(model_of: Callable[..., Model]) -> None:
    usage = {"input_tokens": 1_000_000, "output_tokens": 0, "total_tokens": 1_000_000}
    response = {"status": "completed", "usage": usage, "service_tier": "flex"}
    stream = sse({"type": "response.completed", "response": response})
    message, _ = read(reader_for(model_of("openai-responses"), 5), stream)
    assert message.usage.cost.total == pytest.approx(1.5)
