"""Where the pump of a command finds its task.

That nothing is left of the command is also told to the desk, past its task, which may be dead.
"""

from __future__ import annotations

from actors.base import Address
from actors.mail import CommandSwept, ShellTaskMail, TaskDeskMail, TraceGone


class CommandRoad:
    __slots__ = ("_desk", "_to", "task_id")

    def __init__(self, to: Address[ShellTaskMail], desk: Address[TaskDeskMail], task_id: str) -> None:
        self._to = to
        self._desk = desk
        self.task_id = task_id

    def tell(self, mail: ShellTaskMail) -> None:
        self._to.tell(mail)
        if isinstance(mail, CommandSwept) and not mail.left:
            self._desk.tell(TraceGone(self.task_id))
