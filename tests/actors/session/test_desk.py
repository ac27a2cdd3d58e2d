"""The hand-over between sessions: who is current, who retires, who comes back, and what dies on the way."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from actors.base import Down
from actors.mail import (
    BashAdopted,
    BecomeCurrent,
    CloseDoor,
    CloseSessions,
    DescribeFork,
    DoorClosed,
    ForkReady,
    ForkRefused,
    HomeMoved,
    NoMoreCommands,
    OpenFirst,
    PassOn,
    Reload,
    Replace,
    Retire,
    Retired,
    SessionCurrent,
    SessionGone,
    SessionLeft,
    SessionReloaded,
    SessionsClosed,
    ShowSession,
    TargetFailed,
    TargetOpened,
    TasksBegun,
    Ticket,
)
from actors.probe import Probe
from actors.session.desk.actor import SessionDesk
from actors.session.desk.door_side import DOOR
from actors.session.desk.replacing import CLOSING
from actors.session.file import OpenedSession, SessionFileError, Stamps, new_session, open_session
from actors.session.journal import JournalError
from actors.session.target import Target
from protocol import commands as c

USER = (
    b'{"type":"message","id":"a1","parentId":null,"timestamp":"t",'
    b'"message":{"role":"user","content":"x","timestamp":1}}'
)
MODES: Any = {"steering": "all", "followUp": "one-at-a-time"}
numbers = itertools.count(1)
STAMPS = Stamps(
    lambda: 1767225600000 + next(numbers), lambda: f"session-{next(numbers)}", lambda: f"{next(numbers):08x}"
)


class Bench:
    """A desk whose sessions are probes, in start order from 1, on real files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.writer: Probe[Any] = Probe()
        self.root: Probe[Any] = Probe()
        self.intake: Probe[Any] = Probe()
        self.shells: Probe[Any] = Probe()
        self.sessions: dict[int, Probe[Any]] = {}
        self.opened: dict[int, OpenedSession] = {}
        self.asked: list[tuple[int, Target]] = []
        self.complaints: list[str] = []
        self.time = 0
        self._serial = 0
        self.desk = SessionDesk(
            self.new(),
            {"steering": "one-at-a-time", "followUp": "one-at-a-time"},
            self.writer,
            self.root,
            self._start,
            lambda serial, target, _: self.asked.append((serial, target)),
            lambda: self.time,
            self.complaints.append,
            self._open_door,
        )
        self.door: Probe[Any] = Probe()
        self.doors = 0
        self.no_door: OSError | None = None
        self.desk.me = Probe()
        self.desk.connect(self.intake, self.shells)
        self.tell(OpenFirst())
        self.intake.drain()

    def _start(self, key: int, opened: OpenedSession, *_: Any) -> Probe[Any]:
        self.sessions[key], self.opened[key] = Probe(), opened
        return self.sessions[key]

    def _open_door(self, _: Any) -> Probe[Any]:
        self.doors += 1
        if self.no_door is not None:
            raise self.no_door
        return self.door

    def new(self) -> OpenedSession:
        return new_session(STAMPS, str(self.folder), str(self.folder))

    def tell(self, mail: Any) -> None:
        self.desk.receive(mail)

    def replace(self, command: c.Command) -> Ticket:
        self._serial += 1
        ticket = Ticket(self._serial, b'"r%d"' % self._serial, c.command_name(command))
        self.tell(Replace(ticket, command))
        return ticket

    def answer(self) -> Any:
        """The data or the error of the one answer that came, straight or through the session that stays."""
        straight = [record for write in self.writer.drain() for record in write.records]
        (record,) = straight + [mail.response for mail in self._passed_on()]
        assert record.serial > 0
        answer = json.loads(record.line)
        return answer["data"] if answer["success"] else answer["error"]

    def _passed_on(self) -> list[PassOn]:
        found = []
        for session in self.sessions.values():
            for mail in session.drain():
                if isinstance(mail, PassOn):
                    found.append(mail)
                else:
                    session.tell(mail)
        return found

    def told(self, key: int) -> list[type]:
        return [type(mail) for mail in self.sessions[key].drain()]

    def replaced(self, successor: int) -> None:
        """One whole hand-over from whoever is current to a new session."""
        ticket = self.replace(c.NewSession())
        self.tell(TargetOpened(ticket.serial, self.new()))
        self.tell(Retired(successor - 1, MODES))
        assert self.answer() == {"cancelled": False}
        assert self.intake.drain() == [SessionCurrent(self.sessions[successor])]
        for session in self.sessions.values():
            session.drain()
        self.asked.clear()

    def path(self, key: int) -> str:
        path = self.opened[key].journal.path
        assert path is not None
        return path

    def is_locked(self, path: str) -> bool:
        try:
            open_session(path, STAMPS, "/").journal.close()
        except (JournalError, SessionFileError):
            return True
        return False


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_the_first_session_is_current_from_the_start(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.tell(OpenFirst())
    assert bench.intake.drain() == [SessionCurrent(bench.sessions[2])]


def test_the_new_session_stands_before_the_old_one_lets_go(bench: Bench) -> None:
    ticket = bench.replace(c.NewSession(parent_session="/parent"))
    ((serial, target),) = bench.asked
    assert (serial, target.kind, target.parent_session) == (ticket.serial, "new", "/parent")
    assert bench.told(1) == []
    bench.tell(TargetOpened(serial, bench.new()))
    assert bench.told(1) == [Retire]
    assert bench.writer.drain() == [] and bench.intake.drain() == []
    bench.tell(Retired(1, MODES))
    assert bench.sessions[2].drain() == [BecomeCurrent(MODES)]
    assert bench.intake.drain() == [SessionCurrent(bench.sessions[2])]
    assert bench.answer() == {"cancelled": False}


def test_an_empty_parent_counts_as_none(bench: Bench) -> None:
    bench.replace(c.NewSession(parent_session=""))
    assert bench.asked[0][1].parent_session is None


def test_a_target_that_cannot_be_opened_leaves_the_old_session_as_it_was(bench: Bench) -> None:
    ticket = bench.replace(c.SwitchSession(session_path="/nowhere/x.jsonl"))
    bench.tell(TargetFailed(ticket.serial, "no such file"))
    assert bench.answer() == "no such file"
    assert bench.told(1) == [] and bench.intake.drain() == []
    bench.replaced(2)


def test_notes_of_an_opened_file_go_to_stderr(bench: Bench) -> None:
    ticket = bench.replace(c.NewSession())
    opened = bench.new()
    opened.notes = ("Session file has 2 unreadable lines: /x",)
    bench.tell(TargetOpened(ticket.serial, opened))
    assert bench.complaints == ["Session file has 2 unreadable lines: /x"]


def test_a_retired_session_is_stopped_and_its_file_let_go_once_it_says_that_it_is_done(bench: Bench) -> None:
    bench.opened[1].journal.append(USER)
    assert bench.is_locked(bench.path(1))
    bench.replaced(2)
    assert not bench.sessions[1].stopped
    bench.tell(SessionGone(1, 1))
    assert bench.sessions[1].stopped
    assert not bench.is_locked(bench.path(1))


# ---- one live session per file ------------------------------------------------------------------------------------


def test_switching_to_a_session_that_still_retires_finds_that_one(bench: Bench) -> None:
    bench.replaced(2)
    bench.replace(c.SwitchSession(session_path=bench.path(1)))
    assert bench.asked == []
    assert bench.told(2) == [Retire]
    bench.tell(Retired(2, MODES))
    assert bench.told(1) == [BecomeCurrent]
    assert bench.intake.drain() == [SessionCurrent(bench.sessions[1])]
    assert bench.answer() == {"cancelled": False}


def test_a_session_that_was_done_but_is_called_back_lives_on(bench: Bench) -> None:
    bench.replaced(2)
    bench.replace(c.SwitchSession(session_path=bench.path(1)))
    bench.tell(SessionGone(1, 1))  # crossed the command on its way
    assert not bench.sessions[1].stopped
    bench.tell(Retired(2, MODES))
    bench.tell(SessionGone(1, 1))  # and again: it has not read that it is current
    assert not bench.sessions[1].stopped
    assert bench.answer() == {"cancelled": False}
    bench.replace(c.Clone())
    assert DescribeFork in bench.told(1)


def test_a_session_called_back_retires_again_like_any_other(bench: Bench) -> None:
    bench.replaced(2)
    bench.replace(c.SwitchSession(session_path=bench.path(1)))
    bench.tell(Retired(2, MODES))
    bench.answer()
    ticket = bench.replace(c.NewSession())
    bench.tell(TargetOpened(ticket.serial, bench.new()))
    bench.tell(Retired(1, MODES))
    bench.tell(SessionGone(1, 2))
    assert not bench.sessions[1].stopped
    bench.tell(SessionGone(1, 3))
    assert bench.sessions[1].stopped


def test_switching_to_the_current_file_reloads_it_in_place(bench: Bench) -> None:
    ticket = bench.replace(c.SwitchSession(session_path=bench.path(1)))
    assert bench.sessions[1].drain() == [Reload(ticket)]
    assert bench.asked == [] and bench.writer.drain() == []
    bench.tell(SessionReloaded(ticket))
    assert bench.answer() == {"cancelled": False}


def test_a_reload_that_fails_is_answered_so(bench: Bench) -> None:
    ticket = bench.replace(c.SwitchSession(session_path=bench.path(1)))
    bench.tell(SessionReloaded(ticket, "unreadable"))
    assert bench.answer() == "unreadable"


def test_a_path_through_a_link_is_the_same_file(bench: Bench, tmp_path: Path) -> None:
    bench.opened[1].journal.append(USER)
    (tmp_path / "link.jsonl").symlink_to(bench.path(1))
    bench.replace(c.SwitchSession(session_path=str(tmp_path / "link.jsonl")))
    assert bench.told(1) == [Reload]


def test_an_import_goes_into_the_folder_of_the_session_under_its_own_name(bench: Bench, tmp_path: Path) -> None:
    bench.replace(c.ImportSession(input_path="/elsewhere/i.jsonl", cwd_override="/c"))
    ((_, target),) = bench.asked
    assert (target.kind, target.path, target.cwd) == ("import", "/elsewhere/i.jsonl", "/c")
    assert target.destination == str(tmp_path / "i.jsonl")


def test_an_import_onto_a_live_file_is_refused_by_name(bench: Bench) -> None:
    bench.replace(c.ImportSession(input_path="/elsewhere/" + Path(bench.path(1)).name))
    assert bench.path(1) in bench.answer()
    assert bench.asked == []


def test_importing_a_live_file_onto_itself_is_a_switch_to_it(bench: Bench) -> None:
    bench.replaced(2)
    bench.replace(c.ImportSession(input_path=bench.path(1)))
    bench.tell(Retired(2, MODES))
    assert bench.told(1) == [BecomeCurrent]


# ---- forks --------------------------------------------------------------------------------------------------------


def test_a_fork_begins_with_the_lines_that_the_session_tells_and_answers_with_its_text(bench: Bench) -> None:
    ticket = bench.replace(c.Fork(entry_id="e7"))
    assert bench.sessions[1].drain() == [DescribeFork(ticket, "e7")]
    bench.tell(ForkReady(ticket, (USER,), "/parent", "again"))
    ((serial, target),) = bench.asked
    assert (target.kind, target.lines, target.parent_session) == ("fork", (USER,), "/parent")
    bench.tell(TargetOpened(serial, bench.new()))
    bench.tell(Retired(1, MODES))
    assert bench.answer() == {"cancelled": False, "text": "again"}


def test_a_clone_has_no_text(bench: Bench) -> None:
    ticket = bench.replace(c.Clone())
    assert bench.sessions[1].drain() == [DescribeFork(ticket, None)]
    bench.tell(ForkReady(ticket, (USER,), None))
    bench.tell(TargetOpened(ticket.serial, bench.new()))
    bench.tell(Retired(1, MODES))
    assert bench.answer() == {"cancelled": False}


def test_a_fork_that_is_refused_changes_nothing(bench: Bench) -> None:
    ticket = bench.replace(c.Fork(entry_id="e7"))
    bench.tell(ForkRefused(ticket, "Invalid entry ID for forking"))
    assert bench.answer() == "Invalid entry ID for forking"
    assert bench.told(1) == [DescribeFork]


# ---- deaths -------------------------------------------------------------------------------------------------------


def test_a_session_that_dies_is_opened_again_and_its_shells_and_commands_find_a_home(bench: Bench) -> None:
    bench.opened[1].journal.append(USER)
    bench.tell(Down(1, "ValueError in x.py:1"))
    ((serial, target),) = bench.asked
    assert (serial, target.kind, target.path) == (-1, "file", bench.path(1))
    assert not bench.is_locked(bench.path(1))
    bench.tell(TargetOpened(serial, open_session(target.path, STAMPS, "/")))
    assert bench.told(2) == [BashAdopted, BecomeCurrent]
    assert bench.intake.drain() == [SessionCurrent(bench.sessions[2])]
    error = "the session failed: ValueError in x.py:1"
    assert bench.shells.drain() == [HomeMoved(bench.sessions[1], bench.sessions[2], error)]
    assert bench.root.drain() == []
    bench.replaced(3)


def test_a_session_without_a_file_begins_anew_when_it_dies(bench: Bench) -> None:
    bench.tell(Down(1, "E"))
    assert bench.asked[0][1].kind == "new"


def test_a_replacement_while_the_session_is_being_opened_again_is_refused(bench: Bench) -> None:
    bench.tell(Down(1, "E"))
    bench.replace(c.NewSession())
    assert bench.answer() == "the session is being opened again"


@pytest.mark.shows("*", error="the session failed: …")
def test_a_session_that_dies_while_its_target_opens_refuses_the_replacement(bench: Bench) -> None:
    bench.opened[1].journal.append(USER)
    ticket = bench.replace(c.NewSession())
    bench.tell(Down(1, "E"))
    assert bench.answer() == "the session failed: E"
    late = bench.new()
    late.journal.append(USER)
    bench.tell(TargetOpened(ticket.serial, late))
    assert late.journal.path is not None and not bench.is_locked(late.journal.path)
    assert list(bench.sessions) == [1]


def test_what_an_answered_replacement_asked_for_does_not_touch_the_next_one(bench: Bench) -> None:
    first = bench.replace(c.NewSession())
    bench.tell(Down(1, "E"))
    bench.answer()
    bench.tell(TargetOpened(-1, bench.new()))
    second = bench.replace(c.Fork(entry_id="e"))
    for late in (
        TargetOpened(first.serial, bench.new()),
        TargetFailed(first.serial, "x"),
        ForkReady(first, (), None, "wrong"),
        ForkRefused(first, "x"),
        SessionReloaded(first),
        SessionReloaded(first, "x"),
    ):
        bench.tell(late)
    assert bench.writer.drain() == []
    bench.tell(ForkRefused(second, "mine"))
    assert bench.answer() == "mine"


def test_an_old_session_that_dies_letting_go_still_hands_over(bench: Bench) -> None:
    ticket = bench.replace(c.NewSession())
    bench.tell(TargetOpened(ticket.serial, bench.new()))
    bench.tell(Down(1, "E"))
    assert bench.told(2) == [BecomeCurrent]
    assert bench.intake.drain() == [SessionCurrent(bench.sessions[2])]
    assert bench.answer() == {"cancelled": False}
    bench.tell(TargetOpened(-1, bench.new()))
    assert bench.told(3) == [BashAdopted, Retire, NoMoreCommands]
    assert bench.intake.drain() == []


def test_a_successor_that_dies_before_the_hand_over_leaves_the_old_session_current(bench: Bench) -> None:
    ticket = bench.replace(c.NewSession())
    bench.tell(TargetOpened(ticket.serial, bench.new()))
    bench.tell(Down(2, "E"))
    assert bench.answer() == "the session failed: E"
    bench.tell(Retired(1, MODES))
    assert bench.told(1) == [Retire, BecomeCurrent]
    assert bench.intake.drain() == []


def test_the_death_of_a_retiring_session_does_not_disturb_a_replacement(bench: Bench) -> None:
    bench.replaced(2)
    ticket = bench.replace(c.NewSession())
    bench.tell(Down(1, "E"))
    assert bench.writer.drain() == []
    bench.tell(TargetOpened(-1, bench.new()))
    bench.tell(TargetOpened(ticket.serial, bench.new()))
    bench.tell(Retired(2, MODES))
    assert bench.answer() == {"cancelled": False}


def test_two_dead_sessions_get_their_own_files_back_in_whatever_order_these_open(bench: Bench) -> None:
    bench.replaced(2)
    bench.tell(Down(1, "one"))
    bench.tell(Down(2, "two"))
    assert [serial for serial, _ in bench.asked] == [-1, -2]
    bench.tell(TargetOpened(-2, bench.new()))
    assert bench.intake.drain() == [SessionCurrent(bench.sessions[3])]
    bench.tell(TargetOpened(-1, bench.new()))
    assert [(mail.old, mail.new) for mail in bench.shells.drain()] == [
        (bench.sessions[2], bench.sessions[3]),
        (bench.sessions[1], bench.sessions[4]),
    ]
    assert bench.intake.drain() == []


@pytest.mark.parametrize(("later", "ends"), [(59_999, True), (60_000, False)])
def test_a_second_death_within_a_minute_ends_the_program(bench: Bench, later: int, ends: bool) -> None:
    bench.opened[1].journal.append(USER)
    bench.tell(Down(1, "E"))
    bench.tell(TargetOpened(-1, open_session(bench.path(1), STAMPS, "/")))
    bench.time = later
    bench.tell(Down(2, "E"))
    assert bench.root.drain() == ([Down("session", "E")] if ends else [])


def test_a_file_that_cannot_be_opened_again_ends_the_program(bench: Bench) -> None:
    bench.tell(Down(1, "E"))
    bench.tell(TargetFailed(-1, "gone"))
    assert bench.root.drain() == [Down("session", "it cannot be opened again: gone")]


def test_a_session_that_dies_when_it_had_nothing_left_to_do_is_no_fault(bench: Bench) -> None:
    bench.replaced(2)
    bench.tell(SessionGone(1, 1))
    bench.tell(Down(1, "E"))
    assert bench.asked == [] and bench.root.drain() == []


# ---- the end ------------------------------------------------------------------------------------------------------


def test_closing_retires_every_live_session_and_tells_root_when_the_last_is_gone(bench: Bench) -> None:
    bench.replaced(2)
    bench.tell(CloseSessions())
    assert bench.told(1) == bench.told(2) == [Retire, NoMoreCommands]
    bench.tell(SessionGone(1, 1))  # told before it heard the second `Retire`
    bench.tell(Retired(2, MODES))
    bench.tell(SessionGone(2, 2))
    assert bench.root.drain() == []
    bench.tell(SessionGone(1, 2))
    assert bench.root.drain() == [SessionsClosed()]


def test_closing_in_the_middle_of_a_replacement_refuses_it_and_lets_its_target_go(bench: Bench) -> None:
    ticket = bench.replace(c.NewSession())
    bench.tell(CloseSessions())
    assert bench.answer() == CLOSING
    bench.tell(TargetOpened(ticket.serial, bench.new()))
    assert list(bench.sessions) == [1]
    bench.tell(SessionGone(1, 1))
    assert bench.root.drain() == [SessionsClosed()]


def test_closing_has_the_refusal_passed_on_behind_what_the_session_still_answers(bench: Bench) -> None:
    bench.replace(c.NewSession())
    bench.tell(CloseSessions())
    assert bench.told(1) == [PassOn, Retire, NoMoreCommands]
    assert bench.writer.drain() == []


def test_closing_in_the_middle_of_a_hand_over_retires_both(bench: Bench) -> None:
    ticket = bench.replace(c.NewSession())
    bench.tell(TargetOpened(ticket.serial, bench.new()))
    bench.tell(CloseSessions())
    assert bench.answer() == CLOSING
    bench.tell(Retired(1, MODES))
    assert BecomeCurrent not in bench.told(1)
    bench.tell(SessionGone(1, 2))
    bench.tell(SessionGone(2, 1))
    assert bench.root.drain() == [SessionsClosed()]


def test_a_replacement_after_closing_is_refused(bench: Bench) -> None:
    bench.tell(CloseSessions())
    bench.replace(c.NewSession())
    assert bench.answer() == CLOSING


def test_closing_waits_for_a_dead_session_so_that_its_shells_are_recorded(bench: Bench) -> None:
    bench.tell(Down(1, "E"))
    bench.tell(CloseSessions())
    assert bench.root.drain() == []
    bench.tell(TargetOpened(-1, bench.new()))
    assert bench.told(2) == [BashAdopted, Retire, NoMoreCommands]
    assert isinstance(bench.shells.next(), HomeMoved)
    bench.tell(SessionGone(2, 1))
    assert bench.root.drain() == [SessionsClosed()]


# ---- inspectors --------------------------------------------------------------------------------------------------


def test_the_door_is_opened_once_with_the_first_task_of_any_session(bench: Bench) -> None:
    assert bench.doors == 0
    bench.tell(TasksBegun())
    bench.tell(TasksBegun())
    assert bench.doors == 1
    assert bench.door.drain() == [ShowSession(bench.sessions[1])]


def test_a_door_that_cannot_be_made_is_told_and_costs_nothing_else(bench: Bench) -> None:
    bench.no_door = OSError(24, "Too many open files", "door.py")
    bench.tell(TasksBegun())
    bench.tell(TasksBegun())
    assert bench.complaints == ["no inspector can connect: [Errno 24] Too many open files: 'door.py'"]
    assert bench.door.drain() == []


def test_the_door_hears_of_each_session_that_becomes_current_and_of_each_that_has_ended(bench: Bench) -> None:
    bench.tell(TasksBegun())
    bench.door.drain()
    bench.replaced(2)
    assert bench.door.drain() == [ShowSession(bench.sessions[2])]
    bench.tell(SessionGone(1, 1))
    assert bench.door.drain() == [SessionLeft(bench.sessions[1], "the session has ended")]


def test_the_door_hears_that_a_session_died_and_which_one_it_is_again(bench: Bench) -> None:
    bench.tell(TasksBegun())
    bench.door.drain()
    bench.tell(Down(1, "KeyError"))
    assert bench.door.drain() == [SessionLeft(bench.sessions[1], "the session failed: KeyError")]
    (serial, _) = bench.asked[-1]
    bench.tell(TargetOpened(serial, bench.new()))
    assert bench.door.drain() == [ShowSession(bench.sessions[2])]


def test_the_sessions_have_closed_when_the_door_has(bench: Bench) -> None:
    bench.tell(TasksBegun())
    bench.door.drain()
    bench.tell(CloseSessions())
    bench.tell(SessionGone(1, 1))
    assert CloseDoor() in bench.door.drain()
    assert bench.root.drain() == []
    bench.tell(DoorClosed())
    assert bench.root.drain() == [SessionsClosed()]


@pytest.mark.parametrize("closing", [False, True])
def test_a_door_that_died_stays_shut_and_keeps_nothing_up(bench: Bench, closing: bool) -> None:
    bench.tell(TasksBegun())
    if closing:
        bench.tell(CloseSessions())
        bench.tell(SessionGone(1, 1))
    bench.tell(Down(DOOR, "KeyError"))
    bench.tell(TasksBegun())
    assert (bench.doors, bench.complaints) == (1, ["inspectors can no longer connect: KeyError"])
    if not closing:
        bench.tell(CloseSessions())
        bench.tell(SessionGone(1, 1))
    assert bench.root.drain() == [SessionsClosed()]


def test_no_door_is_opened_while_the_program_ends(bench: Bench) -> None:
    bench.tell(CloseSessions())
    bench.tell(TasksBegun())
    assert bench.doors == 0
