"""The commands that have no response yet: their serials, where each went, and refusals that wait for their turn.

Part of Intake; pure. Ordinary commands are refused in their order: behind those before them that somebody else still
answers. What passes the others on its way may also be answered before them. A command is closed after its refusal has
been told: if Intake dies between the two it is told twice, and the Writer lets one through.
"""

from __future__ import annotations

from collections.abc import Iterable

from actors.base import Address
from actors.mail import SessionMail, Ticket
from protocol.commands import INTERRUPTS, LONG_WORK

PASSING = INTERRUPTS | LONG_WORK
"""They are answered when their work is done, and may be answered before what stands before them."""

Refusal = tuple[Ticket, str]


class OpenCommands:
    """In the order of the wire; serials count from 1."""

    def __init__(self) -> None:
        self._open: dict[int, tuple[Ticket, Address[SessionMail] | None]] = {}
        self._refused: dict[int, str] = {}
        self._last_serial = 0

    def begin(self, id: bytes, name: str | None) -> Ticket:
        self._last_serial += 1
        ticket = Ticket(self._last_serial, id, name)
        self._open[ticket.serial] = (ticket, None)
        return ticket

    def send(self, ticket: Ticket, session: Address[SessionMail] | None) -> None:
        """This session is to answer it."""
        self._open[ticket.serial] = (ticket, session)

    def close(self, serials: Iterable[int]) -> None:
        """They have their response."""
        for serial in serials:
            self._open.pop(serial, None)
            self._refused.pop(serial, None)

    def command(self, serial: int) -> str | None:
        """What an open one is called."""
        return self._open[serial][0].command

    def refuse(self, tickets: Iterable[Ticket], error: str) -> None:
        """When their turn comes."""
        for ticket in tickets:
            self._refused[ticket.serial] = error

    def due(self) -> list[Refusal]:
        """The refusals whose turn it is."""
        if not self._refused:
            return []
        due = []
        for serial, (ticket, _) in self._open.items():
            if serial in self._refused:
                due.append((ticket, self._refused[serial]))
            elif ticket.command not in PASSING:
                break
        return due

    def lost(self, session: Address[SessionMail], alive: frozenset[int], error: str) -> list[Refusal]:
        """What this session can answer no more, but for those that are `alive` elsewhere."""
        lost = [ticket for ticket, sent_to in self._open.values() if sent_to is session and ticket.serial not in alive]
        return [(ticket, self._refused.get(ticket.serial, error)) for ticket in lost]

    def all(self, error: str) -> list[Refusal]:
        return [(ticket, self._refused.get(ticket.serial, error)) for ticket, _ in self._open.values()]
