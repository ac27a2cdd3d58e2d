"""Pumps: threads that wait on the outside world for an actor, and the window that bounds them.

A pump never runs ahead of its readers by more than its window, in bytes and in messages. Acks travel with the data, and
whoever ends a message's road settles its ack. Closing the window releases a waiting pump for good.
"""

from __future__ import annotations

import threading

WINDOW_BYTES = 1 << 20
WINDOW_MESSAGES = 128


class Window:
    """How far a pump may run ahead. `admit` waits for room; `settle` gives it back; `close` ends the waiting."""

    def __init__(self, max_bytes: int = WINDOW_BYTES, max_messages: int = WINDOW_MESSAGES) -> None:
        self._room = threading.Condition()
        self._bytes = 0
        self._messages = 0
        self._max_bytes = max_bytes
        self._max_messages = max_messages
        self._closed = False

    def admit(self, size: int) -> Ack | None:
        """Takes room for one message of `size` bytes, waiting while there is none. A message larger than the whole
        window passes when nothing else is out. `None` once the window is closed."""
        with self._room:
            self._room.wait_for(lambda: self._closed or self._fits(size))
            if self._closed:
                return None
            self._bytes += size
            self._messages += 1
        return Ack(self, size)

    def offer(self, size: int) -> Ack | None:
        """The same without waiting: `None` while there is no room."""
        with self._room:
            if self._closed or not self._fits(size):
                return None
            self._bytes += size
            self._messages += 1
        return Ack(self, size)

    def _fits(self, size: int) -> bool:
        if self._messages == 0:
            return True
        return self._messages < self._max_messages and self._bytes + size <= self._max_bytes

    def settle(self, size: int) -> None:
        with self._room:
            self._bytes -= size
            self._messages -= 1
            self._room.notify()

    def close(self) -> None:
        with self._room:
            self._closed = True
            self._room.notify_all()


class Ack:
    """The room that one message holds in its pump's window. Settling twice counts once."""

    __slots__ = ("_size", "_window")

    def __init__(self, window: Window, size: int) -> None:
        self._window: Window | None = window
        self._size = size

    def settle(self) -> None:
        window, self._window = self._window, None
        if window is not None:
            window.settle(self._size)
