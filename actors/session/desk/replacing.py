"""The replacement under way: who asked for it, who is to follow, and how it is answered.

Part of the session desk. It is a hand-over: the new session stands before the old one lets go, and if it cannot stand,
the old one stays. There is one at a time, and each is answered once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from actors.base import Address
from actors.catalog_view import Defaults
from actors.mail import (
    DescribeFork,
    ForkReady,
    PassOn,
    Record,
    Reload,
    Retire,
    SessionDeskMail,
    Ticket,
    Write,
    WriterMail,
)
from actors.session.desk.live import LiveSessions
from actors.session.file import OpenedSession
from actors.session.services import Modes
from actors.session.surroundings import Surroundings
from protocol import commands as c
from protocol.codec import encode

if TYPE_CHECKING:
    from actors.session.target import Target

CLOSING = "atomic is shutting down"
DEAD = "the session is being opened again"

OpenTarget = Callable[[int, "Target", Address[SessionDeskMail]], None]
"""Opens in a pump; the desk is told `TargetOpened` or `TargetFailed` with the serial."""


class Replacement(Struct):
    """The one that is under way."""

    ticket: Ticket
    successor: int | None = None
    data: bytes = b'{"cancelled":false}'


class Replacing:
    """What an earlier replacement asked for may come late, and is dropped."""

    def __init__(
        self, live: LiveSessions, writer: Address[WriterMail], open_target: OpenTarget, me: Address[SessionDeskMail]
    ) -> None:
        self._live = live
        self._writer = writer
        self._open_target = open_target
        self._me = me
        self._replacement: Replacement | None = None
        self._passed_on: Record | None = None

    @property
    def successor(self) -> int | None:
        """The key of the session that is to follow."""
        return self._replacement.successor if self._replacement is not None else None

    def begin(self, ticket: Ticket, command: c.Command) -> None:
        self._replacement, self._passed_on = Replacement(ticket), None
        slot = self._live.current
        if self._live.is_closing or slot is None:
            self.refuse(CLOSING if self._live.is_closing else DEAD)
            return
        match command:
            case c.Fork(entry_id=entry_id):
                slot.address.tell(DescribeFork(ticket, entry_id))
            case c.Clone():
                slot.address.tell(DescribeFork(ticket, None))
            case _:
                self._go(ticket, command, slot.opened)

    def _go(self, ticket: Ticket, command: c.Command, current: OpenedSession) -> None:
        from actors.session.target import Living, Refusal, destination_of

        match destination_of(command, current, self._live.at):
            case Refusal(error):
                self.refuse(error)
            case Living(key):
                self._come_back(ticket, key)
            case target:
                self._open_target(ticket.serial, target, self._me)

    def _come_back(self, ticket: Ticket, key: int) -> None:
        """To a session that lives."""
        slot = self._live.get(key)
        if slot is not None and key == self._live.current_key:
            slot.address.tell(Reload(ticket))
        else:
            self._hand_over(key)

    def fork(self, mail: ForkReady) -> None:
        from actors.session.target import Target
        from protocol.responses import Forked

        slot = self._live.current
        if self._replacement is None or not self.is_open(mail.ticket.serial) or slot is None:
            return
        if mail.text is not None:
            self._replacement.data = encode(Forked(False, mail.text))
        target = Target("fork", slot.opened, parent_session=mail.parent_session, lines=mail.lines)
        self._open_target(mail.ticket.serial, target, self._me)

    def opened(self, serial: int, opened: OpenedSession, surroundings: Surroundings | None) -> None:
        if self.is_open(serial):
            self._hand_over(self._live.start(opened, surroundings).key)
        else:  # it was answered meanwhile
            opened.journal.close()

    def _hand_over(self, successor: int) -> None:
        assert self._replacement is not None
        self._replacement.successor = successor
        slot = self._live.current
        if slot is None:  # it died meanwhile
            self._promote(successor)
        else:
            slot.tell(Retire())

    def retired(self, key: int, modes: Modes, defaults: Defaults | None) -> None:
        if key != self._live.current_key:
            return
        self._live.inherit(modes, defaults)
        slot = self._live.current
        if self.successor is not None:
            self._promote(self.successor)
        elif slot is not None and not self._live.is_closing:  # its successor died: it stays
            self._live.call(slot)

    def _promote(self, successor: int) -> None:
        slot = self._live.get(successor)
        assert self._replacement is not None and slot is not None
        self._live.call(slot)
        self._live.make_current(slot)
        self._answer(self._replacement.ticket.ok(self._replacement.data))

    def reloaded(self, serial: int, error: str | None) -> None:
        from protocol.responses import Cancelled

        if error is not None:
            self.refuse_this(serial, error)
        elif self._replacement is not None and self.is_open(serial):
            self._answer(self._replacement.ticket.ok(encode(Cancelled(False))))

    def died(self, key: int, error: str) -> None:
        """A session is gone, and no longer among those that live."""
        if key == self._live.current_key and self.successor is not None:
            self._promote(self.successor)
        elif key in (self._live.current_key, self.successor):
            self.refuse(f"the session failed: {error}")

    # -- answers

    def is_open(self, serial: int) -> bool:
        """Whether the replacement under way is this one."""
        return self._replacement is not None and self._replacement.ticket.serial == serial

    def refuse_this(self, serial: int, error: str) -> None:
        if self.is_open(serial):
            self.refuse(error)

    def refuse(self, error: str) -> None:
        """The session that is current stays. It passes the refusal on, behind its answers to what came before."""
        if self._replacement is None:
            return
        refusal = self._replacement.ticket.failed(error)
        slot = self._live.current
        if slot is None or self._live.is_closing:
            self._answer(refusal)
            return
        self._replacement, self._passed_on = None, refusal
        slot.address.tell(PassOn(refusal))

    def repeat_refusal(self) -> None:
        """Who should pass it on has died. The Writer lets it through only once."""
        if self._passed_on is not None:
            self._writer.tell(Write((self._passed_on,)))

    def _answer(self, response: Record) -> None:
        self._replacement = None
        self._writer.tell(Write((response,)))
