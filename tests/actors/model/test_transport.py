"""One request over real sockets: what arrives is told at once, and an abort ends every phase."""

from __future__ import annotations

import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from actors.model.prompt import HttpRequest
from actors.model.transport import Abort, Aborted, Transport, TransportError, TransportSettings

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"
PROMPT = 10.0  # seconds that a test waits for something that takes milliseconds
Serving = Callable[[Callable[[Any], None]], Any]


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


class Running:
    """A call in a pump thread. `told` holds ("head", status), ("bytes", data) and last the exception or None."""

    def __init__(self, transport: Transport, url: str, body: bytes = b"{}", headers: Any = ()) -> None:
        self.abort = Abort()
        self.told: SimpleQueue[Any] = SimpleQueue()
        self.headers: Mapping[str, str] = {}
        self._request = HttpRequest(url, tuple(headers), body)
        self._transport = transport
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            self._transport.stream(lambda: self._request, self.abort, self._head, lambda b: self.told.put(("bytes", b)))
            self.told.put(None)
        except BaseException as error:
            self.told.put(error)

    def _head(self, status: int, headers: Mapping[str, str]) -> None:
        self.headers = headers
        self.told.put(("head", status))

    def next(self) -> Any:
        return self.told.get(timeout=PROMPT)

    def all(self) -> tuple[int | None, bytes, BaseException | None]:
        status, body = None, b""
        while True:
            item = self.next()
            if not isinstance(item, tuple):
                return status, body, item
            if item[0] == "head":
                status = item[1]
            else:
                body += item[1]


@pytest.fixture
def transport() -> Iterator[Transport]:
    made = Transport(TransportSettings())
    yield made
    made.close()


def answer(connection: Any) -> None:
    """Answers every request of a connection with its number."""
    count = 0
    while connection.request() is not None:
        count += 1
        connection.send(HEAD + chunk(b"%d.%d" % (connection.number, count)) + END)


def test_the_request_arrives_as_it_was_built(serving: Serving, transport: Transport) -> None:
    seen: SimpleQueue[Any] = SimpleQueue()

    def serve(connection: Any) -> None:
        seen.put(connection.request())
        connection.send(HEAD + chunk(b"ok") + END)

    call = Running(transport, serving(serve).url + "/v1/x?a=1", b'{"a":1}', [("x-key", "v"), ("accept-encoding", "br")])
    assert call.all() == (200, b"ok", None)
    head, body = seen.get(timeout=PROMPT)
    lines = head.lower().split(b"\r\n")
    assert head.startswith(b"POST /v1/x?a=1 HTTP/1.1") and body == b'{"a":1}'
    assert b"x-key: v" in lines and b"content-length: 7" in lines
    assert [line for line in lines if line.startswith(b"accept-encoding")] == [b"accept-encoding: identity"]
    assert call.headers["content-type"] == "text/event-stream"


def test_every_piece_is_told_while_the_server_is_still_silent(serving: Serving, transport: Transport) -> None:
    go_on: SimpleQueue[None] = SimpleQueue()

    def serve(connection: Any) -> None:
        connection.request()
        connection.send(HEAD)
        for piece in (b"a", b"b\n\n", b"c"):
            go_on.get()
            connection.send(chunk(piece)[:2])
            connection.send(chunk(piece)[2:])
        go_on.get()
        connection.send(END)

    call = Running(transport, serving(serve).url)
    assert call.next() == ("head", 200)
    for piece in (b"a", b"b\n\n", b"c"):
        go_on.put(None)
        assert call.next() == ("bytes", piece)
    go_on.put(None)
    assert call.next() is None


def test_many_chunks_in_one_packet_are_told_in_one_piece(serving: Serving, transport: Transport) -> None:
    def serve(connection: Any) -> None:
        connection.request()
        connection.send(HEAD + b"".join(chunk(b"x") for _ in range(500)) + END)

    call = Running(transport, serving(serve).url)
    assert call.next() == ("head", 200)
    assert len(call.next()[1]) == 500


def test_connections_are_used_again_and_a_stale_one_is_replaced(serving: Serving, transport: Transport) -> None:
    def serve(connection: Any) -> None:
        for count in (1, 2):
            if connection.request() is None:
                return
            connection.send(HEAD + chunk(b"%d.%d" % (connection.number, count)) + END)
        connection.request()  # reads the third request and closes without a word

    url = serving(serve).url
    assert [Running(transport, url).all()[1:] for _ in range(4)] == [
        (b"1.1", None),
        (b"1.2", None),
        (b"2.1", None),
        (b"2.2", None),
    ]


