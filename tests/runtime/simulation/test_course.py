"""Courses that once failed are played again; a course survives being written down."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.simulate import Played
from runtime.simulation.course import course_of, read_course, written_course

PLANS = sorted((Path(__file__).parents[2] / "simulation_plans").glob("*.json"))


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.stem)
def test_a_course_that_failed_once_fails_no_more(plan: Path) -> None:
    course = read_course(plan.read_bytes())
    assert course.note  # what was violated then
    assert [str(violation) for violation in Played(course).violations] == []


def test_there_are_courses_to_play_again() -> None:
    assert len(PLANS) >= 4


@pytest.mark.parametrize("seed", range(30))
def test_a_course_is_the_same_after_it_was_written_and_read(seed: int) -> None:
    course = course_of(seed)
    assert read_course(written_course(course)) == course


def test_a_mix_decides_which_seeds_have_a_fault() -> None:
    mixed = [course_of(seed) for seed in range(20)]
    assert [seed for seed, course in enumerate(mixed) if course.crash] == [7, 8, 17, 18]
    assert [seed for seed, course in enumerate(mixed) if course.refusals] == [9, 19]
    assert all(course_of(seed, "crash").crash and course_of(seed, "disk").refusals for seed in range(9))
    assert not any(course_of(seed, "calm").crash or course_of(seed, "calm").refusals for seed in range(20))
