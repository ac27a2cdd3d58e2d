"""The way in: the order of the wire, the lane that a long command holds, and an answer for what cannot go further."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.intake import CLOSING, LOST, FitImages, Intake
from actors.mail import (
    Answered,
    AnswerOpen,
    CloseIntake,
    Commands,
    ImagesFitted,
    InputEnded,
    Replace,
    SessionCurrent,
    SessionLost,
    StdinBytes,
    StdinEnded,
    Write,
)
from actors.probe import Probe
from actors.pump import Window
from protocol.codec import Rejected


def line(name: str, **fields: Any) -> bytes:
    defaults: dict[str, dict[str, Any]] = {
        "prompt": {"message": "hi"},
        "steer": {"message": "hi"},
        "bash": {"command": "ls"},
        "switch_session": {"sessionPath": "/s"},
    }
    return json.dumps({"type": name, "id": name, **defaults.get(name, {}), **fields}).encode() + b"\n"


class Bench:
    """Intake between probes. `log` says who was told what, in one word each: `s1:prompt`, `desk:new_session`."""

    def __init__(
        self, *, ready: bool = True, desk: Probe[Any] | None = None, fit_images: FitImages | None = None
    ) -> None:
        self.writer: Probe[Any] = Probe()
        self.desk: Probe[Any] = desk or Probe()
        self.root: Probe[Any] = Probe()
        self.intake = Intake(self.writer, self.desk, self.root, fit_images)
        self.intake.me = Probe()
        self.sessions: list[Probe[Any]] = []
        self.serials: dict[str, int] = {}
        if ready:
            self.current()

    def current(self) -> Probe[Any]:
        self.sessions.append(Probe())
        self.intake.receive(SessionCurrent(self.sessions[-1]))
        return self.sessions[-1]

    def read(self, *names: str) -> None:
        self.intake.receive(StdinBytes(b"".join(line(name) for name in names)))

    def told(self, session: int = -1) -> list[str]:
        """What came to a session and to the desk, and in between what was refused there."""
        words = []
        for mail in (*self.sessions[session].drain(), *self.desk.drain()):
            match mail:
                case Commands(items):
                    words += [self._word(ticket, command) for ticket, command in items]
                case Replace(ticket, command):
                    words.append("desk:" + self._word(ticket, command))
                case _:
                    words.append(type(mail).__name__)
        return words

    def _word(self, ticket: Any, command: Any) -> str:
        self.serials[ticket.command] = ticket.serial
        return f"{ticket.command}!" if isinstance(command, Rejected) else str(ticket.command)

    def answered(self, name: str) -> None:
        self.intake.receive(Answered((self.serials[name],)))

    def refused(self) -> list[tuple[str, str]]:
        """Command and error of every answer that Intake itself gave."""
        answers = []
        for write in self.writer.drain():
            assert isinstance(write, Write)
            for record in write.records:
                answer = json.loads(record.line)
                assert answer["success"] is False and record.serial > 0
                answers.append((answer.get("command", ""), answer["error"]))
        return answers


class Logged(Probe[Any]):
    """Writes the tickets that come to it down in a list that it shares with others."""

    def __init__(self, order: list[Any]) -> None:
        super().__init__()
        self._order = order

    def tell(self, mail: Any) -> None:
        self._order += [ticket for ticket, _ in mail.items] if isinstance(mail, Commands) else []
        self._order += [mail.ticket] if isinstance(mail, Replace) else []


@pytest.fixture
def bench() -> Bench:
    return Bench()


# ---- order --------------------------------------------------------------------------------------------------------


def test_commands_of_one_read_go_to_the_session_in_one_mail_in_the_order_of_the_wire(bench: Bench) -> None:
    bench.read("prompt", "get_state", "abort", "bash")
    (mail,) = bench.sessions[0].drain()
    assert [ticket.command for ticket, _ in mail.items] == ["prompt", "get_state", "abort", "bash"]
    assert [ticket.serial for ticket, _ in mail.items] == [1, 2, 3, 4]


def test_a_command_may_come_in_pieces(bench: Bench) -> None:
    whole = line("get_state")
    for place in range(len(whole)):
        assert bench.told() == []
        bench.intake.receive(StdinBytes(whole[place : place + 1]))
    assert bench.told() == ["get_state"]


def test_a_line_that_is_no_command_keeps_its_place(bench: Bench) -> None:
    bench.intake.receive(StdinBytes(line("get_state") + b"nonsense\n" + line("foo") + line("abort")))
    assert bench.told() == ["get_state", "parse!", "foo!", "abort"]


def test_the_reply_of_a_dialog_is_no_command(bench: Bench) -> None:
    bench.intake.receive(StdinBytes(b'{"type":"extension_ui_response","id":"u","value":"x"}\n' + line("get_state")))
    (mail,) = bench.sessions[0].drain()
    assert [(ticket.command, ticket.serial) for ticket, _ in mail.items] == [("get_state", 1)]


def test_the_read_is_acked_once_its_commands_are_on_their_way(bench: Bench) -> None:
    window = Window(max_messages=1)
    bench.intake.receive(StdinBytes(line("get_state"), window.admit(1)))
    assert window.admit(1) is not None


def test_nothing_is_read_before_the_first_session_stands() -> None:
    bench = Bench(ready=False)
    bench.read("prompt", "new_session", "get_state")
    assert bench.desk.drain() == []
    bench.current()
    assert bench.told() == ["prompt", "desk:new_session"]


# ---- the lane -----------------------------------------------------------------------------------------------------


def test_a_replacement_holds_the_ordered_lane_until_it_is_answered(bench: Bench) -> None:
    bench.read("prompt", "new_session", "get_state", "steer")
    assert bench.told() == ["prompt", "desk:new_session"]
    bench.read("get_messages")
    assert bench.told() == []
    new = bench.current()
    bench.answered("new_session")
    assert bench.told(0) == ["NoMoreCommands"]
    (mail,) = new.drain()
    assert [ticket.command for ticket, _ in mail.items] == ["get_state", "steer", "get_messages"]


def test_the_commands_before_a_replacement_are_told_before_it() -> None:
    order: list[Any] = []
    bench = Bench(ready=False, desk=Logged(order))
    bench.intake.receive(SessionCurrent(Logged(order)))
    bench.read("prompt", "new_session")
    assert [ticket.command for ticket in order] == ["prompt", "new_session"]


def test_interrupts_and_shell_commands_pass_a_held_lane(bench: Bench) -> None:
    bench.read("new_session", "get_state", "abort", "bash", "abort_bash")
    assert bench.told() == ["abort", "bash", "abort_bash", "desk:new_session"]


def test_a_second_replacement_waits_for_the_first(bench: Bench) -> None:
    bench.read("new_session", "switch_session", "get_state")
    assert bench.told() == ["desk:new_session"]
    bench.current()
    bench.answered("new_session")
    assert bench.told() == ["desk:switch_session"]
    bench.answered("switch_session")
    assert bench.told() == ["get_state"]


def test_the_answer_of_another_command_does_not_release_the_lane(bench: Bench) -> None:
    bench.read("get_state", "new_session", "prompt")
    bench.told()
    bench.answered("get_state")
    assert bench.told() == []


@pytest.mark.parametrize(
    ("interrupt", "target"),
    [("abort", "prompt"), ("abort_compaction", "compact"), ("clear_queue", "steer"), ("clear_queue", "follow_up")],
)
def test_an_interrupt_that_passes_its_target_in_the_lane_turns_it_into_a_refusal(interrupt: str, target: str) -> None:
    bench = Bench()
    bench.intake.receive(
        StdinBytes(line("new_session") + line(target, message="m") + line("get_state") + line(interrupt))
    )
    assert bench.told() == [interrupt, "desk:new_session"]
    new = bench.current()
    bench.answered("new_session")
    (mail,) = new.drain()
    (_, stopped), (state, _) = mail.items
    assert isinstance(stopped, Rejected)
    assert stopped.error == f"{target} was stopped by {interrupt} before it started"
    assert state.command == "get_state"


@pytest.mark.parametrize("interrupt", ["abort", "abort_compaction"])
def test_of_moves_in_the_tree_only_those_that_make_a_summary_are_stopped(interrupt: str) -> None:
    bench = Bench()
    move = line("navigate_tree", targetId="a", options={"summarize": True})
    bench.intake.receive(StdinBytes(line("new_session") + move + line("navigate_tree", targetId="a") + line(interrupt)))
    bench.told()
    bench.answered("new_session")
    assert bench.told() == ["navigate_tree!", "navigate_tree"]


def test_only_a_move_that_makes_a_summary_holds_the_lane(bench: Bench) -> None:
    bench.intake.receive(StdinBytes(line("navigate_tree", targetId="a") + line("get_state")))
    assert bench.told() == ["navigate_tree", "get_state"]
    move = line("navigate_tree", targetId="a", options={"summarize": True})
    bench.intake.receive(StdinBytes(move + line("get_state")))
    assert bench.told() == ["navigate_tree"]
    bench.answered("navigate_tree")
    assert bench.told() == ["get_state"]


def test_an_interrupt_stops_only_what_it_follows_on_the_wire(bench: Bench) -> None:
    bench.read("new_session", "abort", "prompt")
    bench.told()
    bench.answered("new_session")
    assert bench.told() == ["prompt"]


def test_an_interrupt_leaves_held_commands_that_it_does_not_concern(bench: Bench) -> None:
    bench.read("new_session", "steer", "prompt", "clear_queue")
    bench.told()
    bench.answered("new_session")
    assert bench.told() == ["steer!", "prompt"]


# ---- sessions that change or die ----------------------------------------------------------------------------------


def test_the_old_session_hears_when_it_has_had_its_last_command(bench: Bench) -> None:
    bench.read("prompt")
    bench.current()
    bench.read("get_state")
    assert bench.told(0) == ["prompt", "NoMoreCommands"]
    assert bench.told(1) == ["get_state"]


def test_commands_that_died_with_a_session_are_answered_except_those_alive_in_a_shell(bench: Bench) -> None:
    bench.read("prompt", "bash", "get_state")
    bench.told()
    bench.answered("get_state")
    bench.current()
    bench.read("get_messages")
    bench.intake.receive(SessionLost(bench.sessions[0], "the session failed", frozenset({bench.serials["bash"]})))
    assert bench.refused() == [("prompt", "the session failed")]


def test_a_death_does_not_answer_what_the_desk_or_another_session_has(bench: Bench) -> None:
    bench.read("new_session", "get_state")
    bench.intake.receive(SessionLost(bench.sessions[0], "the session failed", frozenset()))
    assert bench.refused() == []


@pytest.mark.shows("*", error="atomic failed: …")
def test_when_a_part_of_the_house_dies_everything_open_is_answered(bench: Bench) -> None:
    bench.read("prompt", "new_session", "get_state")
    bench.told()
    bench.answered("prompt")
    bench.intake.receive(AnswerOpen("atomic failed"))
    assert bench.refused() == [("new_session", "atomic failed"), ("get_state", "atomic failed")]


def test_the_last_words_answer_what_is_open_held_or_unread(bench: Bench) -> None:
    bench.read("prompt", "new_session", "get_state")
    fatal = StdinBytes(line("steer"))
    bench.intake.last_words([fatal, StdinBytes(b"broken\n" + line("abort")), StdinBytes(b'{"type":"ab')])
    commands = ["prompt", "new_session", "get_state", "steer", "parse", "abort"]
    assert bench.refused() == [(command, LOST) for command in commands]


def test_the_last_words_do_not_read_twice_what_was_being_read_when_it_died() -> None:
    bench = Bench()
    fatal = StdinBytes(line("prompt") + line("get_state"))
    bench.intake.receive(fatal)
    bench.intake.last_words([fatal])
    assert [command for command, _ in bench.refused()] == ["prompt", "get_state"]


# ---- the end ------------------------------------------------------------------------------------------------------


def test_the_end_of_input_is_told_once_and_a_last_line_without_line_feed_counts(bench: Bench) -> None:
    bench.intake.receive(StdinBytes(line("get_state").rstrip(b"\n")))
    bench.intake.receive(StdinEnded())
    bench.intake.receive(Answered((1,)))
    assert bench.told() == ["get_state"]
    assert bench.root.drain() == [InputEnded()]


def test_at_the_end_of_input_a_replacement_finishes_and_what_waits_behind_it_runs(bench: Bench) -> None:
    bench.read("new_session", "get_state")
    bench.told()
    bench.intake.receive(StdinEnded())
    assert bench.root.drain() == []
    bench.current()
    bench.answered("new_session")
    assert bench.told() == ["get_state"]
    assert bench.root.drain() == [InputEnded()]


def test_after_the_end_of_input_no_long_command_begins_and_its_refusal_keeps_its_place(bench: Bench) -> None:
    bench.read("new_session", "get_state", "compact", "steer", "switch_session", "prompt")
    bench.told()
    bench.intake.receive(StdinEnded())
    bench.answered("new_session")
    assert bench.told() == ["get_state", "compact!", "steer", "desk:switch_session"]
    assert bench.root.drain() == []
    bench.answered("switch_session")
    assert bench.told() == ["prompt"]
    assert bench.root.drain() == [InputEnded()]


def test_at_the_end_of_input_another_long_command_is_stopped_and_the_held_ones_are_answered(bench: Bench) -> None:
    bench.read("compact", "get_state")
    assert bench.told() == ["compact"]
    bench.intake.receive(StdinEnded())
    assert bench.root.drain() == [InputEnded()]
    bench.answered("compact")
    assert bench.refused() == [("get_state", CLOSING)]


def test_input_that_ends_before_the_first_session_stands_is_read_all_the_same() -> None:
    bench = Bench(ready=False)
    bench.read("get_state")
    bench.intake.receive(StdinEnded())
    assert bench.root.drain() == []
    bench.current()
    assert bench.told() == ["get_state"]
    assert bench.root.drain() == [InputEnded()]


def test_closing_answers_what_is_held_and_refuses_what_still_comes_in_the_order_of_the_wire(bench: Bench) -> None:
    bench.read("set_steering_mode", "new_session", "get_state")
    bench.told()
    bench.intake.receive(CloseIntake())
    assert bench.root.drain() == [InputEnded()]
    bench.intake.receive(StdinBytes(line("prompt") + line("abort") + b"junk\n" + line("extension_ui_response")))
    bench.answered("new_session")
    assert bench.refused() == []  # set_steering_mode stands before them, and its session will answer it
    bench.answered("set_steering_mode")
    assert bench.refused() == [(name, CLOSING) for name in ("get_state", "prompt", "abort", "parse")]
    bench.intake.receive(StdinEnded())
    assert bench.root.drain() == []


def test_what_is_refused_while_others_are_open_is_answered_with_them_at_the_last(bench: Bench) -> None:
    bench.read("get_state", "new_session", "steer")
    bench.intake.receive(CloseIntake())
    bench.intake.receive(AnswerOpen("atomic ended", last=True))
    expected = [("get_state", "atomic ended"), ("new_session", "atomic ended"), ("steer", CLOSING)]
    assert bench.refused() == expected
    bench.intake.receive(StdinBytes(line("prompt")))
    assert bench.refused() == [("prompt", CLOSING)]


NAMES = ("prompt", "get_state", "new_session", "abort", "bash", "compact", "switch_session", "clear_queue", "steer")


@settings(max_examples=100)
@given(st.lists(st.sampled_from([*NAMES, "answer", "replace"]), max_size=30), st.booleans())
def test_every_command_goes_to_exactly_one_place_and_ordered_ones_keep_their_order(
    steps: list[str], closes: bool
) -> None:
    reached, answered = list[Any](), 0
    bench = Bench(ready=False, desk=Logged(reached))
    bench.intake.receive(SessionCurrent(Logged(reached)))
    commands = [step for step in steps if step in NAMES]
    for step in [*steps, *(["close"] if closes else []), *["answer"] * len(commands)]:
        match step:
            case "answer":
                serials = tuple(ticket.serial for ticket in reached[answered:])
                answered = len(reached)
                bench.intake.receive(Answered(serials))
            case "replace":
                bench.intake.receive(SessionCurrent(Logged(reached)))
            case "close":
                bench.intake.receive(CloseIntake())
            case _:
                bench.read(step)
    refused = [record.serial for write in bench.writer.drain() for record in write.records]
    assert sorted([*(ticket.serial for ticket in reached), *refused]) == list(range(1, len(commands) + 1))
    ordered = [ticket.serial for ticket in reached if ticket.command not in ("abort", "bash", "clear_queue")]
    assert ordered == sorted(ordered)


# ---- images -------------------------------------------------------------------------------------------------------

LARGE = {"type": "image", "data": "iVBORw0KGgoAAAANSUhEUgAAC7gAAAu4", "mimeType": "image/png"}  # 3000 x 3000
SMALL = {"type": "image", "data": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB", "mimeType": "image/png"}


class Fitting(Bench):
    """Intake whose work on images is ended by the test."""

    def __init__(self) -> None:
        self.begun: list[tuple[int, Any]] = []
        super().__init__(fit_images=lambda serial, command, me: self.begun.append((serial, command)))

    def send(self, name: str, *, image: dict[str, str] = LARGE) -> None:
        self.intake.receive(StdinBytes(line(name, message="look", images=[image])))

    def fit(self) -> None:
        serial, command = self.begun[-1]
        self.intake.receive(ImagesFitted(serial, msgspec.structs.replace(command, images=())))


@pytest.fixture
def fitting() -> Fitting:
    return Fitting()


@pytest.mark.parametrize("name", ["prompt", "steer", "follow_up"])
def test_a_large_image_is_made_smaller_before_the_command_goes_on_and_what_follows_waits(
    fitting: Fitting, name: str
) -> None:
    fitting.read("get_state")
    fitting.send(name)
    fitting.read("get_messages", "bash", "new_session", "get_tree")
    assert fitting.told() == ["get_state", "bash"]
    fitting.fit()
    assert fitting.told() == [name, "get_messages", "desk:new_session"]


def test_the_session_gets_the_command_as_it_was_fitted(fitting: Fitting) -> None:
    fitting.send("prompt")
    fitting.fit()
    (mail,) = fitting.sessions[0].drain()
    assert [command.images for _, command in mail.items] == [()]


def test_small_images_and_those_of_other_kinds_are_no_reason_to_wait(fitting: Fitting) -> None:
    fitting.send("prompt", image=SMALL)
    fitting.send("prompt", image={**LARGE, "data": "!"})
    assert fitting.told() == ["prompt", "prompt"] and fitting.begun == []


def test_without_resizing_no_image_is_a_reason_to_wait(bench: Bench) -> None:
    bench.intake.receive(StdinBytes(line("prompt", images=[LARGE])))
    assert bench.told() == ["prompt"]


@pytest.mark.parametrize(
    ("name", "interrupt"), [("prompt", "abort"), ("steer", "clear_queue"), ("follow_up", "clear_queue")]
)
def test_an_interrupt_stops_a_command_whose_images_are_worked_on(fitting: Fitting, name: str, interrupt: str) -> None:
    fitting.send(name)
    fitting.read("get_state", interrupt, "get_tree")
    assert fitting.told() == [f"{name}!", "get_state", interrupt, "get_tree"]
    fitting.fit()
    assert fitting.told() == []


def test_images_that_cannot_be_used_are_an_answer_in_its_place(fitting: Fitting) -> None:
    fitting.send("prompt")
    fitting.read("get_state")
    fitting.intake.receive(ImagesFitted(fitting.begun[0][0], Rejected(b"", "prompt", "no")))
    assert fitting.told() == ["prompt!", "get_state"]


def test_the_end_of_input_waits_for_images(fitting: Fitting) -> None:
    fitting.send("prompt")
    fitting.read("get_state")
    fitting.intake.receive(StdinEnded())
    assert fitting.root.drain() == []
    fitting.fit()
    assert fitting.told() == ["prompt", "get_state"]
    assert fitting.root.drain() == [InputEnded()]


def test_at_the_end_a_command_whose_images_are_worked_on_is_refused_once(fitting: Fitting) -> None:
    fitting.send("prompt")
    fitting.read("get_state")
    fitting.intake.receive(CloseIntake())
    assert fitting.refused() == [("prompt", CLOSING), ("get_state", CLOSING)]
    fitting.fit()
    assert (fitting.told(), fitting.refused()) == ([], [])


def test_when_everything_is_answered_images_are_forgotten(fitting: Fitting) -> None:
    fitting.send("prompt")
    fitting.intake.receive(AnswerOpen("lost", last=True))
    assert fitting.refused() == [("prompt", "lost")]
    fitting.fit()
    assert fitting.told() == []