def test_a_new_connection_that_closes_without_a_word_is_not_tried_again(serving: Serving, transport: Transport) -> None:
    server = serving(lambda connection: connection.request())
    status, body, error = Running(transport, server.url).all()
    assert (status, body, server.accepted) == (None, b"", 1)
    assert str(error).startswith("Connection lost: 127.0.0.1:")


def test_a_body_that_breaks_off_is_an_error_after_what_came(serving: Serving, transport: Transport) -> None:
    def serve(connection: Any) -> None:
        connection.request()
        connection.send(HEAD + chunk(b"half"))

    status, body, error = Running(transport, serving(serve).url).all()
    assert (status, body) == (200, b"half")
    assert isinstance(error, TransportError) and not isinstance(error, Aborted)
    assert str(error).endswith("closed the connection before the response was complete")


def test_an_error_answer_is_told_up_to_64_kib(serving: Serving, transport: Transport) -> None:
    def serve(connection: Any) -> None:
        connection.request()
        connection.send(b"HTTP/1.1 529 Overloaded\r\ncontent-length: 200000\r\n\r\n" + b"x" * 200_000)

    status, body, error = Running(transport, serving(serve).url).all()
    assert (status, len(body), error) == (529, 64 * 1024, None)


def test_a_redirect_is_refused(serving: Serving, transport: Transport) -> None:
    def serve(connection: Any) -> None:
        connection.request()
        connection.send(b"HTTP/1.1 307 T\r\nlocation: http://other/\r\ncontent-length: 0\r\n\r\n")

    text = str(Running(transport, serving(serve).url).all()[2])
    assert text == "307: 127.0.0.1 redirects; base URLs have to be final"


# ---- time-outs


def silent(connection: Any) -> None:
    connection.request()
    connection.wait_for_client_to_leave()


def silent_body(connection: Any) -> None:
    connection.request()
    connection.send(HEAD + chunk(b"x"))
    connection.wait_for_client_to_leave()


@pytest.mark.parametrize("serve", [silent, silent_body], ids=["before the head", "in the body"])
def test_silence_ends_with_the_stream_deadline(serving: Serving, serve: Callable[[Any], None]) -> None:
    transport = Transport(TransportSettings(idle_timeout_s=0.15))
    _, _, error = Running(transport, serving(serve).url).all()
    text = "Provider stream timed out after 150ms without a new event (stream deadline exceeded)"
    assert str(error) == text and not isinstance(error, Aborted)


def chattering(connection: Any, chunk_: bytes) -> None:
    """Sends `chunk_` until the client has left."""
    gone = threading.Event()

    def watch() -> None:
        connection.wait_for_client_to_leave()
        gone.set()

    threading.Thread(target=watch, daemon=True).start()
    while not gone.wait(0.01):
        connection.send(chunk(chunk_))


SILENCE = "Provider stream timed out after 300ms without a new event (stream deadline exceeded)"
WAITED = "Request timed out after 300ms without an answer (127.0.0.1:"


@pytest.mark.parametrize("serve", [silent, silent_body], ids=["before the head", "in the body"])
def test_the_time_for_the_next_event_counts_from_the_start_of_the_request(serving: Serving, serve: Any) -> None:
    _, _, error = Running(Transport(TransportSettings(event_timeout_s=0.3)), serving(serve).url).all()
    assert str(error) == SILENCE


def test_comments_do_not_put_the_next_event_off(serving: Serving) -> None:
    def serve(connection: Any) -> None:
        connection.request()
        connection.send(HEAD + chunk(b"data: 1\n\n"))
        chattering(connection, b": wait\n\n")

    settings = TransportSettings(event_timeout_s=0.3, idle_timeout_s=PROMPT)
    _, body, error = Running(Transport(settings), serving(serve).url).all()
    assert b": wait" in body and str(error) == SILENCE


