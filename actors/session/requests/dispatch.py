"""Finds what answers a command, by the command's type."""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.mail import Ticket
from actors.session.journal import JournalError
from actors.session.requests.branches import BranchRequests
from actors.session.requests.compaction import CompactionRequests
from actors.session.requests.credentials import CredentialRequests
from actors.session.requests.group import Answers
from actors.session.requests.models import ModelRequests
from actors.session.requests.prompting import Prompting
from actors.session.requests.shell import ShellRequests
from actors.session.requests.slash import SlashRequests
from actors.session.requests.state import StateRequests
from actors.session.requests.tasks import TaskRequests
from protocol.codec import Rejected
from protocol.commands import Command

if TYPE_CHECKING:
    from actors.session.actor import Session


class Requests:
    """Answers commands for its session: all but the replacements, which are the desk's."""

    def __init__(self, session: Session) -> None:
        self._outbox = session.outbox
        self._services = session.services
        self.models = ModelRequests(session)
        self.credentials = CredentialRequests(session)
        self.branches = BranchRequests(session)
        self.slash = SlashRequests(session)
        self.state = StateRequests(session)
        self._answers: Answers = {
            Rejected: lambda ticket, rejected: self._outbox.failed(ticket, rejected.error),
            **self.state.answers(),
            **Prompting(session).answers(),
            **CompactionRequests(session).answers(),
            **ShellRequests(session).answers(),
            **self.branches.answers(),
            **self.slash.answers(),
            **self.models.answers(),
            **self.models.thinking.answers(),
            **self.credentials.answers(),
            **TaskRequests(session).answers(),
        }

    def take(self, ticket: Ticket, command: Command | Rejected) -> None:
        try:
            self._answers[type(command)](ticket, command)
        except JournalError as error:
            self._services.complain(str(error))
            self._outbox.failed(ticket, str(error))
