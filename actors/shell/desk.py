"""All shell requests that run, whichever session they began in.

It knows each by our serial, and which serials share a client's id: cancelling an id reaches all of them. At the end of
the program it kills what commands left in the background, so that no process outlives us.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import assert_never

from actors.base import Actor, Address, Child, Down
from actors.mail import (
    UNTIL_ADOPTED,
    AbortBash,
    BashAdopted,
    BashLost,
    BashRecorded,
    CancelShell,
    CloseShells,
    HomeMoved,
    IntakeMail,
    LeftBehind,
    NewHome,
    Remains,
    RemainsKilled,
    RootMail,
    RunBash,
    SessionLost,
    SessionMail,
    ShellDeskMail,
    ShellEnded,
    ShellMail,
    ShellsClosed,
    Write,
    WriterMail,
)

StartShell = Callable[[RunBash, Address[ShellDeskMail]], Child[ShellMail]]

KillRemains = Callable[[Sequence[Remains], Address[ShellDeskMail]], None]
"""Kills them in a pump; the desk is told `RemainsKilled`, once."""

REMEMBERED_ABORTS = 64
"""A command that began in a session which hands over may come through that one later than an abort which followed it
on the wire came through the next."""
NO_HOME = "the session of this command is gone"


class ShellDesk(Actor[ShellDeskMail]):
    def __init__(
        self,
        writer: Address[WriterMail],
        root: Address[RootMail],
        start_shell: StartShell,
        kill_remains: KillRemains,
    ) -> None:
        self._writer = writer
        self._root = root
        self._start_shell = start_shell
        self._kill_remains = kill_remains
        self._killing = 0
        self._intake: Address[IntakeMail] | None = None
        self._shells: dict[int, tuple[RunBash, Child[ShellMail]]] = {}
        self._homes: dict[int, Address[SessionMail]] = {}
        self._remains: list[Remains] = []
        self._aborts: deque[AbortBash] = deque(maxlen=REMEMBERED_ABORTS)
        self._closing = False
        self._last = False

    def connect(self, intake: Address[IntakeMail]) -> None:
        """Called by the wiring before the first mail."""
        self._intake = intake

    def receive(self, mail: ShellDeskMail) -> None:
        match mail:
            case RunBash():
                self._run(mail)
            case AbortBash(ticket):
                self._aborts.append(mail)
                for run, shell in list(self._shells.values()):
                    if _means(mail, run):
                        shell.tell(CancelShell())
                self._writer.tell(Write((ticket.ok(),)))
            case ShellEnded(serial):
                self._end_shell(serial)
            case LeftBehind(remains):
                self._keep(remains)
            case HomeMoved():
                self._move_home(mail)
            case CloseShells(last):
                self._closing = True
                self._last = self._last or last
                for _, shell in self._shells.values():
                    shell.tell(CancelShell())
                    if last:  # a session that lives has recorded it before
                        shell.tell(BashRecorded(NO_HOME))
            case RemainsKilled():
                self._killing -= 1
            case Down(serial, error):
                self._bury(serial, error)
            case _:
                assert_never(mail)
        if self._last and not self._shells:
            self._end()

    def last_words(self, unread: list[ShellDeskMail]) -> None:
        for mail in unread:
            if isinstance(mail, RunBash) and mail.ticket.serial not in self._shells:
                mail.home.tell(BashLost(mail.ticket.serial))
        for _, shell in self._shells.values():
            shell.tell(CancelShell())
        for remains in self._remains:
            remains.kill_group_leftovers()
        self._root.tell(ShellsClosed())

    def _run(self, mail: RunBash) -> None:
        serial = mail.ticket.serial
        shell = self._start_shell(mail, self.me)
        self._shells[serial] = (mail, shell)
        self._homes[serial] = mail.home
        if self._closing or any(_means(abort, mail) for abort in self._aborts):
            shell.tell(CancelShell())
        if self._last:
            shell.tell(BashRecorded(NO_HOME))

    def _end_shell(self, serial: int) -> None:
        """A home that adopted it may have been told so after the old one recorded it: it waits for no record then."""
        if serial in self._shells and self._homes[serial] is not self._shells[serial][0].home:
            self._homes[serial].tell(BashLost(serial))
        self._forget(serial)

    def _forget(self, serial: int) -> None:
        self._shells.pop(serial, None)
        self._homes.pop(serial, None)

    def _bury(self, serial: int, error: str) -> None:
        """The shell actor died: its command is answered here, and its home need not wait for a record."""
        if serial not in self._shells:  # it died after its end
            return
        run, _ = self._shells[serial]
        self._writer.tell(Write((run.ticket.failed(f"the shell request failed: {error}"),)))
        self._homes[serial].tell(BashLost(serial))
        self._forget(serial)

    def _move_home(self, mail: HomeMoved) -> None:
        moved = frozenset(serial for serial, home in self._homes.items() if home is mail.old)
        mail.new.tell(BashAdopted(moved))
        mail.new.tell(BashLost(UNTIL_ADOPTED))
        for serial in moved:
            self._homes[serial] = mail.new
            self._shells[serial][1].tell(NewHome(mail.new))
        if self._intake is not None:
            self._intake.tell(SessionLost(mail.old, mail.error, frozenset(self._shells)))

    def _keep(self, remains: Remains) -> None:
        self._remains = [kept for kept in self._remains if kept.close()]
        self._remains.append(remains)
        if self._closing:
            self._kill()

    def _kill(self) -> None:
        self._killing += 1
        self._kill_remains(tuple(self._remains), self.me)
        self._remains.clear()

    def _end(self) -> None:
        if self._remains:
            self._kill()
        if not self._killing:
            self._root.tell(ShellsClosed())


def _means(abort: AbortBash, run: RunBash) -> bool:
    """Serials are in the order of the wire."""
    return abort.request_id in (None, run.ticket.id) and run.ticket.serial < abort.ticket.serial