def test_a_reader_that_does_not_read_is_no_silence_of_the_server(serving: Serving) -> None:
    def serve(connection: Any) -> None:
        connection.request()
        connection.send(HEAD + chunk(b"data: 1\n\n"))
        assert slow.wait(PROMPT)
        connection.send(chunk(b"data: 2\n\n") + END)

    slow = threading.Event()
    read: list[bytes] = []

    def take(data: bytes) -> None:
        read.append(data)
        if not slow.is_set():
            threading.Event().wait(0.4)
            slow.set()

    request = HttpRequest(serving(serve).url, (), b"{}")
    with closing(Transport(TransportSettings(event_timeout_s=0.3))) as transport:
        transport.stream(lambda: request, Abort(), lambda *_: None, take)
    assert read == [b"data: 1\n\n", b"data: 2\n\n"]


def test_the_time_for_the_answer_ends_with_its_head(serving: Serving) -> None:
    def serve(connection: Any) -> None:
        connection.request()
        connection.send(HEAD)
        assert late.wait(PROMPT)
        connection.send(chunk(b"data: 1\n\n") + END)

    late = threading.Event()
    transport = Transport(TransportSettings(answer_timeout_s=0.3))
    _, _, error = Running(transport, serving(silent).url).all()
    assert str(error).startswith(WAITED)
    running = Running(transport, serving(serve).url)
    assert running.next() == ("head", 200)
    threading.Timer(0.4, late.set).start()
    assert running.all()[1:] == (b"data: 1\n\n", None)


@pytest.mark.parametrize(("answer_s", "told"), [(0.3, WAITED), (None, SILENCE.replace("300", "100"))])
def test_the_time_for_the_answer_stands_in_for_that_of_silence(
    serving: Serving, answer_s: float | None, told: str
) -> None:
    settings = TransportSettings(answer_timeout_s=answer_s, idle_timeout_s=0.1)
    assert str(Running(Transport(settings), serving(silent).url).all()[2]).startswith(told)


def test_no_limit_for_the_answer_leaves_it_to_the_total_time(serving: Serving) -> None:
    settings = TransportSettings(answer_timeout_s=0, idle_timeout_s=0.1, total_timeout_s=0.3)
    error = Running(Transport(settings), serving(silent).url).all()[2]
    assert str(error).startswith("Request timed out after 300ms (")


def broken_off(connection: Any) -> None:
    connection.request()
    connection.send(HEAD + chunk(b"x"))


def gone_before_the_head(connection: Any) -> None:
    connection.request()


@pytest.mark.parametrize(
    ("serve", "unanswered"),
    [(silent, True), (gone_before_the_head, True), (silent_body, False), (broken_off, False)],
)
def test_a_failure_of_the_network_tells_whether_an_answer_had_begun(
    serving: Serving, serve: Any, unanswered: bool
) -> None:
    error = Running(Transport(TransportSettings(idle_timeout_s=0.15)), serving(serve).url).all()[2]
    assert isinstance(error, TransportError) and error.unanswered is unanswered


@pytest.mark.parametrize("url", ["ftp://h/x", "http://127.0.0.1:1/x"], ids=["no such address", "a bad header"])
def test_what_would_be_wrong_again_is_no_failure_of_the_network(serving: Serving, url: str) -> None:
    where = serving(silent).url if url.startswith("http") else url
    error = Running(Transport(TransportSettings()), where, headers=[("x-a", "b\nc")]).all()[2]
    assert isinstance(error, TransportError) and not error.unanswered


def test_a_refused_connection_is_unanswered(transport: Transport) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    error = Running(transport, f"http://127.0.0.1:{port}", headers=[("authorization", "Bearer s3cr3t")]).all()[2]
    assert isinstance(error, TransportError) and error.unanswered


def test_the_total_time_ends_a_stream_that_never_falls_silent(serving: Serving) -> None:
    def serve(connection: Any) -> None:
        connection.request()
        connection.send(HEAD)
        chattering(connection, b"x")

    transport = Transport(TransportSettings(total_timeout_s=0.3))
    _, body, error = Running(transport, serving(serve).url).all()
    assert body and str(error).startswith("Request timed out after 300ms (127.0.0.1:")


