"""When a model cannot answer, the next of the list does, and the first comes back afterwards."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from actors.session.fallback import Fallback, FallbackChain, Place, next_fallback
from protocol.events import ModelFallbackEnd, ModelFallbackStart
from protocol.messages import AssistantMessage, Usage
from protocol.model import Model, ModelCost, ThinkingLevel


def model(key: str, reasoning: bool = True) -> Model:
    provider, _, name = key.partition("/")
    return Model(name, name, "a", provider, "http://x", reasoning, ("text",), ModelCost(), 1000, 100)


A1, A2, B1, B2, C2 = (model(key) for key in ("a/one", "a/two", "b/one", "b/two", "c/two"))
PLAIN = model("a/plain", reasoning=False)
COLON = model("a/qwen:exacto")
HIGH = model("a/solid:high")
MODELS = [A1, A2, B1, B2, C2, PLAIN, COLON, HIGH]
HOME = Place(A1, "medium")


def failed(text: str) -> AssistantMessage:
    return AssistantMessage([], "a", "a", "one", Usage(), "error", 1, error_message=text)


OVERLOADED = failed("529 overloaded_error")
ANSWER = AssistantMessage([], "a", "a", "one", Usage(), "stop", 1)


def chosen(*entries: str, current: Place = HOME, default: ThinkingLevel | None = None, **sets: Any) -> str | None:
    marks = {"tried": (), "condemned": (), **sets}
    place = next_fallback(entries, MODELS, current, default, **marks)
    return None if place is None else place.key


def chain(*entries: str, models: list[Model] = MODELS, without: str = "") -> FallbackChain:
    return FallbackChain(entries, models, lambda provider: provider != without, None)


def taken(fallback: Fallback | None) -> Fallback:
    assert fallback is not None
    return fallback


# ---- one choice --------------------------------------------------------------------------------------------------


def test_the_first_usable_entry_is_taken() -> None:
    assert chosen("b/one", "c/two") == "b/one:medium"


@pytest.mark.parametrize("entry", ["", "b/", "b", "B/one", "b/One", "b/on", "b/one:loud", "no/where", ":high"])
def test_an_entry_that_names_no_model_exactly_is_passed_over(entry: str) -> None:
    assert chosen(entry, "b/one") == "b/one:medium"


@pytest.mark.parametrize(
    ("entry", "key"),
    [
        ("b/one:high", "b/one:high"),
        ("a/qwen:exacto", "a/qwen:exacto:medium"),
        ("a/qwen:exacto:low", "a/qwen:exacto:low"),
        ("a/solid:high", "a/solid:high:medium"),
        ("a/solid:high:low", "a/solid:high:low"),
        (" b/one ", "b/one:medium"),
    ],
)
def test_a_level_is_what_follows_the_id(entry: str, key: str) -> None:
    assert chosen(entry) == key


def test_a_bare_id_means_the_current_providers_model() -> None:
    assert chosen("two") == "a/two:medium"
    assert chosen("two", current=Place(B1, "low")) == "b/two:low"


def test_a_bare_id_of_one_provider_only_means_that_one() -> None:
    assert chosen("plain", current=Place(B1, "low")) == "a/plain:off"


def test_a_bare_id_of_several_other_providers_means_none() -> None:
    others = [B2, C2]
    assert next_fallback(["two"], others, HOME, None, tried=(), condemned=()) is None


def test_the_level_is_the_entrys_then_the_default_then_the_current_one() -> None:
    assert chosen("b/one:low", default="high") == "b/one:low"
    assert chosen("b/one", default="high") == "b/one:high"
    assert chosen("b/one", current=Place(A1, "minimal")) == "b/one:minimal"


def test_a_level_that_the_model_lacks_is_clamped() -> None:
    assert chosen("a/plain:high") == "a/plain:off"
    assert chosen("b/one:max") == "b/one:high"


def test_the_current_model_is_taken_at_another_level_only() -> None:
    assert chosen("a/one", "a/one:medium", "a/one:low") == "a/one:low"


def test_what_was_tried_or_condemned_is_passed_over() -> None:
    assert chosen("b/one:low", "b/one:high", tried={"b/one:low"}) == "b/one:high"
    assert chosen("b/one:low", "b/one:high", "b/two", condemned={"b/one"}) == "b/two:medium"


# ---- a prompt cycle ----------------------------------------------------------------------------------------------


def test_a_chain_tells_where_it_goes_and_why() -> None:
    fallback = taken(chain("b/one:low").advance(HOME, OVERLOADED, "529 overloaded_error"))
    assert fallback.place == Place(B1, "low")
    assert fallback.event == ModelFallbackStart("b/one:low", "529 overloaded_error", 1, from_="a/one:medium")


def test_a_chain_walks_its_list_once_and_counts() -> None:
    turn = chain("b/one", "a/one", "b/two", "b/one")
    first = taken(turn.advance(HOME, OVERLOADED, "x"))
    second = taken(turn.advance(first.place, OVERLOADED, "y"))
    assert (second.event.from_, second.event.to, second.event.attempt) == ("b/one:medium", "b/two:medium", 2)
    assert turn.advance(second.place, OVERLOADED, "z") is None


def test_the_first_model_comes_back_when_the_cycle_is_over() -> None:
    turn = chain("b/one", "b/two")
    first = taken(turn.advance(HOME, OVERLOADED, "x"))
    turn.advance(first.place, OVERLOADED, "y")
    restore = turn.finish(ANSWER)
    assert restore is not None and restore.home == HOME
    assert restore.event == ModelFallbackEnd(True, from_="a/one:medium", to="b/two:medium")


def test_a_chain_that_ran_out_tells_the_last_error() -> None:
    turn = chain("b/one")
    turn.advance(HOME, OVERLOADED, "x")
    restore = turn.finish(OVERLOADED)
    assert restore is not None
    expected = ModelFallbackEnd(False, from_="a/one:medium", to="b/one:medium", final_error="529 overloaded_error")
    assert restore.event == expected


@pytest.mark.parametrize("reply", [None, replace(ANSWER, stop_reason="aborted", error_message="Request was aborted")])
def test_what_was_aborted_is_no_success(reply: AssistantMessage | None) -> None:
    turn = chain("b/one")
    turn.advance(HOME, OVERLOADED, "x")
    restore = turn.finish(reply)
    assert restore is not None and restore.event.success is False


@pytest.mark.parametrize("entries", [(), ("a/one",), ("no/where",)])
def test_a_chain_without_a_fallback_has_nothing_to_tell(entries: tuple[str, ...]) -> None:
    turn = chain(*entries)
    assert turn.advance(HOME, OVERLOADED, "x") is None
    assert turn.finish(OVERLOADED) is None


def test_a_provider_without_credentials_is_passed_over() -> None:
    assert taken(chain("b/one", "c/two", without="b").advance(HOME, OVERLOADED, "x")).place.model == C2
    bare = chain("two", models=[A1, B2, C2], without="b")
    assert taken(bare.advance(HOME, OVERLOADED, "x")).place.model == C2


@pytest.mark.parametrize("text", ["401 Unauthorized", "insufficient_quota", "model not found: one"])
def test_a_model_that_failed_for_good_is_asked_at_no_level(text: str) -> None:
    turn = chain("a/one:low", "a/one:high", "b/one")
    assert taken(turn.advance(HOME, failed(text), text)).place.model == B1


@pytest.mark.parametrize("text", ["529 overloaded_error", "400 invalid_request_error: effort", "weird thing"])
def test_a_failure_that_may_pass_leaves_the_models_other_levels(text: str) -> None:
    assert taken(chain("a/one:low", "b/one").advance(HOME, failed(text), text)).place == Place(A1, "low")


def test_a_model_that_the_user_chose_stays() -> None:
    turn = chain("b/one")
    turn.advance(HOME, OVERLOADED, "x")
    turn.model_chosen()
    restore = turn.finish(ANSWER)
    assert restore is not None and restore.home is None


def test_a_fallback_from_the_users_choice_comes_back_to_it() -> None:
    turn = chain("b/one", "b/two")
    turn.advance(HOME, OVERLOADED, "x")
    turn.model_chosen()
    turn.advance(Place(C2, "low"), OVERLOADED, "y")
    restore = turn.finish(ANSWER)
    assert restore is not None and restore.home == Place(C2, "low")


def test_a_level_that_the_user_chose_goes_home_with_the_first_model() -> None:
    turn = chain("b/one")
    turn.advance(HOME, OVERLOADED, "x")
    turn.level_chosen("max")
    restore = turn.finish(ANSWER)
    assert restore is not None and restore.home == Place(A1, "high")
