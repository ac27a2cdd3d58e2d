"""Ends at once what is being played, so that a run that is stopped does not wait for the deadlines of its cases.

Owns who is to be told. Promises that whoever begins after the call is told too.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Halt:
    """Of one run. `called` is set from the call on."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._ends: dict[object, Callable[[], None]] = {}
        self.called = False

    @contextmanager
    def reaching(self, end: Callable[[], None]) -> Iterator[None]:
        """While inside, the call calls `end`, in its own thread."""
        me = object()
        with self._guard:
            self._ends[me] = end
            late = self.called
        if late:
            end()
        try:
            yield
        finally:
            with self._guard:
                del self._ends[me]

    def call(self) -> None:
        with self._guard:
            self.called = True
            ends = list(self._ends.values())
        for end in ends:
            end()
