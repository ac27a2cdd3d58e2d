"""Threads of pumps: each work begins at once, threads are used again, and nothing of a finished work is kept."""

from __future__ import annotations

import gc
import threading
import weakref
from queue import SimpleQueue

from runtime.pumps import MOST_IDLE, Pumps


class Bench:
    """Works tell the thread that they run on, and hold it until they may go."""

    def __init__(self) -> None:
        self.pumps = Pumps()
        self.threads: SimpleQueue[threading.Thread] = SimpleQueue()

    def hold(self, count: int) -> tuple[set[threading.Thread], threading.Event]:
        """All of them run at once: each has told before any goes."""
        gate = threading.Event()

        def work() -> None:
            self.threads.put(threading.current_thread())
            assert gate.wait(10)

        for _ in range(count):
            self.pumps.start("held", work)
        return {self.threads.get(timeout=10) for _ in range(count)}, gate

    def rest(self, threads: set[threading.Thread], gate: threading.Event) -> None:
        """Until each of these waits for work, or has ended: works are given out until none of them is new."""
        gate.set()
        for _ in range(1000):
            again, gate = self.hold(1)
            gate.set()
            if again <= threads:
                return
        raise AssertionError("no thread was used again")


def test_no_work_waits_for_another() -> None:
    bench = Bench()
    threads, gate = bench.hold(3 * MOST_IDLE)
    assert len(threads) == 3 * MOST_IDLE
    gate.set()


def test_a_thread_is_used_again() -> None:
    bench = Bench()
    bench.rest(*bench.hold(2))


def test_only_a_few_threads_are_kept() -> None:
    """What a thread keeps for itself dies with it."""

    class Own:
        pass

    bench, own, ended = Bench(), threading.local(), SimpleQueue[str]()
    gate, here = threading.Event(), SimpleQueue[str]()

    def work() -> None:
        own.thing = Own()
        weakref.finalize(own.thing, ended.put, "ended")
        here.put("here")
        assert gate.wait(10)

    for _ in range(4 * MOST_IDLE):
        bench.pumps.start("work", work)
    for _ in range(4 * MOST_IDLE):
        here.get(timeout=10)
    gate.set()
    for _ in range(2 * MOST_IDLE):  # two that look at once may both stay, so not just those above the bound
        ended.get(timeout=10)


def test_what_a_work_held_goes_with_it() -> None:
    class Thing:
        pass

    bench, over = Bench(), threading.Event()
    thing = Thing()
    gone = weakref.ref(thing)

    def work(held: Thing) -> None:
        assert held is not None
        over.set()

    bench.pumps.start("work", lambda held=thing: work(held))  # type: ignore[misc]
    del thing
    assert over.wait(10)
    bench.rest(*bench.hold(1))
    gc.collect()
    assert gone() is None
