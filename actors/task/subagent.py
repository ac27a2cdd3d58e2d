"""A subagent: a task that a session of its own works on, in this process.

It owns the child's session, reads what that would tell a client, and settles its acks, so that the child's stream is
bounded like any other. Nothing of the child's records reaches stdout. It tells its desk three things that do not imply
each other: that the child has begun, how it ended, and that nothing of it is left. What the child says to its parent
goes this way too, and so comes before its end. Source: `tasks.md` 3.3 to 3.5 and 5.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, assert_never

import msgspec
from msgspec.structs import replace

from actors.base import Actor, Address, Child, Down
from actors.mail import (
    AgentPlan,
    AgentProgress,
    AgentSaid,
    AgentSpoke,
    AnswerQuestion,
    Arm,
    ArtifactsWritten,
    ChildOpened,
    ChildRefused,
    ChildSaid,
    ClockMail,
    Commands,
    ContactParent,
    LeftBehind,
    NoMoreCommands,
    ParentAnswer,
    QuestionWithdrawn,
    ReadTranscript,
    Retire,
    SessionGone,
    SessionMail,
    SteerChild,
    StopAgent,
    SubagentMail,
    TaskDeskMail,
    TaskEnded,
    TaskOrphaned,
    TaskReaped,
    TaskSpawned,
    Tick,
    Ticket,
    ToolCallMail,
    TranscriptRead,
    WatchTranscript,
    WithdrawContact,
    Write,
)
from actors.pump import Window
from actors.task.agent_view import AgentView, agent_view
from actors.task.child_log import ChildLog
from actors.task.child_road import ChildOwner, ChildRoad
from actors.task.delegation import task_text
from actors.task.showing import Showing
from actors.task.transcript import History
from actors.task.vigil import LONG_MS, QUIET_MS, Vigil
from protocol import commands as c
from protocol.tasks import TaskFailed, TaskRef, TaskResult

if TYPE_CHECKING:
    from actors.mail import Remains
    from actors.session.file import OpenedSession
    from actors.session.surroundings import Surroundings
    from actors.task.worktree import Checkout

PROGRESS_MS = 400
LOOK, LONG = "look", "long"
SHOW, SHOW_MS = "show", 100
LEFT = "the session of the subagent"
ALREADY = "Already waiting for a reply"
ENDING = "The subagent is ending: no answer comes any more"
PASSED_ON = "Passed on"
FROM_PARENT = "From the agent that gave you this task:\n\n{}"


class ChildPort(Protocol):
    """The files of a child, in pumps."""

    def open(self, plan: AgentPlan, to: Address[SubagentMail]) -> None: ...
    def keep(
        self, plan: AgentPlan, text: str, facts: dict[str, Any], checkout: Checkout | None, to: Address[SubagentMail]
    ) -> None: ...


StartChild = Callable[
    [AgentPlan, "OpenedSession", "Surroundings", ChildRoad, Address[SubagentMail]], Child[SessionMail]
]


class Subagent(Actor[SubagentMail]):
    """`now` is in monotonic seconds."""

    def __init__(
        self,
        ref: TaskRef,
        plan: AgentPlan,
        desk: Address[TaskDeskMail],
        clock: Address[ClockMail],
        files: ChildPort,
        start_child: StartChild,
        now: Callable[[], float],
    ) -> None:
        self._task_id = ref.task_id
        self._plan = plan
        self._desk = desk
        self._clock = clock
        self._files = files
        self._start_child = start_child
        self._now = now
        self._log = ChildLog(f"{plan.model.provider}/{plan.model.id}", plan.level)
        self._child: Child[SessionMail] | None = None
        self._opened: OpenedSession | None = None
        self._session_file: str | None = None
        self._checkout: Checkout | None = None
        self._remains: list[Remains] = []
        self._artifacts: tuple[str, ...] = ()
        self._result: TaskResult | None = None
        self._asking: tuple[str, Address[ToolCallMail]] | None = None
        self._contacts = 0
        self._commands = 0
        self._early: list[str] = []
        self._is_opening = True
        self._is_ended = self._is_keeping = self._has_kept = self._is_stopping = self._alone = self._is_gone = False
        self._waits_for_tick = self._changed = self._is_told = False
        self._inherited = 0
        self._showing = Showing()
        self._shown_window = Window(max_messages=1)
        self._show_is_armed = False
        self._view = self._shown("", ArtifactsWritten())

    def begin(self) -> None:
        self._began = self._now()
        self._vigil = Vigil(self._began * 1000)
        self._files.open(self._plan, self.me)

    def receive(self, mail: SubagentMail) -> None:
        match mail:
            case ChildSaid(Write(records, _, ack)):
                self._hear()
                for record in records:
                    self._changed = self._log.read(record.line) or self._changed
                if ack is not None:
                    ack.settle()
                self._look()
            case ChildSaid(SessionGone()):
                self._lay_down()
            case ChildSaid(LeftBehind(remains)):
                self._keep_remains(remains)
            case ChildSaid():
                pass  # that it retires, and what it would ask of a shell desk, is nothing to a subagent
            case ChildOpened():
                self._begin_child(mail)
            case ChildRefused(error):
                self._is_opening = False
                self._end(TaskFailed("SpawnFailed", error))
            case ArtifactsWritten():
                self._is_keeping = False
                self._tell_outcome(mail)
            case ContactParent():
                self._contact(mail)
            case WithdrawContact(call):
                self._withdraw(call)
            case AnswerQuestion(request_id, text):
                self._pass_answer(request_id, text)
            case SteerChild(text):
                self._steer(text)
            case StopAgent(alone):
                self._alone = self._alone or alone
                self._stop()
            case ReadTranscript(number):
                self._desk.tell(TranscriptRead(number, self._history(), self._log.live.entry()))
            case WatchTranscript(on):
                self._showing.watch(self._log, on)
                self._show_if_due()
            case Tick(key) if key == SHOW:
                self._show_is_armed = False
                self._show_if_due()
            case Tick(key):
                self._ring(key)
            case Down(_, error):
                self._close_file()
                self._end(TaskFailed("AgentFailed", f"the session of the subagent failed: {error}"))
            case _:
                assert_never(mail)
        self._leave_when_done()

    def last_words(self, unread: list[SubagentMail]) -> None:
        """The child goes too, by itself: it lets go of its run, closes its file and stops. What was made for one that
        has not begun is closed here."""
        for mail in unread:
            match mail:
                case ChildSaid(Write(ack=ack)) if ack is not None:
                    ack.settle()
                case ChildSaid(LeftBehind(remains)):
                    self._remains.append(remains)
                case ChildOpened(opened):
                    self._opened = opened
        if self._child is None:
            self._close_file()
        else:
            self._child.tell(Retire(alone=True))
            self._child.tell(NoMoreCommands())
            self._desk.tell(TaskOrphaned(self._task_id, (LEFT,)))
            self._kill_remains()

    # -- the child

    def _begin_child(self, mail: ChildOpened) -> None:
        self._is_opening = False
        self._artifacts = mail.artifacts
        self._opened = mail.opened
        self._session_file = mail.opened.journal.path
        self._inherited = len(mail.opened.entries)
        self._checkout = mail.checkout
        if self._is_stopping:
            self._close_file()
            self._end(None)
            return
        road = ChildRoad(self.me, self._desk, self._task_id)
        owner = ChildOwner(self.me, self._desk, self._task_id)
        self._child = self._start_child(self._plan, mail.opened, mail.surroundings, road, owner)
        self._desk.tell(TaskSpawned(self._task_id))
        self._clock.tell(Arm(LOOK, QUIET_MS, self.me))
        self._clock.tell(Arm(LONG, LONG_MS, self.me))
        self._command("prompt", c.Prompt(message=task_text(self._plan)))
        for text in self._early:
            self._steer(text)
        self._changed = True
        self._report_if_due()

    def _look(self) -> None:
        self._report_if_due()
        self._show_if_due()
        if self._log.is_over:
            self._end(self._log.outcome)

    def _stop(self) -> None:
        """The child's run is aborted, its tools are ended, its session lets go."""
        if not self._is_stopping:
            self._is_stopping = True
            if not self._is_opening:
                self._end(None)

    def _lay_down(self) -> None:
        """The session has let go of everything: its tools have ended."""
        if self._child is not None:
            self._child.stop()
        self._close_file()

    def _close_file(self) -> None:
        self._child = None
        if self._opened is not None:
            self._opened.journal.close()
            self._opened = None
        self._kill_remains()
        self._keep_when_free()

    def _keep_remains(self, remains: Remains) -> None:
        """What its commands left in the background lives no longer than the child."""
        self._remains = [kept for kept in self._remains if kept.close()]
        self._remains.append(remains)
        if self._child is None:
            self._kill_remains()

    def _kill_remains(self) -> None:
        for remains in self._remains:
            remains.kill_group_leftovers()
        self._remains.clear()

    def _command(self, name: str, command: c.Prompt | c.Steer) -> None:
        assert self._child is not None
        self._commands += 1
        self._child.tell(Commands(((Ticket(self._commands, b"", name), command),)))

    # -- between the child and its parent

    def _contact(self, mail: ContactParent) -> None:
        """A child has one question open at most; who loses is told so, and the other still waits."""
        waits = mail.contact.waits
        if self._is_ended or (waits and self._asking is not None):
            mail.to.tell(ParentAnswer(ENDING if self._is_ended else ALREADY, is_error=True))
            return
        self._contacts += 1
        message_id = f"{'ask' if waits else 'note'}-{self._task_id.removeprefix('task-')}-{self._contacts}"
        self._desk.tell(AgentSpoke(self._task_id, message_id, mail.contact))
        if waits:
            self._asking = (message_id, mail.to)
        else:
            mail.to.tell(ParentAnswer(PASSED_ON))

    def _withdraw(self, call: Address[ToolCallMail]) -> None:
        if self._asking is not None and self._asking[1] == call:
            self._desk.tell(QuestionWithdrawn(self._task_id, self._asking[0]))
            self._asking = None

    def _pass_answer(self, request_id: str, text: str) -> None:
        """Nobody waits for one that was withdrawn meanwhile."""
        if self._asking is not None and self._asking[0] == request_id:
            self._asking[1].tell(ParentAnswer(text, request_id))
            self._asking = None
            self._hear()

    def _steer(self, text: str) -> None:
        if self._child is not None and not self._is_ended:
            self._command("steer", c.Steer(message=FROM_PARENT.format(text)))
        elif self._is_opening:
            self._early.append(text)

    # -- what the desk is told

    def _ring(self, key: str) -> None:
        match key:
            case "look":
                self._look_after()
            case "long":
                self._vigil.is_long = self._changed = True
            case _:
                self._waits_for_tick = False
        self._report_if_due()

    def _report_if_due(self) -> None:
        """At most once in 400 ms, until it is over."""
        if not self._changed or self._waits_for_tick or self._is_ended:
            return
        self._waits_for_tick = True
        self._clock.tell(Arm("progress", PROGRESS_MS, self.me))
        self._report()

    def _report(self) -> None:
        self._changed = False
        log = self._log
        self._desk.tell(
            AgentProgress(
                self._task_id,
                log.model,
                log.level,
                log.action,
                log.tools,
                log.tokens,
                None if self._asking is not None else self._vigil.state(log.failures),
                self._is_silent,
            )
        )

    def _hear(self) -> None:
        if self._vigil.heard(self._now() * 1000):
            self._changed = True
            self._clock.tell(Arm(LOOK, QUIET_MS, self.me))

    def _look_after(self) -> None:
        """Whether it is silent shows, and the next look is due."""
        delay = self._vigil.look(self._now() * 1000)
        self._changed = self._changed or delay is None
        if delay is not None and not self._is_ended:
            self._clock.tell(Arm(LOOK, delay, self.me))

    @property
    def _is_silent(self) -> bool:
        """One that waits for an answer is not: its question is to be looked at."""
        return self._vigil.is_quiet and self._asking is None

    def _show_if_due(self) -> None:
        """At most once in 100 ms, and not while the client has not read the one before."""
        if self._show_is_armed or not self._showing.is_due(self._log):
            return
        self._show_is_armed = True
        self._clock.tell(Arm(SHOW, SHOW_MS, self.me))
        self._show(self._shown_window)

    def _show(self, window: Window) -> None:
        ack = window.offer(1)
        if ack is not None:
            self._desk.tell(AgentSaid(self._task_id, *self._showing.take(self._log), ack))

    def _history(self) -> History:
        return self._log.tail.history(self._session_file, self._inherited)

    def _elapsed_ms(self) -> int:
        return round((self._now() - self._began) * 1000)

    # -- the end

    def _end(self, result: TaskResult | None) -> None:
        """With a result it is over; without one it was stopped, and the desk knows why. The child lets go in each
        case, and what is kept of it is written first, so that the outcome can name it. A worktree is looked at when
        nobody works in it any more."""
        if self._is_ended:
            return
        self._is_ended = True
        self._result = result
        if result is not None:
            self._report()
        if self._asking is not None:  # also the call of a session that has died is waiting still
            self._asking[1].tell(ParentAnswer(ENDING, is_error=True))
            self._asking = None
        if self._child is not None:
            self._child.tell(Retire())
            self._child.tell(NoMoreCommands())
        if self._plan.artifacts or self._plan.output is not None or self._checkout is not None:
            self._is_keeping = True
            self._keep_when_free()
        else:
            self._tell_outcome(ArtifactsWritten())

    def _keep_when_free(self) -> None:
        """Once."""
        if self._is_keeping and not self._has_kept and (self._checkout is None or self._child is None):
            self._has_kept = True
            self._files.keep(self._plan, self._log.text, self._facts(), self._checkout, self.me)

    def _tell_outcome(self, kept: ArtifactsWritten) -> None:
        self._artifacts += kept.paths
        text = self._log.text if kept.error is None else f"{self._log.text}\n\n[Not saved: {kept.error}]"
        self._view = replace(self._shown(text, kept), history=self._history())
        if self._result is not None:
            self._desk.tell(TaskEnded(self._task_id, self._result, self._view))
        self._is_told = True

    def _shown(self, text: str, kept: ArtifactsWritten) -> AgentView:
        plan = self._plan
        return agent_view(
            text,
            max_lines=plan.max_lines,
            max_bytes=plan.max_bytes,
            saved_to=kept.saved_to,
            only_file=plan.only_file,
            artifacts=self._artifacts,
            skipped=plan.skipped,
            changes=kept.changes,
        )

    def _facts(self) -> dict[str, Any]:
        plan, log = self._plan, self._log
        return {
            "agent": plan.agent.name,
            "task": plan.task,
            "cwd": plan.cwd,
            "context": plan.context,
            "model": log.model,
            "thinking": log.level,
            "skippedModels": list(plan.skipped),
            "sessionFile": self._session_file,
            "taskId": self._task_id,
            "result": {"kind": "stopped"} if self._result is None else msgspec.to_builtins(self._result),
            "toolCount": log.tools,
            "turnCount": log.turns,
            "tokenCount": log.tokens,
            "durationMs": self._elapsed_ms(),
        }

    def _leave_when_done(self) -> None:
        """Nothing of it is left: no session, no pump, nothing that its commands started."""
        is_over = self._is_told and self._child is None and not self._is_keeping
        if is_over and not self._is_gone:
            self._is_gone = True
            if self._showing.is_due(self._log):
                self._show(Window())  # the last is shown whether there is room or not
            self._desk.tell(TaskReaped(self._task_id, replace(self._view, history=self._history())))
        if self._is_gone and self._alone:
            self.me.stop()
