"""The session's side of its tasks: the desk that owns them, what the client hears of them, and their end.

Part of the session actor. The desk is started with the first thing that needs one, since most sessions never do. When
the session lets go, its desk closes; coming back, the session gets a fresh owner. A desk that has closed is stopped
once the session is still, so that no call can be on its way to it. Source: `tasks.md` 2.3 and 2.11.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET, Raw
from msgspec.structs import replace

from actors.mail import (
    AgentMessaged,
    CloseTasks,
    Record,
    TaskChanged,
    TaskCommand,
    TaskDeskMail,
    TaskResponse,
    TasksBegun,
    TasksClosed,
    Ticket,
    TranscriptGrew,
    VisitorAnswered,
    VisitorMail,
    WatchTranscripts,
)
from protocol.codec import encode
from protocol.commands import GetTasks
from protocol.events import TaskTranscript, TaskUpdate

if TYPE_CHECKING:
    from collections.abc import Callable

    from actors.base import Address, Child
    from actors.mail import SessionMail
    from actors.session.actor import Session
    from protocol.commands import Command

    StartDesk = Callable[[str, str, Address[SessionMail]], Child[TaskDeskMail]]

KEY = "tasks-"
UNKNOWN = "UnknownTask: UnknownTask"


class TaskSide:
    """`is_watched` tells that the client wants `task_update`."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._desk: tuple[str, Child[TaskDeskMail]] | None = None
        self._closing: dict[str, Child[TaskDeskMail]] = {}
        self._closed: list[Child[TaskDeskMail]] = []
        self._open: dict[tuple[int, int], tuple[Ticket, Address[VisitorMail] | None]] = {}
        self._has_begun = False
        self._agents: set[str] = set()
        self._watches: dict[int, str] = {}
        self._started = 0
        self._prefix = ""

    @property
    def owes(self) -> bool:
        """Whether something that it owns is not over, or a command not answered."""
        return bool(self._closing or self._open)

    def owner(self) -> Address[TaskDeskMail] | None:
        """The desk for a call that starts now. While the session lets go it refuses; one that is back has a fresh one,
        also while the desk before is still closing. A subagent's session has none."""
        if self._session.services.start_task_desk is None:
            return None
        if self._session.leaving and self._closing:
            return list(self._closing.values())[-1]
        if self._desk is None:
            self._desk = self._start(self._session.services.start_task_desk)
        desk = self._desk[1]
        if self._session.leaving:
            self.close()
        return desk

    def _start(self, start_desk: StartDesk) -> tuple[str, Child[TaskDeskMail]]:
        """The scope is random: what an earlier process said of its tasks is in the same file."""
        self._prefix = self._prefix or self._session.services.uuid4().replace("-", "")[:8]
        scope = f"{self._prefix}-{self._started}"
        self._started += 1
        return scope, start_desk(scope, f"{KEY}{scope}", self._session.me)

    # -- commands

    def take(self, ticket: Ticket, command: Command, to: Address[VisitorMail] | None = None) -> None:
        """A command of the client, or of the visitor at `to`. A session that never had a task knows none."""
        from protocol.responses import TaskList

        self._open[ticket.visitor, ticket.serial] = (ticket, to)
        desks = self._desks()
        if desks:
            desks[-1].tell(TaskCommand(ticket, command))
        elif isinstance(command, GetTasks):
            self._answer(ticket.ok(encode(TaskList([]))))
        else:
            self._answer(ticket.failed(UNKNOWN))

    def answered(self, mail: TaskResponse) -> None:
        self._answer(mail.response)

    def _answer(self, response: Record) -> None:
        """Once, to whoever asked."""
        _, to = self._open.pop((response.visitor, response.serial), (None, None))
        if to is not None:
            to.tell(VisitorAnswered(response))
        elif not response.visitor:
            self._session.outbox.record(response)

    def changed(self, mail: TaskChanged) -> None:
        """The notice is in the file before anybody hears that the task is over."""
        self._session.notices.close_questions(mail.record)
        if mail.notice is not None:
            self._session.notices.add(mail.notice)
        if mail.record.kind == "agent":
            self._agents.add(mail.record.ref.task_id)
        if not self._has_begun:
            self._has_begun = True
            self._session.services.desk.tell(TasksBegun())
        for_client = self._session.setting.defaults.task_updates
        if not (for_client or self._session.guests.listen):
            return
        line = encode(TaskUpdate(mail.record)) + b"\n"
        if for_client:
            self._session.outbox.lines(line)
        self._session.guests.tell(line)

    def messaged(self, mail: AgentMessaged) -> None:
        """What the run waits for goes on without it, so that the model can read it."""
        self._session.notices.add_message(mail.message)
        self._session.loop.tools.let_go("intercom-coordination")

    # -- transcripts

    def watch(self, visitor: int, task_id: str | None) -> bool:
        """From now on the visitor (0: the client) is told what this agent says, and no other; whether there is one."""
        if task_id is not None and task_id not in self._agents:
            return False
        before = frozenset(self._watches.values())
        self._watches.pop(visitor, None)
        if task_id is not None:
            self._watches[visitor] = task_id
        watched = frozenset(self._watches.values())
        if watched != before:
            for desk in self._desks():
                desk.tell(WatchTranscripts(watched))
        return True

    def said(self, mail: TranscriptGrew) -> None:
        said = mail.said
        number = said.first + len(said.entries)
        live = UNSET if said.live is None else replace(said.live, index=number)
        event = TaskTranscript(said.task_id, said.first, [Raw(entry) for entry in said.entries], live)
        line = encode(event) + b"\n"
        watchers = [visitor for visitor, task_id in self._watches.items() if task_id == said.task_id]
        for visitor in watchers:
            self._session.guests.tell_one(visitor, line)
        if 0 in watchers:
            self._session.outbox.lines(line)
            self._session.outbox.send(ack=said.ack)
        else:
            said.ack.settle()

    # -- the end

    def close(self) -> None:
        """Ends everything; nobody waits for that here."""
        if self._desk is not None:
            scope, desk = self._desk
            self._desk = None
            self._closing[scope] = desk
            desk.tell(CloseTasks())

    def closed(self, mail: TasksClosed) -> None:
        desk = self._closing.pop(mail.scope, None)
        if desk is not None:
            self._closed.append(desk)

    def stop_closed(self) -> None:
        """The session is still: no call of it can ask them anything any more."""
        while self._closed:
            self._closed.pop().stop()

    def died(self, key: str, error: str) -> None:
        """A desk died; it has answered the calls, and what it owned is killed."""
        scope = key.removeprefix(KEY)
        desk = self._closing.pop(scope, None)
        if self._desk is not None and self._desk[0] == scope:
            desk, self._desk = self._desk[1], None
        if desk is not None:
            self._session.loop.tools.lose_tasks(desk)
        self._agents.clear()
        self._watches.clear()
        for ticket, _ in list(self._open.values()):
            self._answer(ticket.failed(f"the tasks failed: {error}"))

    def abandon(self) -> None:
        """The session dies: its tasks go with it."""
        for desk in self._desks():
            desk.tell(CloseTasks(alone=True))
            self._session.loop.tools.lose_tasks(desk)

    def _desks(self) -> list[Child[TaskDeskMail]]:
        """Those that are there, the current one last."""
        return [*self._closing.values(), *([self._desk[1]] if self._desk else [])]
