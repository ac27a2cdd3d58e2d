"""Actors with one fault each, for the tests that an invariant sees it."""

from __future__ import annotations

from typing import Any

import msgspec

from actors.inspector.door import Door
from actors.inspector.visitor import Visitor
from actors.intake import Intake
from actors.mail import (
    ChildSaid,
    CloseTasks,
    Commands,
    DescribeAgents,
    DoorMail,
    Enqueue,
    QueueMail,
    SavePreference,
    SeeOut,
    SessionLeft,
    ShellDeskMail,
    ShellMail,
    SubagentMail,
    TaskChanged,
    TaskDeskMail,
    Ticket,
    VisitorAnswered,
    VisitorBytes,
    VisitorMail,
    Write,
)
from actors.model.actor import ModelCall
from actors.preferences import Preferences
from actors.session.actor import Session
from actors.session.desk.actor import SessionDesk
from actors.session.queue import Queue
from actors.shell.actor import Shell
from actors.shell.desk import ShellDesk
from actors.task.desk import TaskDesk
from actors.task.subagent.actor import Subagent
from actors.writer import Writer
from protocol import commands as c
from protocol.tasks import Cancelling
from runtime.simulation.model_server import CHILDS_THOUGHT

# ---- shells ------------------------------------------------------------------------------------------------------


class TwiceAnswered(Shell):
    """Answers its command, and then an unrelated one of the same client."""

    def _answer(self, error: str | None) -> None:
        super()._answer(error)
        self._ticket = msgspec.structs.replace(self._ticket, serial=self._ticket.serial + 10_000)
        super()._answer(error)


class Silent(Shell):
    """Never answers."""

    def _answer(self, error: str | None) -> None:
        self._finished = None
        super()._answer(error)


class Reordered(Shell):
    """Tells the client the second output before the first."""

    _held: Any = None

    def receive(self, mail: ShellMail) -> None:
        if type(mail).__name__ == "ShellOutput" and self._held is None:
            self._held = mail
            return
        super().receive(mail)
        held, self._held = self._held, False
        if held:
            super().receive(held)


class Hasty(Shell):
    """Answers before its record is written."""

    def _finish(self, code: int | None, error: str | None) -> None:
        super()._finish(code, error)
        if self._finished is not None and self._finished.message is not None:
            self._writer.tell(Write((self._ticket.ok(b'{"output":""}'),)))


class Insistent(Shell):
    """Has its result recorded twice."""

    def _finish(self, code: int | None, error: str | None) -> None:
        super()._finish(code, error)
        if self._finished is not None:
            self._home.tell(self._finished)


class Deathless(Shell):
    """Does not kill what it is told to cancel."""

    def begin(self) -> None:
        super().begin()
        self._process.kill = lambda: None  # type: ignore[method-assign]


class DeafDesk(ShellDesk):
    """Cancels no command by its id."""

    def receive(self, mail: ShellDeskMail) -> None:
        if type(mail).__name__ == "AbortBash" and mail.request_id is not None:  # type: ignore[union-attr]
            self._writer.tell(Write((mail.ticket.ok(),)))  # type: ignore[union-attr]
            return
        super().receive(mail)


# ---- queues ------------------------------------------------------------------------------------------------------


class Forgetful(Queue):
    """Drops what comes in third, and says that it took it."""

    _came = 0

    def receive(self, mail: QueueMail) -> None:
        super().receive(mail)
        if isinstance(mail, Enqueue):
            self._came += 1
            if self._came == 3:
                self._live[mail.kind][-1:] = []


class Doubling(Queue):
    """Takes every message twice."""

    def receive(self, mail: QueueMail) -> None:
        if isinstance(mail, Enqueue) and not self._paused:
            self._live[mail.kind] += [msgspec.structs.replace(one) for one in self._live[mail.kind][-1:]]
        super().receive(mail)


class Swallowing(Queue):
    """Accepts messages and has never seen them."""

    def receive(self, mail: QueueMail) -> None:
        super().receive(mail)
        if isinstance(mail, Enqueue):
            for lists in (self._live, self._hold):
                lists[mail.kind][:] = [one for one in lists[mail.kind] if one.text != mail.text]


class SwallowingAtOnce(Queue):
    """The same, before it shows what it holds."""

    def receive(self, mail: QueueMail) -> None:
        if isinstance(mail, Enqueue):
            mail = msgspec.structs.replace(mail, text="something else")
        super().receive(mail)


