"""Where a move in the session's tree leads, and what it leaves behind. Pure. Source: `sessions.md` 1.9 and 2.12."""

from __future__ import annotations

from msgspec import Struct

from actors.session.context import context_message
from actors.session.forking import user_text
from actors.session.provider_view import shown_message
from actors.session.stored import text_of
from actors.session.tree import Entry, Tree


class Destination(Struct, frozen=True):
    """The new leaf (`None`: before the first entry), and the text that the user may say again there."""

    leaf_id: str | None
    editor_text: str | None = None


def destination(tree: Tree, target: Entry) -> Destination:
    """The target itself; the place before it if it is something that the user said."""
    text = user_text(target)
    if text is None and target.head.type == "custom_message":
        text = _custom_text(target)
    if text is None:
        return Destination(target.head.id)
    path = tree.path(target.head.id)
    return Destination(path[-2].head.id if len(path) > 1 else None, text)


def left_behind(tree: Tree, target_id: str) -> list[Entry]:
    """The entries of the current branch that the branch of the target does not have, oldest first."""
    shared = {entry.head.id for entry in tree.path(target_id)}
    path = tree.path(tree.leaf_id)
    beginning = next((place for place in range(len(path), 0, -1) if path[place - 1].head.id in shared), 0)
    return path[beginning:]


def _custom_text(entry: Entry) -> str:
    message = context_message(entry)
    shown = None if message is None else shown_message(message.message())
    return "" if shown is None else text_of(shown.content)
