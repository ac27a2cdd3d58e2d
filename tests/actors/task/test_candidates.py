"""Which models a subagent may run on, in order."""

from __future__ import annotations

from typing import Any

import pytest

from actors.task.candidates import candidates
from tests.actors.task.agents import agent, parent


def keys(wanted: str | None = None, definition: dict[str, Any] | None = None, *available: str, **of: Any) -> list[str]:
    found = candidates(wanted, agent(**(definition or {})), parent(*available, **of))
    return [place.key for place in found.places]


def test_without_a_wish_it_is_the_parents_model_at_its_level_and_only_once() -> None:
    assert keys() == ["a/own:high"]
    assert keys(None, {"thinking": "minimal"}) == ["a/own:minimal"]


def test_the_calls_wish_comes_before_the_definitions_and_the_parents_model_comes_last() -> None:
    pinned = {"model": "b/two", "fallback_models": ("c/three:max", "b/two")}
    available = ("b/two", "c/three", "d/four")
    assert keys(None, pinned, *available) == ["b/two:low", "c/three:high", "a/own:high"]
    assert keys("d/four", pinned, *available) == ["d/four:low", "c/three:high", "b/two:low", "a/own:high"]


def test_a_named_model_takes_its_suffix_then_the_definitions_level_never_the_parents() -> None:
    assert keys("b/two:minimal", None, "b/two")[0] == "b/two:minimal"
    assert keys(None, {"model": "b/two", "thinking": "medium"}, "b/two")[0] == "b/two:medium"
    assert keys("b/two", {"thinking": "medium"}, "b/two")[0] == "b/two:low"
    assert keys(None, {"model": "b/two:minimal", "thinking": "medium"}, "b/two")[0] == "b/two:minimal"


def test_a_bare_id_is_looked_for_at_the_parents_provider_first() -> None:
    assert keys("two", None, "b/two", "a/two")[0] == "a/two:low"
    assert keys("two", None, "b/two", "c/two") == ["a/own:high"]  # which of the two is not known


def test_the_current_model_that_is_tried_already_is_not_appended_again() -> None:
    assert keys("a/own:minimal") == ["a/own:minimal"]


def test_what_is_not_available_is_passed_over_and_told() -> None:
    found = candidates("x/none", agent(), parent())
    assert [place.key for place in found.places] == ["a/own:high"]
    assert found.skipped == ("x/none: no model of that name is available",)
    twice = candidates("x/none", agent(fallback_models=("x/none", "x/other")), parent())
    assert twice.skipped == tuple(f"x/{name}: no model of that name is available" for name in ("none", "other"))


@pytest.mark.parametrize("wanted", [None, "x/none"])
def test_without_any_model_nothing_can_run(wanted: str | None) -> None:
    assert keys(wanted, None, model=None) == []