# ---- sessions ----------------------------------------------------------------------------------------------------


class Unsettled(Session):
    """Ends its cycles without a word."""

    def begin(self) -> None:
        super().begin()
        event = self.outbox.event
        self.outbox.event = (  # type: ignore[method-assign]
            lambda told: None if type(told).__name__ == "AgentSettled" else event(told)
        )


class Unwritten(Session):
    """Tells messages that it did not journal."""

    def begin(self) -> None:
        super().begin()
        said = self.history.say

        def say(message: Any) -> None:
            if type(message.message).__name__ == "AssistantMessage":
                self.history.messages.append(_context(message))
            else:
                said(message)

        self.history.say = say  # type: ignore[method-assign]


def _context(message: Any) -> Any:
    from actors.session.context import ContextMessage

    return ContextMessage(message.raw, "unwritten", message.message)


class DeafToAbort(Session):
    """Says that it aborts its run, which goes on."""

    def _take_commands(self, mail: Commands) -> None:
        rest = []
        for ticket, command in mail.items:
            if isinstance(command, c.Abort):
                self.outbox.ok(ticket)
            else:
                rest.append((ticket, command))
        super()._take_commands(Commands(tuple(rest)))


class Idle(Session):
    """Says in get_state that it does nothing."""

    def begin(self) -> None:
        super().begin()
        state = self.requests.state
        made = state._session_state
        state._session_state = (  # type: ignore[method-assign]
            lambda: msgspec.structs.replace(made(), is_streaming=False)
        )


class Talkative(Session):
    """Complains about credentials with the credential."""

    def _take_commands(self, mail: Commands) -> None:
        for _, command in mail.items:
            if isinstance(command, c.SaveProviderCredential):
                self.services.complain(str(command.credential))
        super()._take_commands(mail)


class Rootless(Session):
    """Hangs entries on one that is not there."""

    def begin(self) -> None:
        super().begin()
        append = self.history.journal.append
        self.history.journal.append = (  # type: ignore[method-assign]
            lambda line: append(line.replace(b'"parentId":"', b'"parentId":"no'))
        )


class Impatient(Session):
    """Starts a run that nobody asked for, when a shell command ends."""

    def _record_bash(self, mail: Any) -> None:
        super()._record_bash(mail)
        if not self.busy and not self.leaving:
            self.cycle.busy = True
            self.loop.start((), poll=False)


class Unclosed(Session):
    """Does not tell how retries ended."""

    def begin(self) -> None:
        super().begin()
        event = self.outbox.event
        self.outbox.event = (  # type: ignore[method-assign]
            lambda told: None if type(told).__name__ == "AutoRetryEnd" else event(told)
        )


class Abandoning(Session):
    """Leaves its tasks to themselves when it goes."""

    def begin(self) -> None:
        super().begin()
        self.tasks.close = lambda: None  # type: ignore[method-assign]


class Repeating(Session):
    """Writes each step of a completion notice twice."""

    def begin(self) -> None:
        super().begin()
        write = self.notices._write

        def twice(kind: str, data: dict[str, Any]) -> None:
            write(kind, data)
            write(kind, data)

        self.notices._write = twice  # type: ignore[method-assign]


class Stuck(SessionDesk):
    """Never says that its sessions are closed."""

    def _tell_closed(self) -> None:
        pass


class Resultless(Session):
    """Does not journal what tools return, as a subagent's session."""

    def begin(self) -> None:
        super().begin()
        said = self.history.say

        def say(message: Any) -> None:
            if self.key == 0 and type(message.message).__name__ == "ToolResultMessage":
                self.history.messages.append(_context(message))
            else:
                said(message)

        self.history.say = say  # type: ignore[method-assign]


# ---- tasks -------------------------------------------------------------------------------------------------------


class Recausing(TaskDesk):
    """Keeps the last cause for which a task was stopped."""

    def receive(self, mail: TaskDeskMail) -> None:
        super().receive(mail)
        for task in self._owner.tasks if isinstance(mail, CloseTasks) else ():
            if task.phase == "cancelling":
                task.execution = Cancelling("shutdown")
                self._session.tell(TaskChanged(task.record()))


