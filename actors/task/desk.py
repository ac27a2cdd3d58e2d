"""The desk of one owner's tasks: mail in, mail out. What the owner decides is carried out, and everybody is answered.

One desk belongs to one session (later also to a stage of a workflow), and is started with the first task. It outlives
the turns of its session, and lives on after a hand-over until everything that it started is gone. Calls of tools are
answered once, whatever happens; the session hears of every change, and with the end of a background task gets the
notice for the conversation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import assert_never, get_args

from actors.base import Actor, Address, Down
from actors.mail import (
    AgentMessaged,
    AgentProgress,
    AgentSaid,
    AgentSpoke,
    Arm,
    ClockMail,
    CloseTasks,
    DescribeAgents,
    GiveUp,
    HistoryRead,
    InputTyped,
    KillTask,
    LaunchAgents,
    LaunchShell,
    OutputRead,
    PauseTasks,
    QuestionWithdrawn,
    ReleaseWaits,
    ResumeTasks,
    SessionMail,
    TaskChanged,
    TaskCommand,
    TaskDeskMail,
    TaskEnded,
    TaskOrphaned,
    TaskOverLimit,
    TaskReaped,
    TasksClosed,
    TaskSpawned,
    TaskUncleaned,
    Tick,
    Ticket,
    TraceGone,
    TranscriptGrew,
    TranscriptRead,
    UseIntercom,
    WaitForTask,
    WatchTranscripts,
)
from actors.task.client_side import ClientSide
from actors.task.effects import (
    Announce,
    ArmBudget,
    Budgets,
    Changed,
    Close,
    Effects,
    Paused,
    Relay,
    Resolve,
    Room,
    StartTask,
    StopTask,
)
from actors.task.notice import TaskNotice
from actors.task.owner import TaskOwner
from actors.task.pause_side import PauseSide
from actors.task.reports import Reports
from actors.task.runners import Runners, StartShellTask, StartSubagent
from actors.task.state import Task
from actors.task.tool_side import Asked, ToolSide
from actors.task.transcripts import ReadHistory, Transcripts
from actors.task.view import tail_text
from protocol import tasks as t

ROOM: dict[t.TaskKind, Room] = {"agent": Room(running=4)}
"""However many a call launches: each child holds a session, and providers bound requests in flight."""
GONE = "the tasks of this session failed"


class TaskDesk(Actor[TaskDeskMail]):
    """`scope` is unique to this owner, also among earlier processes; `now` is in seconds. Without `read_history` a
    transcript is what is kept of it in memory."""

    def __init__(
        self,
        scope: str,
        budgets: Budgets,
        session: Address[SessionMail],
        clock: Address[ClockMail],
        start_shell_task: StartShellTask,
        start_subagent: StartSubagent,
        now: Callable[[], float],
        room: Mapping[t.TaskKind, Room] = ROOM,
        read_history: ReadHistory | None = None,
    ) -> None:
        self._scope = scope
        self._owner = TaskOwner(scope, budgets, room, now)
        self._session = session
        self._clock = clock
        self._start_shell_task = start_shell_task
        self._start_subagent = start_subagent
        self._read_history = read_history
        self._alone = False

    def begin(self) -> None:
        owner = self._owner
        self._runners = Runners(self.me, self._start_shell_task, self._start_subagent)
        self._tools = ToolSide(owner, self._runners, self._do, self._clock, self.me)
        self._transcripts = Transcripts(self._runners, self._read_history, self.me)
        self._clients = ClientSide(owner, self._runners, self._transcripts, self._session)
        self._pauses = PauseSide(owner)
        self._reports = Reports(owner, self._runners, self._clock, self.me, self._do)

    def receive(self, mail: TaskDeskMail) -> None:
        match mail:
            case LaunchShell() | LaunchAgents() | DescribeAgents() | WaitForTask() | KillTask() | UseIntercom():
                self._tools.take(mail)
            case GiveUp(call):
                self._do(self._owner.give_up(call))
            case ReleaseWaits(reason):
                self._do(self._owner.release(reason))
            case TaskCommand(ticket, command):
                self._do(self._clients.take(ticket, command))
            case TaskSpawned(task_id):
                self._reports.spawned(task_id)
            case AgentProgress():
                self._reports.progress(mail)
                self._tools.show_progress(mail.task_id)
            case AgentSpoke(task_id, message_id, contact):
                self._reports.hear(lambda: self._owner.spoke(task_id, message_id, contact))
            case QuestionWithdrawn(task_id, request_id):
                self._reports.hear(lambda: self._owner.withdrawn(task_id, request_id))
            case TaskEnded():
                self._reports.ended(mail)
            case TaskReaped():
                self._reports.reaped(mail)
            case TaskUncleaned(task_id, resources):
                self._reports.hear(lambda: self._owner.cleanup_failed(task_id, resources))
            case TaskOverLimit(task_id):
                self._reports.hear(lambda: self._owner.over_limit(task_id))
            case TaskOrphaned():
                self._runners.orphaned(mail)
            case TraceGone(task_id):
                self._reports.gone(task_id)
            case OutputRead() | TranscriptRead():
                self._runners.have_read(mail)
            case HistoryRead():
                self._transcripts.have_read(mail)
            case WatchTranscripts(task_ids):
                self._runners.watch(task_ids)
            case AgentSaid():
                self._session.tell(TranscriptGrew(mail))
            case InputTyped():
                self._runners.have_typed(mail)
            case CloseTasks(alone):
                self._alone = self._alone or alone
                self._do(self._owner.close())
                self._leave()
            case PauseTasks():
                self._do(self._pauses.pause(mail))
            case ResumeTasks():
                self._pauses.resume(mail)
            case Tick(key):
                if not self._tools.rang(key):
                    self._reports.rang(key)
            case Down(task_id, error):
                self._reports.died(task_id, error)
            case _:
                assert_never(mail)

    def ended(self) -> None:
        self.let_go()

    def last_words(self, unread: list[TaskDeskMail]) -> None:
        """Everybody who waits is told, and what runs is killed; the session answers its own commands."""
        for mail in unread:
            if isinstance(mail, AgentSaid):
                mail.ack.settle()
        self._tools.fail([mail.to for mail in unread if isinstance(mail, get_args(Asked))], GONE)
        self._runners.abandon()
        self._pauses.fail(unread, GONE)

    # -- what is to be done

    def _do(self, effects: Effects) -> None:
        for effect in effects:
            match effect:
                case Changed(task_id):
                    self._tell_changed(self._owner.task(task_id))
                case Resolve(wait, outcome):
                    if isinstance(wait.observer, Ticket):
                        self._clients.answer(wait.observer, outcome)
                    else:
                        self._tools.resolve(wait, outcome)
                case StartTask(task_id):
                    self._runners.start(self._owner.task(task_id))
                case StopTask(task_id, _, at_once):
                    self._runners.stop(task_id, at_once)
                case ArmBudget(wait_id, delay_ms):
                    self._clock.tell(Arm(wait_id, math.ceil(delay_ms), self.me))
                case Announce(task_id):
                    task = self._owner.task(task_id)
                    self._tell_changed(task, self._notice(task))
                case Paused():
                    self._pauses.paused(effect)
                case Relay(message):
                    self._session.tell(AgentMessaged(message))
                case Close():
                    self._session.tell(TasksClosed(self._scope))
                    self._leave()
                case _:
                    assert_never(effect)

    def _tell_changed(self, task: Task, notice: TaskNotice | None = None) -> None:
        """One step of a task may be several effects; it looks the same after each of them."""
        record = task.record()
        if notice is not None or record != task.last_told:
            task.last_told = record
            self._session.tell(TaskChanged(record, notice))

    def _leave(self) -> None:
        """The session stops its desk; without one it stops by itself."""
        if self._alone and self._owner.state == "closed":
            self.me.stop()

    def _notice(self, task: Task) -> TaskNotice:
        launch, envelope = task.launch, self._owner.envelope(task.id)
        if launch.kind == "agent":
            answer = self._runners.answer(task.id)
            excerpt = answer.text if answer is not None else None
            label = f"Subagent {launch.agent_name}"
            return TaskNotice(envelope, launch.title, label, excerpt, task.model or None, task.thinking or None)
        output = self._runners.output(task.id)
        excerpt = tail_text(output) if output is not None else "Output unavailable"
        return TaskNotice(envelope, launch.title, "Background shell", excerpt)
