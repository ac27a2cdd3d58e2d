"""Session files in memory: journals with the promises of the real ones, and the pump that opens them.

The disk keeps every line by path, the lock of each open file, and a log of who appended what, which the invariants
read. It can be told to refuse an append.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from actors.base import Address
from actors.mail import SessionDeskMail, TargetFailed, TargetOpened
from actors.session.file import OpenedSession, SessionFileError, Stamps
from actors.session.journal import JournalError, SessionInUse
from actors.session.naming import iso_time
from actors.session.reading import NotASession, header_head
from actors.session.target import Target
from actors.session.tree import Entry
from actors.task.checkout import Changes
from protocol.codec import encode
from protocol.entry_head import SessionHeader, read_entry
from runtime.simulation.chances import Chances, Dice
from runtime.simulation.ports import simulated_surroundings
from runtime.simulation.pumps import Once
from runtime.simulation.scheduler import Scheduler

DIRECTORY = "/simulated/sessions"
CWD = "/simulated/work"


class Disk:
    """`refused` counts the appends that failed; the `refuse_at`-th append and `refusals - 1` after it do. What the
    sessions of subagents append is in a log of its own. `ids` counts those that were made for its files."""

    def __init__(self, stamps: Stamps, in_memory: bool, refuse_at: int = 0, refusals: int = 1) -> None:
        self.files: dict[str, list[bytes]] = {}
        self.log: list[tuple[SimulatedJournal, bytes]] = []
        self.child_log: list[tuple[SimulatedJournal, bytes]] = []
        self.children: list[SimulatedJournal] = []
        self.checkouts: list[SimulatedCheckout] = []
        self.in_memory = in_memory
        self.refused = 0
        self.ids = 0
        self.stamps = stamps
        self._open: set[str] = set()
        self._appends = 0
        self._refusing = range(refuse_at, refuse_at + refusals) if refuse_at else range(0)

    def admit(self, path: str) -> None:
        """Counts an append. Raises `JournalError` for the one that is to fail."""
        self._appends += 1
        if self._appends in self._refusing:
            self.refused += 1
            raise JournalError(f"Session append failed: {path}: No space left on device")

    @property
    def locked(self) -> frozenset[str]:
        return frozenset(self._open)

    def lock(self, path: str) -> None:
        if path in self._open:
            raise SessionInUse(path)
        self._open.add(path)

    def unlock(self, path: str) -> None:
        self._open.discard(path)

    def new(self, path: str | None = None, parent: str | None = None) -> OpenedSession:
        session_id, header = self._header(parent)
        path = None if self.in_memory else path or f"{DIRECTORY}/{session_id}.jsonl"
        return OpenedSession(header_head(header), [], SimulatedJournal(self, path, header, self.log))

    def new_child(self, folder: str | None, parent: str | None) -> OpenedSession:
        """The session of a subagent; without a folder it is in memory."""
        session_id, header = self._header(parent)
        path = None if folder is None else f"{folder}/{session_id}.jsonl"
        journal = SimulatedJournal(self, path, header, self.child_log)
        self.children.append(journal)
        return OpenedSession(header_head(header), [], journal)

    def check_out(self, folder: str) -> SimulatedCheckout:
        """A worktree for a subagent."""
        self.checkouts.append(SimulatedCheckout(folder))
        return self.checkouts[-1]

    def _header(self, parent: str | None) -> tuple[str, bytes]:
        session_id, now = self.stamps.uuid7(), iso_time(self.stamps.now())
        return session_id, encode(SessionHeader(id=session_id, timestamp=now, cwd=CWD, parent_session=parent or UNSET))

    def opened(self, path: str) -> OpenedSession:
        """Raises `SessionFileError`, `SessionInUse`."""
        if path not in self.files:
            return self.new(path)
        header, entries = self.read(path)
        if self.in_memory:
            return OpenedSession(header, entries, SimulatedJournal(self, None, b"", self.log))
        self.lock(path)
        journal = SimulatedJournal(self, path, b"", self.log)
        journal.exists_on_disk = True
        return OpenedSession(header, entries, journal)

    def read(self, path: str) -> tuple[Any, list[Entry]]:
        first, *lines = self.files[path]
        header = read_entry(first)
        if header is None or header.type != "session":
            raise NotASession(path)
        return header, [Entry(line, head) for line in lines if (head := read_entry(line)) is not None]

    def reread(self, opened: OpenedSession) -> OpenedSession:
        """What `Services.reread` tells of it."""
        if opened.journal.path is None or not opened.journal.exists_on_disk:
            return opened
        header, entries = self.read(opened.journal.path)
        return OpenedSession(header, entries, opened.journal)


class SimulatedCheckout:
    """A worktree. `finishes` counts how often it was looked at and put away."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.finishes = 0

    def finish(self) -> Changes:
        self.finishes += 1
        return Changes("simulated changes")


