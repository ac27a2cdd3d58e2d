"""The outline of a page: every entry below its parent, the opened branch first, as data for the page's script.

Pure, and without recursion: a session is often one chain of thousands of entries. Source: `sessions.md` 1.4 and 9.
"""

from __future__ import annotations

from actors.session.export_entries import Card
from actors.session.tree import Tree
from protocol.codec import encode

TOOL_ONLY, FAILED, QUIET = 1, 2, 4
_UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


class Outline:
    """The shape of a tree: `parents` by position (-1 for a root), `leaf` the position of the opened entry (-1 for
    none), `path` the positions from its root to it."""

    __slots__ = ("_children", "_roots", "leaf", "parents", "path")

    def __init__(self, tree: Tree, leaf_id: str | None) -> None:
        self._roots, self._children = tree.shape()
        self.parents = [-1] * len(tree)
        for position, children in enumerate(self._children):
            for child in children:
                self.parents[child] = position
        self.leaf = _last_position(tree, leaf_id)
        self.path: set[int] = set()
        position = self.leaf
        while position >= 0:
            self.path.add(position)
            position = self.parents[position]

    def preorder(self) -> list[int]:
        """Positions, each after its parent; of siblings the one on the path first, the others by time."""
        order: list[int] = []
        stack = self._reversed(self._roots)
        while stack:
            position = stack.pop()
            order.append(position)
            stack += self._reversed(self._children[position])
        return order

    def _reversed(self, siblings: list[int]) -> list[int]:
        return sorted(siblings, key=lambda position: position not in self.path)[::-1]

    def script_data(self, made: list[Card], labels: dict[str, str]) -> str:
        """JSON for a script element: `leaf` (index into `nodes`, or -1), and `nodes` in preorder, each `[position,
        index of the parent, kind, flags, id, line, label]`. No character of it can end the element."""
        order = self.preorder()
        index = {position: number for number, position in enumerate(order)}
        index[-1] = -1
        nodes = [[at, index[self.parents[at]], *_described(made[at], labels)] for at in order]
        return _inert(encode({"leaf": index[self.leaf], "nodes": nodes}).decode())


def _described(card: Card, labels: dict[str, str]) -> list[str | int]:
    flags = TOOL_ONLY * card.tool_only + FAILED * card.failed + QUIET * card.quiet
    return [card.kind, flags, card.id, card.line, labels.get(card.id, "")]


def _inert(json_text: str) -> str:
    for character, written in _UNSAFE.items():
        json_text = json_text.replace(character, written)
    return json_text


def _last_position(tree: Tree, entry_id: str | None) -> int:
    """Of entries with one id the last one counts."""
    if entry_id is None or entry_id not in tree:
        return -1
    return next(at for at in range(len(tree) - 1, -1, -1) if tree.entries[at].head.id == entry_id)
