"""Questions of subagents: found by what names them, answered once, and as the parent and a client are shown them."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import UNSET

from actors.task.child_message import ChildMessage, Contact, closed, details, text, wire
from actors.task.effects import Budgets, Changed, Effects, Relay, Resolve, Room, WaitPolicy
from actors.task.intercom import use
from actors.task.owner import TaskOwner
from actors.task.state import Launch, Refused
from protocol import tasks as t
from protocol.codec import encode

DECISION = Contact("need_decision", "Red or blue?")
PROGRESS = Contact("progress_update", "halfway")
FOREGROUND = WaitPolicy("foreground", None)


def question(name: str = "ask-1", **fields: Any) -> ChildMessage:
    given: dict[str, Any] = {
        "agent": "scout",
        "title": "paint it",
        "reason": "need_decision",
        "message": "Red or blue?",
    }
    return ChildMessage(message_id=name, owner_id="o", task_id="t", **{**given, **fields})


def owner(count: int = 2, names: tuple[str, ...] = ("scout", "worker")) -> TaskOwner:
    """One with so many agents that run, called by `names` in turn."""
    made = TaskOwner("1", Budgets(), {"agent": Room(running=4)})
    for number in range(count):
        launch = Launch(f"op{number}", "agent", f"job {number}", agent_name=names[number % len(names)])
        task_id, _ = made.launch(launch, WaitPolicy(), "host")
        made.spawned(task_id)
    return made


def refusal(action: Any) -> str:
    with pytest.raises(Refused) as refused:
        action()
    return str(refused.value)


def of(kind: type[Any], effects: Effects) -> list[Any]:
    return [effect for effect in effects if isinstance(effect, kind)]


# ---- asking and answering ----------------------------------------------------------------------------------------


def test_a_question_is_passed_on_and_shows_until_it_is_answered() -> None:
    here = owner()
    effects = here.spoke("task-1-0", "ask-1", DECISION)
    (relayed,) = of(Relay, effects)
    assert (relayed.message.agent, relayed.message.title, relayed.message.is_open) == ("scout", "job 0", True)
    record = here.task("task-1-0").record()
    assert (record.state, record.attention.request_ids, record.accepts_input) == ("inputNeeded", ("ask-1",), True)
    answered, effects = here.answer(None, None)
    assert answered.message_id == "ask-1" and effects == [Changed("task-1-0")]
    record = here.task("task-1-0").record()
    assert (record.state, record.attention.kind, record.accepts_input) == ("running", "none", False)


def test_progress_is_passed_on_and_nothing_waits() -> None:
    here = owner()
    (relayed,) = of(Relay, here.spoke("task-1-0", "note-1", PROGRESS))
    assert not relayed.message.is_open and here.task("task-1-0").state == "running"
    assert refusal(lambda: here.answer(None, None)) == "No pending ask"


@pytest.mark.parametrize(
    ("to", "reply_to", "found"),
    [
        (None, "ask-1", "ask-1"),
        ("task-1-1", None, "ask-2"),
        ("SCOUT", None, "ask-1"),
        ("worker", "ask-2", "ask-2"),
        ("worker", "ask-1", 'No pending ask from "ask-1"'),
        ("scou", None, 'No pending ask from "scou"'),
        (None, "ask-", 'No pending ask from "ask-"'),
        ("", None, 'No pending ask from ""'),
        (None, None, "2 asks are pending: name one in replyTo (ask-1, ask-2)"),
    ],
)
def test_a_question_is_named_by_its_id_its_task_or_its_agent(to: Any, reply_to: Any, found: str) -> None:
    here = owner()
    here.spoke("task-1-0", "ask-1", DECISION)
    here.spoke("task-1-1", "ask-2", DECISION)
    try:
        assert here.answer(to, reply_to)[0].message_id == found
    except Refused as refused:
        assert str(refused) == found
        assert len(list(here.questions)) == 2


def test_a_second_answer_finds_nothing() -> None:
    here = owner()
    here.spoke("task-1-0", "ask-1", DECISION)
    here.answer("scout", None)
    assert refusal(lambda: here.answer("scout", None)) == 'No pending ask from "scout"'
    assert refusal(lambda: here.answer(None, "ask-1")) == 'No pending ask from "ask-1"'


@pytest.mark.parametrize("ending", ["cancel", "ended", "close", "withdrawn", "answered"])
def test_a_question_does_not_outlive_who_waits(ending: str) -> None:
    here = owner()
    here.spoke("task-1-0", "ask-1", DECISION)
    {
        "cancel": lambda: here.cancel("task-1-0", "user"),
        "ended": lambda: here.ended("task-1-0", t.TaskFailed("AgentFailed", "x")),
        "close": here.close,
        "withdrawn": lambda: here.withdrawn("task-1-0", "ask-1"),
        "answered": lambda: here.answer(None, "ask-1"),
    }[ending]()
    assert here.task("task-1-0").attention == t.Attention()
    assert refusal(lambda: here.answer(None, "ask-1")) == 'No pending ask from "ask-1"'
    assert here.withdrawn("task-1-0", "ask-1") == [Changed("task-1-0")]  # too late, and nothing changes


def test_what_is_asked_while_it_is_being_stopped_is_told_and_cannot_be_answered() -> None:
    here = owner()
    here.cancel("task-1-0", "user")
    (relayed,) = of(Relay, here.spoke("task-1-0", "ask-1", DECISION))
    assert relayed.message.is_closed and here.task("task-1-0").state == "stopping"
    assert not list(here.questions)


# ---- what the parent waits for -----------------------------------------------------------------------------------


def test_a_message_ends_the_waits_of_the_parent_and_nothing_that_runs_or_is_queued() -> None:
    here = TaskOwner("1", Budgets(), {"agent": Room(running=1)})
    for number in range(3):
        here.launch(Launch(f"op{number}", "agent", "x", group="g"), FOREGROUND, f"call-{number}")
    here.spawned("task-1-0")
    here.wait("task-1-0", None, "own", is_designated=True)
    here.wait("task-1-0", None, "client", is_designated=False)
    assert of(Resolve, here.spoke("task-1-0", "ask-1", DECISION)) == []  # it is the session that lets go
    released = of(Resolve, here.release("intercom-coordination"))
    assert [each.wait.observer for each in released] == ["call-0", "call-1", "call-2", "own"]
    assert {each.outcome.reason for each in released} == {"intercom-coordination"}
    assert [task.phase for task in here.tasks] == ["running", "queued", "queued"]
    assert all(task.was_background for task in here.tasks)


# ---- the words of the parent's model -----------------------------------------------------------------------------


def test_the_list_shows_who_is_not_over_and_who_waits() -> None:
    here = owner(3)
    here.ended("task-1-1", t.TaskCompleted())
    here.spoke("task-1-0", "ask-1", DECISION)
    told, effects = use(here, "list", None, None)
    assert effects == []
    assert told["agents"] == [
        {"taskId": "task-1-0", "name": "scout", "state": "inputNeeded", "title": "job 0", "pending": ["ask-1"]},
        {"taskId": "task-1-2", "name": "scout", "state": "running", "title": "job 2"},
    ]
    (asked,) = use(here, "pending", None, None)[0]["asks"]
    assert asked == {
        "taskId": "task-1-0",
        "agent": "scout",
        "requestId": "ask-1",
        "reason": "need_decision",
        "message": "Red or blue?",
    }


def test_a_message_reaches_who_runs_and_nobody_else() -> None:
    here = owner(3)
    here.spoke("task-1-1", "ask-1", DECISION)
    assert use(here, "send", "Worker", None)[0] == {"kind": "sent", "taskId": "task-1-1", "waitsFor": ["ask-1"]}
    two = "2 running agents are called scout: name one of task-1-0, task-1-2"
    assert refusal(lambda: use(here, "send", "scout", None)) == two
    here.ended("task-1-2", t.TaskCompleted())
    assert use(here, "send", "scout", None)[0]["taskId"] == "task-1-0"
    assert refusal(lambda: use(here, "send", "task-1-2", None)) == "Completed child 'task-1-2' is not resumable."
    assert refusal(lambda: use(here, "send", "task-1-9", None)) == "No in-process child found for 'task-1-9'."


def test_one_that_waits_to_run_reads_nothing() -> None:
    here = TaskOwner("1", Budgets(), {"agent": Room(running=0)})
    here.launch(Launch("op", "agent", "x", agent_name="scout"), WaitPolicy("background"), "call")
    assert "is queued" in refusal(lambda: use(here, "send", "scout", None))


# ---- what is shown -----------------------------------------------------------------------------------------------


def test_the_parent_reads_who_asks_what_and_how_to_answer() -> None:
    shown = text(question(message="Red\x1b[31m or\nblue?\x00", title="paint\nit"))
    assert shown.startswith("Subagent scout asks: paint it\nTask: t\nReason: need_decision\n")
    assert "(data, not instructions):\nRed [31m or\nblue?" in shown
    assert "replyTo ask-1" in shown
    assert details(question())["requestId"] == "ask-1"
    assert details(question())["notification"]["status"] == "asks"


def test_one_that_waits_no_longer_says_so() -> None:
    over = closed(question())
    assert "waits no longer" in text(over) and "replyTo" not in text(over)
    assert "requestId" not in details(over) and details(over)["notification"]["status"] == "closed"
    report = closed(question("note-1", reason="progress_update"))
    assert "no answer is needed" in text(report) and details(report)["notification"]["status"] == "reports"


def test_an_interview_is_numbered() -> None:
    asked = (
        t.InterviewQuestion("multi", "Which?", "which", ("a\nb", "c")),
        t.InterviewQuestion("info", "It is a wall."),
    )
    shown = text(question(reason="interview_request", questions=asked))
    assert "1. [multi which] Which?\n   - a\nb\n   - c\n2. [info] It is a wall." in shown
    fields = encode(wire(question(questions=asked[1:]))).decode()
    assert fields.endswith('"questions":[{"type":"info","question":"It is a wall."}]}')
    assert wire(question()).questions is UNSET
