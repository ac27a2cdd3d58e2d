"""The window of a pump: how far it runs ahead, and what releases it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.probe import Probe
from actors.pump import Ack, Share, Window


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


# ---- shared room


@pytest.mark.parametrize("share", [Share(max_bytes=10), Share(max_messages=3)], ids=["bytes", "messages"])
def test_pumps_that_share_room_are_ahead_together_by_no_more_than_it(share: Share) -> None:
    flooding, other = Window(share=share), Window(share=share)
    acks = [admitted(flooding, 3) for _ in range(3)]
    own = admitted(other, 3)  # one each may always have out
    assert waits(in_thread(lambda: flooding.admit(3)))
    second = in_thread(lambda: other.admit(3))
    assert waits(second)
    own.settle()
    assert isinstance(second.next(), Ack)
    for ack in acks:
        ack.settle()


def test_a_flood_that_holds_all_shared_room_keeps_nobody_from_going_on() -> None:
    share = Share(max_bytes=10)
    flooding, other = Window(share=share), Window(share=share)
    admitted(flooding, 10)
    for _ in range(5):
        admitted(other, 3).settle()


def test_what_was_out_when_a_window_closed_takes_no_shared_room_any_more() -> None:
    share = Share(max_bytes=10)
    closed, other = Window(share=share), Window(share=share)
    lost, late = admitted(closed, 5), admitted(closed, 5)
    closed.close()
    closed.close()
    late.settle()
    assert lost is not None
    for _ in range(2):
        admitted(other, 5)
    assert other.offer(1) is None
