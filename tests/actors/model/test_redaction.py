"""What a server says of the request's secrets reaches nobody, and what a model writes is left alone."""

from __future__ import annotations

import html
import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from actors.model.dialects import build_request, http_error_text, reader_for
from actors.model.prompt import Credential, HttpRequest, ModelPrompt, RequestOptions
from actors.model.redacted_answer import RedactedAnswer
from actors.model.redaction import LEAST_CHARS, Redaction, secrets_in
from actors.model.transport import Abort, Transport, TransportError, TransportSettings
from protocol.messages import AssistantMessage, TextContent, UserMessage
from protocol.model import Model

Serving = Callable[[Callable[[Any], None]], Any]
APIS = ("anthropic-messages", "openai-completions", "openai-responses")
KEY = "sk-live/0123+456789=="
CREDENTIAL = Credential(api_key=KEY, headers=(("x-tenant", "tenant-secret"),))
PROMPT = ModelPrompt("", (UserMessage("hi", 1),), ())


def escaped(text: str) -> str:
    """As JSON may be written: everything that is no letter or digit as UTF-16 units."""
    units = text.encode("utf-16-be")
    codes = [int.from_bytes(units[at : at + 2], "big") for at in range(0, len(units), 2)]
    return "".join(chr(code) if code < 128 and chr(code).isalnum() else f"\\u{code:04X}" for code in codes)


SPELLINGS: list[Callable[[str], str]] = [
    str,
    lambda text: json.dumps(text)[1:-1],
    lambda text: json.dumps(json.dumps(text))[3:-3],
    lambda text: text.replace("/", "\\/"),
    escaped,
    lambda text: quote(text, safe=""),
    html.escape,
    lambda text: "".join(x if x.isalnum() else f"&#x{ord(x):x};" for x in text),
    lambda text: "".join(x if x.isalnum() else f"&#{ord(x)};" for x in text),
]


# ---- texts


@settings(max_examples=150)
@given(
    st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=LEAST_CHARS), st.sampled_from(SPELLINGS)
)
@example("0000000%", SPELLINGS[5])
@example("0000000&", SPELLINGS[6])
@example("0000000\\", SPELLINGS[2])
def test_a_secret_is_found_in_every_spelling(secret: str, spell: Callable[[str], str]) -> None:
    said = f"bad key <{spell(secret)}> given"
    assert Redaction([secret]).text(said) == "bad key <***> given"


def test_short_values_stay_and_the_longest_secret_goes_first() -> None:
    redaction = Redaction(["short", "", "long-secret", "long-secret-of-two"])
    assert redaction.text("short long-secret-of-two long-secrets") == "short *** ***s"
    assert "secret" not in repr(redaction)
    assert not Redaction(["short"])


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("x-api-key", "key-of-mine", "key-of-mine"),
        ("authorization", "Bearer token-of-mine", "token-of-mine"),
        ("Authorization", "token-of-mine", "token-of-mine"),
        ("authorization", "Basic " + b64encode(b"user:pass word").decode(), "pass word"),
        ("proxy-authorization", "Basic dXNlcjpzZWNyZXQ=", "dXNlcjpzZWNyZXQ="),
        ("authorization", "AWS4-HMAC-SHA256 Credential=AKID/2026, Signature=0123abcd", "0123abcd"),
        ("cookie", "a=1; session=of-mine-alone", "of-mine-alone"),
        ("x-of-the-user", "header value", "header value"),
    ],
)
def test_values_of_headers_are_secrets_whole_and_in_their_parts(name: str, value: str, said: str) -> None:
    redaction = Redaction(secrets_in([(name, value)]))
    assert redaction.text(f"<{said}> <{value}>") == "<***> <***>"


@pytest.mark.parametrize("api", APIS)
def test_headers_that_only_say_how_to_talk_are_no_secrets(model_of: Callable[..., Model], api: str) -> None:
    request = build_request(model_of(api), PROMPT, RequestOptions(thinking_level="high"), Credential("k"))
    assert all(len(secret) < LEAST_CHARS or secret == "Bearer k" for secret in secrets_in(request.headers, request.url))


