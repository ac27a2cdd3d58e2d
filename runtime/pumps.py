"""Threads for pumps. A few are kept for the next ones: to start and to end a thread costs the system 0.1 ms, which is a
fifth of what a request to a model on this machine takes.
"""

from __future__ import annotations

import _thread
from collections.abc import Callable
from queue import Empty, SimpleQueue

MOST_IDLE = 8


class Pumps:
    """`start` runs a blocking function beside everything else, and does not wait until it runs."""

    def __init__(self) -> None:
        self._idle: SimpleQueue[SimpleQueue[Callable[[], None]]] = SimpleQueue()

    def start(self, name: str, work: Callable[[], None]) -> None:
        """`work` must not raise. The name is for the trace alone, which has named threads."""
        try:
            mine = self._idle.get_nowait()
        except Empty:
            mine = SimpleQueue()
            _thread.start_new_thread(self._serve, (mine,))
        mine.put(work)

    def _serve(self, mine: SimpleQueue[Callable[[], None]]) -> None:
        while True:
            work = mine.get()
            work()
            del work  # what it holds goes, although the thread stays
            if self._idle.qsize() >= MOST_IDLE:
                return
            self._idle.put(mine)
