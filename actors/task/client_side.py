"""The client's side of a desk: what its commands ask about the tasks, and what it is shown of one.

Part of the desk. Each command is answered once, through the session; a wait is answered when it ends.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from actors.base import Address
from actors.mail import AgentPlan, InputTyped, SessionMail, ShellTaskPlan, TaskResponse, Ticket
from actors.task.agent_view import DETAIL_CHARS, AgentView
from actors.task.child_message import wire
from actors.task.effects import Effects
from actors.task.input import AnswerLedger
from actors.task.owner import TaskOwner
from actors.task.runners import Runners
from actors.task.state import Refused, Task
from actors.task.transcripts import Transcripts
from actors.task.view import OutputView, tail_text
from actors.tool.schema import shorten
from protocol import commands as c
from protocol.codec import encode
from protocol.responses import InputAccepted, TaskDetail, TaskList
from protocol.tasks import Transcript

BLANK = "Invalid params: input must not be blank for an agent, which waits for an answer, got {}"


class ClientSide:
    def __init__(
        self, owner: TaskOwner, runners: Runners, transcripts: Transcripts, session: Address[SessionMail]
    ) -> None:
        self._owner = owner
        self._runners = runners
        self._transcripts = transcripts
        self._session = session
        self._answers = AnswerLedger()

    def take(self, ticket: Ticket, command: c.Command) -> Effects:
        """Answers, now or later, and tells what follows from the question."""
        try:
            return self._take(ticket, command)
        except Refused as refused:
            self._fail(ticket, str(refused))
            return []

    def answer(self, ticket: Ticket, data: Any) -> None:
        self._session.tell(TaskResponse(ticket.ok(encode(data))))

    def _resized(self, mail: InputTyped) -> None:
        if mail.error is None:
            self._session.tell(TaskResponse(mail.ticket.ok()))
        else:
            self._fail(mail.ticket, mail.error)

    def _typed(self, mail: InputTyped) -> None:
        if mail.error is None:
            self.answer(mail.ticket, InputAccepted(mail.accepted))
        else:
            self._fail(mail.ticket, mail.error)

    def _fail(self, ticket: Ticket, error: str) -> None:
        self._session.tell(TaskResponse(ticket.failed(error)))

    def _take(self, ticket: Ticket, command: c.Command) -> Effects:
        match command:
            case c.GetTasks():
                shown = [task.record() for task in self._owner.tasks if task.was_background]
                self.answer(ticket, TaskList(shown))
            case c.GetTask(task_id=task_id, transcript=None):
                self._look(ticket, self._owner.task(task_id))
            case c.GetTask(task_id=task_id, transcript=c.TranscriptPage() as wanted):
                task = self._owner.task(task_id)
                self._transcripts.show(task, wanted, partial(self._answer_page, ticket, task))
            case c.SendTaskInput(task_id=task_id) if self._owner.task(task_id).launch.kind == "agent":
                return self._reply(ticket, self._owner.task(task_id), command)
            case c.SendTaskInput(task_id=task_id, input=text, operation_id=operation):
                self._type(ticket, self._owner.task(task_id), text, operation)
            case c.ResizeTask(task_id=task_id, columns=columns, rows=rows):
                self._demand_command(self._owner.task(task_id))
                self._runners.resize(ticket, task_id, columns, rows, self._resized)
            case c.WaitTask(task_id=task_id, budget_ms=budget):
                wait_ms = math.nan if budget is None else budget
                return self._owner.wait(task_id, wait_ms, ticket, is_designated=False)
            case c.CancelTask(task_id=task_id):
                receipt, effects = self._owner.cancel(task_id, "user")
                self.answer(ticket, receipt)
                return effects
        return []

    def _look(self, ticket: Ticket, task: Task) -> None:
        if self._runners.has_command(task.id):
            self._runners.read(task.id, page=False, then=partial(self._answer_detail, ticket, task))
        else:
            self._answer_detail(ticket, task, self._runners.view(task.id))

    def _answer_page(self, ticket: Ticket, task: Task, transcript: Transcript) -> None:
        self._answer_detail(ticket, task, self._runners.view(task.id), transcript)

    def _answer_detail(
        self,
        ticket: Ticket,
        task: Task,
        view: OutputView | AgentView | None,
        transcript: Transcript | UnsetType = UNSET,
    ) -> None:
        detail = TaskDetail(task.record())
        plan = task.launch.intent
        if isinstance(plan, ShellTaskPlan):
            detail.command, detail.cwd, detail.timeout_seconds = plan.command, plan.cwd, plan.timeout_s
        if isinstance(plan, AgentPlan):
            detail.prompt, detail.cwd = plan.task, plan.cwd
            detail.questions = [wire(question) for question in self._owner.questions.of(task.id)] or UNSET
        if isinstance(view, AgentView):
            detail.tail = view.text[-DETAIL_CHARS:]
        elif view is not None:
            detail.tail, detail.full_output_path = tail_text(view), view.path or UNSET
            detail.task = replace(detail.task, output=view.ref)
        detail.transcript = transcript
        self.answer(ticket, detail)

    def _reply(self, ticket: Ticket, task: Task, command: c.SendTaskInput) -> Effects:
        """The user answers an agent's question in the place of its parent."""
        operation, text = command.operation_id, command.input
        accepted = InputAccepted(len(text.encode(errors="replace")))
        if operation is not None and self._answers.has(task.id, operation, text):
            self.answer(ticket, accepted)
            return []
        if task.result is not None:
            raise Refused("TaskTerminal")
        if not text.strip():
            raise Refused("InvalidInput", text=BLANK.format(shorten(text)))
        question, effects = self._owner.answer(task.id, command.request_id)
        self._runners.answer_question(task.id, question.message_id, text)
        if operation is not None:
            self._answers.keep(task.id, operation, text)
        self.answer(ticket, accepted)
        return effects

    def _type(self, ticket: Ticket, task: Task, text: str, operation: str | None) -> None:
        self._demand_command(task)
        name = operation if operation is not None else f"input-{ticket.visitor}-{ticket.serial}"
        self._runners.type(ticket, task.id, name, text, self._typed)

    def _demand_command(self, task: Task) -> None:
        """Raises `Refused` for one that does not run, or is none."""
        if task.phase != "running" or not self._runners.has_command(task.id):
            raise Refused("TaskTerminal" if task.result is not None else "StdinClosed")
