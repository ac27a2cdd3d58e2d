"""Makes a course that violates an invariant as short as can be, so that a person can read it.

Whatever may be left out is tried, as long as the same kind of violation stays: faults and habits of the world, lines
of the client, and unusual decisions of the scheduler, which otherwise lets everybody have his turn. A shorter script
meets another order of mail, so each is played in a few orders. All is decided by the course alone, and bounded by the
number of plays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from msgspec.structs import replace

from runtime.simulation.course import Course, Onlooker, Reader

Item = TypeVar("Item")

MOST_PLAYS = 3000
ORDERS = 16
"""Seeded orders in which a shorter script is tried, besides the one that failed and the usual one."""

Violates = Callable[[Course], tuple[bool, dict[int, int], set[str]]]
"""Plays a course: whether the violation is there, the decisions that were taken, and the mishaps that were met."""


class Shrinker:
    """`course` is the shortest so far; its order is given."""

    def __init__(self, course: Course, violates: Violates, most_plays: int = MOST_PLAYS) -> None:
        self._violates = violates
        self._plays = most_plays
        self.course = course
        self._met: set[str] = set()

    def shrink(self) -> Course:
        if not self._try(replace(self.course, slow=(), preempting=0.0), in_other_orders=False):
            self._accept_as_it_is()
        passes = (
            self._drop_faults,
            self._drop_onlookers,
            self._drop_mishaps,
            self._drop_lines,
            self._simplify_lines,
            self._simplify_order,
        )
        size = None
        while size != (size := self._size()) and self._plays > 0:
            for one in passes:
                one()
        return self.course

    def _accept_as_it_is(self) -> None:
        """Its order, spelled out."""
        _, choices, self._met = self._violates(self.course)
        self.course = replace(self.course, choices=choices, slow=(), preempting=0.0, order=None)

    def _size(self) -> tuple[int, ...]:
        course = self.course
        lines = sum(1 + (line.pause != 0) + line.joined + (line.cut != 1) for line in course.lines)
        looks = sum(1 + len(one.lines) for one in course.onlookers)
        return lines, looks, len(course.choices or ()), len(course.excluded), *course.signals, course.crash is not None

    def _try(self, course: Course, *, in_other_orders: bool = True) -> bool:
        """Whether `course` shows the violation as well; then it is the shortest so far."""
        for candidate in self._in_orders(course) if in_other_orders else (course,):
            if self._plays <= 0:
                return False
            self._plays -= 1
            is_there, choices, met = self._violates(candidate)
            if is_there:
                self._met = met
                self.course = replace(candidate, choices=choices, order=None, preempting=0.0)
                return True
        return False

    def _in_orders(self, course: Course) -> Iterator[Course]:
        yield course
        if course.choices:
            yield replace(course, choices={})
        for order in range(1, ORDERS + 1):
            yield replace(course, choices=None, order=order, preempting=0.1 * (order % 3))

    # -- what may be left out

    def _drop_faults(self) -> None:
        course = self.course
        simpler: dict[str, Any] = {
            "crash": None,
            "refusals": None,
            "signals": (),
            "reader": Reader(),
            "onlookers": (),
        }
        for field, value in simpler.items():
            if getattr(course, field) != value:
                self._try(replace(self.course, **{field: value}))
        if len(course.signals) > 1:
            self._try(replace(self.course, signals=course.signals[:1]))

    def _drop_onlookers(self) -> None:
        _reduced(self.course.onlookers, lambda left: self._try(replace(self.course, onlookers=tuple(left))))
        for place, onlooker in enumerate(self.course.onlookers):
            self._change_onlooker(place, replace(onlooker, reader=Reader(), farewell="stays"))
            _reduced(
                self.course.onlookers[place].lines,
                lambda left, at=place: self._change_onlooker(  # type: ignore[misc]
                    at, replace(self.course.onlookers[at], lines=tuple(left))
                ),
            )

    def _change_onlooker(self, place: int, changed: Onlooker) -> bool:
        onlookers = self.course.onlookers
        return self._try(replace(self.course, onlookers=(*onlookers[:place], changed, *onlookers[place + 1 :])))

    def _drop_mishaps(self) -> None:
        course = self.course
        met = sorted(self._met - set(course.excluded))
        before = set(course.excluded)
        _reduced(met, lambda left: self._try(self._excluding(before | (set(met) - set(left)))))

    def _excluding(self, mishaps: set[str]) -> Course:
        return replace(self.course, excluded=tuple(sorted(mishaps)))

    def _drop_lines(self) -> None:
        _reduced(self.course.lines, lambda left: self._try(replace(self.course, lines=tuple(left))))

    def _simplify_lines(self) -> None:
        for place in range(len(self.course.lines)):
            for change in ({"joined": False, "pause": 0, "cut": 1.0}, {"pause": 0}, {"cut": 1.0}, {"joined": False}):
                lines = list(self.course.lines)
                line = replace(lines[place], **change)
                if line != lines[place]:
                    lines[place] = line
                    self._try(replace(self.course, lines=tuple(lines)))

    def _simplify_order(self) -> None:
        """First without any unusual decision, then without those after some point, then without each."""
        if not self.course.choices or self._try_choices({}):
            return
        decisions = sorted(self.course.choices)
        low, high = 0, len(decisions)
        while low < high and self._plays > 0:
            middle = (low + high) // 2
            if self._try_choices({at: self._choices[at] for at in decisions[:middle] if at in self._choices}):
                high = middle
            else:
                low = middle + 1
        left = sorted(self._choices.items())
        _reduced(left, lambda kept: self._try_choices(dict(kept)))

    @property
    def _choices(self) -> dict[int, int]:
        return self.course.choices or {}

    def _try_choices(self, choices: dict[int, int]) -> bool:
        return self._try(replace(self.course, choices=choices), in_other_orders=False)


def _reduced(items: Sequence[Item], still_fails: Callable[[list[Item]], bool]) -> list[Item]:
    """Delta debugging: leaves out ever smaller pieces, as long as what is left still fails."""
    left = list(items)
    if left and still_fails([]):
        return []
    size = max(1, len(left) // 2)
    while left:
        start, dropped = 0, False
        while start < len(left):
            rest = left[:start] + left[start + size :]
            if len(rest) < len(left) and still_fails(rest):
                left, dropped = rest, True
            else:
                start += size
        if size == 1 and not dropped:
            return left
        size = max(1, size // 2)
    return left
