"""The connections that are kept between calls, by where they lead.

Owned by the transport, used by its calls in their threads. Taking and putting are single list operations, which are
atomic: a line that a call has removed is that call's alone.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from actors.model.line import Line
    from actors.model.route import Endpoint

_KEPT_LINES = 8
_KEPT_SECONDS = 60.0


class Pool:
    def __init__(self) -> None:
        self._idle: list[tuple[Endpoint, Line]] = []

    def take(self, origin: Endpoint) -> Line | None:
        """The line used last that leads to `origin` and still stands. Lines that do not are closed on the way."""
        for item in reversed(self._idle.copy()):
            is_over = self._is_over(item[1])
            if not is_over and item[0] != origin:
                continue
            try:
                self._idle.remove(item)
            except ValueError:
                continue  # another thread was faster
            if not is_over:
                return item[1]
            item[1].close()
        return None

    def keep(self, origin: Endpoint, line: Line) -> None:
        line.kept_since = time.monotonic()
        self._idle.append((origin, line))
        with suppress(IndexError):
            while len(self._idle) > _KEPT_LINES:
                self._idle.pop(0)[1].close()

    def close(self) -> None:
        with suppress(IndexError):
            while True:
                self._idle.pop()[1].close()

    @staticmethod
    def _is_over(line: Line) -> bool:
        return time.monotonic() - line.kept_since > _KEPT_SECONDS or line.is_readable()
