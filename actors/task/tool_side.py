"""The model's side of a desk: what calls of tools ask of the tasks, and how each call is answered once.

Part of the desk. Calls that wait here are known until they have their answer, so that it can be given whatever happens.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from actors.base import Address
from actors.mail import (
    AgentPlan,
    AgentRefusal,
    AgentsAnswer,
    AgentSlot,
    Arm,
    ClockMail,
    DescribeAgents,
    IntercomAnswer,
    KillTask,
    LaunchAgents,
    LaunchShell,
    TaskAnswer,
    TaskDeskMail,
    ToolCallMail,
    ToolUpdated,
    UseIntercom,
    WaitForTask,
)
from actors.task.batch import Batch
from actors.task.effects import Effects, ObserverCancelled, Wait
from actors.task.intercom import use
from actors.task.owner import TaskOwner
from actors.task.questions import NO_CHILD
from actors.task.reports import Do
from actors.task.runners import Runners
from actors.task.state import Launch, Refused, Task
from actors.task.view import OutputView
from actors.tool.subagent_call import progress
from protocol import tasks as t

Asked = LaunchShell | LaunchAgents | DescribeAgents | WaitForTask | KillTask | UseIntercom

ONLY_SHELLS = "kill only supports shell tasks"
ABORTED = "aborted"
TITLE_CHARS = 240
PROGRESS, PROGRESS_MS = "progress", 100
"""A progress holds all agents of its launch: with one for each change, a tenth of the time of 50 agents was that."""


class ToolSide:
    """`desk` is whom the clock tells that progress may be shown again."""

    def __init__(
        self, owner: TaskOwner, runners: Runners, do: Do, clock: Address[ClockMail], desk: Address[TaskDeskMail]
    ) -> None:
        self._owner = owner
        self._runners = runners
        self._do = do
        self._clock = clock
        self._desk = desk
        self._launches = 0
        self._calls: list[Address[ToolCallMail]] = []
        self._batches: dict[Any, Batch] = {}

    def take(self, mail: Asked) -> None:
        self._calls.append(mail.to)
        match mail:
            case LaunchShell():
                self._try(mail.to, lambda: self._launch(mail))
            case LaunchAgents():
                self._launch_agents(mail)
            case DescribeAgents(which, to):
                self._describe(which, to)
            case WaitForTask():
                self._try(mail.to, lambda: self._wait(mail))
            case KillTask():
                self._try(mail.to, lambda: self._kill(mail))
            case UseIntercom():
                self._try(mail.to, lambda: self._use_intercom(mail))

    def fail(self, calls: list[Address[ToolCallMail]], error: str) -> None:
        """Answers these, and all that wait."""
        for call in dict.fromkeys([*self._calls, *calls]):
            call.tell(TaskAnswer(error))

    def _try(self, to: Address[ToolCallMail], ask: Callable[[], Effects]) -> None:
        try:
            effects = ask()
        except Refused as refused:
            self._tell(to, TaskAnswer(str(refused)))
            return
        self._do(effects)

    def _tell(self, call: Address[ToolCallMail], answer: TaskAnswer | AgentsAnswer | IntercomAnswer) -> None:
        """Only then is it off the list of those that wait: whatever fails before, the last words answer it."""
        call.tell(answer)
        self._calls.remove(call)

    # -- what they ask

    def _launch(self, mail: LaunchShell) -> Effects:
        title = _first_line(mail.plan.command)
        launch = Launch(mail.operation, "command", title, mail.plan, accepts_input=mail.plan.pty)
        task_id, effects = self._owner.launch(launch, mail.policy, mail.to)
        self._runners.show_to(task_id, mail.to)
        return effects

    def _launch_agents(self, mail: LaunchAgents) -> None:
        """One task for each, admitted one after the other; those that cannot be leave the others alone."""
        self._launches += 1
        batch = self._batches[mail.to] = Batch(self._launches, len(mail.plans))
        for place, plan in enumerate(mail.plans):
            try:
                if isinstance(plan, AgentRefusal):
                    batch.fill(place, AgentSlot(plan))
                else:
                    self._do(self._admit_agent(batch, place, plan, mail))
            except Refused as refused:
                batch.fill(place, AgentSlot(AgentRefusal(refused.code, str(refused))))
        self._answer_batch(mail.to)

    def _admit_agent(self, batch: Batch, place: int, plan: AgentPlan, mail: LaunchAgents) -> Effects:
        launch = Launch(
            f"{mail.operation}:{place}",
            "agent",
            _first_line(plan.task) or plan.agent.name[:TITLE_CHARS],
            plan,
            group=mail.operation,
            group_limit=mail.concurrency,
            agent_name=plan.agent.name,
            is_prepared=plan.checkout is not None,
        )
        task_id, effects = self._owner.launch(launch, mail.policy, mail.to)
        batch.tasks[task_id] = place
        return effects

    def _describe(self, task_id: str | None, to: Address[ToolCallMail]) -> None:
        agents = [task for task in self._owner.tasks if task.launch.kind == "agent" and task_id in (None, task.id)]
        if task_id is not None and not agents:
            self._tell(to, TaskAnswer(NO_CHILD.format(task_id[:TITLE_CHARS])))
        else:
            self._tell(to, AgentsAnswer(tuple(self._slot(task, None) for task in agents)))

    def _wait(self, mail: WaitForTask) -> Effects:
        self._check_kind(mail.task_id, mail.kind, "UnknownTask: UnknownTask")
        return self._owner.wait(mail.task_id, mail.budget_ms, mail.to, is_designated=True)

    def _kill(self, mail: KillTask) -> Effects:
        self._check_kind(mail.task_id, mail.kind, ONLY_SHELLS)
        receipt, effects = self._owner.cancel(mail.task_id, "user")
        self._tell(mail.to, TaskAnswer(receipt))
        return effects

    def _use_intercom(self, mail: UseIntercom) -> Effects:
        told, effects = use(self._owner, mail.action, mail.target, mail.reply_to)
        if mail.action == "reply":
            self._runners.answer_question(told["taskId"], told["requestId"], mail.message)
        elif mail.action == "send":
            self._runners.steer(told["taskId"], mail.message)
        self._tell(mail.to, IntercomAnswer(told))
        return effects

    def _check_kind(self, task_id: str, kind: t.TaskKind, only_shells: str) -> None:
        """The tools for commands and for agents each know their own alone."""
        task = self._owner.find(task_id)
        if kind == "agent" and (task is None or task.launch.kind != "agent"):
            raise Refused("UnknownTask", text=NO_CHILD.format(task_id[:TITLE_CHARS]))
        if task is not None and task.launch.kind != kind:
            raise Refused("UnknownTask", text=only_shells)

    # -- what they are answered

    def resolve(self, wait: Wait, outcome: t.Observation | ObserverCancelled) -> None:
        """The wait of a call is over."""
        call: Address[ToolCallMail] = wait.observer
        if wait.is_launch:
            self._runners.hide_output(wait.task_id)
        task = self._owner.task(wait.task_id)
        match outcome:
            case ObserverCancelled():
                self._tell(call, TaskAnswer(ABORTED))
            case _ if task.launch.kind == "agent" and wait.is_launch:
                batch = self._batches[call]
                batch.fill(batch.tasks[task.id], self._slot(task, outcome))
                self._answer_batch(call)
            case _ if task.launch.kind == "agent":
                self._tell(call, AgentsAnswer((self._slot(task, outcome),)))
            case t.YieldedWait(task_id=task_id) if self._runners.has_command(task_id):
                show = partial(self._answer_yield, call, outcome)
                self._runners.read(task_id, page=not wait.is_launch, then=show)
            case _:
                self._tell(call, TaskAnswer(outcome, self._runners.output(task.id)))

    def _answer_yield(self, call: Address[ToolCallMail], outcome: t.YieldedWait, view: OutputView | None) -> None:
        self._tell(call, TaskAnswer(outcome, view))

    def _answer_batch(self, to: Address[ToolCallMail]) -> None:
        """Nothing while one of them is waited for, or if that was the answer to the last that was admitted."""
        batch = self._batches.get(to)
        answer = batch.answer if batch is not None else None
        if answer is not None:
            del self._batches[to]
            self._tell(to, AgentsAnswer(answer))

    def show_progress(self, task_id: str) -> None:
        """The parent sees what its agents do while it waits for their launch: at once, but at most once in 100 ms."""
        for call, batch in self._batches.items():
            if task_id in batch.tasks and batch.changes():
                self._show(call, batch)

    def rang(self, key: str) -> bool:
        """Whether the key was for a launch; what has changed of it meanwhile is shown."""
        kind, _, number = key.partition("-")
        for call, batch in self._batches.items():
            if kind == PROGRESS and number == str(batch.number) and batch.rested():
                self._show(call, batch)
        return kind == PROGRESS

    def _show(self, call: Address[ToolCallMail], batch: Batch) -> None:
        now = {each: self._slot(self._owner.task(each), None) for each in batch.tasks}
        call.tell(ToolUpdated(progress(batch.shown(now))))
        self._clock.tell(Arm(f"{PROGRESS}-{batch.number}", PROGRESS_MS, self._desk))

    def _slot(self, task: Task, outcome: t.Observation | None) -> AgentSlot:
        return AgentSlot(outcome, task.record(), self._runners.answer(task.id))


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")[:TITLE_CHARS]
