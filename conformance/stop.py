"""SIGTERM and SIGHUP end a run as SIGINT does: whoever started processes and made folders takes them away first.

Owns what the two signals do while agents run. Promises that a second one does not disturb the tidying, and that a
signal which was ignored at the start (nohup) stays ignored.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_ENDING = (signal.SIGTERM, signal.SIGHUP)


class Stopped(KeyboardInterrupt):
    """A signal ended the run; `number` is which."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


@contextmanager
def stoppable() -> Iterator[None]:
    """While inside, SIGTERM and SIGHUP raise Stopped in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in _ENDING}
    mine = [number for number, action in before.items() if action != signal.SIG_IGN]
    for number in mine:
        signal.signal(number, _stop)
    try:
        yield
    finally:
        for number in mine:
            signal.signal(number, before[number])


def _stop(number: int, frame: Any) -> None:
    for each in _ENDING:
        signal.signal(each, signal.SIG_IGN)
    raise Stopped(number)
