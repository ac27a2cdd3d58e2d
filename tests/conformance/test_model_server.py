"""The model server as the providers' own SDKs see it, in its three dialects, and what it does beyond answering."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from conformance import model_server as model
from conformance.model_server import ModelServer, Request, Usage

DIALECTS = ("anthropic", "chat", "responses")
TOOL_STOP = {"anthropic": "tool_use", "chat": "tool_calls", "responses": "completed"}
LENGTH_STOP = {"anthropic": "max_tokens", "chat": "length", "responses": "incomplete"}
PATHS = {"anthropic": "/v1/messages", "chat": "/v1/chat/completions", "responses": "/v1/responses"}


class Answer(NamedTuple):
    """What an SDK made of a stream, in one shape for all dialects."""

    text: str
    thinking: str
    calls: list[tuple[str, Any]]
    stop: str | None
    usage: tuple[int, int, int]  # input without cache, output, cache read
    deltas: int


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


@pytest.fixture(params=DIALECTS)
def dialect(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def ask(server: ModelServer, dialect: str) -> Iterator[Callable[[str], Answer]]:
    """Ask the server through the SDK of the dialect."""
    with _client(server, dialect) as client:
        yield lambda content: _ASK[dialect](client, [{"role": "user", "content": content}])


def _client(server: ModelServer, dialect: str) -> Any:
    if dialect == "anthropic":
        import anthropic

        return anthropic.Anthropic(api_key="secret-key", base_url=server.url, max_retries=0, timeout=20)
    import openai

    return openai.OpenAI(api_key="secret-key", base_url=f"{server.url}/v1", max_retries=0, timeout=20)


def _ask_anthropic(client: Any, messages: list[Any]) -> Answer:
    with client.messages.stream(model="m", max_tokens=99, messages=messages) as stream:
        deltas = sum(event.type == "text" for event in stream)
        final = stream.get_final_message()
    kinds = {
        kind: [block for block in final.content if block.type == kind] for kind in ("text", "thinking", "tool_use")
    }
    return Answer(
        "".join(block.text for block in kinds["text"]),
        "".join(block.thinking for block in kinds["thinking"]),
        [(block.name, block.input) for block in kinds["tool_use"]],
        final.stop_reason,
        (final.usage.input_tokens, final.usage.output_tokens, final.usage.cache_read_input_tokens),
        deltas,
    )


def _ask_chat(client: Any, messages: list[Any]) -> Answer:
    import openai

    options = {"include_usage": True}
    with client.chat.completions.stream(model="m", messages=messages, stream_options=options) as stream:
        # the first chunk tells the role, with an empty text
        deltas = sum(event.type == "content.delta" and event.delta != "" for event in stream)
        try:
            final = stream.get_final_completion()
        except openai.LengthFinishReasonError as cut:
            final = cut.completion
    message, usage = final.choices[0].message, final.usage
    cached = usage.prompt_tokens_details.cached_tokens
    return Answer(
        message.content or "",
        getattr(message, "reasoning_content", "") or "",
        [(call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls or []],
        final.choices[0].finish_reason,
        (usage.prompt_tokens - cached, usage.completion_tokens, cached),
        deltas,
    )


def _ask_responses(client: Any, messages: list[Any]) -> Answer:
    with client.responses.stream(model="m", input=messages) as stream:
        events = list(stream)
    final = next(event.response for event in events if event.type in ("response.completed", "response.incomplete"))
    reasoning = [item for item in final.output if item.type == "reasoning"]
    cached = final.usage.input_tokens_details.cached_tokens
    return Answer(
        final.output_text,
        "".join(part.text for item in reasoning for part in item.summary),
        [(item.name, json.loads(item.arguments)) for item in final.output if item.type == "function_call"],
        final.status,
        (final.usage.input_tokens - cached, final.usage.output_tokens, cached),
        sum(event.type == "response.output_text.delta" for event in events),
    )


_ASK: dict[str, Callable[[Any, list[Any]], Answer]] = {
    "anthropic": _ask_anthropic,
    "chat": _ask_chat,
    "responses": _ask_responses,
}


def test_text_arrives_word_by_word_with_its_usage(
    server: ModelServer, dialect: str, ask: Callable[[str], Answer]
) -> None:
    server.script(model.text("grüße an die 世界", usage=Usage(7, 5, cache_read=3)))
    answer = ask("hi")
    assert (answer.text, answer.usage, answer.deltas) == ("grüße an die 世界", (7, 5, 3), 4)
    assert server.requests[0].path == PATHS[dialect]


def test_a_thought_a_text_and_calls_make_one_answer(
    server: ModelServer, dialect: str, ask: Callable[[str], Answer]
) -> None:
    calls = model.tools([("bash", {"command": "ls"}), ("read", {"path": "ü"})])
    server.script(model.thinking("let me see", "hello").then(calls))
    answer = ask("hi")
    assert (answer.thinking, answer.text, answer.stop) == ("let me see", "hello", TOOL_STOP[dialect])
    assert answer.calls == [("bash", {"command": "ls"}), ("read", {"path": "ü"})]


def test_a_lone_surrogate_travels_as_an_escape(server: ModelServer, ask: Callable[[str], Answer]) -> None:
    server.script(model.text(chunks=["\ud83d", "ok"]))
    assert ask("hi").text.endswith("ok")


def test_an_answer_can_stop_at_its_length(server: ModelServer, dialect: str, ask: Callable[[str], Answer]) -> None:
    assert ask("LENGTH cut short") == (
        "cut short", "", [], LENGTH_STOP[dialect], (10, 2, 0), 2,
    )  # fmt: skip


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500, 529])
def test_an_error_has_its_status_and_the_message_of_the_test(
    server: ModelServer, dialect: str, ask: Callable[[str], Answer], status: int
) -> None:
    server.script(model.error(status, message="for a reason", headers={"retry-after": "7"}))
    with pytest.raises(Exception) as failure:
        ask("hi")
    assert failure.value.status_code == status  # type: ignore[attr-defined]
    assert failure.value.response.headers["retry-after"] == "7"  # type: ignore[attr-defined]
    assert "for a reason" in str(failure.value)


BROKEN = {
    "drop": model.drop(2),
    "error event": model.stream_error(),
    "no JSON": model.text(chunks=["x ", model.Control.GARBAGE]),
}


@pytest.mark.parametrize("kind", sorted(BROKEN))
def test_no_sdk_takes_a_broken_stream_for_an_answer(
    server: ModelServer, ask: Callable[[str], Answer], kind: str
) -> None:
    server.script(BROKEN[kind])
    with pytest.raises(Exception) as failure:
        ask("hi")
    assert not isinstance(failure.value, AssertionError)
    assert server.requests[0].ended.wait()


# ---- without an SDK: the HTTP of it --------------------------------------------------------------------------------


def body_of(content: str, **more: Any) -> dict[str, Any]:
    return {"model": "m", "stream": True, "messages": [{"role": "user", "content": content}], **more}


@pytest.fixture
def connection(server: ModelServer) -> Iterator[http.client.HTTPConnection]:
    host = server.url.removeprefix("http://")
    with closing(http.client.HTTPConnection(host, timeout=20)) as made:
        yield made


def post(connection: http.client.HTTPConnection, content: str = "hi", **headers: str) -> None:
    connection.request("POST", "/v1/messages", json.dumps(body_of(content)), headers)


def test_a_gate_holds_the_stream_until_the_test_opens_it(
    server: ModelServer, connection: http.client.HTTPConnection
) -> None:
    reply = model.gate("before", "after")
    server.script(reply)
    post(connection)
    assert reply.reached.wait()
    response = connection.getresponse()
    seen = b""
    while b"before" not in seen:
        seen += response.read1()
    assert not server.requests[0].ended.is_set()
    reply.open()
    rest = response.read()
    assert b"after" in rest and b"after" not in seen
    assert server.requests[0].ended.wait() and server.requests[0].outcome == "whole"


def test_an_open_gate_holds_nobody(server: ModelServer, connection: http.client.HTTPConnection) -> None:
    reply = model.gate(model.thinking("one"), model.tool("bash", {}))
    reply.open()
    server.script(reply)
    post(connection)
    assert b"tool_use" in connection.getresponse().read()


@pytest.mark.parametrize("reply", [model.hang("some"), model.hang(), model.hang_before_head(), model.gate("a", "b")])
def test_a_client_that_leaves_is_noticed_at_once(
    server: ModelServer, connection: http.client.HTTPConnection, reply: model.Reply
) -> None:
    server.script(reply)
    post(connection)
    (request,) = server.wait_for_requests(1)
    assert connection.sock
    connection.sock.shutdown(socket.SHUT_RDWR)
    assert request.ended.wait(5) and request.outcome == "left"


def test_nothing_is_sent_before_the_head_when_that_hangs(
    server: ModelServer, connection: http.client.HTTPConnection
) -> None:
    server.script(model.hang_before_head())
    post(connection)
    server.wait_for_requests(1)
    assert connection.sock
    server.close()
    assert connection.sock.recv(1) == b""


def test_a_connection_serves_one_request_after_another(
    server: ModelServer, connection: http.client.HTTPConnection
) -> None:
    post(connection, "SAY one")
    assert b"one" in connection.getresponse().read()
    address = connection.sock.getsockname()
    connection.request("POST", "/v1/messages", iter([json.dumps(body_of("SAY two")).encode()]), encode_chunked=True)
    assert b"two" in connection.getresponse().read()
    assert connection.sock.getsockname() == address


def test_raw_bytes_are_sent_as_they_are(server: ModelServer, connection: http.client.HTTPConnection) -> None:
    server.script(model.raw(b"da", 0.001, b"ta: \xff", b"\r\n", headers={"x-kind": "odd"}))
    post(connection)
    response = connection.getresponse()
    assert (response.read(), response.headers["x-kind"]) == (b"data: \xff\r\n", "odd")


def test_text_beyond_ascii_is_sent_as_utf_8(server: ModelServer, connection: http.client.HTTPConnection) -> None:
    server.script("grüße 世界")
    post(connection)
    assert "世界".encode() in connection.getresponse().read()


def test_a_cut_body_is_seen_as_incomplete(server: ModelServer, connection: http.client.HTTPConnection) -> None:
    server.script(model.drop(2))
    post(connection)
    with pytest.raises(http.client.IncompleteRead) as failure:
        connection.getresponse().read()
    assert b"d1 " in failure.value.partial and b"message_stop" not in failure.value.partial
    assert server.requests[0].ended.wait() and server.requests[0].outcome == "cut"


def test_an_unknown_route_and_a_request_without_stream_are_refused(
    server: ModelServer, connection: http.client.HTTPConnection
) -> None:
    connection.request("GET", "/v1/elsewhere")
    response = connection.getresponse()
    assert (response.status, b"/v1/elsewhere" in response.read()) == (404, True)
    connection.request("POST", "/v1/responses", json.dumps({"model": "m", "input": "hi"}))
    response = connection.getresponse()
    assert (response.status, b"stream: true" in response.read()) == (400, True)


# ---- scripts -------------------------------------------------------------------------------------------------------


def said(connection: http.client.HTTPConnection, content: str = "hi") -> str:
    post(connection, content)
    events = [json.loads(line[6:]) for line in connection.getresponse().read().splitlines() if line[:5] == b"data:"]
    return "".join(event.get("delta", {}).get("text", "") for event in events)


def test_replies_are_given_in_order_and_the_last_one_repeats(
    server: ModelServer, connection: http.client.HTTPConnection
) -> None:
    server.script("one", model.text("two"))
    assert [said(connection) for _ in range(3)] == ["one", "two", "two"]
    server.script("three")
    assert said(connection) == "three"


def test_a_default_answers_once_the_script_is_used_up(
    server: ModelServer, connection: http.client.HTTPConnection
) -> None:
    server.default = "else"
    server.script("one")
    assert [said(connection), said(connection)] == ["one", "else"]


def test_a_function_answers_by_the_request(server: ModelServer, connection: http.client.HTTPConnection) -> None:
    server.script(lambda request: request.body["messages"][0]["content"].upper())
    assert said(connection, "abc") == "ABC"


def test_a_function_that_raises_fails_the_test() -> None:
    def broken(request: Request) -> str:
        raise KeyError("nothing")

    with pytest.raises(AssertionError, match="KeyError"), ModelServer() as server:
        server.script(broken)
        with closing(http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=20)) as connection:
            post(connection)
            assert connection.getresponse().status == 500


def test_credentials_are_masked_but_can_be_told_apart(
    server: ModelServer, connection: http.client.HTTPConnection
) -> None:
    post(connection, **{"Authorization": "Bearer top-secret", "X-Api-Key": "k1", "X-Other": "seen"})
    connection.getresponse().read()
    headers = server.requests[0].headers
    assert headers["authorization"] == f"Bearer {model.masked('top-secret')}"
    assert headers["x-api-key"] == model.masked("k1") != model.masked("k2")
    assert headers["x-other"] == "seen"
    assert "top-secret" not in server.requests[0].record().decode()


def test_waiting_for_requests_that_do_not_come_fails(server: ModelServer) -> None:
    with pytest.raises(AssertionError, match="0 of 1 requests"):
        server.wait_for_requests(1, deadline=0.05)


def test_alone_it_tells_its_address_and_logs_every_request(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    command = [sys.executable, "-m", "conformance.model_server", "--log", str(log)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]) as process:
        try:
            assert process.stdout
            url = json.loads(process.stdout.readline())["listening"]
            with closing(http.client.HTTPConnection(url.removeprefix("http://"), timeout=20)) as connection:
                assert said(connection, "SAY alone") == "alone"
        finally:
            process.terminate()
    assert [json.loads(line)["body"] for line in log.read_text().splitlines()] == [body_of("SAY alone")]


@pytest.mark.parametrize(
    "sent",
    [
        b"POST /v1/mess",
        b"POST /v1/messages HTTP/1.1\r\ncontent-le",
        b"POST /v1/messages HTTP/1.1\r\ncontent-length: 40\r\n",
        b"POST /v1/messages HTTP/1.1\r\ncontent-length: 40\r\n\r\n",
        b'POST /v1/messages HTTP/1.1\r\ncontent-length: 40\r\n\r\n{"stream": tr',
        b'POST /v1/messages HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n20\r\n{"stream": tr',
        b"POST /v1/messages HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n",
    ],
    ids=range(7),
)
def test_a_request_whose_client_leaves_in_the_middle_is_none(sent: bytes) -> None:
    with ModelServer() as server:
        server.default = lambda request: model.text(request.body["model"])
        host, port = server.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=20) as client:
            client.sendall(sent)
            client.shutdown(socket.SHUT_WR)
            assert client.recv(100) == b""
        assert server.requests == []
