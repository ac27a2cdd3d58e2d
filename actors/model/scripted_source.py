"""Plays scripted replies: what the HTTP transport is for servers, this is for scripts.

Reads a script file once and counts the requests that it has answered. Blocking, for pump threads; an abort ends a
pause at once.
"""

from __future__ import annotations

import itertools
import socket
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from actors.model.prompt import HttpRequest
from actors.model.transport_contract import Abort, Aborted, TransportError

if TYPE_CHECKING:
    from actors.model.scripted import Plan, Record

_BURST_BYTES = 64 * 1024


class ScriptedSource:
    """One per process. `stream` has the contract of `Transport.stream`."""

    def __init__(self) -> None:
        self._scripts: dict[str, tuple[tuple[Record, ...], Iterator[int]]] = {}

    def stream(
        self,
        request: HttpRequest,
        abort: Abort,
        on_head: Callable[[int, Mapping[str, str]], None],
        on_bytes: Callable[[bytes], None],
    ) -> None:
        plan = self._plan(request)
        on_head(plan.status, {"content-type": "text/event-stream"})
        near, far = socket.socketpair()
        try:
            abort.attach(near)
            for burst in _bursts(plan, near, abort):
                on_bytes(burst)
        finally:
            abort.detach()
            near.close()
            far.close()
        if abort.fired:
            raise Aborted("Request was aborted")

    def _plan(self, request: HttpRequest) -> Plan:
        from actors.model.scripted import Cue, plan_reply

        path = request.url.removeprefix("scripted:")
        script, numbers = self._scripts.get(path) or self._scripts.setdefault(path, (_load(path), itertools.count()))
        return plan_reply(script, msgspec.json.decode(request.body, type=Cue), next(numbers))


def _load(path: str) -> tuple[Any, ...]:
    from actors.model.scripted import read_script

    if not path:
        return ()
    try:
        with open(path, "rb") as file:
            return read_script(file.read())
    except OSError as error:
        raise TransportError(f"Scripted model: cannot read {path[:80]}: {error.strerror}") from None
    except ValueError as error:
        raise TransportError(f"Scripted model: {path[:80]}: {error}") from None


def _bursts(plan: Plan, near: socket.socket, abort: Abort) -> Iterator[bytes]:
    """The body, joined up to each pause; ends early when `abort` is fired."""
    pending: list[bytes] = []
    size = 0
    for pause_ms, data in plan.steps:
        if (pause_ms or size > _BURST_BYTES) and pending:
            yield b"".join(pending)
            pending, size = [], 0
        if pause_ms:
            _sleep(near, pause_ms)
        if abort.fired:
            return
        pending.append(data)
        size += len(data)
    yield b"".join(pending)


def _sleep(near: socket.socket, pause_ms: int) -> None:
    """Nobody writes to this socket: the read ends with its time-out, or when an abort shuts the socket down."""
    near.settimeout(pause_ms / 1000)
    try:
        near.recv(1)
    except TimeoutError:
        return
