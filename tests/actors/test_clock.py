"""Deadlines come as mail, the earliest first, and never early."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.base import Address
from actors.clock import Clock
from actors.mail import Arm, Tick, Woke
from actors.probe import Probe


class Bench:
    """A clock whose time the test sets; `asked` are the times that it wanted to be woken at."""

    def __init__(self) -> None:
        self.time = 100.0
        self.asked: list[float] = []
        self.clock = Clock(lambda: self.time, self._sleep_until)
        self.clock.me = Probe()
        self.reader: Probe[Tick] = Probe()

    def _sleep_until(self, at: float, to: Address[Woke]) -> None:
        assert to is self.clock.me
        self.asked.append(at)

    def arm(self, key: str, delay_ms: int) -> None:
        self.clock.receive(Arm(key, delay_ms, self.reader))

    def rung(self, at: float) -> list[str]:
        self.time = at
        self.clock.receive(Woke())
        return [tick.key for tick in self.reader.drain()]


def test_a_tick_comes_at_its_deadline_and_not_before() -> None:
    bench = Bench()
    bench.arm("a", 1500)
    assert bench.asked == [pytest.approx(101.5)]
    assert bench.rung(101.4) == []
    assert bench.rung(101.5) == ["a"]
    assert bench.rung(999.0) == []


def test_the_alarm_is_always_set_for_the_earliest_deadline_that_is_left() -> None:
    bench = Bench()
    bench.arm("late", 3000)
    bench.arm("early", 1000)
    assert bench.asked == [103.0, 101.0]
    assert bench.rung(101.0) == ["early"]
    assert bench.asked[-1] == 103.0


def test_the_alarm_hears_of_a_deadline_only_if_it_is_earlier_than_all_others() -> None:
    bench = Bench()
    for delay_ms in (2000, 3000, 2000, 1000, 5000):
        bench.arm("a", delay_ms)
    assert bench.asked == [102.0, 101.0]


def test_nothing_is_asked_of_the_alarm_when_no_deadline_is_left() -> None:
    bench = Bench()
    bench.arm("a", 0)
    bench.rung(100.0)
    assert len(bench.asked) == 1


def test_equal_deadlines_ring_in_the_order_in_which_they_were_armed() -> None:
    bench = Bench()
    for key in ("b", "a", "c"):
        bench.arm(key, 10)
    assert bench.rung(101.0) == ["b", "a", "c"]


@settings(max_examples=50)
@given(st.lists(st.integers(0, 5000), max_size=20))
def test_deadlines_ring_in_order_and_each_once(delays: list[int]) -> None:
    bench = Bench()
    for place, delay in enumerate(delays):
        bench.arm(f"{delay}.{place}", delay)
    rung = [key for at in range(100, 107) for key in bench.rung(float(at))]
    expected = sorted(range(len(delays)), key=lambda place: (delays[place], place))
    assert rung == [f"{delays[place]}.{place}" for place in expected]
