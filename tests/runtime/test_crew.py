"""Actors that share a thread: whose mail is read when, and that one which hangs or dies leaves those apart alone."""

from __future__ import annotations

import threading
import time
from typing import Any

from actors.base import Actor, Down
from actors.clock import Clock
from actors.mail import Arm, Tick
from actors.preferences import Preferences
from actors.probe import Probe
from actors.writer import Writer
from runtime.alarm import Alarm
from runtime.threads import ThreadHost, start_named_pump, start_pump


class Scribe(Actor[Any]):
    """Writes what it reads into the book that all share; passes mail on to those it names, and waits for a gate."""

    def __init__(self, name: str, book: Probe[Any]) -> None:
        self._name = name
        self._book = book

    def begin(self) -> None:
        self._book.tell((self._name, "begun", threading.get_ident()))

    def receive(self, mail: Any) -> None:
        if isinstance(mail, threading.Event):
            assert mail.wait(10)
        elif isinstance(mail, list):
            for to, what in mail:
                to.tell(what)
        elif mail == "stop yourself":
            self.me.stop()
        elif mail == "die":
            raise ValueError
        else:
            self._book.tell((self._name, mail))

    def idle(self) -> None:
        self._book.tell((self._name, "idle"))

    def ended(self) -> None:
        self._book.tell((self._name, "ended"))


class ApartScribe(Scribe):
    apart = True


class Office:
    def __init__(self) -> None:
        self.book: Probe[Any] = Probe()
        self.owner: Probe[Down] = Probe()
        self.host = ThreadHost()
        self.threads: dict[str, int] = {}

    def hire(self, name: str, kind: type[Scribe] = Scribe) -> Any:
        child = self.host.start(kind(name, self.book), name, self.owner, name)
        who, what, thread = self.book.next()
        assert (who, what) == (name, "begun")
        self.threads[name] = thread
        return child

    def read(self, count: int) -> list[Any]:
        """What was written, without who was idle in between."""
        written: list[Any] = []
        while len(written) < count:
            if (entry := self.book.next())[1] != "idle":
                written.append(entry)
        return written


def test_members_share_one_thread_and_those_apart_have_their_own() -> None:
    office = Office()
    for name, kind in (("a", Scribe), ("b", Scribe), ("c", ApartScribe), ("d", ApartScribe)):
        office.hire(name, kind)
    found = office.threads
    assert found["a"] == found["b"]
    assert len({found["a"], found["c"], found["d"], threading.get_ident()}) == 4


def test_mail_is_read_in_the_order_in_which_it_was_told_whoever_it_is_for() -> None:
    office = Office()
    a, b = office.hire("a"), office.hire("b")
    a.tell([(b, 1), (a, 2), (b, 3), (b, 4), (a, 5)])
    assert office.read(5) == [("b", 1), ("a", 2), ("b", 3), ("b", 4), ("a", 5)]


def test_a_member_is_idle_after_its_last_mail_also_while_others_have_mail() -> None:
    office = Office()
    a, b = office.hire("a"), office.hire("b")
    a.tell([(a, 1), (b, 2), (a, 3)])
    told = []
    while ("a", 3) not in told:
        told.append(office.book.next())
    assert office.book.next() == ("a", "idle")
    assert told.index(("a", 1)) + 1 == told.index(("b", 2)), "it has mail still, so it is not idle"


def test_one_that_died_or_was_stopped_reads_nothing_that_was_told_before_or_after() -> None:
    office = Office()
    a, b, witness = office.hire("a"), office.hire("b"), office.hire("witness")
    witness.tell([(a, "die"), (a, "lost"), (b, "stop yourself"), (b, "read"), (b, "lost"), (witness, "here")])
    # b's own stop is told when its first mail is read, behind all of these
    assert [entry for entry in office.read(4) if entry[0] != "a"] == [
        ("b", "read"),
        ("b", "lost"),
        ("witness", "here"),
        ("b", "ended"),
    ]
    assert office.owner.next().key == "a"
    for gone in (a, b):
        gone.tell("too late")
        gone.stop()
    witness.tell("still here")
    assert office.read(1) == [("witness", "still here")]
    assert office.owner.drain() == []


def test_those_apart_work_while_a_member_hangs() -> None:
    office, gate = Office(), threading.Event()
    stuck = office.hire("stuck")
    apart = office.hire("apart", ApartScribe)
    stuck.tell(gate)
    apart.tell("at work")
    assert office.read(1) == [("apart", "at work")]
    gate.set()
    stuck.tell("free")
    assert office.read(1) == [("stuck", "free")]


def test_the_deadline_rings_and_stdout_and_settings_are_written_while_a_member_hangs() -> None:
    assert Clock.apart and Writer.apart and Preferences.apart
    office, gate = Office(), threading.Event()
    office.hire("stuck").tell(gate)
    clock = office.host.start(Clock(time.monotonic, Alarm(start_pump).set), "clock", office.owner)
    rung: Probe[Tick] = Probe()
    clock.tell(Arm("now", 0, rung))
    assert rung.next() == Tick("now")
    gate.set()


def test_a_thousand_members_cost_no_thread() -> None:
    office = Office()
    before = threading.active_count()
    children = [office.hire(f"m{number}") for number in range(1000)]
    assert len(set(office.threads.values())) == 1 and threading.active_count() <= before + 1
    for child in children:
        child.tell("x")
        child.stop()
    written = office.read(2000)
    assert written.count((children[-1].name, "ended")) == 1
    assert [entry for entry in written if entry[1] == "ended"] == [(child.name, "ended") for child in children]


def test_pumps_and_members_tell_each_other_across_threads() -> None:
    office = Office()
    a = office.hire("a")
    for start in (start_pump, start_named_pump):
        start("pump", lambda: [a.tell(number) for number in range(200)])
        assert office.read(200) == [("a", number) for number in range(200)]
