"""Completion notices of a real session between probes: each is said once, whatever a crash or a hand-over cut off."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from actors.mail import BecomeCurrent, Retire, TaskChanged
from actors.session.file import open_session
from actors.session.fork_plan import plan_fork
from actors.session.opening import Opener
from actors.session.surroundings import Surroundings
from actors.session.target import Target
from actors.task.notice import TaskNotice
from actors.task.state import Launch, Task
from protocol.tasks import CompletionEnvelope, TaskCancelled, TaskCompleted, TaskRef, TaskResult
from tests.actors.session.test_session import MODES, Bench

WORDS = {"task-completion-intent": "intent", "task-completion": "said", "task-completion-ack": "ack"}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A session that has talked, so that it has a file."""
    bench = Bench(tmp_path)
    bench.prompt()
    bench.reply()
    bench.writes()
    return bench


def over(name: str = "t1", result: TaskResult | None = None) -> TaskChanged:
    """A background task has ended."""
    task = Task(TaskRef("o", name, "a", "g"), Launch(name, "command", "make"), 0, float)
    envelope = CompletionEnvelope(f"completion-{name}", "o", name, "1", result or TaskCompleted(exit_code=0))
    return TaskChanged(task.record(), TaskNotice(envelope, "make", "Background shell", "out"))


def steps(bench: Bench, name: str = "t1") -> list[str]:
    """What the file says of one completion, in its order."""
    entries = [entry for entry in bench.ask("get_entries")["entries"] if entry.get("customType") in WORDS]
    told = [(WORDS[entry["customType"]], entry.get("details") or entry["data"]) for entry in entries]
    return [word for word, about in told if about["completionId"] == f"completion-{name}"]


def contents(bench: Bench) -> list[str]:
    messages = bench.ask("get_messages")["messages"]
    return [each["content"] for each in messages if each.get("customType") == "task-completion"]


def again(bench: Bench, edit: Callable[[list[str]], list[str]]) -> Bench:
    """The next process, with the file as the one before has left it."""
    journal = bench.session.opened.journal
    journal.close()
    path = Path(journal.path or "")
    path.write_text("".join(edit(path.read_text().splitlines(keepends=True))))
    return Bench(bench.folder, opened=open_session(str(path), bench.stamps, "/"))


def upto(word: str) -> Callable[[list[str]], list[str]]:
    """The file as it was when this had been written and nothing after it."""
    kind = next(kind for kind, its_word in WORDS.items() if its_word == word)

    def edit(lines: list[str]) -> list[str]:
        last = max(place for place, line in enumerate(lines) if f'"customType":"{kind}"' in line)
        return lines[: last + 1]

    return edit


def test_the_end_of_a_task_is_written_said_and_acknowledged_and_begins_a_run(bench: Bench) -> None:  # 2.10
    bench.tell(over())
    assert steps(bench) == ["intent", "said", "ack"] and len(bench.requests) == 2
    bench.reply()
    assert len(contents(bench)) == 1 and len(bench.requests) == 2


def test_the_intent_is_in_the_file_before_a_run_can_say_it(bench: Bench) -> None:
    bench.prompt()
    bench.tell(over())
    assert steps(bench) == ["intent"]
    bench.reply("read")
    bench.returned()
    assert steps(bench) == ["intent", "said", "ack"]


def test_the_same_end_is_told_once_however_often_it_comes(bench: Bench) -> None:  # rows 48, 52
    bench.tell(over(), over())
    bench.reply()
    bench.tell(over())
    assert steps(bench) == ["intent", "said", "ack"] and len(bench.requests) == 2


@pytest.mark.parametrize(
    ("crashed_after", "messages"), [("intent", ["Background task completed: t1"]), ("said", []), ("ack", [])]
)
def test_a_crash_anywhere_on_the_way_costs_no_notice_and_makes_none_twice(  # rows 48, 51
    bench: Bench, crashed_after: str, messages: list[str]
) -> None:
    bench.tell(over())
    second = again(bench, upto(crashed_after))
    told = [record for record in second.records() if record["type"] == "message_end"]
    assert [record["message"]["content"].split("\n")[0] for record in told] == messages
    assert steps(second) == ["intent", "said", "ack"] and len(contents(second)) == 1
    third = again(second, lambda lines: lines)
    assert third.told() == [] and steps(third) == ["intent", "said", "ack"]
    assert second.requests == third.requests == [], "it asks no model by itself"


def test_of_several_that_a_file_holds_only_what_is_owed_is_said_in_its_order(bench: Bench) -> None:  # row 49
    bench.tell(over("t1"))
    bench.reply()
    bench.prompt()
    bench.tell(over("t2"), over("t3", TaskCompleted(exit_code=2)))
    second = again(bench, lambda lines: lines)
    assert [content.split("\n")[0] for content in contents(second)] == [
        "Background shell completed: make",
        "Background task completed: t2",
        "Background task failed: t3",
    ]
    for name in ("t1", "t2", "t3"):
        assert steps(second, name) == ["intent", "said", "ack"]


def test_of_entries_about_tasks_that_are_broken_the_others_are_said(bench: Bench) -> None:
    bench.prompt()
    bench.tell(over("t1"), over("t2"))
    second = again(bench, lambda lines: [line.replace('"completion-t1"', "7") for line in lines])
    assert [content.split("\n")[0] for content in contents(second)] == ["Background task completed: t2"]


@pytest.mark.parametrize("result", [TaskCancelled("owner-close"), TaskCompleted(exit_code=0)])
def test_while_a_session_lets_go_nothing_is_said_and_what_it_owes_is_when_it_is_back(  # row 53
    bench: Bench, result: TaskResult
) -> None:
    bench.tell(Retire(), over(result=result))
    assert steps(bench) == ["intent"] and contents(bench) == []
    bench.tell(BecomeCurrent(MODES))
    assert steps(bench) == ["intent", "said", "ack"] and len(bench.requests) == 1, "and wakes nobody"
    assert len(contents(bench)) == 1


def test_a_compaction_leaves_what_is_owed_and_what_was_said_as_it_is(bench: Bench) -> None:
    compacted: dict[str, Any] = {"strategy": "verbatim-lines", "promptVersion": 3, "rung": "planned"}
    boundary: dict[str, Any] = {"summary": "short", "firstKeptEntryId": None, "tokensBefore": 9, "details": compacted}
    bench.tell(over("t1"))
    bench.reply()
    bench.prompt()
    bench.tell(over("t2"))
    bench.session.history.append("compaction", **boundary)
    second = again(bench, lambda lines: lines)
    assert steps(second, "t1") == steps(second, "t2") == ["intent", "said", "ack"]
    assert [content.split("\n")[0] for content in contents(second)] == ["Background task completed: t2"]


def test_a_fork_says_what_its_history_owes_and_not_what_was_said_in_it(bench: Bench) -> None:
    bench.tell(over("t1"))
    bench.reply()
    bench.prompt()
    bench.tell(over("t2"))
    plan = plan_fork(bench.session.history, None, bench.stamps.uuid4)
    folder = str(bench.folder)
    opener = Opener(lambda *_: None, bench.stamps, folder, folder, lambda _: Surroundings(lambda *_: ""))
    forked = Bench(bench.folder, opened=opener.opened(Target("fork", bench.session.opened, lines=plan.lines)))
    assert [content.split("\n")[0] for content in contents(forked)] == [
        "Background shell completed: make",
        "Background task completed: t2",
    ]
    assert steps(forked, "t1") == steps(forked, "t2") == ["intent", "said", "ack"]
    assert steps(bench, "t2") == ["intent"], "the session that it comes from still owes it to its own conversation"
