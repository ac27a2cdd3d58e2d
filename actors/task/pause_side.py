"""The side of a desk that whoever pauses its tasks sees: each request is answered once, whatever happens.

Part of the desk. A stage of a workflow pauses and resumes what it owns; a session pauses nothing of its tasks.
"""

from __future__ import annotations

from actors.base import Address
from actors.mail import PauseMail, PauseTasks, ResumeTasks, TaskDeskMail, TasksPaused, TasksResumed
from actors.task.effects import Effects, Paused
from actors.task.owner import TaskOwner
from actors.task.state import Refused


class PauseSide:
    def __init__(self, owner: TaskOwner) -> None:
        self._owner = owner
        self._open: list[Address[PauseMail]] = []
        self._last: PauseTasks | ResumeTasks | None = None

    def pause(self, mail: PauseTasks) -> Effects:
        self._last = mail
        self._open.append(mail.to)
        return self._owner.pause(mail.to)

    def resume(self, mail: ResumeTasks) -> None:
        self._last = mail
        try:
            answer = TasksResumed(self._owner.resume())
        except Refused as refused:
            answer = TasksResumed(None, str(refused))
        mail.to.tell(answer)

    def paused(self, effect: Paused) -> None:
        effect.observer.tell(TasksPaused(effect.error, effect.receipts))
        self._open.remove(effect.observer)

    def fail(self, unread: list[TaskDeskMail], error: str) -> None:
        """The desk dies: answers what is open and what it has not read. The first of these it may have begun with."""
        for to in self._open:
            to.tell(TasksPaused(error))
        for mail in (mail for mail in unread if mail is not self._last):
            if isinstance(mail, PauseTasks):
                mail.to.tell(TasksPaused(error))
            elif isinstance(mail, ResumeTasks):
                mail.to.tell(TasksResumed(None, error))