class SimulatedJournal:
    """Begins its file with the first message, holds its lock until it is closed, and refuses what comes after."""

    def __init__(self, disk: Disk, path: str | None, header: bytes, log: list[tuple[SimulatedJournal, bytes]]) -> None:
        self.path = path
        self.exists_on_disk = False
        self._disk = disk
        self._log = log
        self._waiting = [header] if header else []
        self.closed = False

    def append(self, line: bytes) -> None:
        self._store((line,))
        self._log.append((self, line))

    def append_all(self, lines: Sequence[bytes]) -> None:
        self._store(lines)

    def _store(self, lines: Sequence[bytes]) -> None:
        if self.closed:
            raise JournalError(f"Session file is closed: {self.path}")
        self._disk.admit(self.path or "memory")
        if self.path is None:
            return
        if self.exists_on_disk:
            self._disk.files[self.path] += lines
        elif any(_is_message(line) for line in lines):
            self._disk.lock(self.path)
            self._disk.files[self.path] = [*self._waiting, *lines]
            self.exists_on_disk = True
        else:
            self._waiting += lines

    def close(self) -> None:
        if not self.closed and self.path is not None and self.exists_on_disk:
            self._disk.unlock(self.path)
        self.closed = True
        self.exists_on_disk = False


class SimulatedOpener:
    """Opens targets a step later, as the real one does in its pump."""

    def __init__(self, disk: Disk, scheduler: Scheduler, chances: Chances) -> None:
        self._disk = disk
        self._scheduler = scheduler
        self._chances = chances
        self._opened = 0

    def open(self, serial: int, target: Target, desk: Address[SessionDeskMail]) -> None:
        self._opened += 1
        dice = self._chances.dice(f"opening {self._opened}")
        self._scheduler.add_pump(Once(lambda: self._open(serial, target, desk, dice)), "session-open")

    def _open(self, serial: int, target: Target, desk: Address[SessionDeskMail], dice: Dice) -> None:
        try:
            opened = self.opened(target, dice)
            opened.notes = ("simulated note",) if dice.strikes("session: has something to tell", 0.1) else ()
        except (SessionFileError, JournalError) as error:
            desk.tell(TargetFailed(serial, str(error)))
        else:
            desk.tell(TargetOpened(serial, opened, simulated_surroundings(dice)))

    def opened(self, target: Target, dice: Dice) -> OpenedSession:
        """Raises `SessionFileError`, `JournalError`."""
        if dice.strikes("session: cannot be opened", 0.05):
            raise SessionFileError("Session folder cannot be made: simulated")
        match target.kind:
            case "new":
                return self._disk.new(parent=target.parent_session)
            case "fork":
                return self._forked(target)
            case "file":
                return self._disk.opened(target.path)
            case "import":
                return self._imported(target)

    def _forked(self, target: Target) -> OpenedSession:
        opened = self._disk.new(parent=target.parent_session)
        opened.journal.append_all(target.lines)
        entries = [Entry(line, head) for line in target.lines if (head := read_entry(line)) is not None]
        return OpenedSession(opened.header, entries, opened.journal)

    def _imported(self, target: Target) -> OpenedSession:
        if target.path not in self._disk.files:
            raise SessionFileError(f"File not found: {target.path}")
        self._disk.read(target.path)
        if target.destination and os.path.normpath(target.path) != os.path.normpath(target.destination):
            self._disk.files[target.destination] = list(self._disk.files[target.path])
        opened = self._disk.opened(target.destination or target.path)
        return opened if target.cwd is None else replace(opened, header=replace(opened.header, cwd=target.cwd))


def _is_message(line: bytes) -> bool:
    head = read_entry(line)
    return head is not None and head.type in ("message", "custom_message")
