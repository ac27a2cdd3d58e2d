"""What the desks of tasks have told their sessions, read from the mail: which tasks there are, and how each went."""

from __future__ import annotations

from typing import Any

from actors.mail import AgentMessaged, TaskChanged
from protocol.tasks import Settled, TaskRecord


class TaskBook:
    """`records` are those of each task, by its id, with the place in the mail at which they were told."""

    def __init__(self, trace: list[tuple[str, str, Any]]) -> None:
        self._trace = trace
        self._read = 0
        self._records: dict[str, list[tuple[int, TaskRecord]]] = {}
        self._questions: list[str] = []

    @property
    def records(self) -> dict[str, list[tuple[int, TaskRecord]]]:
        """In the order in which the tasks were first heard of."""
        for place in range(self._read, len(self._trace)):
            mail = self._trace[place][2]
            if isinstance(mail, TaskChanged):
                self._records.setdefault(mail.record.ref.task_id, []).append((place, mail.record))
            elif isinstance(mail, AgentMessaged):
                self._questions.append(mail.message.message_id)
        self._read = len(self._trace)
        return self._records

    @property
    def questions(self) -> list[str]:
        """What subagents have said, by its ids; open questions and others."""
        return self._questions if self.records is not None else []

    def agents(self) -> list[tuple[str, bool]]:
        """The ids of all subagents, and whether each is over."""
        last = ((task_id, told[-1][1]) for task_id, told in self.records.items())
        return [(task_id, isinstance(one.execution, Settled)) for task_id, one in last if one.kind == "agent"]
