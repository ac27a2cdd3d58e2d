"""The clock's alarm rings when it is due, whatever it was set to before."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from actors.mail import Woke
from actors.probe import Probe
from runtime.alarm import Alarm


@pytest.mark.parametrize("far", [1e9, 1e300])
def test_a_deadline_far_ahead_does_not_end_the_alarm(far: float) -> None:
    pumps: list[Callable[[], None]] = []
    alarm, actor = Alarm(lambda name, work: pumps.append(work)), Probe[Woke]()
    alarm.set(far, actor)
    sleeper = threading.Thread(target=pumps[0], daemon=True)
    sleeper.start()
    sleeper.join(0.1)  # a sleep that the system refuses ends it at once
    alarm.set(time.monotonic(), actor)
    assert actor.next() == Woke()
