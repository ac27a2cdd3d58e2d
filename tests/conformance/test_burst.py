"""The order of a burst: any number of records between, or none, and what broke it."""

from __future__ import annotations

from typing import Any

from conformance.burst import Burst, read_elements


def fed(items: list[Any], *types: str, tight: bool = False, ignore: tuple[Any, ...] = ()) -> Burst:
    burst = Burst(read_elements(items), list(ignore), tight, {})
    for index, type_ in enumerate(types):
        if burst.awaited is not None and burst.wrong is None:
            burst.feed(index, {"type": type_, "n": index})
    return burst


A, B, C = {"type": "a"}, {"type": "b"}, {"type": "c"}


def test_others_may_come_between() -> None:
    burst = fed([A, {"expect": B, "as": "the_b"}], "x", "a", "x", "b")
    assert (burst.awaited, burst.wrong, burst.found) == (None, None, [(1, None), (3, "the_b")])


def test_what_is_awaited_is_the_next_shape() -> None:
    assert fed([A, B], "b", "a").awaited == B


def test_a_tight_one_is_broken_by_any_other_after_its_first() -> None:
    assert fed([A, B], "x", "a", "b", tight=True).wrong is None
    assert fed([A, B], "a", "x", "b", tight=True).wrong == '{"type": "x", "n": 1}'
    assert fed([A, B], "a", "x", "b", tight=True, ignore=({"type": "x"},)).wrong is None


def test_many_stands_for_any_number() -> None:
    items = [A, {"many": B}, C]
    for middle in ([], ["b"], ["b", "b", "b"]):
        assert fed(items, "a", *middle, "c", tight=True).awaited is None
    assert fed(items, "a", "b", "x", "c", tight=True).wrong is not None


def test_a_name_that_is_bound_is_known_to_the_next() -> None:
    items = [{"type": "a", "n": {"$bind": "n"}}, {"type": "b", "n": {"$not": {"$ref": "n"}}}]
    burst = fed(items, "a", "b")
    assert (burst.awaited, burst.bound) == (None, {"n": 0})
