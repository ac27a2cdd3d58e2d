"""The list: groups with counts, rows that say how each task stands, and a selection that belongs to a task."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.inspector.list_view import first_choice, moved, order, show_list
from runtime.inspector.texts import cells
from tests.runtime.inspector.scripted_door import agent, settled, task
from tests.runtime.inspector.views import board, shown

STATES = [
    ("queued", {"state": "queued", "execution": {"kind": "queued"}}, "○ Queued"),
    ("running", {}, "● Running"),
    ("input", {"state": "inputNeeded", "attention": {"kind": "input-needed", "requestIds": ["q"]}}, "? Input needed"),
    ("stopping", {"state": "stopping", "execution": {"kind": "cancelling", "cause": "user"}}, "◌ Stopping"),
    ("completed", settled("completed"), "✓ Completed"),
    ("failed", settled("failed", code="AgentFailed", message="m"), "✗ Failed"),
    ("stopped", settled("cancelled", cause="user"), "■ Stopped"),
]


@pytest.mark.parametrize(("title", "fields", "told"), STATES)
def test_each_state_has_its_symbol_and_its_word(title: str, fields: dict[str, object], told: str) -> None:
    lines = shown(show_list(board(task("t1", title=title, **fields)), None, 80, 0).lines)
    assert lines[1].split() == [*told.split(), title]


def test_agents_come_before_shells_each_with_counts_model_level_and_time() -> None:
    known = board(
        task("t1", title="make"),
        agent("t2", title="find it", metrics={"elapsedMs": 134_000}),
        agent("t3", title="wait", state="queued", execution={"kind": "queued"}, metrics={}, model="p/m"),
        task("t4", title="ls", **settled("completed", exitCode=0)),
    )
    assert shown(show_list(known, "t2", 80, 0).lines) == [
        " Agents 2   1 running · 1 queued",
        " ▸ ● Running       scout · find it                                       2m 14s",
        "                   fa/m · thinking medium",
        "   ○ Queued        scout · wait",
        "                   p/m · thinking medium",
        "",
        " Shells 2   1 running · 1 completed",
        "   ● Running       make",
        "   ✓ Completed     ls",
    ]


def test_a_wide_screen_has_the_model_in_the_row_and_a_narrow_one_no_words() -> None:
    known = board(agent("t2", title="find it"))
    wide = shown(show_list(known, "t2", 120, 0).lines)
    assert len(wide) == 2
    assert wide[1].endswith("fa/m · thinking medium                              5s")
    assert shown(show_list(known, "t2", 30, 0).lines)[1] == " ▸ ● scout · find it       5s"


def test_no_tasks_is_said() -> None:
    assert shown(show_list(board(), None, 80, 0).lines) == [" No background tasks."]
    assert (first_choice(board()), moved(board(), "gone", 1)) == (None, None)


def test_what_needs_input_is_chosen_first_then_what_is_active_then_the_first() -> None:
    over = settled("completed")
    asking = {"state": "inputNeeded", "attention": {"kind": "input-needed", "requestIds": ["q"]}}
    assert first_choice(board(agent("t1", **over), task("t2"), agent("t3", **asking))) == "t3"
    assert first_choice(board(agent("t1", **over), task("t2"), task("t3"))) == "t2"
    assert first_choice(board(task("t1", **over), agent("t2", **over))) == "t2"


def test_the_selection_moves_through_both_groups_and_stays_at_the_ends() -> None:
    known = board(task("t1"), agent("t2"), task("t3"))
    assert order(known) == ["t2", "t1", "t3"]
    assert [moved(known, "t2", by) for by in (-1, 1, 2, 9)] == ["t2", "t1", "t3", "t3"]


@given(
    st.lists(st.tuples(st.text(max_size=40), st.sampled_from(STATES), st.booleans()), max_size=6), st.integers(8, 150)
)
def test_no_line_is_wider_than_the_screen_and_each_row_knows_its_task(
    rows: list[tuple[str, tuple[str, dict[str, object], str], bool]], width: int
) -> None:
    made = [
        (agent if is_agent else task)(f"t{place}", title=title.encode(errors="replace").decode(), **state[1])
        for place, (title, state, is_agent) in enumerate(rows)
    ]
    view = show_list(board(*made), "t0", width, 0)
    assert [line for line in shown(view.lines) if cells(line) > width] == []
    assert {owner for owner in view.owners if owner} == {f"t{place}" for place in range(len(rows))}
    assert len(view.owners) == len(view.lines)
