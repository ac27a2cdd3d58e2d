"""A model request in its pump: a real server, a real transport, and one `StreamEnded` whatever happens."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from actors.mail import ModelRequest, StreamBytes, StreamEnded, StreamHead
from actors.model.prompt import Credential, ModelPrompt, RequestOptions
from actors.model.stream import StreamOpener
from actors.model.transport import Transport, TransportSettings
from actors.probe import Probe
from actors.pump import WINDOW_BYTES
from protocol.messages import UserMessage
from protocol.model import Model

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


class Bench:
    def __init__(self, model: Model) -> None:
        self.call: Probe[Any] = Probe()
        self._model = model
        self._transport = Transport(TransportSettings(connect_timeout_s=5))

    def open(self, authorize: Callable[[Model], Credential] = lambda model: Credential("k")) -> Any:
        def pump(name: str, work: Callable[[], None]) -> None:
            threading.Thread(target=work, name=name, daemon=True).start()

        request = ModelRequest(
            1, self._model, ModelPrompt("", (UserMessage("hi", 1),), ()), RequestOptions(), authorize
        )
        return StreamOpener(pump, lambda: self._transport, lambda: 0).open(request, self.call)


Serving = Callable[[Callable[[Any], None]], Any]


@pytest.fixture
def bench(serving: Serving, model_of: Callable[..., Model]) -> Callable[[Callable[[Any], None]], Bench]:
    return lambda serve: Bench(model_of(base_url=serving(serve).url))


def test_head_bytes_and_end_come_in_order_each_read_with_its_ack(bench: Any) -> None:
    go_on = threading.Event()

    def serve(connection: Any) -> None:
        connection.request()
        connection.send(HEAD + chunk(b"data: 1\n\n"))
        assert go_on.wait(10)
        connection.send(chunk(b"data: 2\n\n") + b"0\r\n\r\n")

    asked = bench(serve)
    asked.open()
    assert asked.call.next() == StreamHead(200)
    first = asked.call.next()
    assert first.data == b"data: 1\n\n"
    first.ack.settle()
    go_on.set()
    assert asked.call.next().data == b"data: 2\n\n"
    assert asked.call.next() == StreamEnded()


def test_a_provider_is_read_no_further_ahead_than_the_window_and_a_cut_frees_the_pump(bench: Any) -> None:
    def serve(connection: Any) -> None:
        connection.request()
        connection.send(HEAD)
        while True:
            connection.send(chunk(b"x" * 65536))

    asked = bench(serve)
    stream = asked.open()
    asked.call.of(StreamHead)
    unacked = 0
    with pytest.raises(AssertionError):
        while isinstance(mail := asked.call.next(0.2), StreamBytes):
            unacked += len(mail.data)
    assert 0 < unacked <= WINDOW_BYTES
    stream.cut()
    assert isinstance(asked.call.of(StreamEnded), StreamEnded)


def test_a_cut_ends_a_request_that_the_server_never_answers(bench: Any) -> None:
    asked_for = threading.Event()

    def serve(connection: Any) -> None:
        connection.request()
        asked_for.set()
        connection.wait_for_client_to_leave()

    asked = bench(serve)
    stream = asked.open()
    assert asked_for.wait(10)
    stream.cut()
    assert isinstance(asked.call.next(), StreamEnded)


def test_a_server_that_breaks_off_is_an_end_with_its_reason(bench: Any) -> None:
    def serve(connection: Any) -> None:
        connection.request()
        connection.send(HEAD + chunk(b"data: 1\n\n"))

    asked = bench(serve)
    asked.open()
    ended = asked.call.of(StreamEnded)
    assert ended.error is not None and "closed the connection" in ended.error


def test_a_credential_that_cannot_be_resolved_is_an_end_with_its_reason(model_of: Callable[..., Model]) -> None:
    def refuse(model: Model) -> Credential:
        raise ValueError("No API key found for p.")

    asked = Bench(model_of())
    asked.open(refuse)
    ended = asked.call.next()
    assert isinstance(ended, StreamEnded)
    assert ended.error is not None and "No API key found for p." in ended.error


def test_a_fault_of_our_own_is_named_by_kind_only(model_of: Callable[..., Model]) -> None:
    def fail(model: Model) -> Credential:
        raise KeyError("secret")

    asked = Bench(model_of())
    asked.open(fail)
    error = asked.call.next().error
    assert "KeyError" in error and "secret" not in error
