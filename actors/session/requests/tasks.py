"""Commands about tasks: the desk of the session's tasks answers them, each when it can."""

from __future__ import annotations

from msgspec.structs import replace

from actors.mail import Ticket
from actors.session.requests.group import Answers, Group
from protocol import commands as c
from protocol.responses import TaskList

UNKNOWN = "UnknownTask: UnknownTask"


class TaskRequests(Group):
    """A session that never had a task knows none."""

    def answers(self) -> Answers:
        return {
            c.GetTasks: self._list,
            c.GetTask: self._one,
            c.CancelTask: self._one,
            c.SendTaskInput: self._one,
            c.WaitTask: self._one,
            c.SetTaskSubscription: self._subscribe,
        }

    def _list(self, ticket: Ticket, command: c.GetTasks) -> None:
        if not self._session.tasks.pass_on(ticket, command):
            self._outbox.ok(ticket, TaskList([]))

    def _one(self, ticket: Ticket, command: c.Command) -> None:
        if not self._session.tasks.pass_on(ticket, command):
            self._outbox.failed(ticket, UNKNOWN)

    def _subscribe(self, ticket: Ticket, command: c.SetTaskSubscription) -> None:
        """It goes along to the sessions that follow: it is the client's wish."""
        self._setting.defaults = replace(self._setting.defaults, task_updates=command.enabled)
        self._outbox.ok(ticket)