def test_the_login_of_a_url_is_a_secret_with_its_password() -> None:
    redaction = Redaction(secrets_in((), "http://user:pass%20word@proxy:1", "https://host/v1"))
    assert redaction.text("pass word, user:pass%20word, pass%20word, proxy, https://host/v1") == (
        "***, ***, ***, proxy, https://host/v1"
    )


# ---- answers


def passed(status: int, pieces: list[bytes], kind: str = "text/event-stream", secret: str = KEY) -> bytes:
    told: list[bytes] = []
    heads: list[tuple[int, Mapping[str, str]]] = []
    answer = RedactedAnswer(Redaction([secret]), Abort(), lambda *head: heads.append(head), told.append)
    answer.on_head(status, {"content-type": kind})
    for piece in pieces:
        answer.on_bytes(piece)
    answer.end()
    return b"".join(told)


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    pieces, at = [], 0
    for size in sizes:
        pieces.append(data[at : at + size])
        at += size
    return [*pieces, data[at:]]


LINES = st.sampled_from([b"\n", b"\r\n", b"\r"])
EVENT = st.sampled_from(
    [
        b'data: {"choices":[{"delta":{"content":"the key is %s"}}]}',
        b'event: content_block_delta\ndata: {"type":"content_block_delta","delta":{"text":"%s"}}',
        b": comment %s",
        b"data: [DONE]",
        b"<html>%s</html>",
    ]
)


@settings(max_examples=200)
@given(st.lists(EVENT, max_size=5), LINES, st.lists(st.integers(0, 60)), st.booleans())
def test_what_is_no_error_passes_byte_by_byte_in_any_chunking(
    events: list[bytes], line: bytes, sizes: list[int], ends: bool
) -> None:
    body = b"\n\n".join(events) + (b"\n\n" if ends else b"")
    body = body.replace(b"%s", KEY.encode()).replace(b"\n", line)
    assert passed(200, cut(body, sizes)) == body


@settings(max_examples=200)
@given(
    st.sampled_from(
        [
            b'event: error\ndata: {"message":"bad key %s"}',
            b'data: {"type":"error","error":{"message":"bad key %s"}}',
            b'data: {"error":{"message":"x","metadata":{"raw":"%s"}}}',
            b'data: {"error":{"deep":[{"%s":1}]}}',
            b'data: {"choices":[{"finish_reason":"%s","delta":{}}]}',
            b'data: {"type":"message_delta","delta":{"stop_reason":"refusal","stop_details":{"explanation":"%s"}}}',
            b'data: {"type":"response.failed","response":{"error":{"message":"bad key %s"}}}',
            b"event: message_start\ndata: bad key %s",
            b"event: %s\ndata: no json",
            b'data: {"cut": "%s',
        ]
    ),
    LINES,
    st.lists(st.integers(0, 60)),
    st.booleans(),
    st.sampled_from(SPELLINGS[:5]),
)
def test_no_event_that_tells_of_a_failure_has_the_secret_in_any_chunking(
    event: bytes, line: bytes, sizes: list[int], ends: bool, spell: Callable[[str], str]
) -> None:
    body = b"data: 1\n\n" + event.replace(b"%s", spell(KEY).encode()) + (b"\n\ndata: 2\n\n" if ends else b"")
    told = passed(200, cut(body.replace(b"\n", line), sizes))
    assert told.startswith(b"data: 1") and b"***" in told
    assert b"0123" not in told and (not ends or b"data: 2" in told)


@settings(max_examples=100)
@given(st.lists(st.integers(0, 40)), st.integers(0, 60))
def test_the_body_of_an_error_answer_has_no_part_of_the_secret_wherever_it_is_cut(sizes: list[int], end: int) -> None:
    body = (b'{"error":"bad key ' + KEY.encode() + b' given"}')[:end]
    told = passed(401, cut(body, sizes), "text/html")
    assert KEY[:LEAST_CHARS].encode() not in told
    assert told.startswith(body[:18])


