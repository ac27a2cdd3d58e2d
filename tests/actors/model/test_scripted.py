"""The scripted model answers as its file or the user's own lines say, through the real reader."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from actors.model.dialects import build_request, http_error_text, reader_for
from actors.model.prompt import Credential, ModelPrompt, RequestOptions
from actors.model.transport import Abort, Aborted, Transport, TransportError, TransportSettings
from protocol.events import TextDelta
from protocol.messages import AssistantMessage, Message, TextContent, ThinkingContent, ToolCall, Usage, UserMessage
from protocol.model import Model


def ask(transport: Transport, model: Model, *messages: Message, abort: Abort | None = None) -> tuple[Any, list[Any]]:
    reader = reader_for(model, 5)
    events: list[Any] = []
    head: list[int] = []

    def on_bytes(data: bytes) -> None:
        events.extend(reader.feed(data) if head[0] < 400 else [data])

    prompt = ModelPrompt("", messages, ())
    transport.stream(
        lambda: build_request(model, prompt, RequestOptions(), Credential()),
        abort or Abort(),
        lambda status, _: head.append(status),
        on_bytes,
    )
    if head[0] >= 400:
        return reader.fail(http_error_text(model.api, head[0], b"".join(events))), []
    events += reader.drain()
    return reader.end(), events


@pytest.fixture
def said(model_of: Callable[..., Model]) -> Callable[[str, int], AssistantMessage]:
    """The reply to a user text, after some replies to it."""
    model = model_of("scripted", base_url="scripted:")
    earlier = AssistantMessage([TextContent("x")], "scripted", "p", "m", Usage(), "toolUse", 1)

    def reply(text: str, replies: int = 0) -> AssistantMessage:
        messages: list[Message] = [UserMessage(text, 1), *[earlier] * replies]
        message, _ = ask(Transport(TransportSettings()), model, *messages)
        assert isinstance(message, AssistantMessage)
        return message

    return reply


def test_without_directives_the_text_is_echoed(said: Callable[..., AssistantMessage]) -> None:
    assert said("hello  there\nyou").content == [TextContent("echo: hello there you")]
    assert said("hello", 1).content == [TextContent("done")]


def test_lines_make_blocks_and_tool_calls_end_a_reply(said: Callable[..., AssistantMessage]) -> None:
    script = 'THINK hm m\nSAY look\nTOOL bash {"command": "ls"}\nTOOL read {"path": "a"}\nSAY bye now'
    first = said(script)
    assert first.content[:2] == [ThinkingContent("hm m"), TextContent("look")]
    assert [(call.name, call.arguments) for call in first.tool_calls] == [
        ("bash", {"command": "ls"}),
        ("read", {"path": "a"}),
    ]
    assert (first.stop_reason, len({call.id for call in first.tool_calls})) == ("toolUse", 2)
    assert (said(script, 1).content, said(script, 1).stop_reason) == ([TextContent("bye now")], "stop")
    assert said(script, 2).content == [TextContent("done")]


def test_errors_and_length_are_stop_reasons(said: Callable[..., AssistantMessage]) -> None:
    failed = said("SAY half\nFAIL Overloaded")
    assert (failed.content, failed.stop_reason) == ([TextContent("half")], "error")
    assert "Overloaded" in str(failed.error_message)
    assert said("SAY a\nLENGTH").stop_reason == "length"
    assert "no JSON object" in str(said("TOOL bash {oops").error_message)


def test_text_comes_word_by_word_and_unchanged(model_of: Callable[..., Model]) -> None:
    text = "  one two\tthree  \u20ac "
    message, events = ask(Transport(TransportSettings()), model_of("scripted"), UserMessage(f"SAY x{text}y", 1))
    deltas = [event.delta for event in events if isinstance(event, TextDelta)]
    assert "".join(deltas) == message.content[0].text == f"x{text}y"
    assert len(deltas) == 6


def scripted(tmp_path: Path, model_of: Callable[..., Model], *lines: str) -> Model:
    path = tmp_path / "script.jsonl"
    path.write_text("\n".join(lines))
    return model_of("scripted", base_url=f"scripted:{path}")


def test_the_nth_record_answers_the_nth_request_and_the_last_repeats(
    tmp_path: Path, model_of: Callable[..., Model]
) -> None:
    model = scripted(
        tmp_path,
        model_of,
        "// a comment",
        '{"text": "one", "thinking": "t"}',
        "",
        '{"tool": {"name": "bash", "arguments": {"a": 1}}, "tools": [{"name": "ls"}]}',
        '{"error": "Overloaded", "status": 529}',
        '{"text": "last", "stop": "length"}',
    )
    transport = Transport(TransportSettings())
    replies = [ask(transport, model, UserMessage("x", 1))[0] for _ in range(5)]
    assert replies[0].content == [ThinkingContent("t"), TextContent("one")]
    assert [(c.name, c.arguments) for c in replies[1].tool_calls] == [("bash", {"a": 1}), ("ls", {})]
    assert isinstance(replies[1].content[0], ToolCall)
    assert str(replies[2].error_message).startswith("529 ") and "Overloaded" in str(replies[2].error_message)
    assert [(r.content, r.stop_reason) for r in replies[3:]] == [([TextContent("last")], "length")] * 2


def test_a_script_may_end_with_an_error(tmp_path: Path, model_of: Callable[..., Model]) -> None:
    model = scripted(tmp_path, model_of, '{"text": "one"}', '{"afterEnd": "error"}')
    transport = Transport(TransportSettings())
    replies = [ask(transport, model, UserMessage("x", 1))[0] for _ in range(2)]
    assert [reply.stop_reason for reply in replies] == ["stop", "error"]


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        (['{"text": "a"}', '{"txt": "b"}'], "line 2: Object contains unknown field `txt`"),
        (['{"text": 5}'], "line 1: Expected `str`, got `int`"),
        (["// nothing"], "it has no record that answers a request"),
    ],
)
def test_a_bad_script_is_named(tmp_path: Path, model_of: Callable[..., Model], lines: list[str], text: str) -> None:
    model = scripted(tmp_path, model_of, *lines)
    with pytest.raises(TransportError) as caught:
        ask(Transport(TransportSettings()), model, UserMessage("x", 1))
    assert str(caught.value).startswith("Scripted model: ") and text in str(caught.value)


def test_a_missing_script_is_named(model_of: Callable[..., Model]) -> None:
    model = model_of("scripted", base_url="scripted:/nowhere/x.jsonl")
    with pytest.raises(TransportError, match=r"cannot read /nowhere/x\.jsonl: No such file"):
        ask(Transport(TransportSettings()), model, UserMessage("x", 1))


def test_an_abort_ends_a_pause(model_of: Callable[..., Model]) -> None:
    abort = Abort()
    ended = threading.Event()

    def run() -> None:
        with pytest.raises(Aborted):
            ask(Transport(TransportSettings()), model_of("scripted"), UserMessage("WAIT 60000\nSAY x", 1), abort=abort)
        ended.set()

    threading.Thread(target=run, daemon=True).start()
    while abort._sock is None:
        assert not ended.is_set()
    abort.fire()
    assert ended.wait(5)
