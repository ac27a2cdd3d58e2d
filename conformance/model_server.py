"""A model provider on 127.0.0.1 that says what a test wants: Anthropic Messages, OpenAI Chat Completions and Responses.

Owns the listening socket, a thread for each connection and the record of every request. Promises real HTTP/1.1
(keep-alive, chunked server-sent events), that it notices at once when a client leaves, and that no credential is
recorded. Answers are `Reply` values: queued by a test with `script`, else chosen by the newest user text.
`python -m conformance.model_server --port N --log FILE` runs it alone.
"""

from __future__ import annotations

import hashlib
import json
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from types import TracebackType
from typing import Any, BinaryIO, Literal, Self

from conformance.model_scripts import (
    Control,
    Dialect,
    Gate,
    Reply,
    Signal,
    TextScript,
    Usage,
    drop,
    error,
    gate,
    hang,
    hang_before_head,
    overflow,
    raw,
    stream_error,
    text,
    thinking,
    tool,
    tools,
)
from conformance.sse_render import Context, error_body, render

__all__ = [
    "Control", "Gate", "ModelServer", "Reply", "Request", "Usage", "drop", "error", "gate", "hang", "hang_before_head",
    "masked", "overflow", "raw", "stream_error", "text", "thinking", "tool", "tools",
]  # fmt: skip

_PATHS: dict[str, Dialect] = {
    "/messages": "anthropic",
    "/chat/completions": "chat",
    "/responses": "responses",
}
_SECRET = ("authorization", "proxy-authorization", "x-api-key", "api-key", "cookie")
_BURST = 32768  # bytes gathered before a send, so that ten thousand deltas are not ten thousand system calls


def masked(secret: str) -> str:
    """How a credential stands in recorded headers: not readable, but the same for the same secret."""
    return "***" + hashlib.sha256(secret.encode()).hexdigest()[:8]


class Request:
    """One request as it came. `headers` have lower-case names, and `Bearer ` is kept before a masked token; `time` is
    in seconds since the epoch; `body` is the JSON, or the text if it is none. `ended` is set once the answer is over,
    `outcome` tells how: `whole`, `cut` by us, or the client `left` before its end."""

    def __init__(self, number: int, path: str, headers: Mapping[str, str], body: Any) -> None:
        self.number, self.path, self.headers, self.body = number, path, headers, body
        self.time = time.time()
        self.ended = Signal()
        self.outcome: Literal["whole", "cut", "left"] | None = None

    def __repr__(self) -> str:
        return f"Request({self.number}, {self.path!r}, {str(self.body)[:200]})"

    def end(self, outcome: Literal["whole", "cut", "left"]) -> None:
        self.outcome = outcome
        self.ended.set()

    def record(self) -> bytes:
        """As a line of the log."""
        fields = {"n": self.number, "path": self.path, "headers": self.headers, "body": self.body, "time": self.time}
        return json.dumps(fields).encode() + b"\n"


Answer = Reply | str | Callable[[Request], Reply | str]


