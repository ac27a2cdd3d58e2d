"""A subagent: a task that a session of its own works on, in this process.

It owns the child's session, reads what that would tell a client, and settles its acks, so that the child's stream is
bounded like any other. Nothing of the child's records reaches stdout. It tells its desk three things that do not imply
each other: that the child has begun, how it ended, and that nothing of it is left. What the child says to its parent
goes this way too, and so comes before its end. Source: `tasks.md` 3.3 to 3.5 and 5.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from actors.base import Actor, Address, Down
from actors.mail import (
    AgentPlan,
    AnswerQuestion,
    ArtifactsWritten,
    ChildOpened,
    ChildRefused,
    ChildSaid,
    ClockMail,
    ContactParent,
    LeftBehind,
    ReadTranscript,
    SessionGone,
    SteerChild,
    StopAgent,
    SubagentMail,
    TaskDeskMail,
    TaskOrphaned,
    TaskSpawned,
    Tick,
    TranscriptRead,
    WatchTranscript,
    WithdrawContact,
    Write,
)
from actors.task.delegation import task_text
from actors.task.subagent.child import ChildPort, ChildSession, StartChild
from actors.task.subagent.child_log import ChildLog
from actors.task.subagent.child_road import ChildOwner, ChildRoad
from actors.task.subagent.ending import Ending
from actors.task.subagent.parent_side import ParentSide
from actors.task.subagent.progress import Progress
from actors.task.subagent.transcript_side import SHOW, TranscriptSide
from protocol.tasks import TaskFailed, TaskRef, TaskResult

LEFT = "the session of the subagent"


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
        self._child = ChildSession()
        self._log = ChildLog(f"{plan.model.provider}/{plan.model.id}", plan.level)
        self._parent = ParentSide(ref.task_id, desk)
        self._is_stopping = self._alone = self._is_gone = False

    def begin(self) -> None:
        task_id, log, desk, clock, me = self._task_id, self._log, self._desk, self._clock, self.me
        self._progress = Progress(task_id, log, self._parent, desk, clock, self._now, me)
        self._transcript = TranscriptSide(task_id, log, desk, clock, me)
        self._ending = Ending(task_id, self._plan, self._child, log, self._files, desk, self._now, me)
        self._files.open(self._plan, me)

    def receive(self, mail: SubagentMail) -> None:
        match mail:
            case ChildSaid(Write() as said):
                self._listen(said)
            case ChildSaid(SessionGone()):
                self._child.stop()
                self._close_child()
            case ChildSaid(LeftBehind(remains)):
                self._child.keep_remains(remains)
            case ChildSaid():
                pass  # that it retires, and what it would ask of a shell desk, is nothing to a subagent
            case ChildOpened():
                self._begin_child(mail)
            case ChildRefused(error):
                self._child.refused()
                self._end(None if self._is_stopping else TaskFailed("SpawnFailed", error))
            case ArtifactsWritten():
                self._ending.tell_outcome(mail)
            case ContactParent():
                self._parent.contact(mail)
            case WithdrawContact(call):
                self._parent.withdraw(call)
            case AnswerQuestion(request_id, text):
                if self._parent.answer(request_id, text):
                    self._progress.heard()
            case SteerChild(text):
                self._child.steer(text)
            case StopAgent(alone):
                self._alone = self._alone or alone
                self._stop()
            case ReadTranscript(number):
                history = self._child.history(self._log.tail)
                self._desk.tell(TranscriptRead(number, history, self._log.live.entry()))
            case WatchTranscript(on):
                self._transcript.watch(on)
            case Tick(key) if key == SHOW:
                self._transcript.rang()
            case Tick(key):
                self._progress.rang(key)
            case Down(_, error):
                self._close_child()
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
                    self._child.keep_remains(remains)
                case ChildOpened():
                    self._child.opened(mail)
        if self._child.lives:
            self._child.let_go(alone=True)
            self._desk.tell(TaskOrphaned(self._task_id, (LEFT,)))
            self._child.kill_remains()
        else:
            self._child.close()

    def _listen(self, said: Write) -> None:
        self._progress.heard()
        for record in said.records:
            if self._log.read(record.line):
                self._progress.change()
        if said.ack is not None:
            said.ack.settle()
        self._progress.report_if_due()
        self._transcript.show_if_due()
        if self._log.is_over:
            self._end(self._log.outcome)

    def _begin_child(self, mail: ChildOpened) -> None:
        self._child.opened(mail)
        if self._is_stopping:
            self._close_child()
            self._end(None)
            return
        road = ChildRoad(self.me, self._desk, self._task_id)
        owner = ChildOwner(self.me, self._desk, self._task_id)
        self._child.begin(self._start_child(self._plan, mail.opened, mail.surroundings, road, owner))
        self._desk.tell(TaskSpawned(self._task_id))
        self._child.give(task_text(self._plan))
        self._progress.begin()

    def _stop(self) -> None:
        if not self._is_stopping:
            self._is_stopping = True
            if self._child.is_opening:
                self._files.abandon()
            else:
                self._end(None)

    def _close_child(self) -> None:
        """Its session has let go of everything: its tools have ended."""
        self._child.close()
        self._ending.keep_when_free()

    def _end(self, result: TaskResult | None) -> None:
        """With a result it is over; without one it was stopped. The child lets go in each case."""
        if self._ending.has_begun:
            return
        self._ending.begin(result)
        self._progress.end(last=result is not None)
        self._parent.end()
        self._child.let_go()
        self._ending.keep()

    def _leave_when_done(self) -> None:
        """Nothing of it is left: no session, no pump, nothing that its commands started."""
        if self._ending.view is not None and not self._child.lives and not self._is_gone:
            self._is_gone = True
            self._transcript.show_last()
            self._ending.tell_reaped()
        if self._is_gone and self._alone:
            self.me.stop()
