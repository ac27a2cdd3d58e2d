"""What an inspector knows of a session: updates, the end of the connection, and the session that takes its place."""

from __future__ import annotations

import msgspec

from runtime.inspector.board import Board
from runtime.inspector.records import Session, TaskUpdate
from tests.runtime.inspector.scripted_door import agent, settled, task
from tests.runtime.inspector.views import SESSION, board, read


def test_updates_change_tasks_and_keep_the_order_of_launch() -> None:
    known = board(task("t2"), task("t1"))
    known.hear(TaskUpdate(read(task("t3"))), 1)
    known.hear(TaskUpdate(read(task("t1", **settled("completed", exitCode=0)))), 2)
    assert [(record.ref.task_id, record.state) for record in known.tasks] == [
        ("t1", "completed"),
        ("t2", "running"),
        ("t3", "running"),
    ]


def test_a_command_in_the_foreground_is_not_listed_but_an_agent_is() -> None:
    known = board(task("t1", wasBackground=False), agent("t2", wasBackground=False))
    assert [record.ref.task_id for record in known.tasks] == ["t2"]
    known.hear(TaskUpdate(read(task("t1"))), 1)
    assert [record.ref.task_id for record in known.tasks] == ["t1", "t2"]


def test_time_is_counted_on_while_a_task_runs_and_the_connection_stands() -> None:
    known = board(
        agent("t1"),
        agent("t2", state="queued", execution={"kind": "queued"}),
        agent("t3", **settled("completed")),
        task("t4"),
    )
    assert [known.elapsed_ms(task_id, 2.5) for task_id in ("t1", "t2", "t3", "t4")] == [7500, 5000, 5000, None]
    known.lose("gone", is_alive=False, now=3.0)
    assert known.elapsed_ms("t1", 60.0) == 8000


def test_after_the_end_nothing_changes_and_everything_stays_readable() -> None:
    for is_alive, state in ((True, "lost"), (False, "ended")):
        known = board(task("t1"))
        known.lose("reset", is_alive=is_alive, now=1.0)
        known.hear(TaskUpdate(read(task("t1", **settled("completed")))), 2)
        known.renew(read(task("t1", **settled("completed"))), 2)
        assert (known.state, known.reason) == (state, "reset")
        assert [record.state for record in known.tasks] == ["running"]


def test_facts_of_the_same_session_are_taken_and_another_session_freezes_the_list() -> None:
    known = board(task("t1"))
    known.hear(msgspec.structs.replace(SESSION, model="fa/other"), 1)
    assert known.session and (known.session.model, known.state) == ("fa/other", "live")
    other = Session(session_id="next", cwd="/")
    known.hear(other, 2)
    known.hear(TaskUpdate(read(task("t9"))), 3)
    assert (known.state, known.successor) == ("replaced", other)
    assert [record.ref.task_id for record in known.tasks] == ["t1"]
    newest = Session(session_id="newest", cwd="/")
    known.hear(newest, 4)
    assert known.successor == newest
    known.begin(newest, [], 5)
    assert (known.state, known.successor, known.tasks) == ("live", None, [])


def test_before_anything_is_known_nothing_is_heard() -> None:
    known = Board()
    known.hear(TaskUpdate(read(task("t1"))), 1)
    assert (known.state, known.tasks, known.task("t1")) == ("connecting", [], None)
