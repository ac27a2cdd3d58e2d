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
from typing import Any

from actors.base import Actor, Down
from actors.mail import (
    BashAdopted,
    BashFinished,
    BashLost,
    BashRecorded,
    BecomeCurrent,
    ClearQueue,
    Commands,
    DescribeFork,
    ForkReady,
    ForkRefused,
    NoMoreCommands,
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
    TakeMessages,
    Taken,
    ToolEnded,
    ToolProgress,
)
from actors.session.file import OpenedSession, SessionFileError
from actors.session.fork_plan import plan_fork
from actors.session.forking import InvalidFork
from actors.session.history import History
from actors.session.journal import JournalError
from actors.session.loop import AgentLoop, Setting
from actors.session.outbox import Outbox
from actors.session.requests.dispatch import Requests
from actors.session.services import Modes, Services
from actors.session.turn import Injected, Run, Said, said
from protocol.codec import encode
from protocol.events import AgentSettled, QueueUpdate
from protocol.messages import AssistantMessage, UserMessage
from protocol.responses import QueuedTexts, Released


class Session(Actor[SessionMail]):
    """`key` is what its desk calls it; `modes` are the queue's."""

    def __init__(self, key: int, opened: OpenedSession, services: Services, modes: Modes) -> None:
        self.key = key
        self.services = services
        self.modes: dict[QueueKind, Any] = dict(modes)
        self.opened = opened
        self.history = History(opened, services.now, services.uuid4)
        self.outbox = Outbox(services.writer)
        self.setting = Setting(None, "off")
        self.view = QueueView()
        self.busy = False
        self.shells: set[int] = set()
        self.aborts: list[Any] = []
        self.fallback: tuple[str | None, Any] = (None, None)
        self._between_runs = False
        self._queue_owes = 0
        self._deferred: deque[Callable[[], None]] = deque()
        self._last_injected: Said | None = None
        self._retiring = False
        self._told_retired = False
        self._no_more_commands = False
        self._gone = False
        self._heard = 0
        self._adopted: set[int] = set()
        self._reload: Reload | None = None

    def begin(self) -> None:
        self.queue = self.services.start_queue(self.me, self.modes)
        self.loop = AgentLoop(
            self.services, self.history, self.setting, self.outbox, self.me, self._poll, self._run_over
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

    # -- commands

    def _take_commands(self, mail: Commands) -> None:
        for ticket, command in mail.items:
            if self._deferred or self._queue_owes:
                self._deferred.append(partial(self._requests.take, ticket, command))
            else:
                self._requests.take(ticket, command)

    def when_settled_with_queue(self, action: Callable[[], None]) -> None:
        """Runs `action` once the queue has answered everything, so that what came before is in force. The queue
        answers at once; order is kept."""
        if self._deferred or self._queue_owes:
            self._deferred.append(action)
        else:
            action()

    def _run_deferred(self) -> None:
        while self._deferred and not self._queue_owes:
            self._deferred.popleft()()

    # -- the run

    def start_run(self, prompt: UserMessage) -> None:
        self.busy = True
        self.loop.start((said(prompt),), poll=True)

    def _run_over(self, run: Run) -> None:
        for ticket in self.aborts:
            self.outbox.ok(ticket)
        self.aborts.clear()
        if self._retiring or self._reload is not None:
            self._settle()
        elif self._swallowed_message():
            self._last_injected = None
            self.history.drop_last()
            self.loop.start((), poll=False)
        elif self._queue_is_empty():
            self._settle()
        else:
            self._between_runs = True
            self.tell_queue(TakeMessages("steering", next_run=True))

    def _swallowed_message(self) -> bool:
        """Whether an abort took a queued message with it: its reply is empty. Then the run goes on once."""
        messages = self.history.messages
        if self._last_injected is None or len(messages) < 2:
            return False
        question, reply = messages[-2].message(), messages[-1].message()
        return (
            question is self._last_injected.message
            and isinstance(reply, AssistantMessage)
            and reply.stop_reason == "aborted"
            and not reply.content
        )

    def _settle(self) -> None:
        self.history.settle()
        self.busy = False
        self.outbox.event(AgentSettled())

    # -- the queue

    def tell_queue(self, mail: Any) -> None:
        self._queue_owes += 1
        self.queue.tell(mail)

    def _queue_is_empty(self) -> bool:
        """Known without asking: nobody but this session tells the queue anything."""
        return not self._queue_owes and (self.view.paused or not self.view.pending)

    def _poll(self, kind: QueueKind) -> None:
        if self._queue_is_empty():
            self.loop.taken(())
        else:
            self.tell_queue(TakeMessages(kind))

    def _taken(self, mail: Taken) -> None:
        self._queue_owes -= 1
        self.view = mail.view
        injected = self._injected(mail)
        if injected:
            self._last_injected = injected[-1][1]
        if not self._between_runs:
            self.loop.taken(injected)
        elif injected and not self._retiring and self._reload is None:
            self._between_runs = False
            self.loop.start((), injected, poll=mail.kind != "steering")
        elif self._queue_owes and not injected:
            # something was queued since: it is asked for when the queue has answered that
            self.tell_queue(TakeMessages("steering", next_run=True))
        else:
            self._between_runs = False
            if injected:  # taken just before the queue was emptied: they go with it
                self.outbox.event(QueueUpdate(list(mail.view.steering), list(mail.view.follow_up)))
            self._settle()
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
        self._queue_owes -= 1
        self.view = mail.view
        if mail.announce and (mail.ticket is not None or (mail.cleared is not None and mail.cleared.pending)):
            self.outbox.event(QueueUpdate(list(mail.view.steering), list(mail.view.follow_up)))
        if mail.ticket is not None:
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
        self.tell_queue(ClearQueue(None))
        self.loop.abort()

    def _become_current(self, mail: BecomeCurrent) -> None:
        self._heard += 1
        self._retiring = self._told_retired = self._no_more_commands = self._gone = False
        for kind, mode in mail.modes.items():
            if self.modes.get(kind) != mode:
                self.modes[kind] = mode
                self.tell_queue(SetQueueMode(None, kind, mode))

    def _end_commands(self, mail: NoMoreCommands) -> None:
        self._no_more_commands = True

    def _begin_reload(self, mail: Reload) -> None:
        self._reload = mail
        self.tell_queue(ClearQueue(None))
        self.loop.abort()

    def _move_on(self) -> None:
        """Takes the steps that wait for the session to be still."""
        if self.busy or self._queue_owes:
            return
        if self._reload is not None:
            self._finish_reload(self._reload)
        if self._retiring and not self._told_retired:
            self._told_retired = True
            self.outbox.send()
            self.services.desk.tell(Retired(self.key, dict(self.modes)))
        if self._told_retired and self._no_more_commands and not self.shells and not self._gone:
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
