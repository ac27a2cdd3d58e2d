"""One shell request: its deltas, its record at home, its one answer, and a cancel or a move in every phase."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from actors.mail import (
    BashFinished,
    BashRecorded,
    CancelShell,
    LeftBehind,
    NewHome,
    ShellEnded,
    ShellExited,
    ShellOutput,
    ShellPlan,
    Ticket,
)
from actors.probe import Probe
from actors.pump import Window
from actors.shell.actor import Shell
from actors.shell.spill import Spill


class Process:
    """Stands where the pump's process would: it only counts what is asked of it."""

    def __init__(self, leaves_children: bool) -> None:
        self.kills = 0
        self.closed = 0
        self._leaves_children = leaves_children

    def kill(self) -> None:
        self.kills += 1

    def close(self) -> bool:
        self.closed += 1
        return self._leaves_children

    def kill_group_leftovers(self) -> None:
        raise AssertionError("the desk does this")


class Bench:
    def __init__(
        self, folder: Path, *, id: bytes = b'"b1"', exclude: bool = False, leaves_children: bool = False
    ) -> None:
        self.home, self.desk, self.writer = Probe[Any](), Probe[Any](), Probe[Any]()
        self.process = Process(leaves_children)
        self.me: Probe[Any] = Probe()
        plan = ShellPlan("make", "/cwd", "s-1", {}, exclude)
        self.shell = Shell(
            Ticket(7, id, "bash"),
            plan,
            self.home,
            self.desk,
            self.writer,
            lambda plan, me: self.process,
            lambda session_id: Spill(str(folder), session_id, os.getuid(), lambda: "0123456789abcdef"),
            lambda: 1234,
        )
        self.shell.me = self.me
        self.shell.begin()

    def tell(self, *mails: Any) -> None:
        for mail in mails:
            self.shell.receive(mail)

    def finished(self) -> Any:
        """The record that its home was told."""
        (mail,) = self.home.drain()
        assert isinstance(mail, BashFinished)
        assert (mail.serial, mail.shell) == (7, self.me)
        return mail.message

    def records(self) -> list[dict[str, Any]]:
        return [json.loads(record.line) for write in self.writer.drain() for record in write.records]

    def answer(self) -> dict[str, Any]:
        (record,) = self.records()
        assert (record["type"], record["id"], record["command"]) == ("response", "b1", "bash")
        return record


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def output(data: bytes, channel: Any = "stdout") -> ShellOutput:
    return ShellOutput(channel, data)


def test_every_read_is_one_delta_with_its_channel_and_the_clients_id(bench: Bench) -> None:
    bench.tell(output(b"one"), output(b"two\n", "stderr"))
    update = {"type": "bash_execution_update", "id": "b1"}
    assert bench.records() == [
        {**update, "channel": "stdout", "delta": "one"},
        {**update, "channel": "stderr", "delta": "two\n"},
    ]


def test_a_request_without_id_has_deltas_without_id(tmp_path: Path) -> None:
    bench = Bench(tmp_path, id=b"")
    bench.tell(output(b"x"))
    assert "id" not in bench.records()[0]


def test_the_ack_of_a_read_travels_with_its_delta(bench: Bench) -> None:
    window = Window()
    ack = window.admit(1)
    bench.tell(ShellOutput("stdout", b"x", ack))
    assert bench.writer.next().ack is ack


def test_a_character_cut_between_two_reads_survives_on_its_channel(bench: Bench) -> None:
    euro = "€".encode()
    bench.tell(output(euro[:2]), output(b"!", "stderr"), output(euro[2:]))
    assert [record["delta"] for record in bench.records()] == ["", "!", "€"]


def test_the_answer_comes_only_after_the_home_session_has_recorded_the_result(bench: Bench) -> None:
    bench.tell(output(b"out\n"), output(b"err\n", "stderr"), ShellExited(3))
    bench.records()
    message = bench.finished()
    assert (message.command, message.output, message.exit_code) == ("make", "out\nerr\n", 3)
    assert (message.cancelled, message.truncated, message.timestamp) == (False, False, 1234)
    assert bench.desk.drain() == []
    bench.tell(BashRecorded())
    assert bench.answer()["data"] == {"output": "out\nerr\n", "exitCode": 3, "cancelled": False, "truncated": False}
    assert bench.desk.drain() == [ShellEnded(7)]
    assert bench.me.stopped


def test_a_death_by_signal_has_no_exit_code_and_is_not_cancelled(bench: Bench) -> None:
    bench.tell(ShellExited(None), BashRecorded())
    data = bench.answer()["data"]
    assert "exitCode" not in data and data["cancelled"] is False


def test_what_stays_out_of_the_context_is_recorded_so(tmp_path: Path) -> None:
    bench = Bench(tmp_path, exclude=True)
    bench.tell(ShellExited(0))
    assert bench.finished().exclude_from_context is True


def test_a_result_that_cannot_be_recorded_is_a_failure_that_carries_the_output(bench: Bench) -> None:
    bench.tell(output(b"precious\n"), ShellExited(0))
    bench.records()
    bench.tell(BashRecorded("disk full"))
    answer = bench.answer()
    assert answer["success"] is False
    assert answer["error"] == "disk full\nOutput that was not recorded:\nprecious\n"
    assert bench.desk.drain() == [ShellEnded(7)]


