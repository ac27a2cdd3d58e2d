"""Tunnels: real proxies on real sockets, with and without TLS, and what is said when they refuse."""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from shutil import which
from typing import Any

import pytest

from actors.model.prompt import HttpRequest
from actors.model.transport import Abort, Aborted, Transport, TransportError, TransportSettings

Serving = Callable[[Callable[[Any], None]], Any]
PROMPT = 10.0
WHOLE = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


def ask(transport: Transport, url: str, body: bytes = b"{}", abort: Abort | None = None) -> tuple[int, bytes]:
    heads: list[int] = []
    pieces: list[bytes] = []
    request = HttpRequest(url, (), body)
    transport.stream(lambda: request, abort or Abort(), lambda status, _: heads.append(status), pieces.append)
    return heads[0], b"".join(pieces)


def through(proxy: str, **more: Any) -> Transport:
    return Transport(TransportSettings(proxy=proxy, **more))


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Certificate and key of localhost."""
    if not which("openssl"):
        pytest.skip("missing program: openssl")
    folder = tmp_path_factory.mktemp("tls")
    files = folder / "cert.pem", folder / "key.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    more = ["-addext", "subjectAltName=DNS:localhost", "-out", str(files[0]), "-keyout", str(files[1])]
    subprocess.run([*command.split(), *more], check=True, capture_output=True)
    return files


def over_tls(certificate: tuple[Path, Path], serve: Callable[[Any], None]) -> Callable[[Any], None]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)

    def wrapped(connection: Any) -> None:
        connection.sock = context.wrap_socket(connection.sock, server_side=True)
        serve(connection)

    return wrapped


def answer(connection: Any) -> None:
    while (request := connection.request()) is not None:
        size = len(request[1])
        connection.send(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (size, request[1]))


def relay(connection: Any, port: int) -> None:
    """Carries bytes both ways until either side ends."""
    with socket.create_connection(("127.0.0.1", port)) as onward:

        def back() -> None:
            try:
                while data := onward.recv(65536):
                    connection.sock.sendall(data)
            except OSError:
                return

        thread = threading.Thread(target=back, daemon=True)
        thread.start()
        try:
            while data := connection.sock.recv(65536):
                onward.sendall(data)
        except OSError:
            pass
        onward.shutdown(socket.SHUT_RDWR)
        thread.join(PROMPT)


def port_of(server: Any) -> int:
    return int(server.url.rpartition(":")[2])


def connecting(seen: SimpleQueue[bytes], port: int) -> Callable[[Any], None]:
    def serve(connection: Any) -> None:
        head, _ = connection.request()
        seen.put(head)
        connection.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
        relay(connection, port)

    return serve


@pytest.mark.parametrize("is_secure", [False, True], ids=["http proxy", "https proxy"])
def test_https_goes_through_a_tunnel_that_the_proxy_opens(
    serving: Serving, certificate: tuple[Path, Path], is_secure: bool
) -> None:
    seen: SimpleQueue[bytes] = SimpleQueue()
    port = port_of(serving(over_tls(certificate, answer)))
    serve = connecting(seen, port)
    proxy = serving(over_tls(certificate, serve) if is_secure else serve)
    url = f"http{'s' if is_secure else ''}://user:se%3Acret@localhost:{port_of(proxy)}"
    transport = through(url, ca_file=str(certificate[0]))
    large = bytes(range(256)) * 4000
    for body in (b"one", large):
        assert ask(transport, f"https://localhost:{port}/v1", body) == (200, body)
    lines = seen.get(timeout=PROMPT).lower().split(b"\r\n")
    assert lines[0] == b"connect localhost:%d http/1.1" % port
    assert b"host: localhost:%d" % port in lines and b"proxy-authorization: basic dxnlcjpzztpjcmv0" in lines
    assert proxy.accepted == 1
    transport.close()


def test_plain_requests_carry_the_proxys_credentials_to_it_alone(serving: Serving) -> None:
    seen: SimpleQueue[bytes] = SimpleQueue()

    def serve(connection: Any) -> None:
        seen.put(connection.request()[0].lower())
        connection.send(WHOLE)

    proxy, server = serving(serve), serving(serve)
    transport = through(f"http://user:secret@127.0.0.1:{port_of(proxy)}", no_proxy=("localhost",))
    assert ask(transport, "http://model.example:8080/v1?a") == (200, b"ok")
    head = seen.get(timeout=PROMPT)
    assert head.startswith(b"post http://model.example:8080/v1?a http/1.1\r\nhost: model.example:8080\r\n")
    assert b"proxy-authorization: basic dxnlcjpzzwnyzxq=" in head
    assert ask(transport, f"http://localhost:{port_of(server)}") == (200, b"ok")
    assert b"proxy-authorization" not in seen.get(timeout=PROMPT)


def test_a_proxy_that_refuses_is_named_with_its_reason(serving: Serving) -> None:
    def serve(connection: Any) -> None:
        connection.request()
        connection.send(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n")

    proxy = serving(serve)
    with pytest.raises(TransportError) as raised:
        ask(through(proxy.url.replace("://", "://user:secret@")), "https://model.example")
    refused = "the proxy refused to connect to model.example:443 (407 Proxy Authentication Required)"
    assert str(raised.value) == f"Connection error: {refused}"


@pytest.mark.parametrize("origin", ["https://example.invalid", "http://example.invalid:443"])
def test_a_proxy_that_cannot_be_reached_is_to_blame_and_not_the_host_behind_it(origin: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(TransportError) as raised:
        ask(through(f"http://127.0.0.1:{port}"), origin)
    assert str(raised.value) == f"Connection refused by proxy 127.0.0.1:{port} (for example.invalid:443)"


def test_every_failure_on_the_way_to_a_tunnel_names_the_proxy(serving: Serving) -> None:
    silent = serving(lambda connection: connection.wait_for_client_to_leave())
    closing = serving(lambda connection: connection.request())
    proxy = silent.url.removeprefix("http://")
    failures = {
        "http://nowhere.invalid:3128": "the host of proxy nowhere.invalid:3128 (for h.example:443) cannot be found",
        closing.url: f"Connection lost: proxy {closing.url.removeprefix('http://')} (for h.example:443) closed",
        silent.url.replace("http:", "https:"): f"Connection timed out after 200ms (proxy {proxy}, for h.example:443)",
    }
    for url, text in failures.items():
        with pytest.raises(TransportError) as raised:
            ask(through(url, connect_timeout_s=0.2), "https://h.example")
        assert text in str(raised.value)


def test_behind_an_open_tunnel_the_host_is_to_blame(serving: Serving) -> None:
    def serve(connection: Any) -> None:
        connection.request()
        connection.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
        connection.sock.recv(65536)  # the hello of TLS

    with pytest.raises(TransportError, match=r"TLS connection to h\.example:443 failed"):
        ask(through(serving(serve).url), "https://h.example")


def test_bytes_that_a_proxy_sends_ahead_of_the_server_are_not_trusted(serving: Serving) -> None:
    def serve(connection: Any) -> None:
        connection.request()
        connection.send(b"HTTP/1.1 200 OK\r\n\r\n\x16\x03\x03")
        connection.wait_for_client_to_leave()

    with pytest.raises(TransportError, match=r"Connection lost: proxy 127\.0\.0\.1:\d+ \(for model\.example:443\)"):
        ask(through(serving(serve).url), "https://model.example")


def test_an_abort_ends_a_tunnel_that_the_proxy_does_not_open(serving: Serving) -> None:
    asked: SimpleQueue[None] = SimpleQueue()

    def serve(connection: Any) -> None:
        connection.request()
        asked.put(None)
        connection.wait_for_client_to_leave()

    transport, abort = through(serving(serve).url), Abort()
    ended: SimpleQueue[BaseException | None] = SimpleQueue()

    def run() -> None:
        try:
            ask(transport, "https://model.example", abort=abort)
        except TransportError as error:
            ended.put(error)

    threading.Thread(target=run, daemon=True).start()
    asked.get(timeout=PROMPT)
    abort.fire()
    assert isinstance(ended.get(timeout=PROMPT), Aborted)


# ---- SOCKS


def exactly(connection: Any, count: int) -> bytes:
    data = b""
    while len(data) < count:
        piece = connection.sock.recv(count - len(data))
        if not piece:
            raise OSError("the client left")
        data += piece
    return data


def socks_server(seen: SimpleQueue[Any], port: int, password: bytes = b"", reply: int = 0) -> Callable[[Any], None]:
    def serve(connection: Any) -> None:
        assert exactly(connection, 3) == (b"\x05\x01\x02" if password else b"\x05\x01\x00")
        connection.send(b"\x05\x02" if password else b"\x05\x00")
        if password:
            user = exactly(connection, exactly(connection, 2)[1])
            told = exactly(connection, exactly(connection, 1)[0])
            seen.put((user, told))
            connection.send(b"\x01\x00" if told == password else b"\x01\x01")
        kind = exactly(connection, 4)[3]
        length = exactly(connection, 1)[0] if kind == 3 else {1: 4, 4: 16}[kind]
        seen.put((kind, exactly(connection, length), int.from_bytes(exactly(connection, 2), "big")))
        # In two pieces, with a name for the bound address, which is as long as the proxy likes.
        connection.send(bytes((5, reply, 0)))
        connection.send(b"\x03\x05proxy\x00\x50")
        relay(connection, port)

    return serve


def test_a_socks_proxy_resolves_the_name_and_knows_its_user(serving: Serving) -> None:
    seen: SimpleQueue[Any] = SimpleQueue()
    proxy = serving(socks_server(seen, port_of(serving(answer)), b"se:cret"))
    transport = through(f"socks5://us%40er:se%3Acret@127.0.0.1:{port_of(proxy)}")
    for _ in range(2):
        assert ask(transport, "http://model.example/v1", b"x") == (200, b"x")
    assert seen.get(timeout=PROMPT) == (b"us@er", b"se:cret")
    assert seen.get(timeout=PROMPT) == (3, b"model.example", 80)
    assert proxy.accepted == 1
    transport.close()


@pytest.mark.parametrize(("host", "kind", "size"), [("127.0.0.1", 1, 4), ("[::1]", 4, 16)])
def test_a_socks_proxy_gets_an_address_as_an_address(serving: Serving, host: str, kind: int, size: int) -> None:
    seen: SimpleQueue[Any] = SimpleQueue()
    transport = through(f"socks5h://127.0.0.1:{port_of(serving(socks_server(seen, port_of(serving(answer)))))}")
    assert ask(transport, f"http://{host}:81") == (200, b"{}")
    told = seen.get(timeout=PROMPT)
    assert (told[0], len(told[1]), told[2]) == (kind, size, 81)
    transport.close()


def test_https_goes_through_a_socks_proxy(serving: Serving, certificate: tuple[Path, Path]) -> None:
    port = port_of(serving(over_tls(certificate, answer)))
    proxy = serving(socks_server(SimpleQueue(), port))
    transport = through(f"socks5://127.0.0.1:{port_of(proxy)}", ca_file=str(certificate[0]))
    assert ask(transport, "https://localhost") == (200, b"{}")
    transport.close()


@pytest.mark.parametrize(
    ("proxy_password", "reply", "reason"),
    [
        (b"", 2, "not allowed by its rules"),
        (b"", 99, "an unknown answer"),
        (b"other", 0, "user name or password are wrong"),
    ],
)
def test_a_socks_proxy_that_refuses_is_named_with_its_reason(
    serving: Serving, proxy_password: bytes, reply: int, reason: str
) -> None:
    proxy = serving(socks_server(SimpleQueue(), 9, proxy_password, reply))
    user = "user:secret@" if proxy_password else ""
    with pytest.raises(TransportError) as raised:
        ask(through(f"socks5://{user}127.0.0.1:{port_of(proxy)}"), "http://model.example")
    assert str(raised.value) == f"Connection error: the proxy refused to connect to model.example:80 ({reason})"


def test_a_proxy_that_speaks_no_socks_is_told_apart(serving: Serving) -> None:
    def serve(connection: Any) -> None:
        exactly(connection, 3)
        connection.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with pytest.raises(TransportError, match="or does not speak SOCKS5"):
        ask(through(f"socks5://127.0.0.1:{port_of(serving(serve))}"), "http://model.example")
