"""Where the session of a subagent's child finds its Writer, its desk and its shell desk: all three are its subagent.

That the session is gone is also told to the desk of the task, past the subagent, which may be dead.
"""

from __future__ import annotations

from actors.base import Address, Down
from actors.mail import (
    ChildSaid,
    SessionDeskMail,
    SessionGone,
    ShellDeskMail,
    SubagentMail,
    TaskDeskMail,
    TraceGone,
    WriterMail,
)


class ChildRoad:
    """An address for all that a session tells these three; it is handed on as it is."""

    __slots__ = ("_desk", "_task_id", "_to")

    def __init__(self, to: Address[SubagentMail], desk: Address[TaskDeskMail], task_id: str) -> None:
        self._to = to
        self._desk = desk
        self._task_id = task_id

    def tell(self, mail: WriterMail | SessionDeskMail | ShellDeskMail) -> None:
        self._to.tell(ChildSaid(mail))
        if isinstance(mail, SessionGone):
            self._desk.tell(TraceGone(self._task_id))


class ChildOwner:
    """Who owns the session: its subagent."""

    __slots__ = ("_desk", "_task_id", "_to")

    def __init__(self, to: Address[SubagentMail], desk: Address[TaskDeskMail], task_id: str) -> None:
        self._to = to
        self._desk = desk
        self._task_id = task_id

    def tell(self, mail: SubagentMail) -> None:
        self._to.tell(mail)
        if isinstance(mail, Down):
            self._desk.tell(TraceGone(self._task_id))
