"""The tree of one session: every entry in append order, the index by id, and the leaf that the next entry hangs on.

Owns the order, the shape and what follows from them (path, roots, labels, name). Entries stay the bytes that were
read or written, so that `get_entries` and `get_tree` copy them. Files may hold duplicate ids (the last one is found,
all are listed), unknown parents and cycles of parents: every walk here ends, and every entry appears exactly once.
Source: `sessions.md` 1.4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct

from protocol.codec import encode
from protocol.entry_head import EntryHead
from protocol.tree_json import tree_data

_ROOT = -1
_ID_TRIES = 100


class UnknownEntry(LookupError):
    """An id that no entry of the session has. Its text is the answer to the client."""


class Entry(Struct, frozen=True):
    """One stored line: its JSON without line feed, and what was read of it."""

    raw: bytes
    head: EntryHead


class Tree:
    """All entries of a session. `leaf_id` is `None` when the next entry will be a root."""

    __slots__ = ("_index", "_labels", "_names", "entries", "leaf_id", "raws")

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self.entries: list[Entry] = []
        self.raws: list[bytes] = []
        self.leaf_id: str | None = None
        self._index: dict[str, int] = {}
        self._labels: list[EntryHead] = []
        self._names: list[EntryHead] = []
        for entry in entries:
            self.add(entry.raw, entry.head)

    def copy(self) -> Tree:
        """For a pump: what is appended to one of them the other does not have."""
        copy = Tree()
        copy.entries, copy.raws, copy.leaf_id = self.entries[:], self.raws[:], self.leaf_id
        copy._index, copy._labels, copy._names = self._index.copy(), self._labels[:], self._names[:]
        return copy

    def __len__(self) -> int:
        return len(self.entries)

    def __contains__(self, entry_id: str) -> bool:
        return entry_id in self._index

    def add(self, raw: bytes, head: EntryHead) -> None:
        """Append one entry, of any type; it becomes the leaf."""
        self._index[head.id] = len(self.entries)
        self.entries.append(Entry(raw, head))
        self.raws.append(raw)
        self.leaf_id = head.id
        if head.type == "label":
            self._labels.append(head)
        elif head.type == "session_info":
            self._names.append(head)

    # ---- the leaf ------------------------------------------------------------------------------------------------

    def branch(self, entry_id: str) -> None:
        """Move the leaf. Raises `UnknownEntry` (`Entry <id> not found`)."""
        if entry_id not in self._index:
            raise UnknownEntry(f"Entry {entry_id} not found")
        self.leaf_id = entry_id

    def reset(self) -> None:
        """Let the next entry be a new root."""
        self.leaf_id = None

    # ---- reading -------------------------------------------------------------------------------------------------

    def get(self, entry_id: str) -> Entry | None:
        position = self._index.get(entry_id)
        return None if position is None else self.entries[position]

    def path(self, leaf_id: str | None) -> list[Entry]:
        """Entries from the root down to `leaf_id`. An unknown parent or a cycle is where the path begins."""
        positions: list[int] = []
        seen: set[int] = set()
        position = _ROOT if leaf_id is None else self._index.get(leaf_id, _ROOT)
        while position != _ROOT and position not in seen:
            seen.add(position)
            positions.append(position)
            position = self._parent(position)
        return [self.entries[position] for position in reversed(positions)]

    def entries_after(self, entry_id: str | None) -> list[bytes]:
        """Lines appended after `entry_id`, of all branches; all of them for `None`. Raises `UnknownEntry`."""
        if entry_id is None:
            return self.raws[:]
        position = self._index.get(entry_id)
        if position is None:
            raise UnknownEntry(f"Entry not found: {entry_id}")
        return self.raws[position + 1 :]

    @property
    def name(self) -> str | None:
        """The session's name as the latest `session_info` of the whole file tells it."""
        name = self._names[-1].name if self._names else None
        return (name or "").strip() or None

    def labels(self) -> dict[str, tuple[str, str]]:
        """Target id -> (label, time of the label entry, ISO). The last label of a target counts; cleared ones are
        gone."""
        found: dict[str, tuple[str, str]] = {}
        for head in self._labels:
            target = head.target_id or ""
            found.pop(target, None)
            if head.label and target:
                found[target] = (head.label, head.timestamp)
        return found

    # ---- shape ---------------------------------------------------------------------------------------------------

    def shape(self) -> tuple[list[int], list[list[int]]]:
        """Positions of the roots, and for each position those of its children, both by time. A cycle is cut above its
        oldest entry."""
        parents = [self._parent(position) for position in range(len(self.entries))]
        _cut_cycles(parents)
        roots: list[int] = []
        children: list[list[int]] = [[] for _ in parents]
        for position, parent in enumerate(parents):
            (roots if parent == _ROOT else children[parent]).append(position)
        for siblings in (roots, *(group for group in children if len(group) > 1)):
            siblings.sort(key=self._time)
        return roots, children

    def _time(self, position: int) -> str:
        return self.entries[position].head.timestamp

    def _parent(self, position: int) -> int:
        head = self.entries[position].head
        if head.parent_id is None or head.parent_id == head.id:
            return _ROOT
        return self._index.get(head.parent_id, _ROOT)

    # ---- data of responses ---------------------------------------------------------------------------------------

    def entries_data(self, since: str | None = None) -> bytes:
        """Data of `get_entries`, as JSON. Raises `UnknownEntry`."""
        lines = b",".join(self.entries_after(since))
        return b"".join((b'{"entries":[', lines, b'],"leafId":', encode(self.leaf_id), b"}"))

    def tree_data(self) -> bytes:
        """Data of `get_tree`, as JSON."""
        roots, children = self.shape()
        marks = {self._index[target]: label for target, label in self.labels().items() if target in self._index}
        return tree_data(self.raws, roots, children, marks, self.leaf_id)

    # ---- ids -----------------------------------------------------------------------------------------------------

    def new_id(self, uuid4: Callable[[], str]) -> str:
        """An id for the next entry: the first 8 hex digits of a random UUID that no entry has yet."""
        return fresh_id(uuid4, self._index)


def fresh_id(uuid4: Callable[[], str], taken: Iterable[str]) -> str:
    """The first 8 hex digits of what `uuid4` gives, tried against `taken` (a set or mapping); at last a whole UUID."""
    known = taken if isinstance(taken, set | dict) else set(taken)
    for _ in range(_ID_TRIES):
        short = uuid4()[:8]
        if short not in known:
            return short
    return uuid4()


def _cut_cycles(parents: list[int]) -> None:
    """Make the oldest entry of each cycle a root, in place and in linear time."""
    walk_of = [_ROOT] * len(parents)
    for start in range(len(parents)):
        position = start
        while position != _ROOT and walk_of[position] == _ROOT:
            walk_of[position] = start
            position = parents[position]
        if position != _ROOT and walk_of[position] == start:
            parents[_oldest_of_cycle(parents, position)] = _ROOT


def _oldest_of_cycle(parents: list[int], member: int) -> int:
    oldest, position = member, parents[member]
    while position != member:
        oldest, position = min(oldest, position), parents[position]
    return oldest
