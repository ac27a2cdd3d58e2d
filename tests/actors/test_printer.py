"""The Printer between a session and the Writer: what it passes on, what it tells OneShot, whose acks it settles."""

from __future__ import annotations

from typing import Any

import pytest

from actors.mail import Arm, CloseWriter, ExtensionFailed, PromptEnded, Record, Tick, Ticket, Write
from actors.print_outcome import Outcome
from actors.print_stream import INTERVAL_MS, DeltaForm, Form, SnapshotForm, TextForm
from actors.printer import HELD_ACKS, Printer
from actors.probe import Probe
from actors.pump import Window

START = b'{"type":"message_start","message":{"role":"assistant","content":[],"usage":{}}}\n'
DELTA = (
    b'{"type":"message_update","usage":{},"assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":"x"}}\n'
)
SETTLED = b'{"type":"agent_settled"}\n'


def end(stop: str) -> bytes:
    message = f'{{"role":"assistant","content":[{{"type":"text","text":"hi"}}],"stopReason":"{stop}"}}'
    return f'{{"type":"message_end","message":{message}}}\n'.encode()


class Bench:
    def __init__(self, form: Form) -> None:
        self.writer, self.clock, self.one_shot = Probe[Any](), Probe[Any](), Probe[Any]()
        self.printer = Printer(form, Outcome(), self.writer, self.clock, self.one_shot)
        self.printer.me = Probe()

    def write(self, *lines: bytes, **more: Any) -> None:
        self.printer.receive(Write(tuple(map(Record, lines)), **more))

    def written(self) -> bytes:
        writes = [mail for mail in self.writer.drain() if isinstance(mail, Write)]
        return b"".join(record.line for write in writes for record in write.records)


def test_a_response_is_not_shown_and_its_serial_goes_on_to_the_writer() -> None:
    bench = Bench(DeltaForm(b""))
    bench.printer.receive(Write((Ticket(4, b"", "prompt").ok(),)))
    assert bench.writer.drain() == [Write((Record(b"", 4),))]
    assert bench.one_shot.drain() == []


def test_a_refused_prompt_is_told_and_leaves_stdout_empty() -> None:
    bench = Bench(DeltaForm(b'{"type":"session"}\n'))
    bench.printer.receive(Write((Ticket(1, b"", "prompt").failed("No key"),)))
    bench.printer.receive(CloseWriter())
    assert bench.one_shot.drain() == [PromptEnded(False, "No key", refused=True)]
    assert bench.writer.drain() == [Write((Record(b"", 1),)), CloseWriter()]


@pytest.mark.parametrize("form", [TextForm(), DeltaForm(b""), SnapshotForm(b"")])
def test_the_error_of_an_extension_is_told(form: Form) -> None:
    bench = Bench(form)
    error = b'{"type":"extension_error","extensionPath":"skill:x@y","event":"skill_expansion","error":"none"}\n'
    bench.write(error)
    assert bench.one_shot.drain() == [ExtensionFailed("skill:x@y", "none")]
    assert bench.written() == (b"" if type(form) is TextForm else error)


@pytest.mark.parametrize(
    ("stop", "told"),
    [("stop", PromptEnded(True)), ("aborted", PromptEnded(False, "Request aborted"))],
)
def test_the_end_of_a_run_is_told_with_what_the_last_message_is_worth(stop: str, told: PromptEnded) -> None:
    bench = Bench(DeltaForm(b""))
    bench.write(end(stop), SETTLED)
    assert bench.one_shot.drain() == [told]


def test_the_text_of_the_last_answer_is_written_before_the_writer_is_closed() -> None:
    bench = Bench(TextForm())
    bench.write(end("stop"), SETTLED)
    assert bench.written() == b""
    bench.printer.receive(CloseWriter())
    assert bench.writer.drain() == [Write((Record(b"hi\n"),)), CloseWriter()]


def test_a_delta_that_waits_arms_the_clock_once_and_is_shown_at_the_tick() -> None:
    bench = Bench(SnapshotForm(b""))
    bench.write(START)
    bench.write(DELTA)
    bench.write(DELTA)
    (armed,) = bench.clock.drain()
    assert armed == Arm(armed.key, INTERVAL_MS, bench.printer.me)
    assert bench.written() == START
    bench.printer.receive(Tick(armed.key))
    assert b'"delta":"xx"' in bench.written()


def test_what_waits_is_not_lost_when_the_house_closes() -> None:
    bench = Bench(SnapshotForm(b""))
    bench.write(START, DELTA)
    bench.printer.receive(CloseWriter())
    assert b'"delta":"x"' in bench.written()


def test_a_boundary_of_a_burst_stays_one() -> None:
    bench = Bench(DeltaForm(b""))
    bench.write(SETTLED, boundary=True)
    assert bench.writer.drain() == [Write((Record(SETTLED),), boundary=True)]


def test_acks_of_merged_deltas_are_settled_when_their_snapshot_is_written() -> None:
    bench, window = Bench(SnapshotForm(b"")), Window(max_messages=2)
    bench.write(START)
    bench.write(DELTA, ack=window.admit(1))
    bench.write(DELTA, ack=window.admit(1))
    bench.printer.receive(Tick(bench.clock.next().key))
    shown = [mail for mail in bench.writer.drain() if mail.ack is not None]
    assert len(shown) == 1
    assert not window._fits(1)
    shown[0].ack.settle()
    assert window._messages == 0


def test_a_client_that_reads_is_not_slowed_down_by_what_waits() -> None:
    """Only `HELD_ACKS` of them are held; a pump that is ahead by more goes on."""
    bench, window = Bench(SnapshotForm(b"")), Window()
    bench.write(START)
    for _ in range(1000):
        bench.write(DELTA, ack=window.admit(1))
    assert window._messages == HELD_ACKS


def test_acks_of_what_is_not_shown_are_settled_at_once() -> None:
    bench, window = Bench(TextForm()), Window()
    bench.write(START, DELTA, ack=window.admit(1))
    assert window._messages == 0
