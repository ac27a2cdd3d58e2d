"""Shell commands of the client: they begin in this session and are recorded here, whatever is current later."""

from __future__ import annotations

from actors.mail import AbortBash, RunBash, ShellPlan, Ticket
from actors.session.requests.group import Answers, Group
from protocol import commands as c


class ShellRequests(Group):
    def answers(self) -> Answers:
        return {c.Bash: self._bash, c.UserBash: self._bash, c.AbortBash: self._abort_bash}

    def _bash(self, ticket: Ticket, command: c.Bash | c.UserBash) -> None:
        history = self._history
        plan = ShellPlan(
            command.command,
            history.cwd,
            history.session_id,
            self._services.environment(
                history.session_id,
                history.path if history.journal.exists_on_disk else None,
                self._setting.model,
                self._setting.level,
            ),
            command.exclude_from_context,
        )
        self._session.shells.add(ticket.serial)
        self._services.shells.tell(RunBash(ticket, plan, self._session.me))

    def _abort_bash(self, ticket: Ticket, command: c.AbortBash) -> None:
        self._services.shells.tell(AbortBash(ticket, bytes(command.request_id) or None))
