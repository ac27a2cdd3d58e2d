"""What may happen in the simulated world, by name: whether it does, and what has happened.

Every process, stream or file has dice of its own, thrown from the seed and its name alone. So leaving out a command or
one kind of mishap changes nothing elsewhere, which is what lets a failing course be made shorter.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from typing import TypeVar

Thing = TypeVar("Thing")


class Chances:
    """`excluded` names what never happens. `met` gathers what did."""

    def __init__(self, seed: int, excluded: Collection[str] = ()) -> None:
        self.met: set[str] = set()
        self.excluded = frozenset(excluded)
        self._seed = seed

    def dice(self, thing: str) -> Dice:
        """Those of the thing with this name, always the same ones."""
        return Dice(self, random.Random(f"{self._seed} {thing}"))


class Dice:
    """The luck of one thing."""

    __slots__ = ("_chances", "_rng")

    def __init__(self, chances: Chances, rng: random.Random) -> None:
        self._chances = chances
        self._rng = rng

    def strikes(self, what: str, probability: float) -> bool:
        """Whether `what` happens. The dice are thrown in any case, so that the next throw stays the same."""
        happens = self._rng.random() < probability and what not in self._chances.excluded
        if happens:
            self._chances.met.add(what)
        return happens

    def choice(self, things: Sequence[Thing]) -> Thing:
        return self._rng.choice(things)

    def below(self, end: int) -> int:
        return self._rng.randrange(end)

    def one_of(self, cases: Sequence[tuple[str, float]]) -> str | None:
        """At most one of some cases, each with its share of 1. None: an ordinary one, also in place of an excluded."""
        throw = self._rng.random()
        for name, share in cases:
            throw -= share
            if throw < 0:
                if name in self._chances.excluded:
                    return None
                self._chances.met.add(name)
                return name
        return None
