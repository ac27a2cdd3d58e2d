"""Actors on threads: the order of mail, what a death leaves behind, and that no value of a user shows in it."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from actors.base import Actor, Down
from actors.probe import Probe
from runtime.threads import ThreadHost, describe, start_named_pump, start_pump


class Forward:
    """Mail that asks for another mail."""

    def __init__(self, to: Any) -> None:
        self.to = to


class Recorder(Actor[Any]):
    """Tells `reader` what happens to it. Mail "die" kills it; a gate is waited for."""

    def __init__(self, reader: Probe[Any], begins: bool = True, begin_with: BaseException | None = None) -> None:
        self._reader = reader
        self._begins = begins
        self._begin_with = begin_with

    def begin(self) -> None:
        self._reader.tell("begun")
        if not self._begins:
            raise self._begin_with or ValueError("secret of begin")

    def receive(self, mail: Any) -> None:
        if isinstance(mail, threading.Event):
            assert mail.wait(10)
        elif isinstance(mail, Forward):
            mail.to.tell("forwarded")
        elif mail == "die":
            raise ValueError("secret of receive")
        elif isinstance(mail, BaseException):
            raise mail
        else:
            self._reader.tell(mail)

    def idle(self) -> None:
        self._reader.tell("idle")

    def last_words(self, unread: list[Any]) -> None:
        self._reader.tell(("unread", unread))


class ApartRecorder(Recorder):
    apart = True


class Bench:
    def __init__(self, host: ThreadHost | None = None, kind: type[Recorder] = Recorder) -> None:
        self.kind = kind
        self.reader: Probe[Any] = Probe()
        self.owner: Probe[Down] = Probe()
        self.host = host or ThreadHost()

    def start(self, **how: Any) -> Any:
        child = self.host.start(self.kind(self.reader, **how), "recorder", self.owner, "key")
        assert self.reader.next() == "begun"
        return child


@pytest.fixture(params=[Recorder, ApartRecorder])
def bench(request: pytest.FixtureRequest) -> Bench:
    return Bench(kind=request.param)


def test_an_actor_gets_its_mail_in_order(bench: Bench) -> None:
    child, gate = bench.start(), threading.Event()
    child.tell(gate)
    for number in range(50):
        child.tell(number)
    gate.set()
    assert [bench.reader.next() for _ in range(51)] == [*range(50), "idle"]


def test_it_is_idle_only_when_its_inbox_has_run_empty(bench: Bench) -> None:
    child = bench.start()
    for number in range(2):
        child.tell(number)
        assert (bench.reader.next(), bench.reader.next()) == (number, "idle")


def test_a_stop_queues_behind_the_mail_and_is_no_death(bench: Bench) -> None:
    child, gate = bench.start(), threading.Event()
    for mail in (gate, "last"):
        child.tell(mail)
    child.stop()
    child.tell("too late")
    gate.set()
    assert bench.reader.next() == "last"
    second = Bench(bench.host, bench.kind)
    second.start().tell("die")
    second.owner.next()
    assert "too late" not in bench.reader.drain()
    assert bench.owner.drain() == []


def test_a_death_comes_after_the_last_words_which_get_all_mail_that_died_with_it(bench: Bench) -> None:
    child, gate = bench.start(), threading.Event()
    for mail in (gate, "read", "die", "unread 1", "unread 2"):
        child.tell(mail)
    child.stop()
    gate.set()
    down = bench.owner.next()
    assert down.key == "key"
    assert bench.reader.drain() == ["read", ("unread", ["die", "unread 1", "unread 2"])]


def test_telling_the_dead_neither_fails_nor_blocks(bench: Bench) -> None:
    child = bench.start()
    child.tell("die")
    bench.owner.next()
    for _ in range(100):
        child.tell("x")
    child.stop()
    assert bench.owner.drain() == []


def test_a_death_in_begin_reaches_the_owner_too(bench: Bench) -> None:
    bench.start(begins=False)
    down = bench.owner.next()
    assert (down.key, down.error.startswith("ValueError in test_threads.py:")) == ("key", True)
    assert bench.reader.next() == ("unread", [])


@pytest.mark.parametrize(
    "exit_", [SystemExit("secret"), KeyboardInterrupt("secret"), GeneratorExit("secret")], ids=repr
)
def test_an_exit_ends_its_actor_and_no_other(bench: Bench, exit_: BaseException) -> None:
    other = Bench(bench.host, bench.kind)
    witness = other.start()
    bench.start().tell(exit_)
    bench.host.start(bench.kind(bench.reader, begins=False, begin_with=exit_), "recorder", bench.owner, "second")
    errors = {down.key: down.error for down in (bench.owner.next(), bench.owner.next())}
    assert set(errors) == {"key", "second"}
    assert all(" in test_threads.py:" in error and "secret" not in error for error in errors.values()), errors
    witness.tell("alive")
    assert other.reader.next() == "alive"


class SilentDeath(Recorder):
    def last_words(self, unread: list[Any]) -> None:
        raise RuntimeError("secret of last words")


def test_last_words_that_fail_still_reach_the_owner(bench: Bench) -> None:
    child = bench.host.start(SilentDeath(bench.reader), "recorder", bench.owner, 5)
    child.tell("die")
    down = bench.owner.next()
    assert down.key == 5
    assert "ValueError in" in down.error and "its last words failed: RuntimeError in" in down.error


def test_a_death_tells_the_kind_and_the_place_of_the_fault_but_no_value(
    bench: Bench, capfd: pytest.CaptureFixture[str]
) -> None:
    bench.start().tell("die")
    error = bench.owner.next().error
    assert error.startswith("ValueError in test_threads.py:") and "secret" not in error
    captured = capfd.readouterr()
    assert "secret" not in captured.out + captured.err


def test_an_error_without_a_trace_is_named_all_the_same() -> None:
    assert describe(None) == "unknown error"
    assert describe(KeyError("secret")) == "KeyError"


def test_traced_mail_is_told_with_sender_and_receiver_before_it_arrives() -> None:
    traced: Probe[Any] = Probe()
    bench = Bench(ThreadHost(lambda sender, receiver, mail: traced.tell((sender, receiver, mail))))
    child = bench.start()
    start_named_pump("my pump", lambda: child.tell("hello"))
    assert bench.reader.next() == "hello"
    assert traced.drain() == [("my pump", "recorder", "hello")]
    assert child.name == "recorder"
    child.stop()


def test_a_traced_actor_tells_under_its_own_name() -> None:
    traced: Probe[Any] = Probe()
    bench = Bench(ThreadHost(lambda sender, receiver, mail: traced.tell((sender, receiver, mail))))
    first, second = bench.start(), bench.start()
    first.tell(Forward(second))
    while bench.reader.next() != "forwarded":
        pass  # either may have been idle before
    assert ("recorder", "recorder", "forwarded") in traced.drain()


@pytest.mark.parametrize("start", [start_pump, start_named_pump])
def test_a_pump_runs_beside_its_actor_and_does_not_keep_the_process(start: Any) -> None:
    seen, gate = Probe[Any](), threading.Event()

    def work() -> None:
        assert gate.wait(10)
        seen.tell(threading.current_thread().daemon)

    start("the pump", work)
    gate.set()
    assert seen.next() is True
