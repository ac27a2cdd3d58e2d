"""What a pump of the simulated world is: it tells its actor one thing a step, whenever the scheduler picks it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from actors.pump import Window

SMALL_WINDOW = (64, 2)
"""Bytes and messages: pumps of the simulation meet the end of their window all the time."""


class CountedWindow(Window):
    """A window that can be looked at: a pump of the simulation must not wait in `admit`."""

    def has_room(self, size: int) -> bool:
        return self._closed or self._fits(size)

    @property
    def unsettled(self) -> int:
        return self._messages

    @property
    def is_closed(self) -> bool:
        return self._closed


class Pump:
    """Runs an iterator a step at a time. `None` from it means that it waits for something."""

    slow = False

    def __init__(self) -> None:
        self.is_over = False
        self._work = self._run()

    def step(self) -> bool:
        try:
            return next(self._work)
        except StopIteration:
            self.is_over = True
            return True

    def _run(self) -> Iterator[bool]:
        """Yields whether it moved."""
        raise NotImplementedError


class Once(Pump):
    """Does one thing, some time."""

    def __init__(self, work: Callable[[], None]) -> None:
        super().__init__()
        self._once = work

    def _run(self) -> Iterator[bool]:
        self._once()
        yield True
