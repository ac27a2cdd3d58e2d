"""One HTTP/1.1 request and its answer on a line, spoken by h11.

h11 decides what the bytes mean; this owns one h11 connection an exchange, so nothing of one answer can leak into the
next. An answer's head is bounded (100 KiB), its body is not: it is handed on as it comes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import h11

from actors.model.transport_errors import BadHeader, Dropped

if TYPE_CHECKING:
    from actors.model.line import Line
    from actors.model.transport_call import Call

_HEAD_BYTES = 100 * 1024
_JOINED_BYTES = 64 * 1024
"""A body of this size leaves with its head, which saves a call of the system. A longer one, it may hold many images, is
not copied."""


class Exchange:
    """Use: `send`, then `head`, then `body` to its end, then look whether the line `can_be_kept`."""

    def __init__(self, method: str, target: str, headers: Iterable[tuple[str, str]], body: bytes = b"") -> None:
        """Raises BadHeader."""
        self._state = h11.Connection(h11.CLIENT, max_incomplete_event_size=_HEAD_BYTES)
        self._is_cut = False
        try:
            encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
            head = self._state.send(h11.Request(method=method, target=target, headers=encoded))
        except (h11.LocalProtocolError, UnicodeEncodeError):
            raise BadHeader from None
        self._out = [(head or b"") + body] if len(body) <= _JOINED_BYTES else [head or b"", body]
        if body:
            self._state.send(h11.Data(data=body))
        self._state.send(h11.EndOfMessage())

    def send(self, line: Line, call: Call) -> None:
        """Raises Silent. A server may refuse a request before it has read all of it, so a cut is no failure yet."""
        try:
            for data in self._out:
                line.write(data, call)
        except Dropped:
            self._is_cut = True
        self._out = []

    def head(self, line: Line, call: Call) -> h11.Response:
        """The final head; interim ones (1xx) are passed over. Raises Silent, Dropped."""
        while True:
            event = self._next(line, call)
            if isinstance(event, h11.Response):
                return event
            if not isinstance(event, h11.InformationalResponse):
                raise Dropped

    def body(self, line: Line, call: Call) -> Iterator[bytes | bytearray]:
        """Raises Silent, Dropped."""
        while isinstance(event := self._next(line, call), h11.Data):
            yield event.data

    @property
    def can_be_kept(self) -> bool:
        """Both sides are done and nothing is left over."""
        state = self._state
        is_done = state.our_state is h11.DONE and state.their_state is h11.DONE
        return is_done and not self._is_cut and not self.left_over

    @property
    def left_over(self) -> bytes:
        """What came after the answer."""
        return self._state.trailing_data[0]

    def _next(self, line: Line, call: Call) -> Any:
        try:
            while (event := self._state.next_event()) is h11.NEED_DATA:
                self._state.receive_data(line.read(call))
        except h11.RemoteProtocolError:
            raise Dropped from None
        return event
