"""Answers of every shape that HTTP/1.1 has, and which of them leave their connection fit for the next call."""

from __future__ import annotations

import select
import sys
import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Any

import pytest

from actors.model.prompt import HttpRequest
from actors.model.transport import Abort, Aborted, Transport, TransportError, TransportSettings

Serving = Callable[[Callable[[Any], None]], Any]
WHOLE = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


@pytest.fixture
def transport() -> Iterator[Transport]:
    made = Transport(TransportSettings())
    yield made
    made.close()


def ask(transport: Transport, url: str, body: bytes = b"{}", abort: Abort | None = None) -> tuple[int, bytes]:
    heads: list[int] = []
    pieces: list[bytes] = []
    request = HttpRequest(url, (), body)
    transport.stream(lambda: request, abort or Abort(), lambda status, _: heads.append(status), pieces.append)
    return heads[0], b"".join(pieces)


def saying(*answers: bytes) -> Callable[[Any], None]:
    """Gives one answer a request, then closes."""

    def serve(connection: Any) -> None:
        for answer in answers:
            if connection.request() is None:
                return
            connection.send(answer)

    return serve


def test_a_body_without_a_length_ends_with_the_connection(serving: Serving, transport: Transport) -> None:
    server = serving(saying(b"HTTP/1.1 200 OK\r\n\r\nall of it"))
    assert [ask(transport, server.url) for _ in range(2)] == [(200, b"all of it")] * 2
    assert server.accepted == 2


def test_interim_answers_are_passed_over(serving: Serving, transport: Transport) -> None:
    interim = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"
    server = serving(saying(interim + WHOLE, WHOLE))
    assert [ask(transport, server.url) for _ in range(2)] == [(200, b"ok")] * 2
    assert server.accepted == 1


def test_an_answer_without_a_body_keeps_its_connection(serving: Serving, transport: Transport) -> None:
    server = serving(saying(b"HTTP/1.1 204 No Content\r\n\r\n", WHOLE))
    assert [ask(transport, server.url) for _ in range(2)] == [(204, b""), (200, b"ok")]
    assert server.accepted == 1


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok",
        WHOLE + b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nforged",
    ],
    ids=["close", "http 1.0", "bytes after the end"],
)
def test_a_connection_that_cannot_be_trusted_is_not_used_again(
    serving: Serving, transport: Transport, answer: bytes
) -> None:
    server = serving(saying(answer, answer))
    assert [ask(transport, server.url) for _ in range(2)] == [(200, b"ok")] * 2
    assert server.accepted == 2


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\nhalf",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nno number\r\n",
        b"HTTP/1.1 200 OK\r\nconten",
        b"SSH-2.0-OpenSSH\r\n\r\n",
    ],
    ids=["short length", "cut chunk", "bad chunk", "cut head", "no http"],
)
def test_an_answer_that_is_not_whole_is_a_lost_connection(
    serving: Serving, transport: Transport, answer: bytes
) -> None:
    with pytest.raises(TransportError, match="closed the connection before the response was complete") as raised:
        ask(transport, serving(saying(answer)).url)
    assert raised.value.__cause__ is None


def test_a_head_without_an_end_is_given_up(serving: Serving, transport: Transport) -> None:
    sent: list[int] = []

    def serve(connection: Any) -> None:
        connection.request()
        connection.send(b"HTTP/1.1 200 OK\r\n")
        while True:
            connection.send(b"x-%d: " % len(sent) + b"y" * 10_000 + b"\r\n")
            sent.append(10_000)

    with pytest.raises(TransportError, match="Connection lost"):
        ask(transport, serving(serve).url)
    assert sum(sent) < 20_000_000


@pytest.mark.skipif(sys.platform != "linux", reason="other systems drop what came before a reset")
def test_a_refusal_before_the_request_was_read_is_still_heard(serving: Serving, transport: Transport) -> None:
    def serve(connection: Any) -> None:
        connection.sock.recv(10)
        connection.send(b"HTTP/1.1 413 Too Large\r\ncontent-length: 3\r\nconnection: close\r\n\r\nbig")

    assert ask(transport, serving(serve).url, b"x" * 20_000_000) == (413, b"big")


