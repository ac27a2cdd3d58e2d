"""What subagents cost without a runtime: the same requests, four at a time, and the same session lines, plain Python.

    python -m tests.performance.bare_loop CLIENT HOST PORT JOBS FOLDER

`JOBS` is a file of JSON lines, one for each job: `bodies` are those of its requests, `lines` those of its session file,
`reads` the file that it reads between requests. `CLIENT` is `httpx2`, as anybody would write it, or `h11`, the least
that one can do: bodies that are bytes already go down four kept sockets. Every event of an answer is decoded. Prints
the wall time and the CPU that it took, in seconds.
"""

from __future__ import annotations

import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Protocol

import h11
import msgspec

AT_ONCE = 4


class Client(Protocol):
    def events(self, body: msgspec.Raw) -> Iterator[Any]:
        """The answer's events, decoded."""


class HttpxClient:
    """One for all threads."""

    def __init__(self, host: str, port: int) -> None:
        import httpx2

        self._client = httpx2.Client(base_url=f"http://{host}:{port}")

    def events(self, body: msgspec.Raw) -> Iterator[Any]:
        with self._client.stream("POST", "/messages", json=msgspec.json.decode(body)) as answer:
            for line in answer.iter_lines():
                if line.startswith("data: {"):
                    yield msgspec.json.decode(line[6:])


class H11Client:
    """One kept connection."""

    def __init__(self, host: str, port: int) -> None:
        self._host = f"{host}:{port}"
        self._socket = socket.create_connection((host, port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._http = h11.Connection(h11.CLIENT)

    def events(self, raw: msgspec.Raw) -> Iterator[Any]:
        body = bytes(raw)
        headers = [("Host", self._host), ("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
        request = h11.Request(method="POST", target="/messages", headers=headers)
        self._socket.sendall(
            b"".join(self._http.send(part) or b"" for part in (request, h11.Data(data=body), h11.EndOfMessage()))
        )
        rest = b""
        for data in self._body():
            *lines, rest = (rest + data).split(b"\n")
            yield from (msgspec.json.decode(line[6:]) for line in lines if line.startswith(b"data: {"))
        self._http.start_next_cycle()

    def _body(self) -> Iterator[bytes]:
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                self._http.receive_data(self._socket.recv(65536))
            elif isinstance(event, h11.Data):
                yield bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                return


class Job(msgspec.Struct):
    bodies: list[msgspec.Raw]
    lines: list[msgspec.Raw]
    reads: str


def work(client: Client, jobs: SimpleQueue[tuple[int, Job]], folder: Path) -> None:
    """A third of a session's lines go into its file with each turn, unbuffered, as a session's do."""
    while True:
        try:
            number, job = jobs.get_nowait()
        except Empty:
            return
        share = -(-len(job.lines) // len(job.bodies))
        with (folder / f"{number}.jsonl").open("ab", buffering=0) as file:
            for turn, body in enumerate(job.bodies):
                for _ in client.events(body):
                    pass
                if turn + 1 < len(job.bodies):
                    Path(job.reads).read_text()
                for line in job.lines[turn * share : (turn + 1) * share]:
                    file.write(bytes(line) + b"\n")


def main(client: str, host: str, port: int, jobs_file: str, folder: str) -> None:
    jobs: SimpleQueue[tuple[int, Job]] = SimpleQueue()
    for place in enumerate(map(msgspec.json.Decoder(Job).decode, Path(jobs_file).read_bytes().splitlines())):
        jobs.put(place)
    clients: list[Client] = [H11Client(host, port) for _ in range(AT_ONCE)]
    if client == "httpx2":
        clients = [HttpxClient(host, port)] * AT_ONCE
    threads = [threading.Thread(target=work, args=(client, jobs, Path(folder))) for client in clients]
    begun, cpu = time.perf_counter(), time.process_time()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(time.perf_counter() - begun, time.process_time() - cpu)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), *sys.argv[4:])
