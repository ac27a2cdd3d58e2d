"""The session's side of its queue: what it has seen of it, what it waits for, and what waits for that.

Part of the session actor. Only the session tells the queue anything, and every mail gets one answer in order. So with
no answer due, what the session saw last is what the queue holds. What comes after a command for the queue waits for the
queue's answer, which comes at once; that keeps the order of the wire.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from actors.mail import (
    ClearQueue,
    QueueChanged,
    QueuedMessage,
    QueueKind,
    QueueMail,
    QueueView,
    TakeMessages,
    Taken,
)
from actors.session.turn import Injected, Said, said
from protocol.events import QueueUpdate
from protocol.messages import UserMessage

if TYPE_CHECKING:
    from actors.session.actor import Session
    from protocol.responses import QueuedTexts, Released


class QueueSide:
    """`view` is what the queue told last; `owes` counts the answers that are due. `is_held`: a pump makes an answer of
    the session, and what comes after that waits for it."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._address = session.services.start_queue(session.me, session.modes)
        self._deferred: deque[Callable[[], None]] = deque()
        self.view = QueueView()
        self.owes = 0
        self.is_held = False

    def tell(self, mail: QueueMail) -> None:
        self.owes += 1
        self._address.tell(mail)

    def stop(self) -> None:
        self._address.stop()

    def in_order(self, action: Callable[[], None]) -> None:
        """Runs `action` once the queue has answered everything, so that what came before is in force."""
        if self._deferred or self.owes or self.is_held:
            self._deferred.append(action)
        else:
            action()

    def hold(self) -> None:
        """What comes from now on waits for `release` too: an answer is being made."""
        self.is_held = True

    def release(self) -> None:
        self.is_held = False
        self._run_deferred()

    def steered(self) -> bool:
        """Whether a message waits for the tools of the turn to end."""
        return _steering(self.view) > 0

    @property
    def is_empty(self) -> bool:
        """Whether a poll would hand out nothing; known without asking."""
        return not self.owes and (self.view.paused or not self.view.pending)

    def poll(self, kind: QueueKind) -> None:
        if self.is_empty:
            self._session.loop.taken(self._session.notices.injected())
        else:
            self.tell(TakeMessages(kind))

    def empty(self) -> None:
        """What waits is not carried over. The client hears of it before the run ends; nothing is on its way to the
        queue now, so what it holds is what the session has seen of it."""
        if self.view.pending:
            self._session.outbox.event(QueueUpdate([], []))
        self.tell(ClearQueue(None))

    # -- what the queue answers

    def taken(self, mail: Taken) -> None:
        self._answered(mail.view)
        self._session.cycle.taken(self._injected(mail), mail.kind, mail.view)
        self._run_deferred()

    def changed(self, mail: QueueChanged) -> None:
        steers = _steering(mail.view) > _steering(self.view)
        self._answered(mail.view)
        if (
            mail.announce and mail.ticket is not None and not self._session.handover.told_retired
        ):  # else another queue is shown
            self._session.outbox.event(QueueUpdate(list(mail.view.steering), list(mail.view.follow_up)))
        if mail.ticket is not None and mail.announce and mail.cleared is None:
            self._session.outbox.accepted(mail.ticket, "queued")
        elif mail.ticket is not None:
            self._session.outbox.ok(mail.ticket, _queue_data(mail))
        if steers:
            self._session.loop.tools.let_go("input-needed")
        self._run_deferred()

    def _answered(self, view: QueueView) -> None:
        self.owes -= 1
        self.view = view

    def _run_deferred(self) -> None:
        while self._deferred and not self.owes and not self.is_held:
            self._deferred.popleft()()

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
        return said(UserMessage(list(message.content), self._session.services.now()))


def _steering(view: QueueView) -> int:
    """How many messages a turn would be steered with. What a pause holds comes with the resume."""
    return 0 if view.paused else len(view.steering)


def _queue_data(mail: QueueChanged) -> QueuedTexts | Released | None:
    if mail.cleared is None and mail.released is None:
        return None
    from protocol.responses import QueuedTexts, Released

    if mail.cleared is not None:
        return QueuedTexts(list(mail.cleared.steering), list(mail.cleared.follow_up))
    return None if mail.released is None else Released(mail.released)
