"""Request bodies and headers are what each provider takes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from actors.model.dialects import build_request, http_error_text, reader_for
from actors.model.output_limit import output_limit
from actors.model.prompt import Credential, HttpRequest, ModelPrompt, RequestOptions, ToolSpec
from protocol.messages import (
    AssistantMessage,
    ImageContent,
    Message,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from protocol.model import Model

APIS = ("anthropic-messages", "openai-completions", "openai-responses")
TOOL = ToolSpec("bash", "Runs a command", {"type": "object", "properties": {"command": {"type": "string"}}})
KEY = Credential(api_key="sk-secret")


def asked(
    model: Model, *messages: Message, tools: tuple[ToolSpec, ...] = (TOOL,), **options: Any
) -> tuple[dict[str, Any], HttpRequest]:
    prompt = ModelPrompt("be brief", messages, tools)
    request = build_request(model, prompt, RequestOptions(**options), KEY)
    return json.loads(request.body), request


def said(model: Model, *content: Any, stop: str = "toolUse") -> AssistantMessage:
    usage = Usage()
    return AssistantMessage(list(content), model.api, model.provider, model.id, usage, stop, 5)  # type: ignore[arg-type]


def blocks(value: Any) -> Iterator[dict[str, Any]]:
    """Every JSON object in `value`."""
    if isinstance(value, dict):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from blocks(item)


# ---- all dialects


@pytest.mark.parametrize("api", APIS)
def test_a_resumed_session_with_an_unanswered_call_is_told_whole(model_of: Callable[..., Model], api: str) -> None:
    model = model_of(api)
    call = ToolCall("toolu_x", "bash", {"command": "ls"})
    body, _ = asked(model, UserMessage("hello", 1), said(model, call), UserMessage("go on", 2))
    found = list(blocks(body))
    kinds = ("tool_use", "function_call", "function")
    uses = [b for b in found if b.get("type") in kinds and ("id" in b or "call_id" in b)]
    results = [
        b.get("tool_use_id") or b.get("tool_call_id") or b.get("call_id")
        for b in found
        if b.get("type") in ("tool_result", "function_call_output") or b.get("role") == "tool"
    ]
    assert [use.get("call_id") or use["id"] for use in uses] == ["toolu_x"] == results


@pytest.mark.parametrize("api", APIS)
def test_no_empty_text_and_no_empty_message_is_sent(model_of: Callable[..., Model], api: str) -> None:
    model = model_of(api)
    call = ToolCall("t1", "bash", {"command": "true"})
    empty = ToolResultMessage("t1", "bash", [TextContent("")], False, 3)
    body, _ = asked(
        model,
        UserMessage([TextContent(" "), TextContent("hi")], 1),
        said(model, TextContent(""), call),
        empty,
        said(model, TextContent("\n"), stop="stop"),
        UserMessage("", 4),
    )
    for item in body.get("messages") or body["input"]:
        assert item.get("content") or item.get("tool_calls") or item.get("call_id"), item
    for block in blocks(body):
        if block.get("type") in ("text", "input_text", "output_text"):
            assert block["text"].strip()
        if block.get("type") == "tool_result":
            assert block["content"]


@pytest.mark.parametrize("api", APIS)
def test_a_lone_surrogate_becomes_the_replacement_character(model_of: Callable[..., Model], api: str) -> None:
    _, request = asked(model_of(api), UserMessage("bad \ud83d end, \ud83d\ude00", 1))
    assert "bad \ufffd end, \U0001f600" in request.body.decode()


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(
    "blank",
    [(), (UserMessage(" \n", 1),), (UserMessage("hi", 1), "reply", UserMessage([TextContent("")], 2)), ("reply",)],
    ids=["nothing", "blank", "blank after a reply", "no question"],
)
def test_what_leaves_nothing_to_answer_is_refused_before_it_is_sent(
    model_of: Callable[..., Model], api: str, blank: tuple[Any, ...]
) -> None:
    model = model_of(api)
    messages = [said(model, TextContent("t"), stop="stop") if part == "reply" else part for part in blank]
    with pytest.raises(ValueError, match=r"^the prompt is empty: there is nothing to send$"):
        asked(model, *messages)


@pytest.mark.parametrize("api", APIS)
def test_names_of_tools_are_such_as_every_provider_takes(model_of: Callable[..., Model], api: str) -> None:
    model = model_of(api, compat={"requiresToolResultName": True})
    names = ["bash", "functions.read file", "\u00fc" * 70, ""]
    calls = [ToolCall(f"c{number}", name, {}) for number, name in enumerate(names)]
    results = [ToolResultMessage(call.id, call.name, [TextContent("out")], False, 3) for call in calls[:-1]]
    body, _ = asked(model, UserMessage("hi", 1), said(model, *calls), *results, tools=())
    named = [block["name"] for block in blocks(body) if "name" in block]
    wanted = ["bash", "functions_read_file", "_" * 64, "tool"]
    assert named == wanted * (2 if api == "openai-completions" else 1)


@pytest.mark.parametrize("api", APIS)
def test_one_id_in_two_turns_becomes_two(model_of: Callable[..., Model], api: str) -> None:
    model = model_of(api)
    answer = ToolResultMessage("call/0", "bash", [TextContent("x")], False, 3)
    turn: list[Message] = [said(model, ToolCall("call/0", "bash", {})), answer]
    body, _ = asked(model, UserMessage("hi", 1), *turn, *turn)
    ids = [
        b.get("tool_use_id") or b.get("tool_call_id") or b.get("call_id")
        for b in blocks(body)
        if b.get("type") in ("tool_result", "function_call_output") or b.get("role") == "tool"
    ]
    assert len(set(ids)) == 2


@pytest.mark.parametrize("api", APIS)
def test_without_a_key_there_is_no_request_and_a_key_never_shows(model_of: Callable[..., Model], api: str) -> None:
    model = model_of(api)
    prompt = ModelPrompt("", (UserMessage("hi", 1),), ())
    with pytest.raises(ValueError, match="No API key for provider: p"):
        build_request(model, prompt, RequestOptions(), Credential())
    request = build_request(model, prompt, RequestOptions(), Credential("sk-1", headers=(("X-Extra", "sk-2"),)))
    assert "sk-" not in repr(request) and "sk-" not in repr(Credential("sk-1", "sk-2", (("a", "sk-3"),)))
    assert dict(request.headers)["x-extra"] == "sk-2"


@pytest.mark.parametrize("api", APIS)
def test_headers_of_the_catalogue_and_of_the_credential_win_over_our_own(
    model_of: Callable[..., Model], api: str
) -> None:
    model = model_of(api, headers={"User-Agent": "mine", "X-A": "model"})
    credential = Credential("k", headers=(("x-a", "credential"),))
    headers = build_request(model, ModelPrompt("", (UserMessage("hi", 1),), ()), RequestOptions(), credential).headers
    assert len(headers) == len(dict(headers))
    assert (dict(headers)["user-agent"], dict(headers)["x-a"]) == ("mine", "credential")


def test_an_unknown_api_is_refused_by_name(model_of: Callable[..., Model]) -> None:
    with pytest.raises(ValueError, match=r"p/m: api 'telepathy' is not supported, only anthropic-messages"):
        reader_for(model_of("telepathy"), 1)


def test_arguments_that_no_provider_could_read_fail_with_a_clear_text(model_of: Callable[..., Model]) -> None:
    deep: dict[str, Any] = {}
    for _ in range(100_000):  # past the limit of every interpreter that we support
        deep = {"a": deep}
    with pytest.raises(ValueError, match="nested too deeply"):
        asked(model_of(), said(model_of(), ToolCall("t", "bash", deep)))


def test_the_answer_may_take_what_the_window_leaves(model_of: Callable[..., Model]) -> None:
    prompt = ModelPrompt("", (UserMessage("x" * 4000, 1),), ())
    assert output_limit(model_of(), prompt, None) == 8192
    assert output_limit(model_of(), prompt, 100) == 100
    assert output_limit(model_of(context_window=6000), prompt, None) == 6000 - 1000 - 4096
    assert output_limit(model_of(context_window=500), prompt, None) == 1
    assert output_limit(model_of(context_window=0), prompt, None) == 8192
    known = AssistantMessage([], "a", "p", "m", Usage(total_tokens=3000), "stop", 1)
    assert output_limit(model_of(context_window=9000), ModelPrompt("", (*prompt.messages, known), ()), None) == 1904


# ---- Anthropic


def test_anthropic_puts_the_results_of_a_batch_into_one_user_message(model_of: Callable[..., Model]) -> None:
    model = model_of()
    calls = [ToolCall("a|b", "bash", {}), ToolCall("b" * 80, "bash", {})]
    results = [ToolResultMessage(call.id, "bash", [ImageContent("aGk=", "image/png")], True, 3) for call in calls]
    body, _ = asked(model, UserMessage("hi", 1), said(model, *calls), *results)
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]
    first, second = body["messages"][2]["content"]
    assert first["tool_use_id"] == body["messages"][1]["content"][0]["id"] == "a_b"
    assert (second["tool_use_id"], second["is_error"]) == ("b" * 64, True)
    assert second["content"][0]["source"] == {"type": "base64", "media_type": "image/png", "data": "aGk="}


@pytest.mark.parametrize(
    ("retention", "mark"),
    [("none", None), ("short", {"type": "ephemeral"}), ("long", {"type": "ephemeral", "ttl": "1h"})],
)
def test_anthropic_caches_system_tools_and_the_last_user_block(
    model_of: Callable[..., Model], retention: str, mark: Any
) -> None:
    body, _ = asked(model_of(), UserMessage("hi", 1), cache_retention=retention)
    marked = [body["system"][-1], body["tools"][-1], body["messages"][-1]["content"][-1]]
    assert [block.get("cache_control") for block in marked] == [mark] * 3
    turns = UserMessage("hi", 1), said(model_of(), TextContent("x"), stop="stop"), UserMessage("on", 2)
    body, _ = asked(model_of(), *turns)
    assert sum("cache_control" in block for block in blocks(body["messages"])) == 1


@pytest.mark.parametrize(
    ("level", "changes", "thinking"),
    [
        ("off", {}, {"type": "disabled"}),
        ("off", {"thinking_level_map": {"off": None}}, None),
        ("off", {"reasoning": False}, None),
        ("low", {}, {"type": "enabled", "budget_tokens": 2048}),
        ("high", {}, {"type": "enabled", "budget_tokens": 8192 - 1024}),
        ("low", {"max_tokens": 1500}, None),
        ("high", {"compat": {"forceAdaptiveThinking": True}}, {"type": "adaptive", "display": "summarized"}),
    ],
)
def test_anthropic_thinking(model_of: Callable[..., Model], level: str, changes: dict[str, Any], thinking: Any) -> None:
    model = model_of(sampling_params={"temperature": 0.3, "top_k": 5}, **changes)
    body, request = asked(model, UserMessage("hi", 1), thinking_level=level)
    assert body.get("thinking") == thinking
    is_on = bool(thinking) and thinking["type"] != "disabled"
    assert (body.get("temperature"), body["top_k"]) == (None if is_on else 0.3, 5)
    betas = dict(request.headers).get("anthropic-beta", "")
    assert ("interleaved-thinking-2025-05-14" in betas) == (is_on and thinking["type"] == "enabled")
    assert body.get("output_config") == ({"effort": "high"} if is_on and thinking["type"] == "adaptive" else None)


def test_anthropic_credentials_and_address(model_of: Callable[..., Model]) -> None:
    prompt = ModelPrompt("", (UserMessage("hi", 1),), (TOOL,))
    for base in ("http://h", "http://h/", "http://h/v1"):
        assert build_request(model_of(base_url=base), prompt, RequestOptions(), KEY).url == "http://h/v1/messages"
    headers = dict(build_request(model_of(), prompt, RequestOptions(), KEY).headers)
    assert headers["x-api-key"] == "sk-secret" and "authorization" not in headers
    for credential in (Credential("sk-ant-oat01"), Credential(bearer="sk-ant-oat01")):
        headers = dict(build_request(model_of(), prompt, RequestOptions(), credential).headers)
        assert headers["authorization"] == "Bearer sk-ant-oat01" and "x-api-key" not in headers


def test_anthropic_thoughts_go_back_as_they_came(model_of: Callable[..., Model]) -> None:
    thoughts = [ThinkingContent("", "s1"), ThinkingContent("x", "payload", True), TextContent("t")]
    body, _ = asked(model_of(), UserMessage("hi", 1), said(model_of(), *thoughts, stop="stop"), UserMessage("on", 2))
    assert body["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "", "signature": "s1"},
        {"type": "redacted_thinking", "data": "payload"},
        {"type": "text", "text": "t"},
    ]


@pytest.mark.parametrize("thought", [ThinkingContent("", "s1"), ThinkingContent("x", "payload", True)])
def test_anthropic_is_told_no_message_that_ends_with_a_thought(
    model_of: Callable[..., Model], thought: ThinkingContent
) -> None:
    model = model_of()
    only, ending = said(model, thought, stop="length"), said(model, TextContent("t"), thought, thought, stop="length")
    body, _ = asked(model, UserMessage("hi", 1), only, UserMessage("on", 2), ending, UserMessage("more", 3))
    assert [message["role"] for message in body["messages"]] == ["user", "user", "assistant", "user"]
    assert body["messages"][2]["content"] == [{"type": "text", "text": "t"}]


# ---- OpenAI chat


@pytest.mark.parametrize("signature", ["reasoning_content", '[{"type":"reasoning.text"}]'])
def test_chat_is_told_no_message_of_thoughts_alone(model_of: Callable[..., Model], signature: str) -> None:
    model = model_of("openai-completions")
    only = said(model, ThinkingContent("hm", signature), stop="length")
    both = said(model, ThinkingContent("hm", signature), TextContent("t"), stop="stop")
    body, _ = asked(model, UserMessage("hi", 1), only, UserMessage("on", 2), both, UserMessage("more", 3))
    assert [message["role"] for message in body["messages"][1:]] == ["user", "user", "assistant", "user"]
    assert len(body["messages"][3]) == 3  # with its thoughts


def test_chat_history_has_strings_calls_and_one_message_with_all_the_images_of_a_batch(
    model_of: Callable[..., Model],
) -> None:
    model = model_of("openai-completions")
    calls = [ToolCall("a|fc_1", "bash", {"c": 1}), ToolCall("b", "bash", {})]
    image = ImageContent("aGk=", "image/png")
    results = [ToolResultMessage(call.id, "bash", [image], False, 3) for call in calls]
    reply = said(model, ThinkingContent("hm", "reasoning"), *calls)
    body, request = asked(model, UserMessage("hi", 1), reply, *results)
    system, user, assistant, first, second, images = body["messages"]
    assert (system["role"], user["content"], assistant["content"]) == ("developer", "hi", None)
    assert assistant["reasoning"] == "hm"
    assert assistant["tool_calls"][0] == {
        "id": "a",
        "type": "function",
        "function": {"name": "bash", "arguments": '{"c":1}'},
    }
    assert (first["role"], second["tool_call_id"], bool(first["content"])) == ("tool", "b", True)
    assert [part["type"] for part in images["content"]] == ["text", "image_url", "image_url"]
    assert request.url.endswith("/chat/completions")


def test_chat_sends_an_empty_tool_list_when_the_history_used_tools(model_of: Callable[..., Model]) -> None:
    model = model_of("openai-completions")
    body, _ = asked(model, said(model, ToolCall("a", "bash", {})), tools=())
    assert body["tools"] == []
    assert "tools" not in asked(model, UserMessage("hi", 1), tools=())[0]


@pytest.mark.parametrize(
    ("changes", "present", "absent"),
    [
        ({}, {"store": False, "max_completion_tokens": 8192, "reasoning_effort": "high"}, ["max_tokens"]),
        ({"base_url": "https://api.mistral.ai/v1"}, {"max_tokens": 8192}, ["store", "reasoning_effort"]),
        ({"provider": "openrouter"}, {"reasoning": {"effort": "high"}}, ["store", "reasoning_effort"]),
        ({"base_url": "https://api.z.ai/x"}, {"thinking": {"type": "enabled"}}, ["reasoning_effort"]),
        ({"compat": {"supportsStore": False, "maxTokensField": "max_tokens"}}, {"max_tokens": 8192}, ["store"]),
        ({"compat": {"thinkingFormat": "qwen"}}, {"enable_thinking": True}, ["reasoning_effort"]),
        ({"thinking_level_map": {"high": "ultra"}}, {"reasoning_effort": "ultra"}, []),
        ({"base_url": "https://notmistral.ai/v1"}, {"store": False}, []),
    ],
)
def test_chat_fields_follow_the_host_and_explicit_switches_win(
    model_of: Callable[..., Model], changes: dict[str, Any], present: dict[str, Any], absent: list[str]
) -> None:
    body, _ = asked(model_of("openai-completions", **changes), UserMessage("hi", 1), thinking_level="high")
    assert {key: body.get(key) for key in present} == present
    assert not set(absent) & body.keys()


def test_the_cache_key_goes_to_openai_only(model_of: Callable[..., Model]) -> None:
    own = model_of("openai-completions", base_url="https://api.openai.com/v1")
    body, _ = asked(own, UserMessage("hi", 1), session_id="s" * 80, cache_retention="long")
    assert (body["prompt_cache_key"], body["prompt_cache_retention"]) == ("s" * 64, "24h")
    assert "prompt_cache_key" not in asked(own, UserMessage("hi", 1), session_id="s", cache_retention="none")[0]
    other = model_of("openai-completions")
    assert "prompt_cache_key" not in asked(other, UserMessage("hi", 1), session_id="s")[0]


# ---- OpenAI responses


def test_responses_items_and_their_ids(model_of: Callable[..., Model]) -> None:
    model = model_of("openai-responses")
    item = {"type": "reasoning", "id": "rs", "encrypted_content": "x", "summary": []}
    text = TextContent("ok", json.dumps({"v": 1, "id": "msg_9", "phase": "final_answer"}))
    own = said(model, ThinkingContent("", json.dumps(item)), text, ToolCall("c1|fc_1", "bash", {"a": 1}))
    body, _ = asked(model, own, ToolResultMessage("c1|fc_1", "bash", [TextContent("out")], False, 3), session_id="s")
    _, reasoning, message, call, output = body["input"]
    assert reasoning == item
    assert (message["id"], message["phase"], message["content"][0]["text"]) == ("msg_9", "final_answer", "ok")
    assert (call["call_id"], call["id"], call["arguments"]) == ("c1", "fc_1", '{"a":1}')
    assert output == {"type": "function_call_output", "call_id": "c1", "output": "out"}
    assert (body["store"], body["prompt_cache_key"], body["include"]) == (False, "s", ["reasoning.encrypted_content"])


def test_responses_item_ids_of_others_are_hashed_and_of_sibling_models_left_out(model_of: Callable[..., Model]) -> None:
    model = model_of("openai-responses")
    for writer, has_item in ((model_of("openai-responses", id="old"), False), (model_of(provider="q"), True)):
        body, _ = asked(model, said(writer, ToolCall("c1|item/1", "bash", {})))
        call = next(item for item in body["input"] if item.get("type") == "function_call")
        assert call["call_id"] == "c1"
        assert call.get("id", "").startswith("fc_") == has_item


def test_responses_are_told_no_reasoning_without_what_follows_it(model_of: Callable[..., Model]) -> None:
    model = model_of("openai-responses")
    thought = ThinkingContent("hm", '{"type":"reasoning","id":"rs_1","encrypted_content":"x","summary":[]}')
    only, both = said(model, thought, stop="length"), said(model, thought, TextContent("t"), thought, stop="length")
    body, _ = asked(model, UserMessage("hi", 1), only, UserMessage("on", 2), both, UserMessage("more", 3))
    kinds = [item.get("type") or item["role"] for item in body["input"][1:]]
    assert kinds == ["user", "user", "reasoning", "message", "user"]


def test_responses_limits_and_effort(model_of: Callable[..., Model]) -> None:
    model = model_of("openai-responses")
    body, _ = asked(model, UserMessage("hi", 1), max_tokens=3)
    assert (body["max_output_tokens"], body["reasoning"]) == (16, {"effort": "none"})
    body, _ = asked(model, UserMessage("hi", 1), thinking_level="low")
    assert body["reasoning"] == {"effort": "low", "summary": "auto"}
    assert "reasoning" not in asked(model_of("openai-responses", reasoning=False), UserMessage("hi", 1))[0]


# ---- HTTP errors


def test_http_errors_keep_the_status_and_the_providers_words() -> None:
    body = b'{"error":{"message":"no more","code":"insufficient_quota"}}'
    assert http_error_text("anthropic-messages", 529, b'{"type":"error"}') == '529 {"type":"error"}'
    assert http_error_text("openai-completions", 429, body) == f"429: {body.decode()}"
    assert http_error_text("openai-responses", 429, body) == "OpenAI API error (429): no more (insufficient_quota)"
    assert http_error_text("openai-completions", 413, b"") == "413 status code (no body)"
    assert len(http_error_text("openai-completions", 500, b"x" * 99_999)) < 4100
    assert http_error_text("openai-responses", 500, b"\xff[") == "OpenAI API error (500): \ufffd["
