"""Wakes the clock at the time that it asked for."""

from __future__ import annotations

import threading
import time

from actors.base import Address, StartPump
from actors.mail import Woke

LONGEST_SLEEP_S = 86_400.0
"""A deadline may be any number of milliseconds ahead, a wait of the system may not."""


class Alarm:
    """The clock's pump: one thread, made with the first deadline, that sleeps until the latest time it was given."""

    def __init__(self, pump: StartPump) -> None:
        self._pump = pump
        self._changed = threading.Condition()
        self._at: float | None = None
        self._running = False
        self._to: Address[Woke] | None = None

    def set(self, at: float, to: Address[Woke]) -> None:
        with self._changed:
            self._at, self._to = at, to
            self._changed.notify()
            if not self._running:
                self._running = True
                self._pump("alarm", self._sleep)

    def _sleep(self) -> None:
        with self._changed:
            while True:
                rest = None if self._at is None else self._at - time.monotonic()
                if rest is None or rest > 0:
                    self._changed.wait(None if rest is None else min(rest, LONGEST_SLEEP_S))
                    continue
                self._at = None
                assert self._to is not None
                self._to.tell(Woke())
