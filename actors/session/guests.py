"""The visitors that look at this session: what they are told of it, and their commands.

Part of the session actor. A visitor stands where the Writer does, for itself alone: it gets the answers to what it
asked, and the events of tasks if it wants them. It is told again what the session is whenever that has changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET, Struct

from actors.mail import (
    EndVisit,
    SessionDescribed,
    Ticket,
    Visit,
    VisitorAnswered,
    VisitorCommand,
    VisitorMail,
    VisitorTold,
)
from actors.session.task_side import UNKNOWN
from protocol.commands import SetTaskSubscription

if TYPE_CHECKING:
    from actors.base import Address
    from actors.session.actor import Session
    from protocol.inspector import InspectorSession


class Guest(Struct):
    to: Address[VisitorMail]
    updates: bool
    told: InspectorSession


class Guests:
    """By the numbers of the visitors. Most sessions never have one."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._guests: dict[int, Guest] = {}

    @property
    def listen(self) -> bool:
        """Whether anybody wants to hear of tasks."""
        return any(guest.updates for guest in self._guests.values())

    def visit(self, mail: Visit) -> None:
        facts = self._facts()
        self._guests[mail.visitor] = Guest(mail.to, mail.updates, facts)
        mail.to.tell(SessionDescribed(self._session.me, facts))

    def leave(self, mail: EndVisit) -> None:
        self._guests.pop(mail.visitor, None)
        self._session.tasks.watch(mail.visitor, None)

    def command(self, mail: VisitorCommand) -> None:
        if not isinstance(mail.command, SetTaskSubscription):
            self._session.tasks.take(mail.ticket, mail.command, mail.to)
            return
        mail.to.tell(self._subscribe(mail.ticket, mail.command))

    def _subscribe(self, ticket: Ticket, command: SetTaskSubscription) -> VisitorAnswered:
        """One that has just left takes its subscription to the next session, and hears no transcript of this one."""
        guest, wanted = self._guests.get(ticket.visitor), command.transcript if command.enabled else None
        if guest is None and wanted is not None:
            return VisitorAnswered(ticket.failed(UNKNOWN))
        if guest is not None:
            if not self._session.tasks.watch(ticket.visitor, wanted):
                return VisitorAnswered(ticket.failed(UNKNOWN))
            guest.updates = command.enabled
        return VisitorAnswered(ticket.ok(), command.enabled)

    def tell_one(self, visitor: int, lines: bytes) -> None:
        if visitor in self._guests:
            self._guests[visitor].to.tell(VisitorTold(self._session.me, lines))

    def tell(self, lines: bytes) -> None:
        """Events of tasks, for those who want them."""
        for guest in self._guests.values():
            if guest.updates:
                guest.to.tell(VisitorTold(self._session.me, lines))

    def look(self) -> None:
        """Tells what has changed about the session."""
        if not self._guests:
            return
        facts = self._facts()
        for guest in self._guests.values():
            if guest.told != facts:
                guest.told = facts
                guest.to.tell(SessionDescribed(self._session.me, facts))

    def _facts(self) -> InspectorSession:
        from protocol.inspector import InspectorSession

        history, model = self._session.history, self._session.setting.model
        return InspectorSession(
            session_id=history.session_id,
            cwd=history.cwd,
            session_name=history.tree.name or UNSET,
            session_file=history.path or UNSET,
            model=UNSET if model is None else f"{model.provider}/{model.id}",
            thinking_level=UNSET if model is None else self._session.setting.level,
        )
