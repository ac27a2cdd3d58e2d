"""The data of `get_tree`, written and read without recursion.

A conversation is a chain of thousands of entries, each the child of the one before, and the wire nests them: deeper
than JSON libraries go. Entries are copied as they stand in the file; the time is linear.
Source: contract `rpc-protocol.md`, "get_tree".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from protocol.json_text import BadJson, encode

_SPACE = " \t\r\n"
_CLOSING = -1


def tree_data(
    raws: Sequence[bytes],
    roots: Sequence[int],
    children: Sequence[Sequence[int]],
    labels: Mapping[int, tuple[str, str]],
    leaf_id: str | None,
) -> bytes:
    """`{"tree": [...], "leafId": ...}`. Entries are positions in `raws` (encoded JSON); `children[position]` are
    those of one entry, in order; `labels[position]` is its label and the label's time. No entry may be its own
    ancestor.

    Children stand before their entry: a client that looks at the head of a record too deep for its JSON library finds
    the response's own `type` and `id` there, and no entry's."""
    parts = [b'{"tree":[']
    stack = _siblings(roots)
    while stack:
        position, text = stack.pop()
        parts.append(text)
        if position == _CLOSING:
            continue
        chain = _chain(position, children)
        parts.append(b'{"children":[' * len(chain))
        closing = _closing(chain, raws, labels)
        below = children[chain[-1]]
        if below:
            stack.append((_CLOSING, b"".join(closing)))
            stack += _siblings(below)
        else:
            parts += closing
    parts += (b'],"leafId":', encode(leaf_id), b"}")
    return b"".join(parts)


def _chain(position: int, children: Sequence[Sequence[int]]) -> list[int]:
    """`position` and what hangs below it one by one: a conversation is mostly that, and needs no stack."""
    chain = [position]
    while len(below := children[position]) == 1:
        position = below[0]
        chain.append(position)
    return chain


def _siblings(positions: Sequence[int]) -> list[tuple[int, bytes]]:
    """`positions` with what stands before each, last one first: the order in which a stack takes them."""
    if len(positions) < 2:  # nearly always: a chain
        return [(position, b"") for position in positions]
    return [(position, b",") for position in positions[:0:-1]] + [(positions[0], b"")]


def _closing(chain: list[int], raws: Sequence[bytes], labels: Mapping[int, tuple[str, str]]) -> list[bytes]:
    """What ends the nodes of `chain`, the innermost first."""
    parts: list[bytes] = []
    for position in reversed(chain):
        label = labels.get(position) if labels else None
        if label is None:
            parts += (b'],"entry":', raws[position], b"}")
        else:
            marks = b',"label":' + encode(label[0]) + b',"labelTimestamp":' + encode(label[1])
            parts += (b'],"entry":', raws[position], marks, b"}")
    return parts


def read_deep(data: bytes) -> Any:
    """The value of any JSON text, however deep it nests. Raises `BadJson`. Slower than the codec by far: for what the
    codec cannot read."""
    from json import JSONDecodeError

    text = data.decode(errors="replace")
    try:
        return _DeepReader(text).read()
    except (IndexError, JSONDecodeError):
        raise BadJson("not JSON") from None


class _DeepReader:
    """A parser with its own stack. Each open container waits with the key under which its value will stand."""

    __slots__ = ("_at", "_scalar", "_stack", "_text")

    def __init__(self, text: str) -> None:
        from json import JSONDecoder

        self._text = text
        self._at = 0
        self._scalar = JSONDecoder(parse_constant=_refuse).raw_decode
        self._stack: list[tuple[Any, str | None]] = []

    def read(self) -> Any:
        while True:
            value, whole = self._begin()
            while whole and self._stack:
                value, whole = self._place(value)
            if whole:
                break
        if self._text[self._at :].strip(_SPACE):
            raise BadJson("more than one value")
        return value

    def _begin(self) -> tuple[Any, bool]:
        """Start the next value: a scalar or an empty container is whole, another container is opened."""
        opening = self._peek()
        if opening not in "{[":
            value, self._at = self._scalar(self._text, self._at)
            return value, True
        self._at += 1
        container: Any = {} if opening == "{" else []
        if self._peek() == ("}" if opening == "{" else "]"):
            self._at += 1
            return container, True
        self._stack.append((container, self._key() if opening == "{" else None))
        return container, False

    def _place(self, value: Any) -> tuple[Any, bool]:
        """Put `value` into the innermost container; that is whole when its closing bracket follows."""
        container, key = self._stack.pop()
        if key is None:
            container.append(value)
        else:
            container[key] = value
        mark = self._peek()
        self._at += 1
        if mark == ("]" if key is None else "}"):
            return container, True
        if mark != ",":
            raise BadJson(f"expected a comma at character {self._at - 1}")
        self._stack.append((container, None if key is None else self._key()))
        return container, False

    def _key(self) -> str:
        if self._peek() != '"':
            raise BadJson(f"expected a key at character {self._at}")
        key, self._at = self._scalar(self._text, self._at)
        if self._peek() != ":":
            raise BadJson(f"expected a colon at character {self._at}")
        self._at += 1
        return str(key)

    def _peek(self) -> str:
        while self._text[self._at] in _SPACE:
            self._at += 1
        return self._text[self._at]


def _refuse(name: str) -> None:
    raise BadJson(f"{name} is not JSON")
