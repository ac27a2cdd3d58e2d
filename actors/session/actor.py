"""The session: one conversation, one file, one agent loop.

It owns the history, the model and level, the run, and which of its shell requests are open. A prompt is accepted here
and nowhere else, so of two prompts in one write one starts and the other sees a busy session. It is busy from the
acceptance until `agent_settled`. When another session takes its place it lets go of its run and lives on quietly until
its last shell request is recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any, Literal

from actors.base import Actor, Down
from actors.mail import (
    AgentMessaged,
    AnswerMade,
    BashAdopted,
    BashFinished,
    BashLost,
    BashRecorded,
    BecomeCurrent,
    CatalogAnswered,
    Commands,
    CompactionWorked,
    DescribeFork,
    EndVisit,
    Exported,
    NoMoreCommands,
    PassOn,
    PreferenceSaved,
    QueueChanged,
    QueueKind,
    Reload,
    ReplyDelta,
    ReplyEnded,
    ReplyStarted,
    Reread,
    Retire,
    SessionMail,
    SurroundingsLoaded,
    Taken,
    TaskChanged,
    TaskResponse,
    TasksClosed,
    Tick,
    ToolEnded,
    ToolProgress,
    TranscriptGrew,
    UseCatalog,
    Visit,
    VisitorCommand,
)
from actors.session.background import Background
from actors.session.compactor import Compactor
from actors.session.cycle import PromptCycle
from actors.session.file import OpenedSession
from actors.session.guests import Guests
from actors.session.handover import HandOver
from actors.session.headroom import Headroom
from actors.session.history import History
from actors.session.journal import JournalError
from actors.session.loop import AgentLoop
from actors.session.navigation import Navigation
from actors.session.notices import Notices
from actors.session.outbox import Outbox
from actors.session.queue_side import QueueSide
from actors.session.requests.dispatch import Requests
from actors.session.services import Modes, Services
from actors.session.setting import Setting
from actors.session.side_call import SideCalls
from actors.session.task_side import TaskSide
from actors.session.tool_calls import ToolCalls
from protocol.codec import encode
from protocol.compaction import CompactionReason
from protocol.model import Model, ThinkingLevel
from protocol.tasks import YieldReason


class Session(Actor[SessionMail]):
    """`key` is what its desk calls it; `modes` are the queue's."""

    def __init__(self, key: int, opened: OpenedSession, services: Services, modes: Modes) -> None:
        self.key = key
        self.services = services
        self.modes: dict[QueueKind, Any] = dict(modes)
        self.opened = opened
        self.history = History(opened, services.now, services.uuid4)
        self.outbox = Outbox(services.writer, pi_compat=services.pi_compat)
        self.setting = Setting(services)
        self.shells: set[int] = set()
        self.catalog_requests: set[int] = set()
        self.saves_owed = 0
        self.loads: set[int] = set()
        self.aborts: list[Any] = []
        self.fallback: tuple[str | None, Any] = (None, None)
        self.handover = HandOver(self)
        self.tasks = TaskSide(self)
        self.guests = Guests(self)
        self.notices = Notices(self)
        self._adopted: set[int] = set()
        self._numbers = count(1)

    def begin(self) -> None:
        self.waiting = QueueSide(self)
        self.cycle = PromptCycle(self)
        self.headroom = Headroom(self)
        next_number = self._numbers.__next__
        tools = ToolCalls(
            self.services, self.history, self.setting, self.me, next_number, self.tasks.owner, self._unread
        )
        self.loop = AgentLoop(
            self.services,
            self.history,
            self.setting,
            self.outbox,
            tools,
            self.me,
            self.waiting.poll,
            self.cycle.replied,
            self.cycle.will_retry,
            self.cycle.run_over,
            next_number,
            self.headroom.before_request,
            self.headroom.cancel_mid_turn,
            self.notices.was_said,
        )
        self.side_calls = SideCalls(self.services, self.setting, self.outbox, self.me, next_number)
        self.background = Background(self)
        self.navigation = Navigation(self)
        self.compactor = Compactor(self)
        self.requests = Requests(self)
        self.requests.models.choose(first=self.key == 1)
        if self.key == 1 and self.services.name is not None:
            self.requests.branches.name(self.services.name)
        self.notices.restore()
        if self.key == 1:  # others are current only later
            self.notices.say_quietly()
            self.outbox.send()
        self._in_order: dict[type[Any], Callable[[Any], None]] = {
            Retire: self.handover.retire,
            DescribeFork: self.handover.describe_fork,
            Reload: self.handover.begin_reload,
            BecomeCurrent: self.handover.become_current,
            PassOn: lambda mail: self.outbox.record(mail.response),
        }
        self._at_once: dict[type[Any], Callable[[Any], None]] = {
            Commands: self._take_commands,
            ReplyStarted: self.loop.reply_started,
            ReplyEnded: self._end_reply,
            ToolProgress: self.loop.tool_progressed,
            ToolEnded: self.loop.tool_ended,
            QueueChanged: self.waiting.changed,
            Taken: self.waiting.taken,
            BashFinished: self._record_bash,
            BashLost: self._lose_bash,
            BashAdopted: self._adopt_bash,
            NoMoreCommands: self.handover.end_commands,
            UseCatalog: self._use_catalog,
            CatalogAnswered: self._catalog_answered,
            PreferenceSaved: self._preference_saved,
            TaskChanged: self.tasks.changed,
            AgentMessaged: self.tasks.messaged,
            TaskResponse: self.tasks.answered,
            TasksClosed: self.tasks.closed,
            TranscriptGrew: self.tasks.said,
            Visit: self.guests.visit,
            VisitorCommand: self.guests.command,
            EndVisit: self.guests.leave,
            Reread: self.handover.reread,
            AnswerMade: self.requests.state.made,
            SurroundingsLoaded: lambda mail: self.requests.slash.loaded(mail),
            Exported: self.requests.state.exported,
            CompactionWorked: self.compactor.worked,
            Tick: self._wake,
            Down: self._bury,
        }

    def receive(self, mail: SessionMail) -> None:
        if isinstance(mail, ReplyDelta):
            self.loop.reply_grew(mail)
            return
        kind = type(mail)
        at_once = self._at_once.get(kind)
        if at_once is not None:
            at_once(mail)
        else:
            in_order = self._in_order[kind]
            self.waiting.in_order(lambda: in_order(mail))
        if self.notices.owed:
            self.cycle.tell_notices()
        self.handover.move_on()
        self.outbox.send()
        self.guests.look()

    def ended(self) -> None:
        self.waiting.stop()
        self.let_go()

    def last_words(self, unread: list[SessionMail]) -> None:
        self.waiting.stop()
        self.loop.abandon()
        self.side_calls.abandon()
        self.tasks.abandon()

    # -- commands

    def _take_commands(self, mail: Commands) -> None:
        for ticket, command in mail.items:
            self.waiting.in_order(partial(self.requests.take, ticket, command))

    # -- the run

    @property
    def busy(self) -> bool:
        """Whether no prompt can start and the tree must stay as it is."""
        return self.cycle.busy or self.compaction_reason is not None

    @property
    def compaction_reason(self) -> CompactionReason | Literal["branchSummary"] | None:
        """Why the conversation is being shortened now; None: it is not."""
        return "branchSummary" if self.navigation.summarizing else self.compactor.reason

    @property
    def leaving(self) -> bool:
        """Whether it is about to let go, so that nothing new may start."""
        return self.handover.leaving

    @property
    def owes(self) -> bool:
        """Whether something that began here is not over, apart from the run."""
        own = (self.shells, self.catalog_requests, self.saves_owed, self.loads)
        return any(own) or bool(self.side_calls.owed or self.compactor.working or self.tasks.owes)

    def _unread(self) -> YieldReason | None:
        """Whether something is on its way to the model, and whose, so that it should not wait for a task now."""
        if self.waiting.steered():
            return "input-needed"
        return "intercom-coordination" if self.notices.holds_message else None

    def use_model(self, model: Model, level: ThinkingLevel, source: Literal["fallback", "restore"]) -> None:
        try:
            self.requests.models.switch(model, source, level)
        except JournalError as error:
            self.services.complain(str(error))

    def abort(self) -> None:
        """Ends the run, the wait for a retry, the summary of a branch, and what is done in the background. A prompt
        that waits for a compaction is not started."""
        self.background.cancel()
        self.navigation.cancel()
        self.headroom.refuse_admission("prompt was stopped by abort before it started")
        self.interrupt()

    def interrupt(self) -> None:
        """Ends what the agent is at: the run, the wait for a retry, or the compaction between two runs."""
        if self.loop.run is not None:
            self.loop.abort()
        elif not self.cycle.cancel_wait():
            self.compactor.cancel(manual=False)

    def _end_reply(self, mail: ReplyEnded) -> None:
        if not self.side_calls.reply_ended(mail):
            self.loop.reply_ended(mail)

    def _wake(self, mail: Tick) -> None:
        if not self.side_calls.woke(mail):
            self.cycle.woke(mail)

    # -- shell requests

    def _record_bash(self, mail: BashFinished) -> None:
        error = None
        if mail.message is not None:
            raw = encode(mail.message)
            try:
                # the session that died may have recorded it before its desk opened the file again
                if mail.serial not in self._adopted or not self.history.holds(raw):
                    self.history.record(mail.message, raw, wait=self.cycle.busy)
            except JournalError as refused:
                error = str(refused)
                self.services.complain(error)
        self.shells.discard(mail.serial)
        mail.shell.tell(BashRecorded(error))

    def _adopt_bash(self, mail: BashAdopted) -> None:
        self.shells |= mail.serials
        self._adopted |= mail.serials

    def _lose_bash(self, mail: BashLost) -> None:
        self.shells.discard(mail.serial)

    # -- models

    def _use_catalog(self, mail: UseCatalog) -> None:
        self.requests.models.use(mail.view)

    def _preference_saved(self, mail: PreferenceSaved) -> None:
        self.saves_owed -= 1

    def _catalog_answered(self, mail: CatalogAnswered) -> None:
        self.requests.models.use(mail.view)
        self.requests.credentials.answered(mail)

    def _bury(self, mail: Down) -> None:
        if mail.key == "queue":
            raise RuntimeError("the queue died")  # its session goes with it, and is opened again from its file
        if isinstance(mail.key, str):
            self.tasks.died(mail.key, mail.error)
        elif not self.side_calls.child_died(mail.key, mail.error):
            self.loop.child_died(mail.key, mail.error)