def test_calls_at_the_same_time_have_connections_of_their_own(serving: Serving, transport: Transport) -> None:
    meeting = threading.Barrier(4)

    def serve(connection: Any) -> None:
        while (request := connection.request()) is not None:
            meeting.wait(10)
            connection.send(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n" + request[1])

    server = serving(serve)
    bodies = [b"a", b"b", b"c", b"d"]
    told: SimpleQueue[tuple[bytes, tuple[int, bytes]]] = SimpleQueue()

    def call(body: bytes) -> None:
        told.put((body, ask(transport, server.url, body)))

    for _ in range(5):
        threads = [threading.Thread(target=call, args=(body,)) for body in bodies]
        for thread in threads:
            thread.start()
        assert dict(told.get(timeout=10) for _ in bodies) == {body: (200, body) for body in bodies}
        for thread in threads:
            thread.join()
    assert server.accepted == 4


def test_no_more_than_eight_connections_are_kept(serving: Serving, transport: Transport) -> None:
    servers = [serving(saying(WHOLE, WHOLE)) for _ in range(10)]
    for server in servers:
        ask(transport, server.url)
    for server in reversed(servers):
        ask(transport, server.url)
    assert [server.accepted for server in servers] == [2, 2, 1, 1, 1, 1, 1, 1, 1, 1]


def test_closing_the_transport_closes_what_it_kept(serving: Serving, transport: Transport) -> None:
    left = threading.Event()

    def serve(connection: Any) -> None:
        connection.request()
        connection.send(WHOLE)
        connection.wait_for_client_to_leave()
        left.set()

    ask(transport, serving(serve).url)
    transport.close()
    assert left.wait(10)


def test_an_abort_while_the_request_is_built_connects_to_nobody(serving: Serving, transport: Transport) -> None:
    server = serving(saying(WHOLE))
    abort = Abort()

    def build() -> HttpRequest:
        abort.fire()
        return HttpRequest(server.url, (), b"")

    with pytest.raises(Aborted):
        transport.stream(build, abort, lambda *_: None, lambda _: None)
    assert server.accepted == 0


def test_an_abort_by_a_callback_leaves_no_connection_behind(serving: Serving, transport: Transport) -> None:
    server = serving(saying(WHOLE, WHOLE))
    abort = Abort()
    with pytest.raises(Aborted):
        transport.stream(lambda: HttpRequest(server.url, (), b""), abort, lambda *_: None, lambda _: abort.fire())
    assert ask(transport, server.url) == (200, b"ok")
    assert server.accepted == 2


def test_a_second_address_is_tried_when_the_first_refuses(serving: Serving, transport: Transport) -> None:
    # The name has an IPv6 address first on most systems; nobody listens there.
    server = serving(saying(WHOLE))
    assert ask(transport, server.url.replace("127.0.0.1", "localhost")) == (200, b"ok")


def test_a_server_that_waits_for_its_reader_hears_of_an_abort_at_once(serving: Serving, transport: Transport) -> None:
    full, left, abort = threading.Event(), threading.Event(), Abort()

    def serve(connection: Any) -> None:
        connection.request()
        connection.send(b"HTTP/1.1 200 OK\r\ncontent-length: 100000000\r\n\r\n")
        # Until nothing has moved for a while: both systems' buffers are full, and only the client can end that.
        while select.select([], [connection.sock], [], 0.3)[1]:
            connection.sock.send(b"x" * 4096)
        full.set()
        try:
            connection.send(b"x" * 10_000_000)
        except OSError:
            left.set()

    def read_nothing(data: bytes) -> None:
        full.wait(10)
        abort.fire()

    with pytest.raises(Aborted):
        request = HttpRequest(serving(serve).url, (), b"{}")
        transport.stream(lambda: request, abort, lambda *_: None, read_nothing)
    assert left.wait(5)
