"""What a child says to its parent while it works, and what it hears.

Part of the subagent. A child has one question open at most, and the call that asks is answered once, whatever happens.
"""

from __future__ import annotations

from actors.base import Address
from actors.mail import AgentSpoke, ContactParent, ParentAnswer, QuestionWithdrawn, TaskDeskMail, ToolCallMail

ALREADY = "Already waiting for a reply"
ENDING = "The subagent is ending: no answer comes any more"
PASSED_ON = "Passed on"


class ParentSide:
    """`desk` passes on what is said."""

    def __init__(self, task_id: str, desk: Address[TaskDeskMail]) -> None:
        self._task_id = task_id
        self._desk = desk
        self._asking: tuple[str, Address[ToolCallMail]] | None = None
        self._said = 0
        self._is_over = False

    @property
    def is_asking(self) -> bool:
        """Whether the child waits for an answer."""
        return self._asking is not None

    def contact(self, mail: ContactParent) -> None:
        """Who asks second is told so, and the first still waits."""
        waits = mail.contact.waits
        if self._is_over or (waits and self._asking is not None):
            mail.to.tell(ParentAnswer(ENDING if self._is_over else ALREADY, is_error=True))
            return
        self._said += 1
        message_id = f"{'ask' if waits else 'note'}-{self._task_id.removeprefix('task-')}-{self._said}"
        self._desk.tell(AgentSpoke(self._task_id, message_id, mail.contact))
        if waits:
            self._asking = (message_id, mail.to)
        else:
            mail.to.tell(ParentAnswer(PASSED_ON))

    def withdraw(self, call: Address[ToolCallMail]) -> None:
        if self._asking is not None and self._asking[1] == call:
            self._desk.tell(QuestionWithdrawn(self._task_id, self._asking[0]))
            self._asking = None

    def answer(self, request_id: str, text: str) -> bool:
        """Whether somebody waits for it: nobody does for one that was withdrawn meanwhile."""
        if self._asking is None or self._asking[0] != request_id:
            return False
        self._asking[1].tell(ParentAnswer(text, request_id))
        self._asking = None
        return True

    def end(self) -> None:
        """Also the call of a session that has died is waiting still."""
        self._is_over = True
        if self._asking is not None:
            self._asking[1].tell(ParentAnswer(ENDING, is_error=True))
            self._asking = None
