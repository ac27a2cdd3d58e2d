"""What the desk needs to know of a session to begin another one from it."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from actors.session.forking import InvalidFork, branch_lines, clone_point, fork_point
from actors.session.history import History

NOT_SAVED = "This session has not been saved yet. Wait for the first assistant response before cloning or forking it."


class ForkPlan(Struct, frozen=True):
    """The lines that the new session begins with, its parent's file, and the text that was forked from."""

    lines: tuple[bytes, ...]
    parent_session: str | None
    text: str | None


def plan_fork(history: History, entry_id: str | None, uuid4: Callable[[], str]) -> ForkPlan:
    """A fork before the user message `entry_id`, or a clone at the leaf for `None`. Raises `InvalidFork`."""
    tree = history.tree
    if entry_id is None:
        leaf: str | None = clone_point(tree)
        text = None
    else:
        point = fork_point(tree, entry_id)
        leaf, text = point.leaf_id, point.text
    on_disk = history.journal.exists_on_disk
    if history.path is not None and not on_disk and leaf is not None:
        raise InvalidFork(NOT_SAVED)
    return ForkPlan(tuple(branch_lines(tree, leaf, uuid4)), history.path if on_disk else None, text)
