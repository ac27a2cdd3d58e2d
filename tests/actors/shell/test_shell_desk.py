"""All shell requests: who is cancelled by which id, whose home moves, and that no process outlives the program."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from actors.base import Down
from actors.mail import (
    UNTIL_ADOPTED,
    AbortBash,
    BashAdopted,
    BashLost,
    BashRecorded,
    CancelShell,
    CloseShells,
    HomeMoved,
    LeftBehind,
    NewHome,
    RemainsKilled,
    RunBash,
    SessionLost,
    ShellEnded,
    ShellPlan,
    ShellsClosed,
    Ticket,
)
from actors.probe import Probe
from actors.shell.desk import NO_HOME, ShellDesk

LAST = CloseShells(last=True)
PLAN = ShellPlan("sleep 9", "/", "s", {}, False)


class Remains:
    """Background processes that live until they are killed."""

    def __init__(self) -> None:
        self.alive = True

    def close(self) -> bool:
        return self.alive

    def kill_group_leftovers(self) -> None:
        self.alive = False


class Bench:
    def __init__(self) -> None:
        self.writer, self.root, self.intake, self.home = (Probe[Any]() for _ in range(4))
        self.shells: dict[int, Probe[Any]] = {}
        self.killing: list[Sequence[Any]] = []
        self.desk = ShellDesk(self.writer, self.root, self._start, lambda remains, desk: self.killing.append(remains))
        self.desk.me = Probe()
        self.desk.connect(self.intake)

    def _start(self, run: RunBash, desk: Any) -> Probe[Any]:
        assert desk is self.desk.me
        self.shells[run.ticket.serial] = Probe()
        return self.shells[run.ticket.serial]

    def run(self, serial: int, id: bytes = b"", home: Probe[Any] | None = None) -> None:
        self.desk.receive(RunBash(Ticket(serial, id, "bash"), PLAN, home or self.home))

    def tell(self, *mails: Any) -> None:
        for mail in mails:
            self.desk.receive(mail)

    def kill(self) -> None:
        """The pump comes to what it was given last."""
        for each in self.killing.pop():
            each.kill_group_leftovers()
        self.tell(RemainsKilled())

    def cancelled(self) -> set[int]:
        return {serial for serial, shell in self.shells.items() if CancelShell() in shell.drain()}

    def answers(self) -> list[dict[str, Any]]:
        return [json.loads(record.line) for write in self.writer.drain() for record in write.records]


@pytest.fixture
def bench() -> Bench:
    return Bench()


def abort(id: bytes | None) -> AbortBash:
    return AbortBash(Ticket(90, b'"a"', "abort_bash"), id)


@pytest.mark.parametrize(
    ("id", "reached"), [(b'"x"', {1, 2}), (b'"y"', {3}), (b"7", {4}), (b'"7"', set()), (None, {1, 2, 3, 4, 5})]
)
def test_a_cancel_reaches_every_request_with_its_id_and_the_bare_one_reaches_all(
    bench: Bench, id: bytes | None, reached: set[int]
) -> None:
    for serial, own in enumerate((b'"x"', b'"x"', b'"y"', b"7", b""), start=1):
        bench.run(serial, own)
    bench.tell(abort(id))
    assert bench.cancelled() == reached
    assert bench.answers() == [{"id": "a", "type": "response", "command": "abort_bash", "success": True}]


def test_a_request_that_is_over_is_not_cancelled_again(bench: Bench) -> None:
    bench.run(1)
    bench.tell(ShellEnded(1), abort(None))
    assert bench.cancelled() == set()


def test_a_cancel_reaches_also_what_comes_later_but_was_before_it_on_the_wire(bench: Bench) -> None:
    bench.tell(abort(b'"x"'))
    for serial, id in ((89, b'"x"'), (88, b'"y"'), (91, b'"x"')):
        bench.run(serial, id)
    assert bench.cancelled() == {89}


def test_a_shell_actor_that_dies_is_answered_and_its_home_does_not_wait(bench: Bench) -> None:
    bench.run(1, b'"x"')
    bench.tell(Down(1, "ValueError in actor.py:9"))
    (answer,) = bench.answers()
    assert (answer["id"], answer["success"]) == ("x", False)
    assert answer["error"] == "the shell request failed: ValueError in actor.py:9"
    assert bench.home.drain() == [BashLost(1)]
    bench.tell(LAST)
    assert bench.root.drain() == [ShellsClosed()]


# ---- homes --------------------------------------------------------------------------------------------------------


def test_a_home_that_moves_takes_its_requests_along_and_intake_hears_which_live(bench: Bench) -> None:
    other, new = Probe[Any](), Probe[Any]()
    bench.run(1)
    bench.run(2, home=other)
    bench.run(3)
    bench.tell(HomeMoved(bench.home, new, "the session failed"))
    assert new.drain() == [BashAdopted(frozenset({1, 3})), BashLost(UNTIL_ADOPTED)]
    assert [shell.drain() for shell in bench.shells.values()] == [[NewHome(new)], [], [NewHome(new)]]
    assert bench.intake.drain() == [SessionLost(bench.home, "the session failed", frozenset({1, 2, 3}))]


def test_a_new_home_hears_also_that_there_was_nothing_to_take_along(bench: Bench) -> None:
    new: Probe[Any] = Probe()
    bench.tell(HomeMoved(bench.home, new, "E"))
    assert new.drain() == [BashAdopted(frozenset()), BashLost(UNTIL_ADOPTED)]
    assert bench.intake.drain() == [SessionLost(bench.home, "E", frozenset())]


def test_a_home_may_move_twice(bench: Bench) -> None:
    second, third = Probe[Any](), Probe[Any]()
    bench.run(1)
    bench.tell(HomeMoved(bench.home, second, "E"), HomeMoved(second, third, "E"))
    assert BashAdopted(frozenset({1})) in third.drain()
    bench.tell(Down(1, "E"))
    assert BashLost(1) not in bench.home.drain()
    assert third.drain() == [BashLost(1)]


def test_a_new_home_does_not_wait_for_a_request_that_the_old_one_had_recorded(bench: Bench) -> None:
    new: Probe[Any] = Probe()
    bench.run(1)
    bench.tell(HomeMoved(bench.home, new, "E"))
    new.drain()
    bench.tell(ShellEnded(1))
    assert new.drain() == [BashLost(1)]
    assert bench.home.drain() == []


def test_a_home_that_never_moved_does_not_hear_that_a_request_ended(bench: Bench) -> None:
    bench.run(1)
    bench.tell(ShellEnded(1))
    assert bench.home.drain() == []


# ---- the end ------------------------------------------------------------------------------------------------------


def test_closing_cancels_what_runs_and_waits_for_its_end(bench: Bench) -> None:
    bench.run(1)
    bench.run(2)
    bench.tell(CloseShells())
    assert bench.cancelled() == {1, 2}
    bench.tell(ShellEnded(1), LAST)
    assert bench.root.drain() == []
    bench.tell(ShellEnded(2))
    assert bench.root.drain() == [ShellsClosed()]


def test_a_request_that_was_under_way_when_closing_began_is_cancelled_and_waited_for(bench: Bench) -> None:
    bench.tell(CloseShells())
    assert bench.root.drain() == []
    bench.run(2)
    assert bench.cancelled() == {2}
    bench.tell(LAST)
    assert bench.root.drain() == []
    bench.tell(ShellEnded(2))
    assert bench.root.drain() == [ShellsClosed()]


def test_once_no_session_is_left_a_request_is_told_that_nobody_will_record_it(bench: Bench) -> None:
    bench.run(1)
    bench.tell(LAST)
    bench.run(2)
    for shell in bench.shells.values():
        assert shell.drain() == [CancelShell(), BashRecorded(NO_HOME)]


def test_what_commands_left_in_the_background_lives_until_the_end_and_no_longer(bench: Bench) -> None:
    first, second, late = Remains(), Remains(), Remains()
    bench.run(1)
    bench.tell(LeftBehind(first), LeftBehind(second), LAST)
    assert first.alive and second.alive
    bench.tell(LeftBehind(late))
    bench.kill()
    assert not first.alive and not second.alive and not late.alive
    bench.tell(ShellEnded(1))
    assert bench.root.drain() == [ShellsClosed()]


def test_the_end_waits_until_nothing_is_left_behind(bench: Bench) -> None:
    first, second = Remains(), Remains()
    bench.tell(LeftBehind(first), LAST)
    assert (first.alive, bench.root.drain()) == (True, [])
    bench.tell(LeftBehind(second))
    bench.kill()
    assert (second.alive, bench.root.drain()) == (False, [])
    bench.kill()
    assert (first.alive, bench.root.drain()) == (False, [ShellsClosed()])


def test_the_last_words_cancel_what_runs_and_kill_what_was_left(bench: Bench) -> None:
    remains, home = Remains(), Probe[Any]()
    bench.run(1)
    bench.tell(LeftBehind(remains))
    bench.desk.last_words([RunBash(Ticket(2, b"", "bash"), PLAN, home)])
    assert bench.cancelled() == {1}
    assert not remains.alive
    assert home.drain() == [BashLost(2)]
