"""A violation is made as short as can be: a planted fault is found in a script of a line or two."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from runtime.simulate import failures
from runtime.simulation.course import Course, Crash, Reader, Refusals
from runtime.simulation.parts import Parts
from runtime.simulation.script import UNTIL_QUIET, Line
from runtime.simulation.shrink import Shrinker
from tests.runtime.simulation import broken_actors as b

MOST_MAIL = 51  # starting and ending the house takes 21


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("part", "broken", "lines"),
    [
        ("shell", b.Silent, 1),
        ("shell", b.Reordered, 1),
        ("shell_desk", b.DeafDesk, 2),
        ("queue", b.Doubling, 2),
        ("session", b.DeafToAbort, 2),
        ("intake", b.Overtaking, 2),
        ("desk", b.Stuck, 0),
    ],
)
def test_a_planted_fault_is_found_in_a_tiny_course(part: str, broken: Any, lines: int) -> None:
    parts = Parts()
    setattr(parts, part, broken)
    played = next(failures(range(400), "mixed", parts))
    shortest = played.shortened(parts)
    assert shortest.violations[0].kind == played.violations[0].kind
    assert lines <= len(shortest.course.lines) <= lines + 1  # it need not be the very shortest
    assert shortest.house.ended_at <= MOST_MAIL
    assert not shortest.course.crash and not shortest.course.refusals


def test_the_same_course_is_shortened_in_the_same_way() -> None:
    parts = Parts()
    parts.shell = b.Silent
    played = next(failures(range(400), "mixed", parts))
    assert list(played.shortened(parts).trace()) == list(played.shortened(parts).trace())


# ---- what is left out, on a violation that is a condition on the course ------------------------------------------

LINES = tuple(Line(str(number), UNTIL_QUIET, cut=0.5) for number in range(40))
FULL = Course(
    1,
    lines=LINES,
    signals=(15, 15),
    reader=Reader(closes=3),
    crash=Crash(1, "before"),
    refusals=Refusals(1, 1),
    slow=("writer",),
    preempting=0.3,
)
TAKEN = dict.fromkeys(range(0, 300, 3), 2)


def shrunk(holds: Any, most_plays: int = 3000) -> tuple[Course, int]:
    """The shortest course for which `holds`, and how often one was played."""
    plays = 0

    def violates(course: Course) -> tuple[bool, dict[int, int], set[str]]:
        nonlocal plays
        plays += 1
        choices = TAKEN if course.choices is None else course.choices
        return holds(replace(course, choices=choices)), dict(choices), {"rain", "snow", "hail"} - set(course.excluded)

    return Shrinker(FULL, violates, most_plays).shrink(), plays


def test_what_does_not_matter_is_left_out() -> None:
    course, _ = shrunk(lambda course: True)
    assert course == Course(1, excluded=("hail", "rain", "snow"), choices={})


def test_the_lines_that_matter_stay_and_become_plain() -> None:
    course, _ = shrunk(lambda course: {"7", "31"} <= {line.text for line in course.lines})
    assert course.lines == (Line("7"), Line("31"))


def test_the_decisions_that_matter_stay() -> None:
    course, _ = shrunk(lambda course: {30, 120} <= (course.choices or {}).keys())
    assert course.choices == {30: 2, 120: 2}


@pytest.mark.parametrize(
    ("holds", "left"),
    [
        (lambda course: course.crash, {"crash": FULL.crash}),
        (lambda course: course.refusals, {"refusals": FULL.refusals}),
        (lambda course: len(course.signals) == 2, {"signals": (15, 15)}),
        (lambda course: course.signals, {"signals": (15,)}),
        (lambda course: course.reader.closes, {"reader": FULL.reader}),
        (lambda course: "snow" not in course.excluded, {"excluded": ("hail", "rain")}),
    ],
)
def test_the_fault_that_matters_stays(holds: Any, left: dict[str, Any]) -> None:
    course, _ = shrunk(lambda course: bool(holds(course)))
    assert course == replace(Course(1, excluded=("hail", "rain", "snow"), choices={}), **left)


def test_the_number_of_plays_is_bounded() -> None:
    course, plays = shrunk(lambda course: len(course.lines) > 20, most_plays=50)
    assert plays <= 51
    assert len(course.lines) > 20