class Insisting(TaskDesk):
    """Answers calls twice."""

    def begin(self) -> None:
        super().begin()
        tell = self._tools._tell

        def twice(call: Any, answer: Any) -> None:
            call.tell(answer)
            tell(call, answer)

        self._tools._tell = twice  # type: ignore[method-assign]


class Speechless(TaskDesk):
    """Tells nobody what agents there are."""

    def receive(self, mail: TaskDeskMail) -> None:
        if not isinstance(mail, DescribeAgents):
            super().receive(mail)


class Roomy(TaskDesk):
    """Lets any number run."""

    def begin(self) -> None:
        self._owner._places._room = {}
        super().begin()


class Unclosing(Subagent):
    """Leaves its child's file open."""

    def _close_child(self) -> None:
        self._child._opened = None
        super()._close_child()


class ThinkingAloud(Subagent):
    """Answers with what its child thinks."""

    def receive(self, mail: SubagentMail) -> None:
        super().receive(mail)
        if isinstance(mail, ChildSaid) and CHILDS_THOUGHT in str(mail):
            self._log.text = CHILDS_THOUGHT


# ---- visitors ----------------------------------------------------------------------------------------------------


class Losing(Visitor):
    """Forgets what a session that has gone did not answer."""

    def _lose(self, session: Any, error: str) -> None:
        self._open = {serial: one for serial, one in self._open.items() if one[1] is not session}
        super()._lose(session, error)


class Echoing(Visitor):
    """Says each answer twice."""

    def _answer(self, mail: VisitorAnswered) -> None:
        super()._answer(mail)
        self._say(mail.response.line)


class Rude(Visitor):
    """Greets nobody."""

    def _describe(self, facts: Any) -> None:
        self._is_greeted = True
        super()._describe(facts)
        self._connection.read(self.me)


class Indiscreet(Session):
    """Tells the Writer what a visitor asked."""

    def begin(self) -> None:
        super().begin()
        self.tasks._answer = self.outbox.record  # type: ignore[method-assign]


class Unsubscribed(Visitor):
    """Forgets the subscription when another session is current."""

    def _face(self, session: Any) -> None:
        self._updates = False
        super()._face(session)


class Untold(Session):
    """Tells visitors of every task but no second time."""

    def begin(self) -> None:
        super().begin()
        tell, told = self.guests.tell, set[bytes]()

        def once(lines: bytes) -> None:
            if lines[:80] not in told:
                told.add(lines[:80])
                tell(lines)

        self.guests.tell = once  # type: ignore[method-assign]


class Hurried(Door):
    """Sees its visitors out before the sessions have closed: with the first that leaves."""

    def receive(self, mail: DoorMail) -> None:
        super().receive(mail)
        if isinstance(mail, SessionLeft):
            for visitor, _ in self._visitors.values():
                visitor.tell(SeeOut())


class Patient(Visitor):
    """Sends more, however much is unread."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given[:5])


class Touchy(Visitor):
    """Leaves when it was asked something that it does not do."""

    def _refuse(self, ticket: Ticket, error: str) -> None:
        super()._refuse(ticket, error)
        self._leave()


class Keeping(Visitor):
    """Keeps acks."""

    def receive(self, mail: VisitorMail) -> None:
        super().receive(msgspec.structs.replace(mail, ack=None) if isinstance(mail, VisitorBytes) else mail)


# ---- others ------------------------------------------------------------------------------------------------------


class Overtaking(Intake):
    """Refuses what comes too late at once, before others have answered."""

    def _refuse(self, tickets: list[Ticket], error: str) -> None:
        self._answer([(ticket, error) for ticket in tickets])


class Gapped(ModelCall):
    """Loses a delta."""

    def _tell_growth(self, events: Any, ack: Any) -> None:
        super()._tell_growth([one for one in events if getattr(one, "delta", "") != " words"], ack)


class Ackless(Writer):
    """Keeps acks."""

    def _take(self, mail: Write) -> None:
        super()._take(msgspec.structs.replace(mail, ack=None))


class Garbled(Writer):
    """Writes what is no record."""

    def _take(self, mail: Write) -> None:
        super()._take(mail)
        self._pending.append(b"[]\n")


class Unkept(Preferences):
    """Never says that it saved."""

    def receive(self, mail: SavePreference) -> None:
        super().receive(msgspec.structs.replace(mail, session=None))
