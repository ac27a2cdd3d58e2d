"""What a subagent tells those who watch it: nothing twice, nothing unasked, and no more than the client takes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from actors.mail import (
    AgentSaid,
    Arm,
    ChildOpened,
    ChildSaid,
    ReadTranscript,
    Record,
    SessionGone,
    StopAgent,
    TaskReaped,
    Tick,
    TranscriptRead,
    WatchTranscript,
    Write,
)
from actors.probe import Probe
from actors.task.subagent.actor import Subagent
from actors.task.subagent.transcript_side import SHOW
from protocol.codec import decode_any, encode
from tests.actors.task.agents import plan


def message(text: str) -> bytes:
    said = {"role": "user", "content": text, "timestamp": 1}
    return encode({"type": "message_end", "message": said}) + b"\n"


def delta(text: str) -> bytes:
    change = {"type": "text_delta", "contentIndex": 0, "delta": text}
    return encode({"type": "message_update", "usage": {}, "assistantMessageEvent": change}) + b"\n"


class Bench:
    """A subagent whose child is a probe."""

    def __init__(self) -> None:
        self.desk, self.clock, self.child = Probe[Any](), Probe[Any](), Probe[Any]()
        files: Any = SimpleNamespace(open=lambda *_: None, keep=lambda *_: None)
        ref: Any = SimpleNamespace(task_id="task-1")
        self.agent = Subagent(
            ref, plan(artifacts=False, output=None), self.desk, self.clock, files, lambda *_: self.child, lambda: 0.0
        )
        self.agent.me = Probe()
        self.agent.begin()
        journal = SimpleNamespace(path="/child.jsonl", close=lambda: None)
        opened: Any = SimpleNamespace(journal=journal, entries=[1, 2])
        self.tell(ChildOpened(opened, SimpleNamespace(warnings=())))  # type: ignore[arg-type]

    def tell(self, *mails: Any) -> None:
        for mail in mails:
            self.agent.receive(mail)

    def says(self, *lines: bytes) -> None:
        self.tell(*(ChildSaid(Write((Record(line),))) for line in lines))

    def told(self) -> list[AgentSaid]:
        return [mail for mail in self.desk.drain() if isinstance(mail, AgentSaid)]

    def armed(self) -> int:
        return sum(isinstance(mail, Arm) and mail.key == SHOW for mail in self.clock.drain())


def texts(said: AgentSaid) -> list[str]:
    return [decode_any(entry)["text"] for entry in said.entries]


def test_nothing_is_told_or_armed_while_nobody_watches() -> None:
    bench = Bench()
    bench.says(message("a"), delta("b"))
    assert (bench.told(), bench.armed()) == ([], 0)


def test_what_was_said_before_is_not_new_but_what_is_being_said_is_shown_at_once() -> None:
    bench = Bench()
    bench.says(message("a"), delta("so far"))
    bench.tell(WatchTranscript(True))
    (said,) = bench.told()
    assert (said.first, texts(said), said.live and said.live.text) == (1, [], "so far")


def test_it_is_told_at_most_once_a_tick_and_all_of_it() -> None:
    bench = Bench()
    bench.tell(WatchTranscript(True))
    said = bench.told()
    said[0].ack.settle()
    bench.says(message("a"), message("b"), delta("c"), delta("d"))
    assert (bench.told(), bench.armed()) == ([], 1)
    bench.tell(Tick(SHOW))
    (now,) = bench.told()
    assert (now.first, texts(now), now.live and now.live.text) == (0, ["a", "b"], "cd")
    now.ack.settle()
    bench.tell(Tick(SHOW))
    assert bench.told() == []  # nothing is new


def test_a_client_that_does_not_read_is_told_less_and_then_what_is_new_since() -> None:
    bench = Bench()
    bench.tell(WatchTranscript(True))
    (first,) = bench.told()
    for text in "abc":
        bench.says(message(text))
        bench.tell(Tick(SHOW))
    assert bench.told() == []
    assert bench.armed()  # it is tried again
    first.ack.settle()
    bench.tell(Tick(SHOW))
    (said,) = bench.told()
    assert texts(said) == ["a", "b", "c"]


def test_nobody_is_told_any_more_once_the_watching_ends() -> None:
    bench = Bench()
    bench.tell(WatchTranscript(True))
    for said in bench.told():
        said.ack.settle()
    bench.tell(WatchTranscript(False))
    bench.says(message("a"))
    bench.tell(Tick(SHOW))
    assert bench.told() == []


def test_the_last_is_told_before_the_end_even_if_nobody_reads() -> None:
    bench = Bench()
    bench.tell(WatchTranscript(True), StopAgent())
    bench.told()
    bench.says(message("last"))
    bench.tell(ChildSaid(SessionGone(0, 0)))
    mails = bench.desk.drain()
    (said,) = [mail for mail in mails if isinstance(mail, AgentSaid)]
    (reaped,) = [mail for mail in mails if isinstance(mail, TaskReaped)]
    assert texts(said) == ["last"]
    assert mails.index(said) < mails.index(reaped)
    assert (reaped.view.history.total, reaped.view.history.inherited) == (1, 2)  # type: ignore[union-attr]


def test_whoever_asks_is_told_what_there_is_and_where_the_rest_is() -> None:
    bench = Bench()
    bench.says(message("a"), delta("b"))
    bench.tell(ReadTranscript(7))
    (read,) = [mail for mail in bench.desk.drain() if isinstance(mail, TranscriptRead)]
    assert (read.number, read.history.total, read.history.path) == (7, 1, "/child.jsonl")
    assert read.live is not None and read.live.text == "b"
