"""The queue of one session: order, modes, the hold of a paused queue, and one answer for every mail."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.mail import (
    ClearQueue,
    Enqueue,
    PauseQueue,
    QueueChanged,
    QueueKind,
    QueueView,
    ResumeQueue,
    SetQueueMode,
    TakeMessages,
    Taken,
    Ticket,
)
from actors.probe import Probe
from actors.session.queue import Queue
from protocol.commands import QueueMode

TICKET = Ticket(1, b'"1"', "steer")


class Bench:
    def __init__(self, mode: QueueMode = "one-at-a-time") -> None:
        self.session: Probe[Any] = Probe()
        self.queue = Queue(self.session, {"steering": mode, "followUp": mode})

    def tell(self, mail: Any) -> Any:
        """The one answer."""
        self.queue.receive(mail)
        (answer,) = self.session.drain()
        return answer

    def add(self, text: str, kind: QueueKind = "steering") -> QueueChanged:
        changed = self.tell(Enqueue(TICKET, kind, text, ()))
        assert isinstance(changed, QueueChanged)
        return changed

    def take(self, kind: QueueKind = "steering", *, next_run: bool = False) -> list[str]:
        taken = self.tell(TakeMessages(kind, next_run))
        assert isinstance(taken, Taken)
        return [message.text for message in taken.messages]


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_what_is_queued_is_announced_and_seen_in_the_view(bench: Bench) -> None:
    assert bench.add("a") == QueueChanged(QueueView(("a",), ()), TICKET, announce=True)
    assert bench.add("b", "followUp").view == QueueView(("a",), ("b",))


def test_one_at_a_time_hands_out_one_message_a_poll_in_order(bench: Bench) -> None:
    bench.add("a")
    bench.add("b")
    assert [bench.take(), bench.take(), bench.take()] == [["a"], ["b"], []]


def test_mode_all_hands_out_everything(bench: Bench) -> None:
    bench.add("a")
    bench.add("b")
    changed = bench.tell(SetQueueMode(TICKET, "steering", "all"))
    assert (changed.ticket, changed.announce) == (TICKET, False)
    assert bench.take() == ["a", "b"]


def test_each_list_has_its_own_mode(bench: Bench) -> None:
    bench.tell(SetQueueMode(None, "followUp", "all"))
    for text in ("a", "b"):
        bench.add(text, "followUp")
        bench.add(text)
    assert [bench.take(), bench.take()] == [["a"], ["b"]]
    assert bench.take("followUp") == ["a", "b"]


def test_a_taken_message_is_out_of_the_view_that_comes_with_it(bench: Bench) -> None:
    bench.add("a")
    taken = bench.tell(TakeMessages("steering"))
    assert taken.view == QueueView()


def test_follow_ups_wait_while_steering_waits(bench: Bench) -> None:
    bench.add("f", "followUp")
    bench.add("s")
    assert bench.take("followUp") == []
    assert bench.take() == ["s"]
    assert bench.take("followUp") == ["f"]


def test_the_next_run_takes_steering_first_and_says_from_which_list(bench: Bench) -> None:
    bench.add("f", "followUp")
    bench.add("s")
    first = bench.tell(TakeMessages("steering", next_run=True))
    second = bench.tell(TakeMessages("steering", next_run=True))
    assert [(taken.kind, taken.messages[0].text) for taken in (first, second)] == [("steering", "s"), ("followUp", "f")]


def test_equal_texts_are_separate_messages_with_keys_of_their_own(bench: Bench) -> None:
    bench.add("same")
    bench.add("same")
    bench.add("same", "followUp")
    keys = [bench.tell(TakeMessages("steering", next_run=True)).messages[0].key for _ in range(3)]
    assert len(set(keys)) == 3


def test_clearing_tells_what_was_removed_and_empties_lists_and_hold(bench: Bench) -> None:
    bench.add("held")
    bench.tell(PauseQueue(TICKET))
    bench.add("f", "followUp")
    cleared = bench.tell(ClearQueue(TICKET))
    assert cleared.cleared == QueueView(("held",), ("f",), paused=True)
    assert (cleared.view, cleared.announce, cleared.ticket) == (QueueView(paused=True), True, TICKET)
    assert bench.tell(ResumeQueue(TICKET)).released is False


def test_a_paused_queue_says_so_hands_out_nothing_and_takes_what_comes_into_the_hold(bench: Bench) -> None:
    bench.add("a")
    paused = bench.tell(PauseQueue(TICKET))
    assert (paused.view, paused.announce) == (QueueView(("a",), paused=True), False)
    assert bench.add("b").view == QueueView(("a", "b"), paused=True)
    assert bench.take() == []
    assert bench.take(next_run=True) == []


def test_pausing_twice_keeps_the_order_of_arrival(bench: Bench) -> None:
    bench.add("a")
    bench.tell(PauseQueue(TICKET))
    bench.add("b")
    bench.tell(PauseQueue(TICKET))
    bench.tell(ResumeQueue(TICKET))
    assert [bench.take(), bench.take()] == [["a"], ["b"]]


def test_resuming_puts_the_hold_before_newer_messages_and_tells_whether_it_had_any(bench: Bench) -> None:
    bench.add("a")
    bench.tell(PauseQueue(TICKET))
    resumed = bench.tell(ResumeQueue(TICKET))
    assert (resumed.released, resumed.view) == (True, QueueView(("a",)))
    bench.add("b")
    assert [bench.take(), bench.take()] == [["a"], ["b"]]


def test_resuming_a_queue_that_is_not_paused_releases_nothing(bench: Bench) -> None:
    bench.add("a")
    assert bench.tell(ResumeQueue(TICKET)).released is False


STEPS = st.sampled_from(["steering", "followUp", "pause", "resume", "take steering", "take followUp", "take next"])


@settings(max_examples=100)
@given(st.lists(STEPS, max_size=40), st.sampled_from(["all", "one-at-a-time"]))
def test_every_message_comes_out_once_and_in_the_order_of_its_list(steps: list[str], mode: QueueMode) -> None:
    bench = Bench(mode)
    added: dict[str, list[str]] = {"steering": [], "followUp": []}
    taken: dict[str, list[str]] = {"steering": [], "followUp": []}
    for number, step in enumerate([*steps, "resume", *["take next"] * 40]):
        match step.split():
            case ["pause"]:
                bench.tell(PauseQueue(TICKET))
            case ["resume"]:
                bench.tell(ResumeQueue(TICKET))
            case ["take", which]:
                got = bench.tell(TakeMessages("steering" if which == "next" else which, which == "next"))  # type: ignore[arg-type]
                taken[got.kind] += [message.text for message in got.messages]
            case _:
                bench.add(f"m{number}", step)  # type: ignore[arg-type]
                added[step].append(f"m{number}")
    assert taken == added
