"""The address that tests look into."""

from __future__ import annotations

from typing import Any

import pytest

from actors.probe import Probe


def test_mail_comes_out_in_the_order_in_which_it_was_told() -> None:
    probe: Probe[int] = Probe()
    for number in range(3):
        probe.tell(number)
    assert probe.next() == 0
    assert probe.drain() == [1, 2]
    assert probe.drain() == []


def test_the_next_of_a_kind_passes_over_others() -> None:
    probe: Probe[Any] = Probe()
    for mail in ("a", "b", 3, "c"):
        probe.tell(mail)
    assert probe.of(int) == 3
    assert probe.drain() == ["c"]


def test_mail_that_does_not_come_is_a_failure() -> None:
    with pytest.raises(AssertionError, match=r"no mail within 0\.01 s"):
        Probe[int]().next(0.01)


def test_it_remembers_that_it_was_stopped() -> None:
    probe: Probe[int] = Probe()
    assert not probe.stopped
    probe.stop()
    assert probe.stopped