def test_events_are_told_as_soon_as_they_are_complete() -> None:
    told: list[bytes] = []
    answer = RedactedAnswer(Redaction([KEY]), Abort(), lambda *head: None, told.append)
    answer.on_head(200, {})
    for piece in (b"data: 1\n", b"\ndata: 2\r\n\r\nda", b"ta: 3", b"\n\n"):
        answer.on_bytes(piece)
    assert told == [b"data: 1\n\ndata: 2\r\n\r\n", b"data: 3\n\n"]


# ---- over real sockets


def replied(serving: Serving, model: Model, status: bytes, body: bytes) -> AssistantMessage:
    """The final message, as a ModelCall would make it."""

    def serve(connection: Any) -> None:
        connection.request()
        connection.send(b"HTTP/1.1 %s\r\ncontent-length: %d\r\n\r\n" % (status, len(body)) + body)

    url = serving(serve).url
    reader, seen, raw = reader_for(model, 5), [200], bytearray()

    def on_bytes(data: bytes) -> None:
        raw.extend(data)
        if seen[-1] < 400:
            reader.feed(data)

    def build() -> HttpRequest:
        return build_request(replace(model, base_url=url), PROMPT, RequestOptions(), CREDENTIAL)

    with closing(Transport(TransportSettings())) as transport:
        transport.stream(build, Abort(), lambda code, _: seen.append(code), on_bytes)
    return reader.fail(http_error_text(model.api, seen[-1], bytes(raw))) if seen[-1] >= 400 else reader.end()


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(
    "body",
    [
        json.dumps({"error": {"message": f"bad key {KEY} of tenant-secret"}}),
        f"<html>no entry for {html.escape(KEY)} of tenant-secret</html>",
        f"Bearer {KEY} tenant-secret",
    ],
    ids=["json", "html", "text"],
)
def test_an_error_answer_is_told_without_the_key(
    serving: Serving, model_of: Callable[..., Model], api: str, body: str
) -> None:
    message = replied(serving, model_of(api), b"401 Unauthorized", body.encode())
    error = str(message.error_message)
    assert "401" in error and "***" in error
    assert "sk-live" not in error and "tenant-secret" not in error


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("event", ["data: broken {key}", 'data: {{"type":"error","error":{{"message":"bad {key}"}}}}'])
def test_an_event_that_fails_the_reply_is_told_without_the_key(
    serving: Serving, model_of: Callable[..., Model], api: str, event: str
) -> None:
    body = event.format(key=json.dumps(KEY)[1:-1]) + "\n\n"
    message = replied(serving, model_of(api), b"200 OK", body.encode())
    assert (message.stop_reason, "***" in str(message.error_message)) == ("error", True)
    assert "sk-live" not in str(message.error_message)


def test_a_model_may_write_the_key(serving: Serving, model_of: Callable[..., Model]) -> None:
    chunk = {"choices": [{"delta": {"content": f"export KEY={KEY}"}, "finish_reason": "stop"}]}
    body = f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode()
    message = replied(serving, model_of("openai-completions"), b"200 OK", body)
    assert message.content == [TextContent(f"export KEY={KEY}")]


def test_a_proxy_that_repeats_its_password_is_told_without_it(serving: Serving) -> None:
    def serve(connection: Any) -> None:
        connection.request()
        connection.send(b"HTTP/1.1 407 no pass%20word from dXNlcjpwYXNzIHdvcmQ=\r\ncontent-length: 0\r\n\r\n")

    proxy = serving(serve).url.replace("://", "://user:pass%20word@")
    request, transport = HttpRequest("https://h.example", (), b"{}"), Transport(TransportSettings(proxy=proxy))
    with pytest.raises(TransportError, match=r"\(407 no \*\*\* from \*\*\*\)$"):
        transport.stream(lambda: request, Abort(), lambda *head: None, lambda data: None)
