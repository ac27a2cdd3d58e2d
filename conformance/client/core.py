"""The state of one connection to an agent, without I/O, threads or clock.

Owns which requests are open, who listens to what, what waits to be written, and how the agent ended. A face tells it
what happened (`receive`, `stdout_ended`, `exited`, ...) one call at a time, and waits on the `Waitable`s that it hands
out. It promises that a request which the agent can no longer answer fails, that a record goes to nobody who gave up,
and that a reader who does not read costs a bounded amount of memory and delays nobody else.

Source: contract `rpc-protocol.md`; `Core` speaks for a client whose records alone are on the pipe, so a response with
an id that it never sent is the agent's mistake.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar
from weakref import WeakSet, WeakValueDictionary

import msgspec
from msgspec import UNSET, Raw

from conformance.client.errors import AgentDied, ClientClosed, CommandRefused, EventsLost, ProtocolError, TransportError
from conformance.client.records import BashDelta, Event, NotARecord, Response, UiRequest, event_type, read_record
from protocol.commands import Command, command_name
from protocol.events import BashExecutionUpdate
from protocol.json_text import encode
from protocol.lines import LineSplitter

T = TypeVar("T")

STDERR_KEPT = 256 * 1024  # bytes
ODDITIES_KEPT = 100
_COST = 500  # bytes that a buffered record costs beside its line


class Waitable:
    """Something whose change can be waited for. Whoever waits puts a waker in; it is called after every change."""

    def __init__(self) -> None:
        self._wakers: list[Callable[[], object]] = []

    @contextmanager
    def wakes(self, waker: Callable[[], object]) -> Iterator[None]:
        self._wakers.append(waker)
        try:
            yield
        finally:
            self._wakers.remove(waker)

    def changed(self) -> None:
        for waker in tuple(self._wakers):
            waker()


class Pending(Waitable):
    """A request on its way: no answer yet, a response, or the reason why none will come. The response is also put into
    `echo`, so that its place among the events is seen."""

    def __init__(self, id: str, command: str, echo: Feed[Any] | None = None) -> None:
        super().__init__()
        self.id, self.command = id, command
        self.response: Response | None = None
        self.failure: TransportError | None = None
        self.echo = echo
        self.saw_run = self.saw_settled = False  # since it was made: a run began, and then settled

    @property
    def done(self) -> bool:
        return self.response is not None or self.failure is not None

    def answer(self) -> Response:
        """The response of a request that is done. Raises what it was refused with, or why it has none."""
        if self.response is None:
            raise self.failure.again() if self.failure else AssertionError("the request is not done")
        told = self.response
        if not told.success:
            raise CommandRefused(self.command, self.id, told.error, told.error_code, told.error_details)
        return told


class Feed(Waitable, Generic[T]):
    """Records for one reader, oldest first. Beyond `limit` bytes the newest are lost, and counted: the reader gets what
    was kept, then `EventsLost`, then what comes from there on."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.limit = limit
        self.ended = False
        self.failure: TransportError | None = None
        self._items: deque[tuple[T, int]] = deque()
        self._bytes = 0
        self._lost = 0
        self._discards = False

    def put(self, item: T, size: int) -> None:
        if self.ended or self._discards:
            return
        cost = size + _COST
        if self._lost or self._bytes + cost > self.limit:
            self._lost += 1
        else:
            self._items.append((item, cost))
            self._bytes += cost
        self.changed()

    def end(self, failure: TransportError | None = None) -> None:
        if not self.ended:
            self.ended, self.failure = True, failure
            self.changed()

    def discard(self) -> None:
        """Keep nothing from here on, and count nothing as lost; the end is still told."""
        self._items.clear()
        self._bytes = self._lost = 0
        self._discards = True

    @property
    def ready(self) -> bool:
        """Whether `take` has something to give, raise or end with."""
        return bool(self._items or self._lost or self.ended)

    def take(self) -> T | None:
        """The next record. At the end raises the failure, or gives `None` when all went well. Raises `EventsLost`."""
        if self._items:
            item, cost = self._items.popleft()
            self._bytes -= cost
            return item
        if self._lost:
            lost, self._lost = self._lost, 0
            raise EventsLost(lost)
        if self.failure is not None:
            raise self.failure.again()
        return None


