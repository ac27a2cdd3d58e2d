"""Opens the target of a replacement in a pump, or reads the current file again: a long file takes time that no actor
should spend."""

from __future__ import annotations

import os
from collections.abc import Callable

from msgspec.structs import replace

from actors.base import Address, StartPump
from actors.mail import Reread, SessionDeskMail, SessionMail, TargetFailed, TargetOpened, Ticket
from actors.session.context import derived
from actors.session.file import (
    OpenedSession,
    SessionFileError,
    Stamps,
    import_session,
    new_session,
    open_session,
    read_session,
)
from actors.session.forking import inherited_workflow
from actors.session.journal import JournalError
from actors.session.surroundings import Surroundings
from actors.session.target import Target
from actors.session.tree import Entry
from protocol.entry_head import WorkflowStage, read_entry


class Opener:
    """`directory` is where new sessions go (None: memory only); `cwd` is the program's own, from which relative paths
    are meant (also when it is gone); `surroundings` reads what a folder brings to its sessions."""

    def __init__(
        self,
        start_pump: StartPump,
        stamps: Stamps,
        directory: str | None,
        cwd: str,
        surroundings: Callable[[str], Surroundings],
    ) -> None:
        self._surroundings = surroundings
        self._start_pump = start_pump
        self._stamps = stamps
        self._directory = directory
        self._cwd = cwd

    def open(self, serial: int, target: Target, desk: Address[SessionDeskMail]) -> None:
        self._start_pump("session-open", lambda: self._run(serial, target, desk))

    def _run(self, serial: int, target: Target, desk: Address[SessionDeskMail]) -> None:
        try:
            opened = self.opened(target)
            opened.derived = derived(opened.entries)
            desk.tell(TargetOpened(serial, opened, self._read_surroundings(opened)))
        except (SessionFileError, JournalError, ValueError) as error:
            desk.tell(TargetFailed(serial, str(error)))
        except OSError as error:
            named = error.filename or target.path or "new session"
            desk.tell(TargetFailed(serial, f"the session cannot be opened: {named}: {error.strerror or error}"))
        except Exception as error:
            desk.tell(TargetFailed(serial, f"the session cannot be opened: {type(error).__name__}"))

    def _read_surroundings(self, opened: OpenedSession) -> Surroundings:
        try:
            return self._surroundings(opened.header.cwd or self._cwd)
        except BaseException:
            opened.journal.close()  # nobody else would give up its lock
            raise

    def opened(self, target: Target) -> OpenedSession:
        """Raises `SessionFileError`, `JournalError`, `ValueError` or `OSError`, with a text for the user."""
        match target.kind:
            case "new":
                return self._new(target)
            case "fork":
                return self._forked(target)
            case "file":
                if not os.path.isabs(target.path) and not os.path.isdir(self._cwd):
                    raise SessionFileError(f"A relative path has no meaning here: {target.path}: {self._cwd} is gone")
                return self._file(self._absolute(target.path), None)
            case "import":
                return self._imported(target)

    def _new(self, target: Target, workflow: WorkflowStage | None = None) -> OpenedSession:
        here, parent = target.beside, target.parent_session
        directory = None if here.journal.path is None else os.path.dirname(here.journal.path)
        cwd = here.header.cwd or self._cwd
        return new_session(self._stamps, cwd, directory, parent_session=parent, workflow=workflow)

    def _forked(self, target: Target) -> OpenedSession:
        opened = self._new(target, inherited_workflow(target.beside.header))
        entries = []
        for line in target.lines:
            head = read_entry(line)
            if head is not None:
                entries.append(Entry(line, head))
        opened.journal.append_all(target.lines)
        return OpenedSession(opened.header, entries, opened.journal)

    def _file(self, path: str, cwd: str | None) -> OpenedSession:
        if self._directory is None:
            return self._in_memory(path)
        opened = open_session(path, self._stamps, cwd or self._cwd)
        try:
            self._check_cwd(cwd or opened.header.cwd, path)
        except SessionFileError:
            opened.journal.close()
            raise
        return _working_in(cwd, opened)

    def _check_cwd(self, stored: str | None, path: str) -> None:
        if stored and not os.path.isdir(stored):
            raise SessionFileError(missing_cwd(stored, path, self._cwd))

    def _in_memory(self, path: str) -> OpenedSession:
        """`--no-session` holds for the process: the file is read and never written."""
        if not os.path.exists(path):
            return new_session(self._stamps, self._cwd, None)
        stored = read_session(path, self._stamps.uuid4)
        assert stored.header is not None
        fresh = new_session(self._stamps, stored.header.cwd or self._cwd, None)
        return OpenedSession(stored.header, stored.entries, fresh.journal)

    def _imported(self, target: Target) -> OpenedSession:
        source = self._absolute(target.path)
        if not os.path.exists(source):
            raise SessionFileError(f"File not found: {source}")
        header = read_session(source, self._stamps.uuid4).header
        self._check_cwd(target.cwd or (header.cwd if header else None), source)  # before anything is copied
        if not target.destination:
            return self._in_memory(source)
        if os.path.realpath(source) == os.path.realpath(target.destination):
            return self._file(target.destination, target.cwd)
        return _working_in(target.cwd, import_session(source, target.destination, self._stamps))

    def _absolute(self, path: str) -> str:
        return os.path.normpath(os.path.join(self._cwd, path))


class Rereader:
    """Reads the file of an open session again, beside its journal and lock, which stay."""

    def __init__(self, start_pump: StartPump, uuid4: Callable[[], str]) -> None:
        self._start_pump = start_pump
        self._uuid4 = uuid4

    def start(self, ticket: Ticket, opened: OpenedSession, session: Address[SessionMail]) -> None:
        self._start_pump("session-reread", lambda: self._run(ticket, opened, session))

    def _run(self, ticket: Ticket, opened: OpenedSession, session: Address[SessionMail]) -> None:
        try:
            session.tell(Reread(ticket, self.reread(opened)))
        except (SessionFileError, OSError) as error:
            session.tell(Reread(ticket, None, str(error)))
        except Exception as error:
            session.tell(Reread(ticket, None, f"the session cannot be read again: {type(error).__name__}"))

    def reread(self, opened: OpenedSession) -> OpenedSession:
        """Raises `SessionFileError` or `OSError`."""
        journal = opened.journal
        if journal.path is None or not journal.exists_on_disk:
            return opened
        stored = read_session(journal.path, self._uuid4)
        assert stored.header is not None
        return OpenedSession(stored.header, stored.entries, journal, derived=derived(stored.entries))


def missing_cwd(stored: str, path: str, current: str) -> str:
    return (
        f"Stored session working directory does not exist: {stored}\n"
        f"Session file: {path}\n"
        f"Current working directory: {current}"
    )


def _working_in(cwd: str | None, opened: OpenedSession) -> OpenedSession:
    """`opened`, with the folder `cwd` instead of the stored one if there is one."""
    return opened if cwd is None else replace(opened, header=replace(opened.header, cwd=cwd))
