"""The list of tasks as lines: agents, then shells, each group with its counts, and which line belongs to which task.

Pure. Rows stand in the order of launch, so that a change of state moves nothing.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from protocol.tasks import TaskRecord, TaskState
from runtime.inspector.board import ACTIVE, Board
from runtime.inspector.state_view import LOOKS, model_of, name_of
from runtime.inspector.texts import Line, cells, clipped, duration, pad, two_ends

WIDE = 110
"""From this many cells on a row has its model on the same line."""
NARROW = 60
"""Below, the symbol alone tells the state."""
NONE = "No background tasks."
GROUPS = (("agent", "Agents"), ("command", "Shells"))
_STATE_CELLS = 13
_MODEL_CELLS = 44
_ORDER: tuple[TaskState, ...] = ("inputNeeded", "running", "stopping", "queued", "failed", "stopped", "completed")


class Shown(NamedTuple):
    """`lines`, and for each the task that it belongs to."""

    lines: list[Line]
    owners: list[str | None]

    def place_of(self, task_id: str | None) -> int | None:
        """The first line of a task."""
        return self.owners.index(task_id) if task_id is not None and task_id in self.owners else None


def show_list(board: Board, selected: str | None, width: int, now: float) -> Shown:
    shown = Shown([], [])
    for kind, title in GROUPS:
        members = [record for record in board.tasks if record.kind == kind]
        if not members:
            continue
        if shown.lines:
            _add(shown, None, ())
        _add(shown, None, clipped(_head(title, members), width))
        for record in members:
            for line in _row(board, record, record.ref.task_id == selected, width, now):
                _add(shown, record.ref.task_id, line)
    if not shown.lines:
        _add(shown, None, clipped(((f" {NONE}", "dim"),), width))
    return shown


def order(board: Board) -> list[str]:
    """The tasks in the order in which the list shows them."""
    return [record.ref.task_id for kind, _ in GROUPS for record in board.tasks if record.kind == kind]


def moved(board: Board, selected: str | None, by: int) -> str | None:
    """The task `by` rows from the selected one; the first one if that is not there."""
    ids = order(board)
    if not ids:
        return None
    if selected not in ids:
        return first_choice(board)
    return ids[min(max(ids.index(selected) + by, 0), len(ids) - 1)]


def first_choice(board: Board) -> str | None:
    """What is selected before anybody has chosen: what needs input, else what is active, else the first."""
    ids = order(board)
    states = {record.ref.task_id: record.state for record in board.tasks}
    for wanted in (frozenset({"inputNeeded"}), ACTIVE, frozenset(states.values())):
        for task_id in ids:
            if states[task_id] in wanted:
                return task_id
    return None


def counts(members: list[TaskRecord]) -> str:
    """`2 running · 1 queued`, in an order of its own."""
    found = Counter(record.state for record in members)
    return " · ".join(f"{found[state]} {LOOKS[state].word.lower()}" for state in _ORDER if found[state])


def _head(title: str, members: list[TaskRecord]) -> Line:
    return ((f" {title}", "bold"), (f" {len(members)}", "bold"), (f"   {counts(members)}", "dim"))


def _row(board: Board, record: TaskRecord, is_selected: bool, width: int, now: float) -> list[Line]:
    look = LOOKS[record.state]
    elapsed = board.elapsed_ms(record.ref.task_id, now)
    word = pad(look.word, _STATE_CELLS) + " " if width >= NARROW else ""
    start: Line = ((" ▸ " if is_selected else "   ", "mark"), (f"{look.symbol} ", look.style), (word, look.style))
    name = (name_of(record), "bold" if is_selected else "")
    model = model_of(record)
    end: Line = ((duration(elapsed) if elapsed is not None else "", "dim"), (" ", ""))
    if model and width >= WIDE:
        end = ((pad(model, _MODEL_CELLS) + "  ", "dim"), (end[0][0].rjust(8), "dim"), (" ", ""))
    lines = [two_ends((*start, name), end, width)]
    if model and width < WIDE:
        lines.append(clipped(((" " * sum(cells(text) for text, _ in start), ""), (model, "dim")), width))
    return lines


def _add(shown: Shown, owner: str | None, line: Line) -> None:
    shown.lines.append(line)
    shown.owners.append(owner)
