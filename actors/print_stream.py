"""What stands on stdout, by output form: events with snapshots, events with deltas, or the text of the last answer.

Pure: lines come in as sessions encode them, lines for stdout go out. The order of events is kept. In the form with
snapshots a delta waits `INTERVAL_MS` for those of its block that follow, and they are shown as one; what waits goes out
before anything else does.
"""

from __future__ import annotations

from typing import Protocol

from actors.print_outcome import Outcome
from actors.print_snapshot import Snapshot, read_update
from protocol.codec import decode_any

INTERVAL_MS = 50
_UPDATE = b'{"type":"message_update"'
_START = b'{"type":"message_start"'
_END = b'{"type":"message_end"'

Lines = list[bytes]


class Form(Protocol):
    """`line` ends with a line feed. `waits` tells that something is held back. `wants_tick` gives, once, the number
    with which `tick` is to be called in `INTERVAL_MS`."""

    def waits(self) -> bool: ...
    def wants_tick(self) -> int | None: ...
    def take(self, line: bytes) -> Lines: ...
    def tick(self, number: int) -> Lines: ...
    def end(self, last: Outcome, *, refused: bool) -> Lines: ...


class TextForm:
    """Nothing until the end, then the last answer; nothing if a prompt was refused."""

    def waits(self) -> bool:
        return False

    def wants_tick(self) -> int | None:
        return None

    def take(self, line: bytes) -> Lines:
        return []

    def tick(self, number: int) -> Lines:
        return []

    def end(self, last: Outcome, *, refused: bool) -> Lines:
        text = "" if refused else last.text
        return [text.encode("utf-8", "replace")] if text else []


class DeltaForm:
    """The session's header, then every event as it comes. The header waits for the first event, so that stdout stays
    empty when the first prompt is refused."""

    def __init__(self, header: bytes) -> None:
        self._header = header

    def waits(self) -> bool:
        return False

    def wants_tick(self) -> int | None:
        return None

    def take(self, line: bytes) -> Lines:
        return self._begin([line])

    def tick(self, number: int) -> Lines:
        return []

    def end(self, last: Outcome, *, refused: bool) -> Lines:
        return [] if refused else self._begin([])

    def _begin(self, lines: Lines) -> Lines:
        header, self._header = self._header, b""
        return [header, *lines] if header else lines


class SnapshotForm(DeltaForm):
    """The same, with the message so far in each `message_update`."""

    def __init__(self, header: bytes) -> None:
        super().__init__(header)
        self._snapshot: Snapshot | None = None
        self._held: tuple[str, int] | None = None
        self._deltas: list[str] = []
        self._wait = 0
        self._asks = False

    def waits(self) -> bool:
        return self._held is not None

    def wants_tick(self) -> int | None:
        asked, self._asks = self._asks, False
        return self._wait if asked else None

    def take(self, line: bytes) -> Lines:
        if line.count(b"\n") > 1:
            return [out for one in line.splitlines(keepends=True) for out in self.take(one)]
        if line.startswith(_UPDATE) and self._snapshot is not None:
            return self._update(line, self._snapshot)
        lines = self._show_held()
        if line.startswith(_START):
            self._snapshot = Snapshot(decode_any(line)["message"])
        elif line.startswith(_END):
            self._snapshot = None
        return self._begin([*lines, line])

    def tick(self, number: int) -> Lines:
        """A tick of a wait that something else has ended is late."""
        return self._show_held() if number == self._wait else []

    def end(self, last: Outcome, *, refused: bool) -> Lines:
        return [*self._show_held(), *super().end(last, refused=refused)]

    def _update(self, line: bytes, snapshot: Snapshot) -> Lines:
        usage, raw, event = read_update(line)
        is_delta = event.type.endswith("_delta")
        lines = [] if is_delta and self._held in (None, event.block) else self._show_held()
        snapshot.take(usage, event)
        if not is_delta:
            return [*lines, snapshot.record(raw)]
        if self._held is None:
            self._held = event.block
            self._wait += 1
            self._asks = True
        self._deltas.append(event.delta)
        return lines

    def _show_held(self) -> Lines:
        if self._held is None or self._snapshot is None:
            return []
        kind, place = self._held
        event = {"type": f"{kind}_delta", "contentIndex": place, "delta": "".join(self._deltas)}
        self._held = None
        self._deltas.clear()
        return [self._snapshot.record(event)]