def test_a_command_that_cannot_start_is_one_failure_and_nothing_is_recorded(bench: Bench) -> None:
    bench.tell(ShellExited(None, "Working directory does not exist: /cwd"))
    assert bench.answer()["error"] == "Working directory does not exist: /cwd"
    assert bench.finished() is None
    bench.tell(BashRecorded())
    assert bench.records() == []
    assert bench.desk.drain() == [ShellEnded(7)]
    assert bench.me.stopped


# ---- cancel -------------------------------------------------------------------------------------------------------


def test_a_cancel_kills_and_the_answer_is_a_success_with_the_output_so_far(bench: Bench) -> None:
    bench.tell(output(b"so far\n"), CancelShell())
    assert bench.process.kills == 1
    assert bench.home.drain() == []
    bench.records()
    bench.tell(ShellExited(None), BashRecorded())
    assert bench.answer()["data"] == {"output": "so far\n", "cancelled": True, "truncated": False}
    assert bench.finished().cancelled is True


def test_a_cancel_that_crosses_a_clean_exit_counts_and_hides_the_exit_code(bench: Bench) -> None:
    bench.tell(CancelShell(), ShellExited(0), BashRecorded())
    data = bench.answer()["data"]
    assert data["cancelled"] is True and "exitCode" not in data


def test_a_cancel_before_the_process_stands_is_a_cancelled_result_too(bench: Bench) -> None:
    bench.tell(CancelShell(), ShellExited(None, "nothing was started"), BashRecorded())
    assert bench.answer()["data"] == {"output": "", "cancelled": True, "truncated": False}


def test_a_cancel_after_the_end_changes_nothing(bench: Bench) -> None:
    bench.tell(ShellExited(0), CancelShell())
    assert bench.process.kills == 0
    bench.tell(BashRecorded())
    assert bench.answer()["data"]["cancelled"] is False


# ---- homes --------------------------------------------------------------------------------------------------------


def test_a_result_goes_to_the_home_that_is_valid_when_it_ends(bench: Bench) -> None:
    new: Probe[Any] = Probe()
    bench.tell(NewHome(new))
    assert new.drain() == []
    bench.tell(ShellExited(0))
    assert bench.home.drain() == []
    assert isinstance(new.next(), BashFinished)


@pytest.mark.parametrize("exit", [ShellExited(0), ShellExited(None, "no such shell")])
def test_a_result_that_the_dead_home_had_not_recorded_is_told_to_the_new_one(bench: Bench, exit: ShellExited) -> None:
    new: Probe[Any] = Probe()
    bench.tell(exit)
    (first,) = bench.home.drain()
    bench.tell(NewHome(new))
    assert new.drain() == [first]
    bench.tell(BashRecorded())
    assert bench.desk.drain() == [ShellEnded(7)]
    assert len([record for record in bench.records() if record["type"] == "response"]) == 1


def test_a_result_that_nobody_is_left_to_record_is_a_failure_that_carries_the_output(bench: Bench) -> None:
    bench.tell(output(b"precious\n"), CancelShell(), BashRecorded("no session is left"))
    bench.records()
    assert bench.desk.drain() == []
    bench.tell(ShellExited(None))
    answer = bench.answer()
    assert (answer["success"], answer["error"].endswith("precious\n")) == (False, True)
    assert bench.home.drain() == []
    assert bench.desk.drain() == [ShellEnded(7)]


# ---- logs and leftovers -------------------------------------------------------------------------------------------


def test_a_large_output_is_kept_whole_in_a_log_and_told_by_its_tail(bench: Bench) -> None:
    lines = [b"%06d\n" % number for number in range(20_000)]
    for place in range(0, len(lines), 1000):
        bench.tell(output(b"".join(lines[place : place + 1000])))
    bench.tell(ShellExited(0))
    message = bench.finished()
    assert message.truncated and message.output.endswith("019999")
    assert Path(message.full_output_path).read_bytes() == b"".join(lines)


def test_an_output_cut_by_lines_alone_has_its_log_too(bench: Bench) -> None:
    bench.tell(output(b"\n" * 4000), ShellExited(0))
    message = bench.finished()
    assert message.truncated
    assert Path(message.full_output_path).read_bytes() == b"\n" * 4000


def test_without_room_for_a_log_the_command_still_succeeds(tmp_path: Path) -> None:
    (tmp_path / f"atomic-{os.getuid()}").symlink_to("/")
    bench = Bench(tmp_path)
    bench.tell(output(b"\n" * 4000), ShellExited(0), BashRecorded())
    data = bench.records()[-1]["data"]
    assert data["truncated"] is True and data["fullOutputPath"] is None


def test_background_processes_are_handed_to_the_desk(tmp_path: Path) -> None:
    bench = Bench(tmp_path, leaves_children=True)
    bench.tell(ShellExited(0))
    assert bench.desk.drain() == [LeftBehind(bench.process)]


def test_the_end_of_a_process_reaps_it(bench: Bench) -> None:
    bench.tell(ShellExited(0))
    assert bench.process.closed == 1
    assert bench.desk.drain() == []


@pytest.mark.parametrize(("mails", "kills"), [((), 1), ((ShellExited(0),), 0)])
def test_the_last_words_leave_no_process(bench: Bench, mails: tuple[Any, ...], kills: int) -> None:
    bench.tell(*mails)
    bench.shell.last_words([])
    assert (bench.process.kills, bench.process.closed) == (kills, 1 + len(mails))
