"""Commands about tasks: the desk of the session's tasks answers them, each when it can."""

from __future__ import annotations

from msgspec.structs import replace

from actors.mail import Ticket
from actors.session.requests.group import Answers, Group
from actors.session.task_side import UNKNOWN
from protocol import commands as c


class TaskRequests(Group):
    def answers(self) -> Answers:
        take = self._session.tasks.take
        return {
            c.GetTasks: take,
            c.GetTask: take,
            c.CancelTask: take,
            c.SendTaskInput: take,
            c.ResizeTask: take,
            c.WaitTask: take,
            c.SetTaskSubscription: self._subscribe,
        }

    def _subscribe(self, ticket: Ticket, command: c.SetTaskSubscription) -> None:
        """It goes along to the sessions that follow: it is the client's wish."""
        if not self._session.tasks.watch(ticket.visitor, command.transcript if command.enabled else None):
            self._outbox.failed(ticket, UNKNOWN)
            return
        self._setting.defaults = replace(self._setting.defaults, task_updates=command.enabled)
        self._outbox.ok(ticket)
