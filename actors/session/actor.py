"""The session: one conversation, one file, one agent loop.

It owns the history, the model and level, the run, and which of its shell requests are open. A prompt is accepted here
and nowhere else, so of two prompts in one write one starts and the other sees a busy session. It is busy from the
acceptance until `agent_settled`. When another session takes its place it lets go of its run and lives on quietly until
its last shell request is recorded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

from actors.base import Actor, Down
from actors.mail import (
    BashAdopted,
    BashFinished,
    BashLost,
    BashRecorded,
    BecomeCurrent,
    CatalogAnswered,
    ClearQueue,
    Commands,
    DescribeFork,
    Exported,
    ForkReady,
    ForkRefused,
    NoMoreCommands,
    PassOn,
    PreferenceSaved,
    QueueChanged,
    QueuedMessage,
    QueueKind,
    QueueView,
    Reload,
    ReplyDelta,
    ReplyEnded,
    ReplyStarted,
    Retire,
    Retired,
    SessionGone,
    SessionMail,
    SessionReloaded,
    SetQueueMode,
    SurroundingsLoaded,
    TakeMessages,
    Taken,
    Tick,
    ToolEnded,
    ToolProgress,
    UseCatalog,
)
from actors.session.cycle import PromptCycle
from actors.session.file import OpenedSession, SessionFileError
from actors.session.fork_plan import plan_fork
from actors.session.forking import InvalidFork
from actors.session.history import History
from actors.session.journal import JournalError
from actors.session.loop import AgentLoop, Setting
from actors.session.outbox import Outbox
from actors.session.requests.dispatch import Requests
from actors.session.services import Modes, Services
from actors.session.turn import Injected, Said, said
from protocol.codec import encode
from protocol.events import QueueUpdate
from protocol.messages import UserMessage
from protocol.model import Model, ThinkingLevel
from protocol.responses import QueuedTexts, Released


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
        self.view = QueueView()
        self.shells: set[int] = set()
        self.catalog_requests: set[int] = set()
        self.saves_owed = 0
        self.loads: set[int] = set()
        self.aborts: list[Any] = []
        self.fallback: tuple[str | None, Any] = (None, None)
        self.queue_owes = 0
        self._deferred: deque[Callable[[], None]] = deque()
        self._retiring = False
        self._told_retired = False
        self._no_more_commands = False
        self._gone = False
        self._heard = 0
        self._adopted: set[int] = set()
        self._reload: Reload | None = None

    def begin(self) -> None:
        self.queue = self.services.start_queue(self.me, self.modes)
        self.cycle = PromptCycle(self)
        self.loop = AgentLoop(
            self.services,
            self.history,
            self.setting,
            self.outbox,
            self.me,
            self._poll,
            self.cycle.replied,
            self.cycle.will_retry,
            self.cycle.run_over,
        )
        self._requests = Requests(self)
        self._requests.models.choose(first=self.key == 1)
        if self.key == 1 and self.services.name is not None:
            self._requests.branches.name(self.services.name)
        self._in_order: dict[type[Any], Callable[[Any], None]] = {
            Retire: self._retire,
            DescribeFork: self._describe_fork,
            Reload: self._begin_reload,
            BecomeCurrent: self._become_current,
            PassOn: lambda mail: self.outbox.record(mail.response),
        }
        self._at_once: dict[type[Any], Callable[[Any], None]] = {
            Commands: self._take_commands,
            ReplyStarted: self.loop.reply_started,
            ReplyEnded: self.loop.reply_ended,
            ToolProgress: self.loop.tool_progressed,
            ToolEnded: self.loop.tool_ended,
            QueueChanged: self._queue_changed,
            Taken: self._taken,
            BashFinished: self._record_bash,
            BashLost: self._lose_bash,
            BashAdopted: self._adopt_bash,
            NoMoreCommands: self._end_commands,
            UseCatalog: self._use_catalog,
            CatalogAnswered: self._catalog_answered,
            PreferenceSaved: self._preference_saved,
            SurroundingsLoaded: self._requests.slash.loaded,
            Exported: self._requests.state.exported,
            Tick: self.cycle.woke,
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
            self.when_settled_with_queue(lambda: in_order(mail))
        self._move_on()
        self.outbox.send()

    def ended(self) -> None:
        self.queue.stop()

    def last_words(self, unread: list[SessionMail]) -> None:
        self.queue.stop()

    # -- commands

    def _take_commands(self, mail: Commands) -> None:
        for ticket, command in mail.items:
            if self._deferred or self.queue_owes:
                self._deferred.append(partial(self._requests.take, ticket, command))
            else:
                self._requests.take(ticket, command)

    def when_settled_with_queue(self, action: Callable[[], None]) -> None:
        """Runs `action` once the queue has answered everything, so that what came before is in force. The queue
        answers at once; order is kept."""
        if self._deferred or self.queue_owes:
            self._deferred.append(action)
        else:
            action()

    def _run_deferred(self) -> None:
        while self._deferred and not self.queue_owes:
            self._deferred.popleft()()

    # -- the run

    @property
    def busy(self) -> bool:
        return self.cycle.busy

    @property
    def leaving(self) -> bool:
        """Whether it is about to let go, so that nothing new may start."""
        return self._retiring or self._reload is not None

    def use_model(self, model: Model, level: ThinkingLevel, source: Literal["fallback", "restore"]) -> None:
        try:
            self._requests.models.switch(model, source, level)
        except JournalError as error:
            self.services.complain(str(error))

    def abort(self) -> None:
        """Ends the run, or the wait for a retry."""
        if not self.cycle.cancel_wait():
            self.loop.abort()

    # -- the queue

    def tell_queue(self, mail: Any) -> None:
        self.queue_owes += 1
        self.queue.tell(mail)

    def queue_is_empty(self) -> bool:
        """Known without asking: nobody but this session tells the queue anything."""
        return not self.queue_owes and (self.view.paused or not self.view.pending)

    def _poll(self, kind: QueueKind) -> None:
        if self.queue_is_empty():
            self.loop.taken(())
        else:
            self.tell_queue(TakeMessages(kind))

    def _taken(self, mail: Taken) -> None:
        self.queue_owes -= 1
        self.view = mail.view
        self.cycle.taken(self._injected(mail), mail.kind, mail.view)
        self._run_deferred()

    def _injected(self, mail: Taken) -> Injected:
        """Each message with the lists as they stand once it is out of them."""
        injected = []
        for place, message in enumerate(mail.messages):
            rest = [waiting.text for waiting in mail.messages[place + 1 :]]
            steering, follow_up = list(mail.view.steering), list(mail.view.follow_up)
            if mail.kind == "steering":
                steering = rest + steering
            else:
                follow_up = rest + follow_up
            injected.append((QueueUpdate(steering, follow_up), self._user_message(message)))
        return tuple(injected)

    def _user_message(self, message: QueuedMessage) -> Said:
        return said(UserMessage(list(message.content), self.services.now()))

    def _queue_changed(self, mail: QueueChanged) -> None:
        self.queue_owes -= 1
        self.view = mail.view
        if mail.announce and mail.ticket is not None and not self._told_retired:  # else another queue is shown
            self.outbox.event(QueueUpdate(list(mail.view.steering), list(mail.view.follow_up)))
        if mail.ticket is not None and mail.announce and mail.cleared is None:
            self.outbox.accepted(mail.ticket, "queued")
        elif mail.ticket is not None:
            self.outbox.ok(mail.ticket, _queue_data(mail))
        self._run_deferred()

    # -- shell requests

    def _record_bash(self, mail: BashFinished) -> None:
        error = None
        if mail.message is not None:
            raw = encode(mail.message)
            try:
                # the session that died may have recorded it before its desk opened the file again
                if mail.serial not in self._adopted or not self.history.holds(raw):
                    self.history.record(mail.message, raw, wait=self.busy)
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
        self._requests.models.use(mail.view)

    def _preference_saved(self, mail: PreferenceSaved) -> None:
        self.saves_owed -= 1

    def _catalog_answered(self, mail: CatalogAnswered) -> None:
        self._requests.models.use(mail.view)
        self._requests.credentials.answered(mail)

    # -- replacement

    def _describe_fork(self, mail: DescribeFork) -> None:
        try:
            plan = plan_fork(self.history, mail.entry_id, self.services.uuid4)
        except InvalidFork as refused:
            self.services.desk.tell(ForkRefused(mail.ticket, str(refused)))
            return
        self.services.desk.tell(ForkReady(mail.ticket, plan.lines, plan.parent_session, plan.text))

    def _retire(self, mail: Retire) -> None:
        self._heard += 1
        self._retiring = True
        self._told_retired = self._gone = False
        self._empty_queue()
        self.abort()

    def _empty_queue(self) -> None:
        """What waits is not carried over. The client hears of it before the run ends; nothing is on its way to the
        queue now, so what it holds is what the session has seen of it."""
        if self.view.pending:
            self.outbox.event(QueueUpdate([], []))
        self.tell_queue(ClearQueue(None))

    def _become_current(self, mail: BecomeCurrent) -> None:
        self._heard += 1
        if self._heard == 1 and mail.defaults is not None:
            self._requests.models.take_over(mail.defaults)
        self._retiring = self._told_retired = self._no_more_commands = self._gone = False
        for kind, mode in mail.modes.items():
            if self.modes.get(kind) != mode:
                self.modes[kind] = mode
                self.tell_queue(SetQueueMode(None, kind, mode))

    def _end_commands(self, mail: NoMoreCommands) -> None:
        self._no_more_commands = True

    def _begin_reload(self, mail: Reload) -> None:
        self._reload = mail
        self._empty_queue()
        self.abort()

    def _move_on(self) -> None:
        """Takes the steps that wait for the session to be still."""
        if self.busy or self.queue_owes:
            return
        if self._reload is not None:
            self._finish_reload(self._reload)
        if self._retiring and not self._told_retired:
            self._told_retired = True
            self.outbox.send()
            self.services.desk.tell(Retired(self.key, dict(self.modes), self.setting.defaults))
        owing = self.shells or self.catalog_requests or self.saves_owed or self.loads
        if self._told_retired and self._no_more_commands and not owing and not self._gone:
            self._gone = True
            self.services.desk.tell(SessionGone(self.key, self._heard))

    def _finish_reload(self, mail: Reload) -> None:
        self._reload = None
        self.outbox.send()
        try:
            self.history.reload(self.services.reopen(self.opened))
        except SessionFileError as error:
            self.services.desk.tell(SessionReloaded(mail.ticket, str(error)))
            return
        self._requests.models.choose(first=False)
        self.services.desk.tell(SessionReloaded(mail.ticket))

    def _bury(self, mail: Down) -> None:
        if mail.key == "queue":
            raise RuntimeError("the queue died")  # its session goes with it, and is opened again from its file
        self.loop.child_died(mail.key, mail.error)


def _queue_data(mail: QueueChanged) -> QueuedTexts | Released | None:
    if mail.cleared is not None:
        return QueuedTexts(list(mail.cleared.steering), list(mail.cleared.follow_up))
    return None if mail.released is None else Released(mail.released)
