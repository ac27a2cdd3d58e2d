"""The actors that run the tasks of a desk, and what has come out of those that are over.

Part of the desk. A task that is over has no actor: what it put out is kept here as a frozen view, for the last of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from actors.base import Address, Child
from actors.mail import (
    AgentPlan,
    AnswerQuestion,
    HideOutput,
    InputTyped,
    OutputRead,
    ReadOutput,
    ReadTranscript,
    ResizeTerminal,
    ShellTaskMail,
    ShellTaskPlan,
    SteerChild,
    StopAgent,
    StopCommand,
    SubagentMail,
    TaskDeskMail,
    TaskOrphaned,
    Ticket,
    ToolCallMail,
    TranscriptRead,
    TypeInput,
    WatchTranscript,
)
from actors.task.agent_view import AgentView
from actors.task.input import OVER, delivery_unknown
from actors.task.state import Task
from actors.task.transcript import History
from actors.task.view import OutputView
from protocol import tasks as t

StartShellTask = Callable[
    [t.TaskRef, ShellTaskPlan, Address[TaskDeskMail], Address[ToolCallMail]], Child[ShellTaskMail]
]

StartSubagent = Callable[[t.TaskRef, AgentPlan, Address[TaskDeskMail]], Child[SubagentMail]]

TakeView = Callable[[OutputView | None], None]
TakeTranscript = Callable[[TranscriptRead | None], None]
TakeTyped = Callable[[InputTyped], None]

KEPT_OUTPUTS = 200
"""Of so many tasks that are over the output can be asked for; of older ones the record alone."""


class Runners:
    """`desk` is whom they report to."""

    def __init__(
        self, desk: Address[TaskDeskMail], start_shell_task: StartShellTask, start_subagent: StartSubagent
    ) -> None:
        self._desk = desk
        self._start_shell_task = start_shell_task
        self._start_subagent = start_subagent
        self._shells: dict[str, Child[ShellTaskMail]] = {}
        self._agents: dict[str, Child[SubagentMail]] = {}
        self._observers: dict[str, Address[ToolCallMail]] = {}
        self._views: dict[str, OutputView | AgentView] = {}
        self._histories: dict[str, History] = {}
        self._watched: frozenset[str] = frozenset()
        self._readings: dict[int, tuple[str, Callable[[Any], None]]] = {}
        self._asked = 0
        self._inputs: dict[Ticket, tuple[str, InputTyped, TakeTyped]] = {}
        self._gone: set[str] = set()
        self._orphans: dict[str, tuple[str, ...]] = {}

    def show_to(self, task_id: str, observer: Address[ToolCallMail]) -> None:
        """The call that sees a command's output from its start on. The first that launched it counts."""
        self._observers.setdefault(task_id, observer)

    def start(self, task: Task) -> None:
        if task.launch.kind == "agent":
            self._agents[task.id] = self._start_subagent(task.ref, task.launch.intent, self._desk)
            if task.id in self._watched:
                self._agents[task.id].tell(WatchTranscript(True))
            return
        observer = self._observers.pop(task.id)
        self._shells[task.id] = self._start_shell_task(task.ref, task.launch.intent, self._desk, observer)

    def stop(self, task_id: str, at_once: bool) -> None:
        if task_id in self._agents:
            self._agents[task_id].tell(StopAgent())
        else:
            self._shells[task_id].tell(StopCommand(at_once))

    def abandon(self) -> None:
        """The desk dies: what runs is ended, and then ends by itself."""
        for shell in self._shells.values():
            shell.tell(StopCommand(at_once=True, alone=True))
        for agent in self._agents.values():
            agent.tell(StopAgent(alone=True))

    def reaped(self, task_id: str) -> None:
        """Nothing of it is left but its actor."""
        runner = self._shells.pop(task_id, None) or self._agents.pop(task_id, None)
        if runner is not None:
            runner.stop()
        self._gone.discard(task_id)

    # -- the death of one

    def orphaned(self, mail: TaskOrphaned) -> None:
        """Its last words; what is left may have gone meanwhile."""
        if self._lives(mail.task_id) and mail.task_id not in self._gone:
            self._orphans[mail.task_id] = mail.resources

    def gone(self, task_id: str) -> bool:
        """Nothing is left of it. Whether its actor was dead already, so that nobody else will tell."""
        was_left = self._orphans.pop(task_id, None) is not None
        lives = self._lives(task_id)
        if lives:
            self._gone.add(task_id)
        return was_left and not lives

    def _lives(self, task_id: str) -> bool:
        return task_id in self._shells or task_id in self._agents

    def left(self, task_id: str) -> tuple[str, ...]:
        """What is left of a task whose actor is dead."""
        return self._orphans.get(task_id, ())

    def died(self, task_id: str) -> None:
        self._gone.discard(task_id)
        self._shells.pop(task_id, None)
        self._agents.pop(task_id, None)
        for number, (its_task, take) in list(self._readings.items()):
            if its_task == task_id:
                del self._readings[number]
                take(None)
        for its_task, unknown, _ in list(self._inputs.values()):
            if its_task == task_id:
                self.have_typed(unknown)

    # -- agents

    def answer_question(self, task_id: str, request_id: str, text: str) -> None:
        self._agents[task_id].tell(AnswerQuestion(request_id, text))

    def steer(self, task_id: str, text: str) -> None:
        self._agents[task_id].tell(SteerChild(text))

    # -- commands

    def has_command(self, task_id: str) -> bool:
        """Whether it is a command with an actor."""
        return task_id in self._shells

    def hide_output(self, task_id: str) -> None:
        """Nobody waits for the launch any more."""
        if task_id in self._shells:
            self._shells[task_id].tell(HideOutput())

    def type(self, ticket: Ticket, task_id: str, operation: str, text: str, then: TakeTyped) -> None:
        """Types at a command; if it dies first, `then` hears that nobody knows what became of the input."""
        unknown = InputTyped(ticket, 0, delivery_unknown(operation, 0))
        self._inputs[ticket] = (task_id, unknown, then)
        self._shells[task_id].tell(TypeInput(ticket, operation, text.encode(errors="replace")))

    def have_typed(self, mail: InputTyped) -> None:
        """Once for each."""
        found = self._inputs.pop(mail.ticket, None)
        if found is not None:
            found[2](mail)

    def resize(self, ticket: Ticket, task_id: str, columns: int, rows: int, then: TakeTyped) -> None:
        self._inputs[ticket] = (task_id, InputTyped(ticket, 0, OVER), then)
        self._shells[task_id].tell(ResizeTerminal(ticket, columns, rows))

    def read(self, task_id: str, *, page: bool, then: TakeView) -> None:
        """Asks a command for its output; `then` gets None if it dies first."""
        self._asked += 1
        self._readings[self._asked] = (task_id, then)
        self._shells[task_id].tell(ReadOutput(self._asked, page))

    def have_read(self, mail: OutputRead | TranscriptRead) -> None:
        reading = self._readings.pop(mail.number, None)
        if reading is not None:
            reading[1](mail.view if isinstance(mail, OutputRead) else mail)

    # -- transcripts

    def read_transcript(self, task_id: str, then: TakeTranscript) -> None:
        """Asks an agent for its transcript; `then` gets None if it does not run, or dies first."""
        if task_id not in self._agents:
            then(None)
            return
        self._asked += 1
        self._readings[self._asked] = (task_id, then)
        self._agents[task_id].tell(ReadTranscript(self._asked))

    def history(self, task_id: str) -> History:
        """What is left of the transcript of an agent that does not run."""
        view = self.answer(task_id)
        return view.history if view is not None else self._histories.get(task_id, History())

    def watch(self, task_ids: frozenset[str]) -> None:
        """Of these what they say is told, also of those that have yet to start, and of no other."""
        before, self._watched = self._watched, task_ids
        for task_id in before ^ task_ids:
            if task_id in self._agents:
                self._agents[task_id].tell(WatchTranscript(task_id in task_ids))

    # -- what has come of them

    def keep(self, task_id: str, view: OutputView | AgentView) -> None:
        self._views[task_id] = view

    def view(self, task_id: str) -> OutputView | AgentView | None:
        return self._views.get(task_id)

    def output(self, task_id: str) -> OutputView | None:
        """That of a command."""
        view = self._views.get(task_id)
        return view if isinstance(view, OutputView) else None

    def answer(self, task_id: str) -> AgentView | None:
        """That of an agent."""
        view = self._views.get(task_id)
        return view if isinstance(view, AgentView) else None

    def forget(self, task_id: str) -> None:
        self._views.pop(task_id, None)

    def forget_old(self) -> None:
        over = [task_id for task_id in self._views if task_id not in self._shells]
        for task_id in over[:-KEPT_OUTPUTS]:
            view = self._views.pop(task_id)
            if isinstance(view, AgentView):  # its transcript can still be read from its file
                self._histories[task_id] = view.history.bare()
