"""One shell task whose command is played by hand: what its call is shown, what is kept, what its desk is told."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from actors.mail import (
    Arm,
    CommandBegun,
    CommandExited,
    CommandOutput,
    CommandSwept,
    HideOutput,
    InputTaken,
    InputTyped,
    InputTyping,
    OutputRead,
    ReadOutput,
    ResizeTerminal,
    ShellTaskPlan,
    StopCommand,
    TaskEnded,
    TaskOverLimit,
    TaskReaped,
    TaskSpawned,
    TaskUncleaned,
    Tick,
    Ticket,
    ToolUpdated,
    TypeInput,
)
from actors.probe import Probe
from actors.pump import Window
from actors.task.retained import ROLLING_BYTES
from actors.task.shell import ShellTask
from actors.task.view import OutputView
from protocol import tasks as t

CAP = 60_000
TICKET = Ticket(1, b"", "send_task_input")


class Bench:
    """A task that has begun, and the command that it was given. A cap of `CAP` bytes stands for that of 5 GiB."""

    def __init__(self, folder: Path, *, pty: bool = False) -> None:
        self.folder = folder
        self.desk, self.call, self.clock = Probe[Any](), Probe[Any](), Probe[Any]()
        self.asked: list[Any] = []
        self.has_terminal = True
        self.seconds = 0.0
        ref = t.TaskRef("owner-1", "task-1-0", "attempt-1-0-1", "1")
        plan = ShellTaskPlan("make", "/", "s", {}, 300, pty)
        self.task = ShellTask(
            ref, plan, self.desk, self.call, self.clock, lambda *_: self, self._open_log, lambda: self.seconds
        )
        self.task.me = Probe[Any]()
        self.task._retained._cap = CAP
        self.task.begin()

    def _open_log(self) -> tuple[int, str]:
        path = str(self.folder / "log")
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL), path

    # -- the command

    def stop(self) -> None:
        self.asked.append("stop")

    def kill(self) -> None:
        self.asked.append("kill")

    def abandon(self) -> None:
        self.asked.append("abandon")

    def type(self, data: bytes) -> None:
        self.asked.append(data)

    def resize(self, columns: int, rows: int) -> bool:
        self.asked.append((columns, rows))
        return self.has_terminal

    # -- what comes of it

    def tell(self, *mails: Any) -> list[Any]:
        """What the desk was told meanwhile."""
        for mail in mails:
            self.task.receive(mail)
        return self.desk.drain()

    def puts(self, *chunks: bytes) -> list[Any]:
        return self.tell(*(CommandOutput("stdout", chunk) for chunk in chunks))

    def shown(self) -> list[str]:
        """The snapshots since the last look."""
        found = [mail.partial.content for mail in self.call.drain() if isinstance(mail, ToolUpdated)]
        return ["".join(block.text for block in content) for content in found]

    def read(self, *, page: bool = False) -> OutputView:
        (mail,) = self.tell(ReadOutput(1, page))
        assert isinstance(mail, OutputRead)
        return mail.view


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_that_it_has_begun_ended_and_left_nothing_are_three_facts(bench: Bench) -> None:  # 2.9
    assert bench.tell(CommandBegun()) == [TaskSpawned("task-1-0")]
    bench.puts(b"out\n")
    (ended,) = bench.tell(CommandExited(3))
    assert isinstance(ended, TaskEnded) and ended.view.cut.content == "out\n"
    assert ended.result == t.TaskCompleted(t.OutputRef("owner-1", "task-1-0", "output-task-1-0", "4"), 3)
    assert bench.tell(CommandSwept(("process group 7",))) == [TaskUncleaned("task-1-0", ("process group 7",))]
    (reaped,) = bench.tell(CommandSwept())
    assert isinstance(reaped, TaskReaped) and reaped.task_id == "task-1-0"


@pytest.mark.parametrize(
    ("exited", "code", "message"),
    [
        (CommandExited(None, error="no such shell"), "SpawnFailed", "no such shell"),
        (CommandExited(None, error="no job", failure="ContainmentUnavailable"), "ContainmentUnavailable", "no job"),
        (CommandExited(None, 9), "CommandKilled", "Command was killed by signal 9"),
    ],
)
def test_what_could_not_start_or_was_killed_has_failed(
    bench: Bench, exited: CommandExited, code: str, message: str
) -> None:
    (ended,) = bench.tell(exited)
    assert (ended.result.code, ended.result.message) == (code, message)


def test_snapshots_begin_empty_keep_100_ms_apart_and_end_whole(bench: Bench) -> None:  # 1.1
    assert bench.shown() == [""]
    bench.puts(b"one\n", b"two\n")
    assert bench.shown() == ["one\n"] and bench.clock.drain() == [Arm("snapshot", 100, bench.task.me)]
    bench.tell(Tick("snapshot"))
    assert bench.shown() == ["one\ntwo\n"]
    bench.puts(b"three\n")
    assert bench.shown() == []
    bench.tell(CommandExited(0))
    assert bench.shown() == ["one\ntwo\nthree\n"], "the rest is shown before the result"
    bench.tell(Tick("snapshot"))
    assert bench.shown() == []


def test_a_call_that_has_its_answer_is_shown_nothing_more(bench: Bench) -> None:
    bench.puts(b"one\n")
    bench.shown()
    bench.tell(HideOutput(), Tick("snapshot"))
    bench.puts(b"two\n")
    bench.tell(Tick("snapshot"), CommandExited(0))
    assert bench.shown() == []


def test_each_wait_that_yields_goes_on_where_the_one_before_ended(bench: Bench) -> None:  # 1.8
    bench.puts(b"x" * 8192 + b"rest")
    first, second, third = (bench.read(page=True).page for _ in range(3))
    assert first is not None and (len(first.data), first.more) == (8192, True)
    assert second is not None and (second.data, second.more) == (b"rest", False)
    assert third is not None and third.data == b"", "it has caught up"
    bench.puts(b"more")
    assert bench.read().cut.content.endswith("restmore"), "a look that is no wait takes no page"
    again = bench.read(page=True).page
    assert again is not None and again.data == b"more"


def test_output_over_the_cap_is_told_once(bench: Bench) -> None:  # rows 22, 27
    assert bench.puts(b"x" * CAP) == []
    assert bench.puts(b"y", b"z") == [TaskOverLimit("task-1-0")]


def test_a_terminal_over_the_cap_runs_on_with_a_gap_that_may_split_a_character(tmp_path: Path) -> None:  # row 26
    bench = Bench(tmp_path, pty=True)
    assert bench.puts(b"x" * (CAP - 1) + "€".encode(), b"z" * ROLLING_BYTES) == []
    assert (tmp_path / "log").read_bytes() == b"x" * (CAP - 1) + b"\xe2", "the file grows no more"
    ref = bench.read().ref
    assert ref.byte_count == str(CAP + 2 + ROLLING_BYTES)
    assert ref.omitted_ranges == (t.OmittedRange(str(CAP), str(CAP + 2)),)
    assert bench.asked == []


def test_acks_are_settled_as_output_is_taken(bench: Bench) -> None:
    window = Window(max_messages=1)
    bench.tell(CommandOutput("stdout", b"a", window.offer(1)))
    assert window.offer(1) is not None


def test_a_stop_is_gentle_unless_it_is_to_be_at_once(bench: Bench) -> None:
    bench.tell(StopCommand(at_once=False), StopCommand(at_once=True))
    assert bench.asked == ["stop", "kill"]


def test_only_a_terminal_that_lives_takes_input(tmp_path: Path, bench: Bench) -> None:  # 2.8
    typed = TypeInput(TICKET, "one", b"hello")
    assert bench.tell(typed) == [InputTyped(TICKET, 0, "StdinClosed: the task takes no input")]
    terminal = Bench(tmp_path, pty=True)
    assert terminal.tell(typed) == [] and terminal.asked == [b"hello"]
    assert terminal.tell(InputTaken(2)) == [
        InputTyped(TICKET, 2, "InputDeliveryUnknown: operationId=one; acceptedBytes=2")
    ]
    assert terminal.tell(CommandExited(0), typed)[1:] == [InputTyped(TICKET, 0, "TaskTerminal: the task has ended")]


def test_what_is_still_typed_when_the_task_ends_is_answered_with_what_was_taken(tmp_path: Path) -> None:  # row 24
    terminal = Bench(tmp_path, pty=True)
    inputs = [TypeInput(TICKET, name, name.encode() * 300) for name in ("one", "two", "three")]
    terminal.tell(*inputs, InputTyping(256), InputTyping(512), InputTaken(900), InputTyping(256))
    terminal.task.ended()
    unknown = "InputDeliveryUnknown: operationId={}; acceptedBytes={}"
    assert terminal.desk.drain() == [
        InputTyped(TICKET, 256, unknown.format("two", 256)),
        InputTyped(TICKET, 0, unknown.format("three", 0)),
    ]


def test_only_a_terminal_that_lives_has_a_size(tmp_path: Path, bench: Bench) -> None:  # row 25
    sized = ResizeTerminal(TICKET, 100, 30)
    assert bench.tell(sized) == [InputTyped(TICKET, 0, "StdinClosed: the task has no terminal")]
    terminal = Bench(tmp_path, pty=True)
    assert terminal.tell(sized) == [InputTyped(TICKET, 0)] and terminal.asked == [(100, 30)]
    terminal.has_terminal = False
    over = [InputTyped(TICKET, 0, "TaskTerminal: the task has ended")]
    assert terminal.tell(sized) == over
    assert terminal.tell(CommandExited(0), sized)[1:] == over and len(terminal.asked) == 2
    assert bench.asked == []


def test_time_is_counted_up_to_the_end_of_the_command_and_no_longer(bench: Bench) -> None:
    bench.seconds = 2.5
    assert bench.read().wall_ms == 2500
    bench.seconds = 3.0
    (ended,) = bench.tell(CommandExited(0))
    bench.seconds = 9.0
    (reaped,) = bench.tell(CommandSwept())
    assert ended.view.wall_ms == reaped.view.wall_ms == 3000