class ModelServer:
    """A context manager. `default` answers what no script does; without it the last scripted reply repeats, and
    without any the newest user text decides (`TextScript`)."""

    def __init__(self, port: int = 0, log: BinaryIO | None = None) -> None:
        self.default: Answer | None = None
        self._socket = socket.create_server(("127.0.0.1", port), backlog=128)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._log = log
        self._changed = threading.Condition()
        self._requests: list[Request] = []
        self._queue: deque[Answer] = deque()
        self._last: Answer | None = None
        self._by_text = TextScript()
        self._connections: dict[_Connection, threading.Thread] = {}
        self._faults: list[str] = []
        self._closing = self._given_up = False
        self._accepting = threading.Thread(target=self._accept, daemon=True)

    # ---- for the test ------------------------------------------------------------------------------------------

    def script(self, *replies: Answer) -> None:
        """Queue answers for the next requests, one each: a reply, a text, or a function of the request."""
        with self._changed:
            self._queue.extend(replies)

    @property
    def requests(self) -> list[Request]:
        """All requests so far, in the order in which they came."""
        with self._changed:
            return list(self._requests)

    def wait_for_requests(self, count: int, deadline: float = 20.0) -> list[Request]:
        """All requests once there are at least `count`. AssertionError after `deadline` seconds, or `give_up`."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._requests) >= count or self._given_up, deadline)
            assert len(self._requests) >= count, f"{len(self._requests)} of {count} requests within {deadline} s"
            return list(self._requests)

    def give_up(self) -> None:
        """Nobody waits for requests any more."""
        with self._changed:
            self._given_up = True
            self._changed.notify_all()

    def __enter__(self) -> Self:
        self._accepting.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
        if self._faults and error is None:
            raise AssertionError("; ".join(self._faults))

    def close(self) -> None:
        """Cut all connections and end all threads."""
        with self._changed:
            if self._closing:
                return
            self._closing = True
            connections = dict(self._connections)
        if self._accepting.is_alive():
            socket.create_connection(self._socket.getsockname()).close()  # wakes accept, on every platform
            self._accepting.join()
        self._socket.close()
        for connection, thread in connections.items():
            connection.cut()
            thread.join(10)

    def serve_forever(self) -> None:
        self._accepting.join()

    # ---- for the connections -----------------------------------------------------------------------------------

    def _accept(self) -> None:
        while True:
            client, _ = self._socket.accept()
            with self._changed:
                if self._closing:
                    client.close()
                    return
                connection = _Connection(client, self)
                thread = threading.Thread(target=connection.serve, daemon=True)
                self._connections[connection] = thread
            thread.start()

    def take(self, path: str, headers: Mapping[str, str], body: Any) -> Request:
        """Record a request that has arrived."""
        with self._changed:
            request = Request(len(self._requests) + 1, path, headers, body)
            if self._log:
                self._log.write(request.record())
                self._log.flush()
            self._requests.append(request)
            self._changed.notify_all()
            return request

    def reply(self, request: Request) -> Reply:
        """The answer to a request. A test's function that raises fails the test, and the client gets a 500."""
        with self._changed:
            if self._queue:
                self._last = self._queue.popleft()
                answer: Answer | None = self._last
            else:
                answer = self.default if self.default is not None else self._last
        try:
            if answer is None:
                return self._by_text.reply(request.body)
            chosen = answer if isinstance(answer, Reply | str) else answer(request)
            return text(chosen) if isinstance(chosen, str) else chosen
        except Exception as problem:
            self.fault(f"no reply for {request}: {problem!r}")
            return error(500, message=str(problem))

    def fault(self, what: str) -> None:
        """Keep a fault of the script for the end of the test."""
        with self._changed:
            self._faults.append(what)

    def forget(self, connection: _Connection) -> None:
        with self._changed:
            self._connections.pop(connection, None)


class _ClientLeft(Exception):
    """The client closed its side, or the server closes."""


