"""Framing: a stream of bytes in, records out. Sans-I/O.

A record ends with LF alone; one CR before it is dropped. U+2028, U+2029, U+0085 and any other CR are data. There is no
limit on the size of a record, and the time is linear however it is cut. An empty line is an empty record.
Source: JSON lines of the contract, `rpc-protocol.md`.
"""

from __future__ import annotations


class LineSplitter:
    """Collects the pieces of the record that is not whole yet."""

    __slots__ = ("_pieces",)

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def feed(self, data: bytes) -> list[bytes]:
        """The records that `data` completes, without their line ends."""
        first, *others = data.split(b"\n")
        if first:
            self._pieces.append(first)
        if not others:
            return []
        rest = others.pop()
        records = [b"".join(self._pieces), *others]
        self._pieces = [rest] if rest else []
        return [record.removesuffix(b"\r") for record in records]

    def end(self) -> list[bytes]:
        """The last record, if the stream ended without LF. The splitter is empty afterwards."""
        record = b"".join(self._pieces)
        self._pieces = []
        return [record.removesuffix(b"\r")] if record else []
