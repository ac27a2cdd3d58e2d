"""Forks and clones: which branch they copy, and the lines of the new file.

Pure, on the tree of the source. Entries keep ids and times; labels are dropped from the branch and made anew behind it,
and what hung on a dropped label hangs on its predecessor, so that no history is cut. Source: `sessions.md` 1.9.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec
from msgspec import UNSET, Struct

from actors.session.stored import message_head, read_message, text_of
from actors.session.tree import Entry, Tree, fresh_id
from protocol.codec import decode_any, encode
from protocol.entry_head import EntryHead, WorkflowStage
from protocol.messages import UserMessage

INVALID_FORK = "Invalid entry ID for forking"
NO_LEAF = "Cannot clone session: no current entry selected"


class InvalidFork(ValueError):
    """A fork or clone that has no branch to copy; its text is the answer to the client."""


class ForkPoint(Struct, frozen=True):
    """The last entry that is copied (`None`: the fork begins empty), and the text of the user message behind it."""

    leaf_id: str | None
    text: str


def fork_point(tree: Tree, entry_id: str) -> ForkPoint:
    """Where a fork before the user message `entry_id` ends. Raises `InvalidFork` for any other entry."""
    entry = tree.get(entry_id)
    text = None if entry is None else user_text(entry)
    if entry is None or text is None:
        raise InvalidFork(INVALID_FORK)
    path = tree.path(entry_id)
    return ForkPoint(path[-2].head.id if len(path) > 1 else None, text)


def clone_point(tree: Tree) -> str:
    """The current leaf. Raises `InvalidFork` when there is none."""
    if tree.leaf_id is None:
        raise InvalidFork(NO_LEAF)
    return tree.leaf_id


def branch_lines(tree: Tree, leaf_id: str | None, uuid4: Callable[[], str]) -> list[bytes]:
    """The entry lines of a new session that begins with the branch of `leaf_id`; its header is not among them."""
    kept = [entry for entry in tree.path(leaf_id) if entry.head.type != "label"]
    lines: list[bytes] = []
    parent: str | None = None
    for entry in kept:
        lines.append(_with_parent(entry, parent))
        parent = entry.head.id
    return [*lines, *_label_lines(tree, kept, uuid4)]


class ForkTexts:
    """What a fork may start before: user messages of all branches that have text, in append order. Each entry is read
    once, since entries are only ever appended; what is kept are the texts as the response has them. One for each tree.
    """

    __slots__ = ("_read", "_told")

    def __init__(self) -> None:
        self._read = 0
        self._told: list[bytes] = []

    def unread(self, tree: Tree) -> list[Entry]:
        return tree.entries[self._read :]

    def take(self, entries: list[Entry], told: list[bytes]) -> None:
        """`told` is `fork_messages` of what was `unread`."""
        self._read += len(entries)
        self._told += told

    def data(self, tree: Tree) -> bytes:
        """Data of `get_fork_messages`, as JSON."""
        unread = self.unread(tree)
        self.take(unread, fork_messages(unread))
        return b'{"messages":[' + b",".join(self._told) + b"]}"


def fork_messages(entries: Iterable[Entry]) -> list[bytes]:
    """The user messages among them that have text, as the response has them."""
    from protocol.responses import ForkMessage

    texts = ((entry.head.id, user_text(entry)) for entry in entries)
    return [encode(ForkMessage(entry_id, text)) for entry_id, text in texts if text]


def user_text(entry: Entry) -> str | None:
    """The text of a user message; `None` for any other entry."""
    head = entry.head
    if head.type != "message" or head.message is UNSET or message_head(head.message).role != "user":
        return None
    message = read_message(bytes(head.message))
    return text_of(message.content) if isinstance(message, UserMessage) else None


def inherited_workflow(header: EntryHead) -> WorkflowStage | None:
    """The workflow stage that a copy of this session belongs to as well; `None` unless its marking is complete."""
    if header.internal is not True or header.workflow is UNSET:
        return None
    try:
        stage = msgspec.json.decode(header.workflow, type=WorkflowStage)
    except Exception:
        return None
    return stage if all(map(str.strip, (stage.run_id, stage.stage_id, stage.stage_name))) else None


def _with_parent(entry: Entry, parent: str | None) -> bytes:
    if entry.head.parent_id == parent:
        return entry.raw
    return encode({**decode_any(entry.raw), "parentId": parent})


def _label_lines(tree: Tree, kept: list[Entry], uuid4: Callable[[], str]) -> list[bytes]:
    """Fresh label entries for the labelled entries of the branch, in its order, with the times of the labels."""
    labels = tree.labels()
    taken = {entry.head.id for entry in kept}
    parent = kept[-1].head.id if kept else None
    lines: list[bytes] = []
    for target in [entry.head.id for entry in kept if entry.head.id in labels]:
        label, timestamp = labels[target]
        label_id = fresh_id(uuid4, taken)
        taken.add(label_id)
        fields = {"id": label_id, "parentId": parent, "timestamp": timestamp, "targetId": target, "label": label}
        lines.append(encode({"type": "label", **fields}))
        parent = label_id
    return lines
