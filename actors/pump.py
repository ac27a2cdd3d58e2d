"""Pumps: threads that wait on the outside world for an actor, and the window that bounds them.

A pump never runs ahead of its readers by more than its window, in bytes and in messages; pumps of one kind share room.
Acks travel with the data, and whoever ends a message's road settles its ack. Closing the window releases a waiting pump
for good.
"""

from __future__ import annotations

import threading

WINDOW_BYTES = 1 << 20
WINDOW_MESSAGES = 128


class Share:
    """The room that pumps of one kind have together. Each may always have one message out, so that none starves; who
    waits has one, and its ack wakes it.

    Mail is read in the order in which it was told: 50 commands that were each ahead by a window of their own kept
    whatever came after them waiting for half a second."""

    __slots__ = ("_max_bytes", "_max_messages", "bytes", "lock", "messages")

    def __init__(self, max_bytes: int = WINDOW_BYTES, max_messages: int = WINDOW_MESSAGES) -> None:
        self.lock = threading.Lock()
        self._max_bytes = max_bytes
        self._max_messages = max_messages
        self.bytes = self.messages = 0

    def fits(self, size: int) -> bool:
        return self.messages < self._max_messages and self.bytes + size <= self._max_bytes

    def add(self, size: int, messages: int) -> None:
        """Negative to give room back."""
        self.bytes += size
        self.messages += messages


class Window:
    """How far a pump may run ahead. `admit` waits for room; `settle` gives it back; `close` ends the waiting. `share`
    is the room of all pumps of its kind; without it there is no other."""

    def __init__(
        self, max_bytes: int = WINDOW_BYTES, max_messages: int = WINDOW_MESSAGES, share: Share | None = None
    ) -> None:
        self._share = share or Share(max_bytes, max_messages)
        self._room = threading.Condition(self._share.lock)
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
            self._take(size)
        return Ack(self, size)

    def offer(self, size: int) -> Ack | None:
        """The same without waiting: `None` while there is no room."""
        with self._room:
            if self._closed or not self._fits(size):
                return None
            self._take(size)
        return Ack(self, size)

    def _take(self, size: int) -> None:
        self._bytes += size
        self._messages += 1
        self._share.add(size, 1)

    def _fits(self, size: int) -> bool:
        if self._messages == 0:
            return True
        fits = self._messages < self._max_messages and self._bytes + size <= self._max_bytes
        return fits and self._share.fits(size)

    def settle(self, size: int) -> None:
        with self._room:
            self._bytes -= size
            self._messages -= 1
            if not self._closed:
                self._share.add(-size, -1)
            self._room.notify()

    def close(self) -> None:
        """What is out counts no more for the others: who should settle it may be dead."""
        with self._room:
            if not self._closed:
                self._share.add(-self._bytes, -self._messages)
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
