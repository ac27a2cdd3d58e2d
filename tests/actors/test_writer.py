"""The way out: order, bursts, one response for each command, acks, and a client that has gone."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.mail import Answered, CloseWriter, Record, StdoutClosed, Write, WriterClosed
from actors.probe import Probe
from actors.pump import Ack, Window
from actors.writer import BURST_BYTES, AnsweredSerials, Writer


class LoggedAck(Ack):
    """Writes down when it is settled."""

    def __init__(self, order: list[str]) -> None:
        super().__init__(Window(), 0)
        self._order = order

    def settle(self) -> None:
        self._order.append("acked")


class Bench:
    """A writer whose bursts are kept; from burst number `breaks_at` on the pipe is broken."""

    def __init__(self, breaks_at: int | None = None) -> None:
        self.root: Probe[Any] = Probe()
        self.intake: Probe[Any] = Probe()
        self.bursts: list[bytes] = []
        self.tries = 0
        self.order: list[str] = []
        self.first = 0
        self._breaks_at = breaks_at
        self.writer = Writer(self._write, self.root, self._first_written)
        self.writer.me = Probe()
        self.writer.connect(self.intake)

    def ack(self) -> Ack:
        return LoggedAck(self.order)

    def _write(self, burst: bytes) -> None:
        self.tries += 1
        self.order.append("written")
        if self._breaks_at is not None and len(self.bursts) >= self._breaks_at:
            raise BrokenPipeError(32, "Broken pipe")
        self.bursts.append(burst)

    def _first_written(self) -> None:
        self.first += 1

    def tell(self, *records: Record, **how: Any) -> None:
        self.writer.receive(Write(records, **how))


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_what_was_told_before_the_inbox_ran_empty_is_one_burst_in_order(bench: Bench) -> None:
    bench.tell(Record(b"1\n"), Record(b"2\n"))
    bench.tell(Record(b"3\n"))
    assert bench.bursts == []
    bench.writer.idle()
    bench.tell(Record(b"4\n"))
    bench.writer.idle()
    assert bench.bursts == [b"1\n2\n3\n", b"4\n"]


def test_an_idle_writer_with_nothing_to_write_writes_nothing(bench: Bench) -> None:
    bench.writer.idle()
    bench.tell()
    bench.writer.idle()
    assert bench.tries == 0


def test_a_boundary_ends_the_burst_after_its_records(bench: Bench) -> None:
    bench.tell(Record(b"agent_end\n"), boundary=True)
    bench.tell(Record(b"agent_settled\n"))
    bench.writer.idle()
    assert bench.bursts == [b"agent_end\n", b"agent_settled\n"]


def test_a_large_burst_leaves_even_while_mail_waits(bench: Bench) -> None:
    half = b"x" * (BURST_BYTES // 2) + b"\n"
    bench.tell(Record(half))
    assert bench.bursts == []
    bench.tell(Record(half))
    assert bench.bursts == [half + half]


def test_only_the_first_response_to_a_command_passes(bench: Bench) -> None:
    bench.tell(Record(b"first\n", 1))
    bench.tell(Record(b"second\n", 1), Record(b"event\n"), Record(b"event\n"))
    bench.writer.idle()
    bench.tell(Record(b"third\n", 1))
    bench.writer.idle()
    assert bench.bursts == [b"first\nevent\nevent\n"]


def test_intake_hears_of_answers_only_once_their_bytes_have_left(bench: Bench) -> None:
    bench.tell(Record(b"b\n", 2), Record(b"event\n"), Record(b"a\n", 1))
    assert bench.intake.drain() == []
    bench.writer.idle()
    assert bench.intake.drain() == [Answered((2, 1))]
    bench.tell(Record(b"event\n"))
    bench.writer.idle()
    assert bench.intake.drain() == []


def test_acks_are_settled_once_the_bytes_have_left(bench: Bench) -> None:
    bench.tell(Record(b"delta\n"), ack=bench.ack())
    bench.tell(ack=bench.ack())
    assert bench.order == []
    bench.writer.idle()
    assert bench.order == ["written", "acked", "acked"]


def test_a_broken_pipe_is_told_once_and_still_settles_acks_and_answers() -> None:
    bench, window = Bench(breaks_at=0), Window(max_messages=1)
    for serial in (1, 2):
        bench.tell(Record(b"x\n", serial), ack=window.admit(2))
        bench.writer.idle()
    assert [type(mail) for mail in bench.root.drain()] == [StdoutClosed]
    assert bench.intake.drain() == [Answered((1,)), Answered((2,))]
    assert bench.tries == 1
    assert window.admit(1) is not None


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (BrokenPipeError(32, "Broken pipe"), ""),
        (ConnectionResetError(104, "Connection reset"), ""),
        (OSError(28, "No space left on device"), "No space left on device"),
        (OSError("odd"), "odd"),
    ],
)
def test_why_nothing_can_be_written_is_told_unless_the_client_went_away(error: OSError, told: str) -> None:
    def fail(burst: bytes) -> None:
        raise error

    root = Probe[Any]()
    writer = Writer(fail, root)
    writer.receive(Write((Record(b"x\n"),), boundary=True))
    assert root.drain() == [StdoutClosed(told)]


def test_closing_writes_what_is_pending_first(bench: Bench) -> None:
    bench.tell(Record(b"last\n", 1))
    bench.writer.receive(CloseWriter())
    assert bench.bursts == [b"last\n"]
    assert bench.root.drain() == [WriterClosed()]


def test_the_first_burst_is_announced_once(bench: Bench) -> None:
    bench.writer.idle()
    assert bench.first == 0
    for _ in range(2):
        bench.tell(Record(b"x\n"))
        bench.writer.idle()
    assert bench.first == 1


@settings(max_examples=100)
@given(st.lists(st.integers(1, 12), max_size=60))
def test_a_serial_is_new_exactly_once_in_whatever_order_serials_come(serials: list[int]) -> None:
    answered, seen = AnsweredSerials(), set[int]()
    for serial in serials:
        assert answered.add(serial) is (serial not in seen)
        seen.add(serial)