def full_listener() -> tuple[socket.socket, list[socket.socket]]:
    """A listener whose queue is full: the next connect gets no answer."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(0)
    waiting = []
    for _ in range(4):
        client = socket.socket()
        client.setblocking(False)
        client.connect_ex(listener.getsockname())
        waiting.append(client)
    return listener, waiting


@pytest.mark.skipif(sys.platform != "linux", reason="a full accept queue answers differently elsewhere")
def test_a_connect_without_an_answer_times_out() -> None:
    listener, waiting = full_listener()
    with listener:
        transport = Transport(TransportSettings(connect_timeout_s=0.1))
        _, _, error = Running(transport, f"http://127.0.0.1:{listener.getsockname()[1]}").all()
        assert str(error) == f"Connection timed out after 100ms (127.0.0.1:{listener.getsockname()[1]})"
        assert waiting


def test_a_refused_connect_and_an_unknown_host_are_named(transport: Transport) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    assert str(Running(transport, f"http://127.0.0.1:{port}").all()[2]) == f"Connection refused by 127.0.0.1:{port}"
    text = str(Running(transport, "http://no-such-host.invalid").all()[2])
    assert text.startswith("Network error: the host of no-such-host.invalid:80 cannot be found")


@pytest.mark.parametrize("url", ["ftp://user:secret@h/x", "nonsense", "http://"])
def test_an_address_that_is_no_http_url_is_named_without_its_secrets(transport: Transport, url: str) -> None:
    text = str(Running(transport, url).all()[2])
    assert "is not a http:// or https:// URL with a host" in text and "secret" not in text


@pytest.mark.parametrize("value", ["sk-secret\r\nx: y", "sk-secret\u20ac"])
def test_a_header_that_http_forbids_does_not_show_its_value(serving: Serving, transport: Transport, value: str) -> None:
    error = Running(transport, serving(answer).url, headers=[("x-api-key", value)]).all()[2]
    assert "has a header that HTTP does not allow" in str(error)
    assert error is not None and "secret" not in repr(error) and error.__cause__ is None


# ---- abort


def aborted_in(call: Running) -> float:
    """Milliseconds from the abort to the end of the call."""
    started = time.perf_counter()
    call.abort.fire()
    error = call.all()[2]
    assert isinstance(error, Aborted) and str(error) == "Request was aborted"
    return (time.perf_counter() - started) * 1000


def test_an_abort_ends_a_call_that_waits_for_its_head(serving: Serving, transport: Transport) -> None:
    asked: SimpleQueue[None] = SimpleQueue()

    def serve(connection: Any) -> None:
        connection.request()
        asked.put(None)
        connection.wait_for_client_to_leave()

    call = Running(transport, serving(serve).url)
    asked.get(timeout=PROMPT)
    assert aborted_in(call) < 1000


def test_an_abort_ends_a_call_in_its_body_also_on_a_connection_that_was_used_before(
    serving: Serving, transport: Transport
) -> None:
    def serve(connection: Any) -> None:
        connection.request()
        connection.send(HEAD + chunk(b"x") + END)
        silent_body(connection)

    server = serving(serve)
    assert Running(transport, server.url).all() == (200, b"x", None)
    call = Running(transport, server.url)
    assert (call.next(), call.next(), server.accepted) == (("head", 200), ("bytes", b"x"), 1)
    assert aborted_in(call) < 1000


@pytest.mark.skipif(sys.platform != "linux", reason="a full accept queue answers differently elsewhere")
def test_an_abort_ends_a_connect_without_an_answer(transport: Transport) -> None:
    listener, waiting = full_listener()
    with listener:
        transport.warm()
        call = Running(transport, f"http://127.0.0.1:{listener.getsockname()[1]}")
        while call.abort._sock is None or call.abort._sock.gettimeout() is None:
            assert call.thread.is_alive()
        assert aborted_in(call) < 1000
        assert waiting


def test_an_abort_ends_a_handshake_that_the_server_does_not_answer(serving: Serving, transport: Transport) -> None:
    greeted: SimpleQueue[None] = SimpleQueue()

    def serve(connection: Any) -> None:
        connection.sock.recv(1)
        greeted.put(None)
        connection.wait_for_client_to_leave()

    call = Running(transport, serving(serve).url.replace("http:", "https:"))
    greeted.get(timeout=PROMPT)
    assert aborted_in(call) < 1000


def test_an_abort_ends_a_request_that_the_server_does_not_read(serving: Serving, transport: Transport) -> None:
    begun: SimpleQueue[None] = SimpleQueue()
    release = threading.Event()

    def serve(connection: Any) -> None:
        connection.sock.recv(1)
        begun.put(None)
        release.wait()

    call = Running(transport, serving(serve).url, b"x" * 50_000_000)
    begun.get(timeout=PROMPT)
    assert aborted_in(call) < 1000
    release.set()


def test_an_abort_before_the_call_sends_nothing(serving: Serving, transport: Transport) -> None:
    server = serving(answer)
    abort = Abort()
    abort.fire()
    with pytest.raises(Aborted):
        transport.stream(lambda: HttpRequest(server.url, (), b""), abort, lambda *_: None, lambda _: None)
    assert server.accepted == 0


def test_an_abort_after_the_call_leaves_the_kept_connection_alone(serving: Serving, transport: Transport) -> None:
    server = serving(answer)
    first = Running(transport, server.url)
    assert first.all() == (200, b"1.1", None)
    first.abort.fire()
    assert Running(transport, server.url).all() == (200, b"1.2", None)


def test_a_dismissed_call_tells_no_more_and_keeps_its_connection(serving: Serving, transport: Transport) -> None:
    finish: SimpleQueue[None] = SimpleQueue()

    def serve(connection: Any) -> None:
        connection.request()
        connection.send(HEAD + chunk(b"whole"))
        finish.get()
        connection.send(chunk(b"rest") + END)
        answer(connection)

    server = serving(serve)
    call = Running(transport, server.url)
    assert (call.next(), call.next()) == (("head", 200), ("bytes", b"whole"))
    call.abort.dismiss()
    finish.put(None)
    assert call.next() is None
    assert Running(transport, server.url).all() == (200, b"1.1", None)
    assert server.accepted == 1


# ---- callbacks, TLS, start-up


def test_what_a_callback_raises_comes_out_as_it_is(serving: Serving, transport: Transport) -> None:
    def refuse(data: bytes) -> None:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        transport.stream(lambda: HttpRequest(serving(answer).url, (), b""), Abort(), lambda *_: None, refuse)


def test_a_request_that_cannot_be_built_is_a_clear_failure(transport: Transport) -> None:
    def build() -> HttpRequest:
        raise ValueError("No API key for provider: p")

    with pytest.raises(TransportError, match="No API key for provider: p"):
        transport.stream(build, Abort(), lambda *_: None, lambda _: None)


def test_tls_trusts_the_given_ca_file_and_nobody_else(
    serving: Serving, tmp_path: Path, needs: Callable[..., None]
) -> None:
    needs("openssl")
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=DNS:localhost",
            "-keyout",
            str(key),
            "-out",
            str(certificate),
        ],
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    def serve(connection: Any) -> None:
        connection.sock = context.wrap_socket(connection.sock, server_side=True)
        answer(connection)

    url = serving(serve).url.replace("http://127.0.0.1", "https://localhost")
    trusting = Transport(TransportSettings(ca_file=str(certificate)))
    assert Running(trusting, url).all()[0] == 200
    assert Running(trusting, url).all()[1].endswith(b".2")
    text = str(Running(Transport(TransportSettings()), url).all()[2])
    assert text.startswith("TLS connection to localhost:") and "self-signed certificate" in text
    missing = Transport(TransportSettings(ca_file=str(tmp_path / "none.pem")))
    assert "none.pem' cannot be used: No such file" in str(Running(missing, url).all()[2])


def test_a_proxy_is_asked_except_for_hosts_that_bypass_it(serving: Serving) -> None:
    seen: SimpleQueue[bytes] = SimpleQueue()

    def serve(connection: Any) -> None:
        while (request := connection.request()) is not None:
            seen.put(request[0].split(b"\r\n")[0])
            connection.send(HEAD + END)

    proxy, server = serving(serve), serving(answer)
    transport = Transport(TransportSettings(proxy=proxy.url, no_proxy=("127.0.0.1", ".local")))
    assert Running(transport, "http://model.example/v1").all()[0] == 200
    assert seen.get(timeout=PROMPT) == b"POST http://model.example/v1 HTTP/1.1"
    assert Running(transport, server.url).all() == (200, b"1.1", None)
    assert proxy.accepted == 1


def test_the_http_stack_is_loaded_by_warm_and_not_before_and_never_asyncio() -> None:
    code = (
        "import sys; from actors.model.transport import Transport, TransportSettings; import actors.model.dialects\n"
        "t = Transport(TransportSettings()); assert not {'h11', 'ssl', 'asyncio'} & set(sys.modules)\n"
        "t.warm(); assert 'h11' in sys.modules and not {'httpcore2', 'httpx2', 'ssl', 'asyncio'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