class Outbox(Waitable):
    """Records that wait to be written. One that has not been taken can be withdrawn."""

    def __init__(self) -> None:
        super().__init__()
        self._records: deque[tuple[str, bytes]] = deque()
        self.closed = False

    def put(self, id: str, record: bytes) -> None:
        self._records.append((id, record))
        self.changed()

    def withdraw(self, id: str) -> bool:
        """Whether the record of the request `id` was still here, and is now not sent at all."""
        left = deque(entry for entry in self._records if entry[0] != id)
        found, self._records = len(left) < len(self._records), left
        return found

    def close(self) -> None:
        """Nothing more will be put: once all has been taken, stdin can be closed."""
        self.closed = True
        self.changed()

    def drop(self) -> None:
        self._records.clear()
        self.close()

    @property
    def ready(self) -> bool:
        return bool(self._records) or self.closed

    def take(self) -> bytes | None:
        """The next record, `None` at the end."""
        return self._records.popleft()[1] if self._records else None


class Core(Waitable):
    """See the module. As a `Waitable` it changes with the life of the process: its exit, the end of its pipes, the end
    of the connection."""

    def __init__(self, *, buffer_bytes: int, now: Callable[[], float]) -> None:
        super().__init__()
        self.now = now
        self.buffer_bytes = buffer_bytes
        self.outbox = Outbox()
        self.failure: TransportError | None = None  # set once: the connection is over
        self.status: int | None = None  # as subprocess tells it
        self.has_exited = self.out_ended = self.err_ended = False
        self.received = 0  # bytes of stdout and stderr
        self.closing = False
        self.run_is_active = False  # between agent_start and agent_settled, as far as the records tell
        self.oddities: deque[str] = deque(maxlen=ODDITIES_KEPT)
        self.ui: Feed[UiRequest] | None = None
        self._lines = LineSplitter()
        self._stderr = bytearray()
        self._next_id = 0
        self._pending: dict[str, Pending] = {}
        self._answered: dict[str, None] = {}  # ids whose second response is an oddity and no lie
        self._feeds: WeakSet[Feed[Any]] = WeakSet()
        self._shells: WeakValueDictionary[str, Feed[BashDelta]] = WeakValueDictionary()
        self._err_feeds: WeakSet[Feed[bytes]] = WeakSet()

    # ---- what callers ask --------------------------------------------------------------------------------------

    def request(self, command: Command | dict[str, Any], echo: Feed[Any] | None = None) -> Pending:
        """Put a command into the outbox. One that is a dict has its `type`; its `id` is replaced by ours."""
        if self.failure is not None:
            raise self.failure.again()
        if self.closing:
            raise ClientClosed("the client is closing", self.stderr)
        self._next_id += 1
        id = f"c{self._next_id}"
        if isinstance(command, dict):
            name, record = str(command["type"]), encode({**command, "id": id})
        else:
            name, record = command_name(command), encode(msgspec.structs.replace(command, id=Raw(encode(id))))
        pending = self._pending[id] = Pending(id, name, echo)
        self.outbox.put(id, record + b"\n")
        return pending

    def abandon(self, pending: Pending) -> None:
        """Nobody waits for this any more. A record that has not left is not sent, a response that comes is dropped."""
        if self._pending.pop(pending.id, None) is not None and not self.outbox.withdraw(pending.id):
            self._remember(pending.id)

    def listen(self) -> Feed[Any]:
        """A feed of all events from now on. It is let go by being dropped. Typed `Any`, since it may also be given the
        responses to some requests (`Pending.echo`)."""
        feed: Feed[Any] = Feed(self.buffer_bytes)
        self._feeds.add(feed)
        if self.failure is not None:
            feed.end(self._as_end())
        return feed

    def listen_to_shell(self, id: str) -> Feed[BashDelta]:
        """The output of the shell request `id`, until its response."""
        feed: Feed[BashDelta] = Feed(self.buffer_bytes)
        self._shells[id] = feed
        return feed

    def listen_to_stderr(self) -> Feed[bytes]:
        feed: Feed[bytes] = Feed(self.buffer_bytes)
        self._err_feeds.add(feed)
        if self.err_ended:
            feed.end()
        return feed

    def listen_to_ui(self) -> Feed[UiRequest]:
        """The one feed of what extensions ask. Without it whatever asks is told that the user cancelled."""
        if self.ui is None:
            self.ui = Feed(self.buffer_bytes)
            if self.failure is not None:
                self.ui.end(self._as_end())
        return self.ui

    def answer_ui(self, id: str, fields: dict[str, Any]) -> None:
        """Send an `extension_ui_response`; after the end it is dropped, as the agent would drop it."""
        if self.failure is None and not self.closing:
            self.outbox.put("", encode({"type": "extension_ui_response", "id": id, **fields}) + b"\n")

    def start_closing(self) -> None:
        """No new requests; stdin ends once what waits has been written."""
        self.closing = True
        self.outbox.close()

    @property
    def stderr(self) -> str:
        """The last 256 KiB."""
        return self._stderr.decode("utf-8", "replace")

    @property
    def over(self) -> bool:
        return self.failure is not None

    # ---- what the face tells -----------------------------------------------------------------------------------

    def receive(self, data: bytes) -> None:
        """Bytes of stdout."""
        self.received += len(data)
        for line in self._lines.feed(data):
            self._take(line)

    def receive_stderr(self, data: bytes) -> None:
        self.received += len(data)
        self._stderr += data
        if len(self._stderr) > STDERR_KEPT:
            del self._stderr[:-STDERR_KEPT]
        for feed in tuple(self._err_feeds):
            feed.put(data, len(data))

    def stdout_ended(self) -> None:
        for line in self._lines.end():
            if not self.closing and not self.has_exited:
                self.oddities.append(f"stdout ended within a record: {line[:80]!r}")
        self.out_ended = True
        self.changed()

    def stderr_ended(self) -> None:
        self.err_ended = True
        for feed in tuple(self._err_feeds):
            feed.end()
        self.changed()

    def exited(self, status: int) -> None:
        self.has_exited, self.status = True, status
        self.changed()

    def conclude(self) -> None:
        """Nothing more will be read: whatever is still open fails."""
        if self.closing:
            self.fail(ClientClosed("the client was closed", self.stderr))
        else:
            self.fail(AgentDied.of(self.status if self.has_exited else None, self.stderr))

    def fail(self, failure: TransportError) -> None:
        """The connection is over; the first reason stays."""
        if self.failure is not None:
            return
        self.failure = failure
        self.outbox.drop()
        for pending in self._pending.values():
            pending.failure = failure
            pending.changed()
        self._pending.clear()
        ending = self._as_end()
        feeds: list[Feed[Any]] = [*self._feeds, *self._shells.values(), *([self.ui] if self.ui else [])]
        for feed in feeds:
            feed.end(ending)
        self._shells.clear()
        self.changed()

    def _as_end(self) -> TransportError | None:
        """To who merely listens, being closed is no failure."""
        return None if isinstance(self.failure, ClientClosed) else self.failure

    # ---- one record --------------------------------------------------------------------------------------------

    def _take(self, line: bytes) -> None:
        if self.failure is not None:
            return
        try:
            record = read_record(line)
        except NotARecord as why:
            self.fail(ProtocolError(f"a line of the agent's stdout is no record ({why})", self.stderr, line or b" "))
            return
        if isinstance(record, Response):
            self._take_response(record, line)
        elif isinstance(record, UiRequest):
            self._take_ui(record, len(line))
        else:
            self._take_event(record, len(line))

    def _take_response(self, response: Response, line: bytes) -> None:
        id = _plain_id(response.id)
        pending = self._pending.pop(id, None)
        if pending is None:
            self._take_stray(response, id, line)
            return
        if response.command != pending.command:
            self.oddities.append(f"the response to {pending.command} says that it answers {response.command!r}")
        self._remember(id)
        pending.response = response
        shell = self._shells.pop(id, None)
        if shell is not None:
            shell.end()
        if pending.echo is not None:
            pending.echo.put(response, 0)
        pending.changed()

    def _take_stray(self, response: Response, id: str, line: bytes) -> None:
        if id in self._answered:
            self.oddities.append(f"a response to {response.command} (id {id}) that nobody waits for")
        elif response.command == "parse":
            self.fail(ProtocolError("the agent could not read a command of ours", self.stderr, line))
        else:
            self.fail(ProtocolError("the agent answered a request that was never made", self.stderr, line))

    def _remember(self, id: str) -> None:
        self._answered[id] = None
        if len(self._answered) > 10_000:
            del self._answered[next(iter(self._answered))]

    def _take_ui(self, request: UiRequest, size: int) -> None:
        if self.ui is not None:
            self.ui.put(request, size)
        elif request.wants_answer:
            self.answer_ui(request.id, {"cancelled": True})

    def _take_event(self, event: Event, size: int) -> None:
        kind = event_type(event)
        if kind in ("agent_start", "agent_settled"):
            self._mark_run(active=kind == "agent_start")
        if isinstance(event, BashExecutionUpdate) and event.id is not UNSET:
            shell = self._shells.get(_plain_id(event.id))
            if shell is not None:
                shell.put(BashDelta(event.channel, event.delta), size)
        for feed in tuple(self._feeds):
            feed.put(event, size)

    def _mark_run(self, *, active: bool) -> None:
        self.run_is_active = active
        for pending in tuple(self._pending.values()):
            pending.saw_settled = pending.saw_run and not active
            pending.saw_run |= active
            pending.changed()


def _plain_id(raw: Raw) -> str:
    """An id of ours; another scalar as its JSON, which is none of ours."""
    text = bytes(raw).decode("utf-8", "replace")
    return text[1:-1] if text[:1] == '"' else text
