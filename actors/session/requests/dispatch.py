"""Finds what answers a command, by the command's type.

What a client mostly asks first is at hand. The other groups are loaded with the first command that is for one of them:
no start should wait for that.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from actors.mail import Ticket
from actors.session.journal import JournalError
from actors.session.requests.group import Answers
from actors.session.requests.models import ModelRequests
from actors.session.requests.prompting import Prompting
from actors.session.requests.state import StateRequests
from protocol.codec import Rejected
from protocol.commands import Command

if TYPE_CHECKING:
    from actors.session.actor import Session
    from actors.session.requests.branches import BranchRequests
    from actors.session.requests.credentials import CredentialRequests
    from actors.session.requests.slash import SlashRequests


class Requests:
    """Answers commands for its session: all but the replacements, which are the desk's."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._outbox = session.outbox
        self._services = session.services
        self.models = ModelRequests(session)
        self.state = StateRequests(session)
        self._first: Answers = {
            Rejected: lambda ticket, rejected: self._outbox.failed(ticket, rejected.error),
            **self.state.answers(),
            **Prompting(session).answers(),
            **self.models.answers(),
            **self.models.thinking.answers(),
        }

    def take(self, ticket: Ticket, command: Command | Rejected) -> None:
        kind = type(command)
        try:
            (self._first if kind in self._first else self._others)[kind](ticket, command)
        except JournalError as error:
            self._services.complain(str(error))
            self._outbox.failed(ticket, str(error))

    @cached_property
    def branches(self) -> BranchRequests:
        from actors.session.requests.branches import BranchRequests

        return BranchRequests(self._session)

    @cached_property
    def credentials(self) -> CredentialRequests:
        from actors.session.requests.credentials import CredentialRequests

        return CredentialRequests(self._session)

    @cached_property
    def slash(self) -> SlashRequests:
        from actors.session.requests.slash import SlashRequests

        return SlashRequests(self._session)

    @cached_property
    def _others(self) -> Answers:
        from actors.session.requests.compaction import CompactionRequests
        from actors.session.requests.shell import ShellRequests
        from actors.session.requests.tasks import TaskRequests

        return {
            **CompactionRequests(self._session).answers(),
            **ShellRequests(self._session).answers(),
            **self.branches.answers(),
            **self.slash.answers(),
            **self.credentials.answers(),
            **TaskRequests(self._session).answers(),
        }
