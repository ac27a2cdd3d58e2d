"""Who is next in a simulated house: drawn from a seed, or given decision by decision."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

SLOWED = 8
"""A runnable that a seed makes slow runs this many times less often than its turn comes."""


class Order:
    """Who is next. `taken` holds the decisions that were unusual: at which of them another than the longest waiting
    one was picked, by its place, or (1) others ran before a teller went on."""

    def __init__(self) -> None:
        self.taken: dict[int, int] = {}
        self._decisions = -1

    def pick(self, ready: list[Any]) -> int:
        self._decisions += 1
        place = self._place(self._decisions, ready)
        if place:
            self.taken[self._decisions] = place
        return place

    def preempts(self) -> bool:
        self._decisions += 1
        happens = self._lets_others_run(self._decisions)
        if happens:
            self.taken[self._decisions] = 1
        return happens

    def _place(self, decision: int, ready: list[Any]) -> int:
        raise NotImplementedError

    def _lets_others_run(self, decision: int) -> bool:
        raise NotImplementedError


class SeededOrder(Order):
    """Anybody may be next. `preempting` is how probably a tell lets others run before the teller goes on."""

    def __init__(self, rng: random.Random, preempting: float = 0.0) -> None:
        super().__init__()
        self._random = rng.random
        self._preempting = preempting

    def _place(self, decision: int, ready: list[Any]) -> int:
        count = len(ready)
        place = int(self._random() * count)
        if ready[place].slow and self._random() * SLOWED > 1:
            place = int(self._random() * count)
        return place

    def _lets_others_run(self, decision: int) -> bool:
        return self._random() < self._preempting


class GivenOrder(Order):
    """`choices` are decisions that another order took. In all others the one that waited longest is next."""

    def __init__(self, choices: Mapping[int, int]) -> None:
        super().__init__()
        self._choices = choices

    def _place(self, decision: int, ready: list[Any]) -> int:
        return self._choices.get(decision, 0) % len(ready)

    def _lets_others_run(self, decision: int) -> bool:
        return self._choices.get(decision, 0) == 1
