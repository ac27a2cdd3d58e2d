"""The desk of one owner's tasks: carries out what the owner decides, and answers everybody who asks.

One desk belongs to one session (later also to a stage of a workflow), and is started with the first task. It outlives
the turns of its session, and lives on after a hand-over until everything that it started is gone. Calls of tools are
answered once, whatever happens; the session hears of every change, and with the end of a background task gets the
notice for the conversation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, assert_never

from msgspec import UNSET
from msgspec.structs import replace

from actors.base import Actor, Address, Child, Down
from actors.mail import (
    AgentPlan,
    AgentProgress,
    AgentRefusal,
    AgentsAnswer,
    AgentSlot,
    Arm,
    ClockMail,
    CloseTasks,
    DescribeAgents,
    GiveUp,
    HideOutput,
    InputTyped,
    KillTask,
    LaunchAgents,
    LaunchShell,
    OutputRead,
    ReadOutput,
    ReleaseWaits,
    SessionMail,
    ShellTaskMail,
    ShellTaskPlan,
    StopAgent,
    StopCommand,
    SubagentMail,
    TaskAnswer,
    TaskChanged,
    TaskCommand,
    TaskDeskMail,
    TaskEnded,
    TaskOverLimit,
    TaskReaped,
    TaskResponse,
    TasksClosed,
    TaskSpawned,
    TaskUncleaned,
    Tick,
    Ticket,
    ToolCallMail,
    ToolUpdated,
    TypeInput,
    WaitForTask,
)
from actors.task.agent_view import DETAIL_CHARS, AgentView
from actors.task.batch import Batch
from actors.task.effects import (
    Announce,
    ArmBudget,
    Budgets,
    Changed,
    Close,
    Effects,
    ObserverCancelled,
    Resolve,
    Room,
    StartTask,
    StopTask,
    Wait,
)
from actors.task.notice import TaskNotice
from actors.task.owner import TaskOwner
from actors.task.state import Launch, Refused, Task
from actors.task.view import OutputView, tail_text
from actors.tool.subagent_call import progress
from protocol import commands as c
from protocol import tasks as t
from protocol.codec import encode
from protocol.responses import InputAccepted, TaskDetail, TaskList

StartShellTask = Callable[
    [t.TaskRef, ShellTaskPlan, Address[TaskDeskMail], Address[ToolCallMail]], Child[ShellTaskMail]
]

StartSubagent = Callable[[t.TaskRef, AgentPlan, Address[TaskDeskMail]], Child[SubagentMail]]

ONLY_SHELLS = "kill only supports shell tasks"
NO_CHILD = "No in-process child found for '{}'."
ROOM: dict[t.TaskKind, Room] = {"agent": Room(running=4)}
"""However many a call launches: each child holds a session, and providers bound requests in flight."""
CANCELLED = "Operation aborted"
KEPT_OUTPUTS = 200
"""Of so many tasks that are over the output can be asked for; of older ones the record alone."""
TITLE_CHARS = 240


class TaskDesk(Actor[TaskDeskMail]):
    """`scope` is unique to this owner, also among earlier processes."""

    def __init__(
        self,
        scope: str,
        budgets: Budgets,
        session: Address[SessionMail],
        clock: Address[ClockMail],
        start_shell_task: StartShellTask,
        start_subagent: StartSubagent,
    ) -> None:
        self._scope = scope
        self._owner = TaskOwner(scope, budgets, ROOM)
        self._session = session
        self._clock = clock
        self._start_shell_task = start_shell_task
        self._start_subagent = start_subagent
        self._shells: dict[str, Child[ShellTaskMail]] = {}
        self._observers: dict[str, Address[ToolCallMail]] = {}
        self._calls: list[Address[ToolCallMail]] = []
        self._agents: dict[str, Child[SubagentMail]] = {}
        self._batches: dict[Any, Batch] = {}
        self._views: dict[str, OutputView | AgentView] = {}
        self._readings: dict[int, tuple[str, Callable[[OutputView | None], None]]] = {}
        self._asked = 0
        self._alone = False

    def receive(self, mail: TaskDeskMail) -> None:
        match mail:
            case LaunchShell():
                self._calls.append(mail.to)
                self._launch(mail)
            case LaunchAgents():
                self._calls.append(mail.to)
                self._launch_agents(mail)
            case DescribeAgents(which, to):
                self._calls.append(to)
                self._describe(which, to)
            case WaitForTask():
                self._calls.append(mail.to)
                self._wait(mail)
            case KillTask(task_id, to, kind):
                self._calls.append(to)
                self._kill(task_id, to, kind)
            case GiveUp(call):
                self._do(self._owner.give_up(call))
            case ReleaseWaits(reason):
                self._do(self._owner.release(reason))
            case TaskCommand(ticket, command):
                self._answer(ticket, command)
            case TaskSpawned(task_id):
                self._spawned(task_id)
            case AgentProgress():
                self._take_progress(mail)
            case TaskEnded(task_id, result, view):
                self._views[task_id] = view
                self._hear(lambda: self._owner.ended(task_id, result))
            case TaskReaped(task_id, view):
                self._views[task_id] = view
                self._reaped(task_id)
            case TaskUncleaned(task_id, resources):
                self._hear(lambda: self._owner.cleanup_failed(task_id, resources))
            case TaskOverLimit(task_id):
                self._hear(lambda: self._owner.over_limit(task_id))
            case OutputRead(number, view):
                reading = self._readings.pop(number, None)
                if reading is not None:
                    reading[1](view)
            case InputTyped(ticket, accepted, error):
                response = ticket.ok(encode(InputAccepted(accepted))) if error is None else ticket.failed(error)
                self._session.tell(TaskResponse(response))
            case CloseTasks(alone):
                self._alone = self._alone or alone
                self._do(self._owner.close())
                self._leave()
            case Tick(key):
                self._ring(key)
            case Down(task_id, error):
                self._bury(task_id, error)
            case _:
                assert_never(mail)

    def last_words(self, unread: list[TaskDeskMail]) -> None:
        """Everybody who waits is told, and what runs is killed; the session answers its own commands."""
        gone = "the tasks of this session failed"
        asked = LaunchShell | LaunchAgents | DescribeAgents | WaitForTask | KillTask
        waiting = [mail.to for mail in unread if isinstance(mail, asked)]
        for call in dict.fromkeys([*self._calls, *waiting]):
            call.tell(TaskAnswer(gone))
        for shell in self._shells.values():
            shell.tell(StopCommand(at_once=True, alone=True))
        for agent in self._agents.values():
            agent.tell(StopAgent(alone=True))

    # -- the tools of the model

    def _launch(self, mail: LaunchShell) -> None:
        title = next((line.strip() for line in mail.plan.command.splitlines() if line.strip()), "")[:TITLE_CHARS]
        launch = Launch(mail.operation, "command", title, mail.plan, accepts_input=mail.plan.pty)

        def admit() -> Effects:
            task_id, effects = self._owner.launch(launch, mail.policy, mail.to)
            self._observers.setdefault(task_id, mail.to)
            return effects

        self._try(mail.to, admit)

    def _launch_agents(self, mail: LaunchAgents) -> None:
        """One task for each, admitted one after the other; those that cannot be leave the others alone."""
        batch = self._batches[mail.to] = Batch(len(mail.plans))
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
        title = next((line.strip() for line in plan.task.splitlines() if line.strip()), plan.agent.name)[:TITLE_CHARS]
        launch = Launch(
            f"{mail.operation}:{place}",
            "agent",
            title,
            plan,
            group=mail.operation,
            group_limit=mail.concurrency,
            agent_name=plan.agent.name,
        )
        task_id, effects = self._owner.launch(launch, mail.policy, mail.to)
        batch.tasks[task_id] = place
        return effects

    def _answer_batch(self, to: Address[ToolCallMail]) -> None:
        """Nothing while one of them is waited for, or if that was the answer to the last that was admitted."""
        batch = self._batches.get(to)
        answer = batch.answer if batch is not None else None
        if answer is not None:
            del self._batches[to]
            self._tell_call(to, AgentsAnswer(answer))

    def _describe(self, task_id: str | None, to: Address[ToolCallMail]) -> None:
        agents = [task for task in self._owner.tasks if task.launch.kind == "agent" and task_id in (None, task.id)]
        if task_id is not None and not agents:
            self._tell_call(to, TaskAnswer(NO_CHILD.format(task_id[:TITLE_CHARS])))
        else:
            self._tell_call(to, AgentsAnswer(tuple(self._slot(task, None) for task in agents)))

    def _slot(self, task: Task, outcome: t.Observation | None) -> AgentSlot:
        view = self._views.get(task.id)
        return AgentSlot(outcome, task.record(), view if isinstance(view, AgentView) else None)

    def _wait(self, mail: WaitForTask) -> None:
        try:
            self._check_kind(mail.task_id, mail.kind, "UnknownTask: UnknownTask")
            effects = self._owner.wait(mail.task_id, mail.budget_ms, mail.to, is_designated=True)
        except Refused as refused:
            self._tell_call(mail.to, TaskAnswer(str(refused)))
            return
        self._do(effects)

    def _kill(self, task_id: str, to: Address[ToolCallMail], kind: t.TaskKind) -> None:
        try:
            self._check_kind(task_id, kind, ONLY_SHELLS)
            receipt, effects = self._owner.cancel(task_id, "user")
        except Refused as refused:
            self._tell_call(to, TaskAnswer(str(refused)))
            return
        self._tell_call(to, TaskAnswer(receipt))
        self._do(effects)

    def _tell_call(self, call: Address[ToolCallMail], answer: TaskAnswer | AgentsAnswer) -> None:
        """Only then is it off the list of those that wait: whatever fails before, the last words answer it."""
        call.tell(answer)
        self._calls.remove(call)

    def _check_kind(self, task_id: str, kind: t.TaskKind, only_shells: str) -> None:
        """The tools for commands and for agents each know their own alone."""
        task = self._owner.find(task_id)
        if kind == "agent" and (task is None or task.launch.kind != "agent"):
            raise Refused("UnknownTask", text=NO_CHILD.format(task_id[:TITLE_CHARS]))
        if task is not None and task.launch.kind != kind:
            raise Refused("UnknownTask", text=only_shells)

    def _try(self, to: Address[ToolCallMail], action: Callable[[], Effects]) -> None:
        try:
            effects = action()
        except Refused as refused:
            self._tell_call(to, TaskAnswer(str(refused)))
            return
        self._do(effects)

    # -- commands of the client

    def _answer(self, ticket: Ticket, command: c.Command) -> None:
        try:
            self._do(self._effects_of(ticket, command))
        except Refused as refused:
            self._session.tell(TaskResponse(ticket.failed(str(refused))))

    def _effects_of(self, ticket: Ticket, command: c.Command) -> Effects:
        """Answers, or raises `Refused`; a wait is answered when it ends."""
        match command:
            case c.GetTasks():
                shown = [task.record() for task in self._owner.tasks if task.was_background]
                self._session.tell(TaskResponse(ticket.ok(encode(TaskList(shown)))))
            case c.GetTask(task_id=task_id):
                self._read(ticket, self._owner.task(task_id))
            case c.SendTaskInput(task_id=task_id, input=text, operation_id=operation):
                self._type(ticket, self._owner.task(task_id), text, operation)
            case c.WaitTask(task_id=task_id, budget_ms=budget):
                wait_ms = math.nan if budget is None else budget
                return self._owner.wait(task_id, wait_ms, ticket, is_designated=False)
            case c.CancelTask(task_id=task_id):
                receipt, effects = self._owner.cancel(task_id, "user")
                self._session.tell(TaskResponse(ticket.ok(encode(receipt))))
                return effects
        return []

    def _read(self, ticket: Ticket, task: Task) -> None:
        if task.id in self._shells:
            self._ask_for_output(task.id, page=False, then=partial(self._answer_detail, ticket, task))
        else:
            self._answer_detail(ticket, task, self._views.get(task.id))

    def _answer_detail(self, ticket: Ticket, task: Task, view: OutputView | AgentView | None) -> None:
        detail = TaskDetail(task.record())
        plan = task.launch.intent
        if isinstance(plan, ShellTaskPlan):
            detail.command, detail.cwd, detail.timeout_seconds = plan.command, plan.cwd, plan.timeout_s
        if isinstance(plan, AgentPlan):
            detail.prompt, detail.cwd = plan.task, plan.cwd
        if isinstance(view, AgentView):
            detail.tail = view.text[-DETAIL_CHARS:]
        elif view is not None:
            detail.tail, detail.full_output_path = tail_text(view), view.path or UNSET
            detail.task = replace(detail.task, output=view.ref)
        self._session.tell(TaskResponse(ticket.ok(encode(detail))))

    def _type(self, ticket: Ticket, task: Task, text: str, operation: str | None) -> None:
        if task.phase != "running" or task.id not in self._shells:
            raise Refused("TaskTerminal" if task.result is not None else "StdinClosed")
        name = operation if operation is not None else f"input-{ticket.serial}"
        self._shells[task.id].tell(TypeInput(ticket, name, text.encode(errors="replace")))

    # -- what tasks tell

    def _hear(self, report: Callable[[], Effects]) -> None:
        """A report that comes too late or twice changes nothing."""
        try:
            effects = report()
        except Refused:
            return
        self._do(effects)

    def _spawned(self, task_id: str) -> None:
        plan = self._owner.task(task_id).launch.intent
        if isinstance(plan, ShellTaskPlan):
            self._clock.tell(Arm(f"timeout-{task_id}", plan.timeout_s * 1000, self.me))
        self._hear(lambda: self._owner.spawned(task_id))

    def _take_progress(self, mail: AgentProgress) -> None:
        """What shows of a task that runs; its parent sees it too while it waits for the launch."""

        def report() -> Effects:
            task = self._owner.task(mail.task_id)
            task.measure(mail.elapsed_ms, mail.tools, mail.tokens)
            task.model, task.thinking, task.action = mail.model, mail.level, mail.action or UNSET
            return self._owner.changed(mail.task_id)

        self._hear(report)
        for call, batch in self._batches.items():
            if mail.task_id in batch.tasks:
                now = {task_id: self._slot(self._owner.task(task_id), None) for task_id in batch.tasks}
                call.tell(ToolUpdated(progress(batch.shown(now))))

    def _reaped(self, task_id: str) -> None:
        self._hear(lambda: self._owner.reaped(task_id))
        shell = self._shells.pop(task_id, None) or self._agents.pop(task_id, None)
        if shell is not None:
            shell.stop()
        task = self._owner.task(task_id)
        if task.was_background or task.launch.kind == "agent":
            self._forget_old_output()
        else:  # its result went back through the call, and nobody knows its id
            self._views.pop(task_id, None)
            self._owner.forget(task_id)

    def _forget_old_output(self) -> None:
        over = [task_id for task_id in self._views if task_id not in self._shells]
        for task_id in over[:-KEPT_OUTPUTS]:
            del self._views[task_id]

    def _ring(self, key: str) -> None:
        task_id = key.removeprefix("timeout-")
        if task_id == key:
            self._do(self._owner.budget_passed(key))
        else:
            self._hear(lambda: self._owner.cancel(task_id, "execution-timeout")[1])

    def _bury(self, task_id: str, error: str) -> None:
        """The actor of a task died, and killed its command with its last words."""
        self._shells.pop(task_id, None)
        self._agents.pop(task_id, None)
        for number, (its_task, then) in list(self._readings.items()):
            if its_task == task_id:
                del self._readings[number]
                then(None)
        self._hear(lambda: self._owner.ended(task_id, t.TaskFailed("RunnerFailed", f"the task failed: {error}")))
        self._hear(lambda: self._owner.reaped(task_id))

    # -- what is to be done

    def _do(self, effects: Effects) -> None:
        for effect in effects:
            match effect:
                case Changed(task_id):
                    self._session.tell(TaskChanged(self._owner.task(task_id).record()))
                case Resolve(wait, outcome):
                    self._resolve(wait, outcome)
                case StartTask(task_id):
                    self._start(self._owner.task(task_id))
                case StopTask(task_id, _, at_once):
                    self._stop(task_id, at_once)
                case ArmBudget(wait_id, delay_ms):
                    self._clock.tell(Arm(wait_id, math.ceil(delay_ms), self.me))
                case Announce(task_id):
                    task = self._owner.task(task_id)
                    self._session.tell(TaskChanged(task.record(), self._notice(task)))
                case Close():
                    self._session.tell(TasksClosed(self._scope))
                    self._leave()
                case _:
                    assert_never(effect)

    def _leave(self) -> None:
        """The session stops its desk; without one it stops by itself."""
        if self._alone and self._owner.state == "closed":
            self.me.stop()

    def _stop(self, task_id: str, at_once: bool) -> None:
        if task_id in self._agents:
            self._agents[task_id].tell(StopAgent())
        else:
            self._shells[task_id].tell(StopCommand(at_once))

    def _start(self, task: Task) -> None:
        if task.launch.kind == "agent":
            self._agents[task.id] = self._start_subagent(task.ref, task.launch.intent, self.me)
            return
        observer = self._observers.pop(task.id)
        self._shells[task.id] = self._start_shell_task(task.ref, task.launch.intent, self.me, observer)

    def _resolve(self, wait: Wait, outcome: t.Observation | ObserverCancelled) -> None:
        observer = wait.observer
        if isinstance(observer, Ticket):
            self._session.tell(TaskResponse(observer.ok(encode(outcome))))
            return
        if wait.is_launch and wait.task_id in self._shells:
            self._shells[wait.task_id].tell(HideOutput())
        task = self._owner.task(wait.task_id)
        match outcome:
            case ObserverCancelled():
                self._tell_call(observer, TaskAnswer(CANCELLED))
            case _ if task.launch.kind == "agent" and wait.is_launch:
                batch = self._batches[observer]
                batch.fill(batch.tasks[task.id], self._slot(task, outcome))
                self._answer_batch(observer)
            case _ if task.launch.kind == "agent":
                self._tell_call(observer, AgentsAnswer((self._slot(task, outcome),)))
            case t.YieldedWait(task_id=task_id) if task_id in self._shells:
                show = partial(self._answer_yield, observer, outcome)
                self._ask_for_output(task_id, page=not wait.is_launch, then=show)
            case _:
                view = self._views.get(task.id)
                self._tell_call(observer, TaskAnswer(outcome, view if isinstance(view, OutputView) else None))

    def _answer_yield(self, observer: Address[ToolCallMail], outcome: t.YieldedWait, view: OutputView | None) -> None:
        self._tell_call(observer, TaskAnswer(outcome, view))

    def _ask_for_output(self, task_id: str, *, page: bool, then: Callable[[OutputView | None], None]) -> None:
        self._asked += 1
        self._readings[self._asked] = (task_id, then)
        self._shells[task_id].tell(ReadOutput(self._asked, page))

    def _notice(self, task: Task) -> TaskNotice:
        view, envelope = self._views.get(task.id), self._owner.envelope(task.id)
        if task.launch.kind == "agent":
            label, excerpt = f"Subagent {task.launch.agent_name}", view.text if isinstance(view, AgentView) else None
            return TaskNotice(envelope, task.launch.title, label, excerpt, task.model or None, task.thinking or None)
        excerpt = tail_text(view) if isinstance(view, OutputView) else "Output unavailable"
        return TaskNotice(envelope, task.launch.title, "Background shell", excerpt)
