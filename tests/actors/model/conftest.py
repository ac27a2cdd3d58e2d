"""A real HTTP server whose behaviour a test writes as a function over the socket, and the models that the tests ask."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from protocol.model import Model, ModelCost

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


class Connection:
    """One accepted connection. `request` reads a request and gives its head and body; None when the client left."""

    def __init__(self, sock: socket.socket, number: int) -> None:
        self.sock = sock
        self.number = number
        self._buffer = b""

    def request(self) -> tuple[bytes, bytes] | None:
        while b"\r\n\r\n" not in self._buffer:
            if not self._more():
                return None
        head, _, self._buffer = self._buffer.partition(b"\r\n\r\n")
        lengths = [int(x.split(b":")[1]) for x in head.split(b"\r\n") if x.lower().startswith(b"content-length:")]
        length = lengths[0] if lengths else 0
        while len(self._buffer) < length and self._more():
            pass
        body, self._buffer = self._buffer[:length], self._buffer[length:]
        return head, body

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def wait_for_client_to_leave(self) -> None:
        while self._more():
            pass

    def _more(self) -> bool:
        try:
            data = self.sock.recv(65536)
        except OSError:
            return False
        self._buffer += data
        return bool(data)


class Server:
    """Serves every connection in a thread of its own with `serve`, and closes it when that returns."""

    def __init__(self, serve: Callable[[Connection], None]) -> None:
        self._serve = serve
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.accepted = 0
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            self.accepted += 1
            threading.Thread(target=self._run, args=(sock, self.accepted), daemon=True).start()

    def _run(self, sock: socket.socket, number: int) -> None:
        with sock:
            try:
                self._serve(Connection(sock, number))
            except OSError:
                return

    def close(self) -> None:
        """`accept` of another thread ends with the shutdown alone: after a mere close it sleeps on."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@pytest.fixture
def serving() -> Iterator[Callable[[Callable[[Connection], None]], Server]]:
    servers: list[Server] = []

    def start(serve: Callable[[Connection], None]) -> Server:
        servers.append(Server(serve))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def make_model(api: str = "anthropic-messages", **changes: Any) -> Model:
    fields: dict[str, Any] = {
        "id": "m",
        "name": "M",
        "api": api,
        "provider": "p",
        "base_url": "http://127.0.0.1:9",
        "reasoning": True,
        "input": ("text", "image"),
        "cost": ModelCost(3, 15, 0.3, 3.75),
        "context_window": 200_000,
        "max_tokens": 8192,
    }
    return Model(**{**fields, **changes})


@pytest.fixture(scope="session")
def model_of() -> Callable[..., Model]:
    return make_model
