"""Commands that name, label and move about in the session's tree."""

from __future__ import annotations

from actors.mail import Ticket
from actors.session.journal import JournalError
from actors.session.requests.group import Answers, Group
from protocol import commands as c
from protocol.events import SessionInfoChanged


class BranchRequests(Group):
    def answers(self) -> Answers:
        return {
            c.SetSessionName: self._set_session_name,
            c.NavigateTree: self._session.navigation.begin,
            c.SetLabel: self._set_label,
        }

    def _set_session_name(self, ticket: Ticket, command: c.SetSessionName) -> None:
        name = command.name.strip()
        if not name:
            self._outbox.failed(ticket, "Session name cannot be empty")
            return
        self._history.append("session_info", name=name)
        self._outbox.event(SessionInfoChanged(name))
        self._outbox.ok(ticket)

    def name(self, name: str) -> None:
        """The name that the command line gave the first session."""
        if self._history.tree.name == name.strip():
            return
        try:
            self._history.append("session_info", name=name.strip())
        except JournalError as error:
            self._services.complain(str(error))

    def _set_label(self, ticket: Ticket, command: c.SetLabel) -> None:
        if command.entry_id not in self._history.tree:
            self._outbox.failed(ticket, f"Entry {command.entry_id} not found")
            return
        named = {"label": command.label} if command.label else {}
        self._history.append("label", targetId=command.entry_id, **named)
        self._outbox.ok(ticket)
