"""One subagent: outcome and cleanup are two facts, acks are settled, and a stop reaches the child in each phase."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from actors.base import Down
from actors.mail import (
    AgentPlan,
    AgentProgress,
    AgentSpoke,
    AnswerQuestion,
    Arm,
    ArtifactsWritten,
    ChildOpened,
    ChildRefused,
    ChildSaid,
    Commands,
    ContactParent,
    LeftBehind,
    NoMoreCommands,
    ParentAnswer,
    QuestionWithdrawn,
    Record,
    Retire,
    Retired,
    SessionGone,
    SteerChild,
    StopAgent,
    TaskEnded,
    TaskReaped,
    TaskSpawned,
    Tick,
    WithdrawContact,
    Write,
)
from actors.probe import Probe
from actors.pump import Window
from actors.session.file import Stamps, new_session
from actors.session.surroundings import Surroundings
from actors.task.checkout import Changes
from actors.task.child_message import Contact
from actors.task.subagent.actor import Subagent
from protocol.tasks import TaskCompleted, TaskFailed, TaskRef
from tests.actors.task.agents import plan

STAMPS = Stamps(lambda: 1, lambda: "01890000-0000-7000-8000-000000000000", lambda: "u")
DONE = {"role": "assistant", "content": [{"type": "text", "text": "found"}], "stopReason": "stop", "usage": {}}


class Left:
    """Background processes of a command of the child."""

    killed = False

    def close(self) -> bool:
        return not self.killed

    def kill_group_leftovers(self) -> None:
        self.killed = True


class Journal:
    """One that tells when it is closed."""

    path = None

    def __init__(self, told: list[str]) -> None:
        self.close = lambda: told.append("closed")


class Bench:
    """A subagent whose pumps answer by hand."""

    def __init__(self, **fields: Any) -> None:
        self.desk, self.clock, self.child, self.me = Probe[Any](), Probe[Any](), Probe[Any](), Probe[Any]()
        self.opened = new_session(STAMPS, "/project", None)
        self.kept: list[tuple[str, Any]] = []
        self.checkouts: list[Any] = []
        self.abandoned = 0
        self.agent = Subagent(
            TaskRef("o", "t", "a", "g"), plan(**fields), self.desk, self.clock, self, self._start, lambda: 0.0
        )
        self.agent.me = self.me
        self.agent.begin()

    def open(self, plan: AgentPlan, to: Any) -> None:
        assert to is self.me

    def abandon(self) -> None:
        self.abandoned += 1

    def keep(self, plan: AgentPlan, text: str, facts: dict[str, Any], checkout: Any, to: Any) -> None:
        self.kept.append((text, facts["result"]))
        self.checkouts.append(checkout)

    def _start(self, *given: Any) -> Any:
        return self.child

    def tell(self, *mails: Any) -> list[Any]:
        """What the desk was told meanwhile, progress apart."""
        for mail in mails:
            self.agent.receive(mail)
        return [mail for mail in self.desk.drain() if not isinstance(mail, AgentProgress)]

    def run(self, checkout: Any = None) -> None:
        opened = ChildOpened(self.opened, Surroundings(lambda *_: ""), ("/in",), checkout)
        assert self.tell(opened) == [TaskSpawned("t")]
        (commands,) = self.child.drain()
        assert isinstance(commands, Commands) and commands.items[0][1].message == "find x"  # type: ignore[union-attr]


def says(*records: dict[str, Any], ack: Any = None) -> ChildSaid:
    lines = [json.dumps(record, separators=(",", ":")).encode() + b"\n" for record in records]
    return ChildSaid(Write(tuple(Record(line) for line in lines), ack=ack))


ANSWER = says({"type": "message_end", "message": DONE}, {"type": "agent_settled"})
GONE = ChildSaid(SessionGone(0, 1))


def test_the_outcome_waits_for_what_is_kept_and_the_cleanup_for_the_session() -> None:
    bench = Bench()
    bench.run()
    assert bench.tell(ANSWER) == []
    assert bench.kept == [("found", {"kind": "completed"})]
    assert bench.child.drain() == [Retire(), NoMoreCommands()]
    (ended,) = bench.tell(ArtifactsWritten(("/out",)))
    assert (ended.result, ended.view.text, ended.view.artifacts) == (TaskCompleted(), "found", ("/in", "/out"))
    assert bench.tell(ChildSaid(Retired(0, {}))) == []
    assert bench.tell(GONE) == [TaskReaped("t", ended.view)]
    assert bench.child.stopped and not bench.me.stopped


def test_the_cleanup_is_told_after_the_outcome_also_when_the_session_is_gone_first() -> None:
    bench = Bench()
    bench.run()
    assert bench.tell(ANSWER, GONE) == []
    ended, reaped = bench.tell(ArtifactsWritten())
    assert isinstance(ended, TaskEnded) and isinstance(reaped, TaskReaped)


def test_every_ack_of_the_child_is_settled_and_its_deltas_are_dropped() -> None:
    bench, window = Bench(), Window(max_bytes=10, max_messages=1)
    bench.run()
    for _ in range(3):
        ack = window.admit(10)  # would wait for ever
        assert bench.tell(says({"type": "message_update"}, ack=ack)) == []


def test_progress_is_told_at_once_and_then_at_most_once_in_400_ms() -> None:
    bench = Bench()
    bench.run()
    bench.tell(Tick("progress"))
    bench.desk.drain()
    for number in range(3):
        start = {"type": "tool_execution_start", "toolCallId": str(number), "toolName": "read", "args": {}}
        bench.agent.receive(says(start))
    assert [mail.tools for mail in bench.desk.drain()] == [1]
    assert bench.clock.drain()[-1] == Arm("progress", 400, bench.me)
    bench.agent.receive(Tick("progress"))
    assert [mail.tools for mail in bench.desk.drain()] == [3]
    bench.agent.receive(Tick("progress"))
    assert bench.desk.drain() == []


def test_a_stop_lets_the_child_go_tells_no_outcome_and_then_that_nothing_is_left() -> None:
    bench = Bench()
    bench.run()
    assert bench.tell(StopAgent(), StopAgent()) == []
    assert bench.child.drain() == [Retire(), NoMoreCommands()]
    assert bench.kept == [("", {"kind": "stopped"})]
    assert bench.tell(ANSWER, ArtifactsWritten()) == []  # too late
    assert [type(mail) for mail in bench.tell(GONE)] == [TaskReaped]


@pytest.mark.parametrize("artifacts", [True, False])
@pytest.mark.parametrize("end", [ANSWER, StopAgent(), Down(0, "KeyError in x.py:1")])
def test_a_worktree_is_put_away_once_and_not_before_nobody_works_in_it(end: Any, artifacts: bool) -> None:
    bench, checkout, left = Bench(artifacts=artifacts), object(), Left()
    bench.run(checkout)
    bench.tell(ChildSaid(LeftBehind(left)), end)
    if not isinstance(end, Down):
        assert bench.kept == []
        bench.tell(GONE, GONE)
    assert left.killed and bench.checkouts == [checkout]
    told = bench.tell(ArtifactsWritten(changes=Changes("1 file changed", "/p")))
    assert isinstance(told[-1], TaskReaped) and told[-1].view.patch == "/p"
    assert told[-1].view.shown.endswith("1 file changed")
    assert [isinstance(mail, TaskEnded) for mail in told[:-1]] == [True] * (not isinstance(end, StopAgent))


def test_a_worktree_of_a_child_that_was_stopped_before_it_began_is_put_away() -> None:
    bench, checkout = Bench(artifacts=False), object()
    bench.tell(StopAgent())
    assert bench.tell(ChildOpened(bench.opened, Surroundings(lambda *_: ""), (), checkout)) == []  # type: ignore[arg-type]
    assert bench.checkouts == [checkout]
    assert [type(mail) for mail in bench.tell(ArtifactsWritten())] == [TaskReaped]


def test_a_stop_before_the_child_has_begun_never_starts_it() -> None:
    bench = Bench(artifacts=False)
    assert bench.tell(StopAgent(), StopAgent()) == []
    assert bench.abandoned == 1
    told = bench.tell(ChildOpened(bench.opened, Surroundings(lambda *_: "")))
    assert [type(mail) for mail in told] == [TaskReaped]
    assert bench.child.drain() == []


def test_a_stop_ends_what_prepares_the_child_and_that_is_no_failure() -> None:
    bench = Bench(artifacts=False)
    bench.tell(StopAgent())
    assert [type(mail) for mail in bench.tell(ChildRefused("worktree hook x: it was stopped"))] == [TaskReaped]


def test_a_child_that_cannot_be_opened_has_failed_to_start_and_leaves_nothing() -> None:
    bench = Bench(artifacts=False)
    ended, reaped = bench.tell(ChildRefused("no room"))
    assert ended.result == TaskFailed("SpawnFailed", "no room")
    assert isinstance(reaped, TaskReaped)


def test_the_death_of_the_childs_session_is_an_outcome() -> None:
    bench = Bench(artifacts=False)
    bench.run()
    ended, reaped = bench.tell(Down(0, "KeyError in x.py:1"))
    assert ended.result == TaskFailed("AgentFailed", "the session of the subagent failed: KeyError in x.py:1")
    assert isinstance(reaped, TaskReaped)


def test_what_the_childs_commands_left_in_the_background_ends_with_it() -> None:
    bench, early, late = Bench(artifacts=False), Left(), Left()
    bench.run()
    bench.tell(ChildSaid(LeftBehind(early)), ANSWER)
    assert not early.killed
    bench.tell(GONE, ChildSaid(LeftBehind(late)))
    assert early.killed and late.killed


def test_an_answer_that_could_not_be_saved_is_not_lost() -> None:
    bench = Bench(output="/x")
    bench.run()
    (ended,) = bench.tell(ANSWER, ArtifactsWritten(error="/x: Permission denied"))
    assert ended.view.shown == "found\n\n[Not saved: /x: Permission denied]"


def test_without_a_desk_it_stops_by_itself_once_nothing_is_left() -> None:
    bench = Bench(artifacts=False)
    bench.run()
    bench.tell(StopAgent(alone=True))
    assert not bench.me.stopped
    bench.tell(GONE)
    assert bench.me.stopped


def test_its_last_words_free_the_child_and_whoever_waits_for_room() -> None:
    bench, window, left = Bench(), Window(max_bytes=10, max_messages=1), Left()
    bench.run()
    bench.tell(ChildSaid(LeftBehind(left)))
    bench.agent.last_words([says({"type": "message_update"}, ack=window.admit(10)), Tick("progress")])
    assert window.admit(10) is not None
    assert bench.child.drain() == [Retire(alone=True), NoMoreCommands()]
    assert left.killed


def test_its_last_words_close_what_was_made_for_a_child_that_had_not_begun() -> None:
    bench, left, closed = Bench(), Left(), []
    opened = replace(bench.opened, journal=Journal(closed))
    bench.agent.last_words([ChildOpened(opened, Surroundings(lambda *_: "")), ChildSaid(LeftBehind(left))])
    assert closed == ["closed"] and left.killed


# ---- what the child says -----------------------------------------------------------------------------------------

DECISION, PROGRESS = Contact("need_decision", "?"), Contact("progress_update", "halfway")


def test_a_question_waits_and_its_answer_reaches_the_call_once() -> None:
    bench, call = Bench(), Probe[Any]()
    bench.run()
    assert bench.tell(ContactParent(DECISION, call)) == [AgentSpoke("t", "ask-t-1", DECISION)]
    assert call.drain() == []
    bench.tell(AnswerQuestion("ask-t-0", "no"), AnswerQuestion("ask-t-1", "yes"), AnswerQuestion("ask-t-1", "again"))
    assert call.drain() == [ParentAnswer("yes", "ask-t-1")]
    assert bench.tell(ContactParent(DECISION, call)) == [AgentSpoke("t", "ask-t-2", DECISION)]


def test_progress_is_passed_on_at_once_also_while_a_question_is_open() -> None:
    bench, asks, reports = Bench(), Probe[Any](), Probe[Any]()
    bench.run()
    told = bench.tell(ContactParent(DECISION, asks), ContactParent(PROGRESS, reports))
    assert told == [AgentSpoke("t", "ask-t-1", DECISION), AgentSpoke("t", "note-t-2", PROGRESS)]
    assert reports.drain() == [ParentAnswer("Passed on")]
    assert asks.drain() == []


def test_who_asks_second_is_told_so_and_the_first_still_waits() -> None:
    bench, first, second = Bench(), Probe[Any](), Probe[Any]()
    bench.run()
    told = bench.tell(ContactParent(DECISION, first), ContactParent(DECISION, second))
    assert told == [AgentSpoke("t", "ask-t-1", DECISION)]
    assert second.drain() == [ParentAnswer("Already waiting for a reply", is_error=True)]
    bench.tell(WithdrawContact(second), AnswerQuestion("ask-t-1", "yes"))
    assert first.drain() == [ParentAnswer("yes", "ask-t-1")]


def test_a_question_that_is_withdrawn_is_no_longer_answered() -> None:
    bench, call = Bench(), Probe[Any]()
    bench.run()
    bench.tell(ContactParent(DECISION, call))
    assert bench.tell(WithdrawContact(call)) == [QuestionWithdrawn("t", "ask-t-1")]
    assert bench.tell(AnswerQuestion("ask-t-1", "too late"), WithdrawContact(call)) == []
    assert call.drain() == []


@pytest.mark.parametrize("end", [StopAgent(), Down(0, "KeyError in x.py:1"), ANSWER])
def test_the_end_ends_the_wait_and_lets_nothing_more_be_asked(end: Any) -> None:
    bench, call, late = Bench(artifacts=False), Probe[Any](), Probe[Any]()
    bench.run()
    bench.tell(ContactParent(DECISION, call))
    told = bench.tell(end, ContactParent(PROGRESS, late), ContactParent(DECISION, late), SteerChild("too late"))
    assert not [mail for mail in told if isinstance(mail, AgentSpoke)]
    (ended,) = call.drain()
    assert ended.is_error
    assert [mail.is_error for mail in late.drain()] == [True, True]
    assert bench.tell(AnswerQuestion("ask-t-1", "too late"), WithdrawContact(call)) == []
    assert not [mail for mail in bench.child.drain() if isinstance(mail, Commands)]


def test_what_the_parent_tells_is_steered_in_and_kept_for_one_that_has_not_begun() -> None:
    bench = Bench()
    bench.tell(SteerChild("early"))
    bench.tell(ChildOpened(bench.opened, Surroundings(lambda *_: "")))
    bench.tell(SteerChild("late"))
    commands = [mail.items[0] for mail in bench.child.drain()]
    assert [ticket.command for ticket, _ in commands] == ["prompt", "steer", "steer"]
    assert len({ticket.serial for ticket, _ in commands}) == 3
    assert [command.message.rpartition("\n")[2] for _, command in commands] == ["find x", "early", "late"]


def test_a_steer_that_is_refused_does_not_end_the_child() -> None:
    bench = Bench()
    bench.run()
    assert bench.tell(says({"type": "response", "command": "steer", "success": False, "error": "x"})) == []