class _Connection:
    """One client: reads its requests one after another and answers each, until either side ends it."""

    def __init__(self, client: socket.socket, server: ModelServer) -> None:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._client, self._server = client, server
        self._in = client.makefile("rb")
        self._awake, self._waker = socket.socketpair()
        self._waker.setblocking(False)

    def cut(self) -> None:
        """From another thread: end whatever it waits for."""
        with suppress(OSError):  # the client was faster
            self._client.shutdown(socket.SHUT_RDWR)

    def serve(self) -> None:
        try:
            while self._answer_next():
                pass
        except (_ClientLeft, OSError):
            pass
        except Exception as problem:  # no HTTP, or a reply that cannot be rendered
            self._server.fault(f"a connection of the model server failed: {problem!r}")
        finally:
            self._server.forget(self)
            for part in (self._in, self._client, self._awake, self._waker):
                part.close()

    def _answer_next(self) -> bool:
        """Whether the connection stays open for another request."""
        head = self._in.readline()
        if not head.strip() or not head.endswith(b"\n"):
            return False
        _, target, _ = head.decode("latin-1").split(" ", 2)
        headers = self._read_headers()
        body = _json_or_text(self._read_body(headers))
        request = self._server.take(target.partition("?")[0], _safe(headers), body)
        try:
            whole = self._answer(request)
        except BaseException:
            request.end("left")
            raise
        request.end("whole" if whole else "cut")
        return whole and headers.get("connection", "").lower() != "close"

    def _answer(self, request: Request) -> bool:
        """Whether the whole answer went out."""
        dialect = _PATHS.get(request.path.removeprefix("/v1"))
        if dialect is None:
            return self._send_error("chat", error(404, message=f"no such route: {request.path}"))
        reply = self._server.reply(request)
        if not reply.answers:
            self._hold()
        if reply.status != 200 and reply.raw is None:
            return self._send_error(dialect, reply)
        if not isinstance(request.body, dict) or not request.body.get("stream"):
            return self._send_error(dialect, error(400, message="this server only streams: send stream: true"))
        return self._stream(dialect, reply, request)

    # ---- reading -----------------------------------------------------------------------------------------------

    def _read_headers(self) -> dict[str, str]:
        headers: dict[str, str] = {}
        while line := self._line().strip():
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.strip().lower()] = value.strip()
        return headers

    def _read_body(self, headers: Mapping[str, str]) -> bytes:
        if headers.get("expect", "").lower() == "100-continue":
            self._client.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        if "chunked" not in headers.get("transfer-encoding", "").lower():
            return self._exactly(int(headers.get("content-length", 0)))
        chunks = []
        while size := int(self._line().partition(b";")[0], 16):
            chunks.append(self._exactly(size))
            self._line()
        self._read_headers()  # trailers
        return b"".join(chunks)

    def _line(self) -> bytes:
        """A request that is cut off within is none: its client has left."""
        line = self._in.readline()
        if not line.endswith(b"\n"):
            raise _ClientLeft
        return line

    def _exactly(self, size: int) -> bytes:
        data = self._in.read(size)
        if len(data) < size:
            raise _ClientLeft
        return data

    # ---- writing -----------------------------------------------------------------------------------------------

    def _send_head(self, status: int, headers: Mapping[str, str]) -> None:
        known = {one.value: one.phrase for one in HTTPStatus}
        lines = [f"HTTP/1.1 {status} {known.get(status, 'Status')}", *(f"{k}: {v}" for k, v in headers.items()), "", ""]
        self._client.sendall("\r\n".join(lines).encode("latin-1"))

    def _send_error(self, dialect: Dialect, reply: Reply) -> bool:
        body = reply.body
        if body is None:
            body = json.dumps(error_body(dialect, reply.status, reply.message)).encode()
        fixed = {"content-type": "application/json", "content-length": str(len(body))}
        self._send_head(reply.status, {**fixed, **(reply.headers or {})})
        self._client.sendall(body)
        return True

    def _stream(self, dialect: Dialect, reply: Reply, request: Request) -> bool:
        fixed = {"content-type": "text/event-stream", "cache-control": "no-cache", "transfer-encoding": "chunked"}
        self._send_head(reply.status, {**fixed, **(reply.headers or {})})
        context = Context(request.number, str(request.body.get("model")), request.body)
        burst = bytearray()
        for item in render(dialect, reply, context):
            if isinstance(item, bytes):
                burst += b"%x\r\n%b\r\n" % (len(item), item) if item else b""
            if burst and (len(burst) > _BURST or not isinstance(item, bytes) or reply.raw is not None):
                self._client.sendall(burst)
                burst.clear()
            if item is Control.CUT:
                return False
            if not isinstance(item, bytes):
                self._take_step(item)
        self._client.sendall(burst + b"0\r\n\r\n")
        return True

    # ---- waiting -----------------------------------------------------------------------------------------------

    def _take_step(self, step: float | Gate | Control) -> None:
        if isinstance(step, Gate):
            step.arrive(self._wake)
            self._hold(until=lambda: step.opened)
        elif isinstance(step, Control):
            self._hold()
        else:
            self._hold(step)

    def _wake(self) -> None:
        with suppress(OSError):  # the connection is gone, or has been woken often enough
            self._waker.send(b"!")

    def _hold(self, seconds: float | None = None, until: Callable[[], bool] = lambda: False) -> None:
        """Wait for the time, or for a wake with `until` true; raises _ClientLeft as soon as the client does."""
        end = None if seconds is None else time.monotonic() + seconds
        poll = select.poll()
        poll.register(self._client, select.POLLIN)
        poll.register(self._awake, select.POLLIN)
        while not until():
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                return
            ready = {fd for fd, _ in poll.poll(None if left is None else left * 1000)}
            if self._awake.fileno() in ready:
                self._awake.recv(4096)
            if self._client.fileno() in ready:
                if not self._client.recv(1, socket.MSG_PEEK):
                    raise _ClientLeft
                poll.unregister(self._client)  # its next request; more than this is not seen before its turn


def _safe(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: _mask(value) if name in _SECRET else value for name, value in headers.items()}


def _mask(value: str) -> str:
    scheme, space, token = value.partition(" ")
    return scheme + space + masked(token) if space else masked(value)


def _json_or_text(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return body.decode("utf-8", "replace")


def main() -> None:
    """Run until interrupted; the first line of stdout tells the address as JSON."""
    import argparse

    parser = argparse.ArgumentParser(prog="conformance.model_server", description=TextScript.__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes any free port")
    parser.add_argument("--log", help="file to which every request is appended as a JSON line")
    options = parser.parse_args()
    log = open(options.log, "ab") if options.log else None  # noqa: SIM115 - open for as long as the process
    with ModelServer(options.port, log) as server:
        print(json.dumps({"listening": server.url}), flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return


if __name__ == "__main__":
    main()
