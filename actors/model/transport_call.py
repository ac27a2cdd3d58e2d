"""One attempt at a call: its limits of time, and what it has received.

Used in one pump thread only. It stands between the network, which asks it how long to wait, and the callbacks, which
it gives what arrived.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from actors.model.event_bytes import EventBytes
from actors.model.transport_errors import Dropped, Limit

if TYPE_CHECKING:
    import socket

    from actors.model.transport_contract import Abort, TransportSettings

_ERROR_BODY_BYTES = 64 * 1024
# How long a body that nobody wants any more may take to end by itself.
_FAREWELL_S = 1.0


class Foreign(Exception):
    """Carries what a callback raised past the clauses for network errors."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error


class Call:
    """One attempt: what arrives is collected until the next read would block, then handed over at once, so that one
    read makes one `on_bytes` and nothing waits while the server is silent. `is_answered` once the head has come."""

    def __init__(
        self,
        settings: TransportSettings,
        abort: Abort,
        on_head: Callable[[int, Mapping[str, str]], None],
        on_bytes: Callable[[bytes], None],
    ) -> None:
        self.abort = abort
        self._settings = settings
        self._on_head = on_head
        self._on_bytes = on_bytes
        self._pending: list[bytes | bytearray] = []
        self._left = -1
        self._is_new = False
        self._has_bytes = False
        self.is_answered = False
        self._events: EventBytes | None = None
        now = time.monotonic()
        self._deadlines: dict[Limit, float] = {}
        self._set_deadline("total", settings.total_timeout_s, now)
        self._set_deadline("answer", settings.answer_timeout_s, now)
        self._set_deadline("event", settings.event_timeout_s, now)

    # ---- called by the network

    def attach(self, sock: socket.socket, *, is_new: bool) -> None:
        self._is_new = self._is_new or is_new
        self.abort.attach(sock)

    def before_read(self) -> float | None:
        self.flush()
        return self.write_timeout()

    def after_read(self, data: bytes) -> None:
        self._has_bytes = self._has_bytes or bool(data)

    def write_timeout(self) -> float | None:
        is_idle_bound = self.is_answered or self._settings.answer_timeout_s is None
        idle = self._settings.idle_timeout_s if is_idle_bound else None
        return _shortest(idle or None, self._farewell(), *self._remaining())

    def connect_timeout(self) -> float | None:
        """For one address, or for one handshake."""
        return _shortest(self._settings.connect_timeout_s or None, *self._remaining())

    # ---- called by the transport

    def head(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        self._left = _ERROR_BODY_BYTES if status >= 400 else -1
        told = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in headers}
        self.is_answered = True
        self._deadlines.pop("answer", None)
        if told.get("content-type", "").lower().startswith("text/event-stream"):
            self._events = EventBytes()
        self._run(lambda: self._on_head(status, told))

    def body(self, data: bytes | bytearray) -> bool:
        """Takes body bytes; False when no more are wanted."""
        if data and (self._events is None or self._events.speak(data)):
            self._set_deadline("event", self._settings.event_timeout_s, time.monotonic())
        if self._left >= 0:
            data = data[: self._left]
            self._left -= len(data)
        self._pending.append(data)
        if self._left == 0:
            self.flush()
            return False
        return True

    def flush(self) -> None:
        data = b"".join(self._pending)
        self._pending = []
        if data and not (self.abort.fired or self.abort.dismissed):
            begun = time.monotonic()
            self._run(lambda: self._on_bytes(data))
            if "event" in self._deadlines:  # while the client did not read, the server was not asked
                self._deadlines["event"] += time.monotonic() - begun

    def is_stale(self, error: Exception) -> bool:
        return isinstance(error, Dropped) and not self._is_new and not self._has_bytes

    def overdue(self) -> Limit | None:
        """The limit that has passed, whichever step noticed it."""
        now = time.monotonic()
        return next((limit for limit, deadline in self._deadlines.items() if deadline <= now), None)

    def _remaining(self) -> Iterable[float]:
        now = time.monotonic()
        return [deadline - now for deadline in self._deadlines.values()]

    def _set_deadline(self, limit: Limit, seconds: float | None, now: float) -> None:
        if seconds:
            self._deadlines[limit] = now + seconds

    def _farewell(self) -> float | None:
        return _FAREWELL_S if self.abort.dismissed else None

    def _run(self, callback: Callable[[], None]) -> None:
        try:
            callback()
        except BaseException as error:
            raise Foreign(error) from None


def _shortest(*limits: float | None) -> float | None:
    """Never 0, which would mean not to wait at all."""
    known = [limit for limit in limits if limit is not None]
    return max(0.001, min(known)) if known else None
