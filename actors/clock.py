"""Deadlines. An actor arms a tick and gets it as mail; nobody else sleeps."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import assert_never

from actors.base import Actor, Address
from actors.mail import Arm, ClockMail, Tick, Woke


class Clock(Actor[ClockMail]):
    """Owns the heap of deadlines. `now` is in seconds and never goes back; `sleep_until` asks the clock's pump to tell
    `Woke` at that time, and replaces what was asked before."""

    apart = True  # the deadline at the end of the program has to pass also while another actor hangs

    def __init__(self, now: Callable[[], float], sleep_until: Callable[[float, Address[Woke]], None]) -> None:
        self._now = now
        self._sleep_until = sleep_until
        self._deadlines: list[tuple[float, int, str, Address[Tick]]] = []
        self._armed = 0

    def receive(self, mail: ClockMail) -> None:
        match mail:
            case Arm(key, delay_ms, to):
                self._armed += 1
                armed = (self._now() + delay_ms / 1000, self._armed, key, to)
                heapq.heappush(self._deadlines, armed)
                if self._deadlines[0] is armed:  # nobody need wake for a later one
                    self._sleep_until(armed[0], self.me)
            case Woke():
                self._ring()
                if self._deadlines:
                    self._sleep_until(self._deadlines[0][0], self.me)
            case _:
                assert_never(mail)

    def _ring(self) -> None:
        now = self._now()
        while self._deadlines and self._deadlines[0][0] <= now:
            _, _, key, to = heapq.heappop(self._deadlines)
            to.tell(Tick(key))
