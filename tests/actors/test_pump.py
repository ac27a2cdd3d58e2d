"""The window of a pump: how far it runs ahead, and what releases it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.probe import Probe
from actors.pump import Ack, Window


def in_thread(work: Callable[[], Any]) -> Probe[Any]:
    """Tells what `work` returned, once it has."""
    result: Probe[Any] = Probe()
    threading.Thread(target=lambda: result.tell(work()), daemon=True).start()
    return result


def waits(result: Probe[Any]) -> bool:
    with pytest.raises(AssertionError):
        result.next(0.05)
    return True


def admitted(window: Window, size: int) -> Ack:
    ack = window.admit(size)
    assert ack is not None
    return ack


@pytest.mark.parametrize("window", [Window(max_bytes=10), Window(max_messages=1)], ids=["bytes", "messages"])
def test_a_full_window_waits_until_an_ack_gives_room(window: Window) -> None:
    first = admitted(window, 6)
    second = in_thread(lambda: window.admit(6))
    assert waits(second)
    first.settle()
    assert isinstance(second.next(), Ack)


def test_a_message_larger_than_the_window_passes_alone() -> None:
    window = Window(max_bytes=10)
    large = admitted(window, 1000)
    next_one = in_thread(lambda: window.admit(1))
    assert waits(next_one)
    large.settle()
    assert isinstance(next_one.next(), Ack)


def test_settling_twice_counts_once() -> None:
    window = Window(max_messages=2)
    first, _second = admitted(window, 1), admitted(window, 1)
    first.settle()
    first.settle()
    admitted(window, 1)
    assert waits(in_thread(lambda: window.admit(1)))


def test_closing_releases_every_waiting_pump_and_admits_nothing_more() -> None:
    window = Window(max_messages=1)
    held = admitted(window, 1)
    waiting = [in_thread(lambda: window.admit(1)) for _ in range(2)]
    window.close()
    assert [result.next() for result in waiting] == [None, None]
    held.settle()
    assert window.admit(1) is None


@settings(max_examples=50)
@given(st.lists(st.integers(1, 20), min_size=1, max_size=30))
def test_all_room_comes_back_when_all_acks_are_settled(sizes: list[int]) -> None:
    window = Window(max_bytes=sum(sizes), max_messages=len(sizes))
    for _ in range(2):
        for ack in [admitted(window, size) for size in sizes]:
            ack.settle()
    admitted(window, sum(sizes))
