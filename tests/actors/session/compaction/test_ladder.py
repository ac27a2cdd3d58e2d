"""Who is asked in which order, and what is done when nobody can plan."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.session.compaction.ladder import NOTHING_LEFT, TOO_SMALL, Ask, Ladder, NoPlan, Plan, Step
from actors.session.compaction.outcome import MALFORMED, OVERFLOWED, Outcome, Overflowed, Ranked, Refused, Unusable
from actors.session.compaction.ranges import total
from actors.session.compaction.region import Region
from actors.session.fallback import Place
from protocol.compaction import PlannerModel
from protocol.model import Model, ModelCost


def model(key: str, reasoning: bool = True) -> Model:
    provider, _, name = key.partition("/")
    return Model(name, name, "a", provider, "http://x", reasoning, ("text",), ModelCost(), 1000, 100)


HOME = Place(model("a/one"), "medium")
OTHER, PLAIN = model("b/two"), model("b/plain", reasoning=False)
REGION = Region(tuple(map(str, range(1, 31))), ((3, 4),), {1: 9})
BAD: Outcome = Unusable("malformed_output")


def ladder(*entries: str, region: Region = REGION, refusal: str | None = None, must_succeed: bool = False) -> Ladder:
    models = [HOME.model, OTHER, PLAIN]
    return Ladder(region, HOME, refusal, entries, models, must_succeed=must_succeed)


def asked(step: Step) -> tuple[str, int]:
    assert isinstance(step, Ask)
    return step.planner.key, len(step.view)


def test_the_sessions_own_model_plans_alone() -> None:
    plan = ladder("b/two")
    assert asked(plan.begin()) == ("a/one:medium", 30)
    assert plan.answered(Ranked(((5, 9),))) == Plan(((5, 9),))


def test_after_an_overflow_the_same_model_sees_less_and_the_rest_goes_as_a_whole() -> None:
    plan = ladder()
    plan.begin()
    assert asked(plan.answered(Overflowed())) == ("a/one:medium", 15)
    step = plan.answered(Overflowed())
    assert asked(step) == ("a/one:medium", 8)
    assert isinstance(step, Ask) and step.view.lines[0] == "23"
    assert plan.answered(Ranked(((1, 2), (8, 8)))) == Plan(((1, 2), (5, 24), (30, 30)))


def test_when_no_smaller_view_is_left_the_overflow_is_told() -> None:
    plan = ladder()
    sizes = [asked(plan.begin())[1]]
    while isinstance(step := plan.answered(Overflowed()), Ask):
        sizes.append(len(step.view))
    assert sizes == [30, 15, 8, 4, 2, 1]
    assert step == NoPlan(OVERFLOWED)


def test_each_fallback_is_borrowed_once_at_its_own_level_or_the_sessions() -> None:
    plan = ladder("b/two", "b/two:medium", "b/two:high", "a/one", "nobody/x", "b/plain", "b/two:high")
    keys = [asked(plan.begin())[0]]
    while isinstance(step := plan.answered(BAD), Ask):
        keys.append(asked(step)[0])
    assert keys == ["a/one:medium", "b/two:medium", "b/two:high", "b/plain:off"]
    assert step == NoPlan(MALFORMED)


def test_a_borrowed_planner_is_named_and_sees_everything_once() -> None:
    plan = ladder("b/two:high", "b/plain")
    plan.begin()
    plan.answered(Overflowed())
    assert asked(plan.answered(BAD)) == ("b/two:high", 30)
    assert asked(plan.answered(Overflowed())) == ("b/plain:off", 30)
    assert plan.answered(Ranked(((1, 1),))) == Plan(((1, 1),), planner=PlannerModel("b", "plain"))


def test_a_session_model_without_a_credential_is_passed_over() -> None:
    assert asked(ladder("b/two", refusal="No key").begin()) == ("b/two:medium", 30)
    assert ladder(refusal="No key").begin() == NoPlan("No key")


def test_what_failed_last_is_told_with_the_file_that_says_more() -> None:
    plan = ladder("b/two")
    plan.begin()
    plan.answered(Refused("529 overloaded"), "/tmp/one.json")
    assert plan.answered(Refused("401 Unauthorized"), "/tmp/two.json") == NoPlan(
        "401 Unauthorized (diagnostic: /tmp/two.json)"
    )


def test_a_run_that_must_succeed_drops_all_but_what_is_protected() -> None:
    plan = ladder(must_succeed=True)
    plan.begin()
    assert plan.answered(BAD) == Plan(((1, 2), (5, 30)), fresh=True)


@pytest.mark.parametrize("must_succeed", [True, False])
def test_a_small_region_never_reaches_a_planner(must_succeed: bool) -> None:
    small = Region(("x",) * 19)
    step = ladder(region=small, must_succeed=must_succeed).begin()
    assert step == (Plan(((1, 19),), fresh=True) if must_succeed else NoPlan(TOO_SMALL))
    assert asked(ladder(region=Region(("x",) * 20), must_succeed=must_succeed).begin()) == ("a/one:medium", 20)


@pytest.mark.parametrize("count", [0, 5, 40])
def test_where_nothing_may_go_nobody_is_asked(count: int) -> None:
    region = Region(("x",) * count, ((1, count),) if count else ())
    assert ladder(region=region, must_succeed=True).begin() == NoPlan(NOTHING_LEFT)
    assert ladder(region=region).begin() == NoPlan(TOO_SMALL)


OUTCOMES = st.sampled_from([Overflowed(), BAD, Refused("429"), Ranked(((1, 1),)), Ranked(((1, 9),))])


@given(st.lists(OUTCOMES, max_size=40), st.booleans(), st.lists(st.sampled_from(["b/two", "b/plain", "a/one"])))
def test_every_ladder_ends_with_a_plan_or_one_error(outcomes: list[Outcome], must: bool, entries: list[str]) -> None:
    plan = ladder(*entries, must_succeed=must)
    step = plan.begin()
    requests = 0
    for outcome in [*outcomes, *[BAD] * 40]:
        if not isinstance(step, Ask):
            break
        requests += 1
        fits = not isinstance(outcome, Ranked) or outcome.deletions[-1][1] <= len(step.view)
        step = plan.answered(outcome if fits else BAD)
    assert requests <= 8
    if isinstance(step, Plan):
        lines = [line for start, end in step.deletions for line in range(start, end + 1)]
        assert lines == sorted(set(lines)) and 0 < total(step.deletions) <= 30
        assert not step.fresh or (must and step.deletions == ((1, 2), (5, 30)))
    else:
        assert isinstance(step, NoPlan) and step.error and not must
