"""What subagents say to a session: received, said once and in order, and nothing waits in its way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from actors.mail import AgentMessaged, BecomeCurrent, LetGo, Retire, TaskChanged, ToolEnded
from actors.task.child_message import ChildMessage
from actors.task.notice import TaskNotice
from actors.task.state import Launch, Task
from actors.tool.table import text_output
from protocol.tasks import CompletionEnvelope, TaskCompleted, TaskRecord, TaskRef
from tests.actors.session.test_session import MODES, Bench

CHILD = Task(TaskRef("o", "task-1", "a", "g"), Launch("op", "agent", "paint it", agent_name="scout"), 0, float)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def message(name: str = "ask-1", **fields: Any) -> AgentMessaged:
    given: dict[str, Any] = {"reason": "need_decision", "message": f"{name}?", **fields}
    return AgentMessaged(ChildMessage(name, "o", "task-1", "scout", "paint it", **given))


def progress(name: str = "note-1") -> AgentMessaged:
    return message(name, reason="progress_update")


def changed(*requests: str) -> TaskChanged:
    """The task, with these questions open."""
    CHILD.attention = type(CHILD.attention)("input-needed" if requests else "none", requests)
    record: TaskRecord = CHILD.record()
    return TaskChanged(record)


def over() -> TaskChanged:
    envelope = CompletionEnvelope("completion-task-1", "o", "task-1", "1", TaskCompleted())
    return TaskChanged(CHILD.record(), TaskNotice(envelope, "paint it", "Subagent scout", "done"))


def said(bench: Bench) -> list[tuple[str, str]]:
    """What is in the conversation: the kind of each message of ours, and what it is about."""
    found = [each for each in bench.ask("get_messages")["messages"] if each["role"] == "custom"]
    return [(each["customType"], each["details"].get("messageId") or each["details"]["completionId"]) for each in found]


def kinds(bench: Bench) -> list[str]:
    return [entry["customType"] for entry in bench.ask("get_entries")["entries"] if "customType" in entry]


@pytest.mark.parametrize("mail", [message(), progress("ask-1")])
def test_an_idle_session_keeps_it_says_it_and_asks_the_model(bench: Bench, mail: AgentMessaged) -> None:
    bench.tell(mail, changed("ask-1"))
    assert len(bench.requests) == 1
    assert kinds(bench) == ["intercom_received", "intercom"]
    bench.reply()
    assert said(bench) == [("intercom", "ask-1")] and len(bench.requests) == 1


def test_a_busy_one_says_it_before_its_next_request_and_once(bench: Bench) -> None:
    bench.prompt()
    bench.tell(message(), changed("ask-1"))
    assert (said(bench), kinds(bench)) == ([], ["intercom_received"])
    bench.reply("read")
    assert said(bench) == []
    bench.tell(ToolEnded(bench.tools[0][0], text_output("read")))
    assert said(bench) == [("intercom", "ask-1")]
    bench.reply()
    assert len(bench.requests) == 2 and len(said(bench)) == 1


def test_what_was_said_comes_before_the_notice_of_the_end(bench: Bench) -> None:
    bench.prompt()
    bench.tell(progress("note-1"), message(), changed("ask-1"), progress("note-3"), changed(), over())
    bench.reply()
    assert said(bench) == [
        ("intercom", "note-1"),
        ("intercom", "ask-1"),
        ("intercom", "note-3"),
        ("task-completion", "completion-task-1"),
    ]


def test_what_waits_for_tasks_lets_go_also_if_it_begins_to_wait_before_the_message_is_said(bench: Bench) -> None:
    bench.prompt()
    bench.reply("owned", "slow")
    bench.tell(message(), changed("ask-1"))
    going = [LetGo("intercom-coordination")]
    assert [probe.drain() for _, probe in bench.tools] == [going, []]
    for call, _ in bench.tools:
        bench.tell(ToolEnded(call, text_output("")))
    bench.tell(progress())
    bench.reply("owned", "slow")
    assert [probe.drain() for _, probe in bench.tools[2:]] == [going, []]
    for call, _ in bench.tools[2:]:
        bench.tell(ToolEnded(call, text_output("")))
    bench.reply("owned")
    assert bench.tools[-1][1].drain() == []  # all is said by now


def test_a_question_that_was_answered_before_it_was_said_asks_nothing(bench: Bench) -> None:
    bench.prompt()
    bench.tell(message(), changed("ask-1"), message("ask-2"), changed("ask-1", "ask-2"), changed("ask-2"))
    bench.reply()
    first, second = [each for each in bench.ask("get_messages")["messages"] if each["role"] == "custom"]
    assert "waits no longer" in first["content"] and "requestId" not in first["details"]
    assert second["details"]["requestId"] == "ask-2"


def test_while_the_queue_is_held_it_is_said_and_nothing_begins(bench: Bench) -> None:
    bench.send("pause_queued_messages")
    bench.tell(message(), changed("ask-1"))
    assert said(bench) == [("intercom", "ask-1")] and bench.requests == []


def test_what_comes_while_the_session_lets_go_is_said_when_it_is_back_and_asks_nothing(bench: Bench) -> None:
    bench.tell(Retire(), message(), changed("ask-1"), changed())
    assert kinds(bench) == ["intercom_received"]
    bench.tell(BecomeCurrent(MODES))
    (back,) = [each for each in bench.ask("get_messages")["messages"] if each["role"] == "custom"]
    assert "waits no longer" in back["content"] and bench.requests == []


def test_a_file_says_what_it_owes_once_and_in_its_order(bench: Bench) -> None:
    bench.tell(Retire(), message(), progress(), over())
    for _ in range(2):
        bench.session.notices.restore()
        bench.tell(BecomeCurrent(MODES))
    names = [name for _, name in said(bench)]
    assert names == ["ask-1", "note-1", "completion-task-1"]
