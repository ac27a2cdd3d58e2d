"""Who may change which file: one at a time, in order, and nobody waits for one who has given up."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.mail import AcquireMutation, MutationGranted, ReleaseMutation
from actors.probe import Probe
from actors.tool.desk import MutationDesk


class Bench:
    def __init__(self) -> None:
        self.desk = MutationDesk()
        self.calls = [Probe[Any]() for _ in range(3)]

    def acquire(self, call: int, path: str = "/f") -> None:
        self.desk.receive(AcquireMutation(path, self.calls[call]))

    def release(self, call: int, path: str = "/f") -> None:
        self.desk.receive(ReleaseMutation(path, self.calls[call]))

    def granted(self) -> list[list[str]]:
        """For each call, the files that it was newly given."""
        grants = []
        for call in self.calls:
            mails = call.drain()
            assert all(isinstance(mail, MutationGranted) for mail in mails)
            grants.append([mail.path for mail in mails])
        return grants


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_a_free_file_is_granted_at_once_and_files_do_not_wait_for_each_other(bench: Bench) -> None:
    bench.acquire(0, "/f")
    bench.acquire(1, "/g")
    assert bench.granted() == [["/f"], ["/g"], []]


def test_a_file_goes_to_those_who_wait_in_their_order(bench: Bench) -> None:
    for call in range(3):
        bench.acquire(call)
    assert bench.granted() == [["/f"], [], []]
    bench.release(0)
    assert bench.granted() == [[], ["/f"], []]
    bench.release(1)
    assert bench.granted() == [[], [], ["/f"]]


def test_who_gives_up_waiting_is_passed_over(bench: Bench) -> None:
    for call in range(3):
        bench.acquire(call)
    bench.release(1)
    assert bench.granted() == [["/f"], [], []]
    bench.release(0)
    assert bench.granted() == [[], [], ["/f"]]


def test_releasing_what_one_does_not_have_changes_nothing(bench: Bench) -> None:
    bench.acquire(0)
    bench.granted()
    bench.acquire(1)
    bench.release(2)
    bench.release(2, "/other")
    assert bench.granted() == [[], [], []]


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["/f", "/g"])), max_size=30))
def test_a_file_never_has_two_holders_and_is_never_forgotten(steps: list[tuple[int, str]]) -> None:
    """Each step acquires for who neither holds nor waits, and releases otherwise."""
    bench, lines = Bench(), dict[str, list[int]]()
    for call, path in steps:
        line = lines.setdefault(path, [])
        before = line[:1]
        if call in line:
            line.remove(call)
            bench.release(call, path)
        else:
            line.append(call)
            bench.acquire(call, path)
        given = [[path] if line[:1] == [one] and before != [one] else [] for one in range(3)]
        assert bench.granted() == given
