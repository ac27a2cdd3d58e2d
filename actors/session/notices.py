"""What a session's tasks owe its conversation: that one is over, and what a subagent says while it runs. Each is said
exactly once, also across a crash.

Part of the session actor. It is in the file before anybody hears of it (an intent, or what was received); then the
message is said, and of a completion an acknowledgement follows. Whatever of this a crash cut off is done when the file
is opened again. While the session lets go, it is kept and nothing is said. Source: `tasks.md` 2.10 and 5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from actors.session.journal import JournalError
from actors.session.turn import Injected, Said, said
from actors.task import child_message
from actors.task.child_message import MESSAGE as INTERCOM
from actors.task.child_message import RECEIVED, ChildMessage, closed
from actors.task.notice import ACK, INTENT, MESSAGE, TaskNotice, details, restored, text
from protocol.codec import decode_any
from protocol.events import MessageEnd, MessageStart
from protocol.messages import CustomMessage
from protocol.tasks import CompletionEnvelope, TaskCancelled, TaskRecord

if TYPE_CHECKING:
    from collections.abc import Iterable

    from actors.session.actor import Session
    from actors.session.tree import Entry


_OURS = (INTENT, ACK, MESSAGE, RECEIVED, INTERCOM)


class Notices:
    """`owed` are those that nobody has said yet, in the order in which they came."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.owed: dict[str, TaskNotice | ChildMessage] = {}
        self._written: set[str] = set()
        self.is_stuck = False  # the last run that was to say them could not

    def restore(self) -> None:
        """What the file owes. A notice that was said and not acknowledged is acknowledged now. Who asked something is
        gone."""
        intents, said_ids, acked = stored(self._session.history.tree.entries)
        self._written = set(intents)
        for name, kept in intents.items():
            if name in acked:
                continue
            if isinstance(kept, ChildMessage):
                if name not in said_ids:
                    self.owed[name] = closed(kept)
            elif name in said_ids:
                self._write(ACK, {"completionId": name})
            else:
                self.owed.setdefault(name, restored(kept))

    def add(self, notice: TaskNotice) -> None:
        """A background task is over. From here on it is owed, whatever happens; what ended because its owner closed is
        told only when the session comes back, which it may have done by now, and begins no run."""
        envelope = notice.envelope
        if envelope.completion_id in self._written:
            return
        self._written.add(envelope.completion_id)
        self.is_stuck = False
        was_closed = envelope.result == TaskCancelled("owner-close", envelope.result.output)
        if not was_closed or not self._session.leaving:
            self.owed[envelope.completion_id] = notice
        self._write(INTENT, msgspec.to_builtins(envelope))
        if was_closed and not self._session.busy:
            self.say_quietly()

    def add_message(self, message: ChildMessage) -> None:
        """A subagent says something."""
        self._written.add(message.message_id)
        self.is_stuck = False
        self._write(RECEIVED, msgspec.to_builtins(message))
        self.owed[message.message_id] = message

    @property
    def holds_message(self) -> bool:
        """Whether a subagent has said something that was not shown yet."""
        return any(isinstance(notice, ChildMessage) for notice in self.owed.values())

    def close_questions(self, record: TaskRecord) -> None:
        """Those of this task that wait for an answer no longer, but were not said yet."""
        asked = record.attention.request_ids
        for name, notice in self.owed.items():
            if isinstance(notice, ChildMessage) and notice.task_id == record.ref.task_id and name not in asked:
                self.owed[name] = closed(notice)

    @property
    def may_wake(self) -> bool:
        """Whether a notice may begin a run by itself: not while the user holds the queue, nor without a model."""
        session = self._session
        model, (_, reason) = session.setting.model, session.fallback
        usable = reason != "configured-provider-unsupported" and session.setting.catalog.refusal(model) is None
        return usable and not session.waiting.view.paused

    def injected(self) -> Injected:
        """What is owed, for a run to say; it tells `was_said` of each. Nothing while the session lets go."""
        run = self._session.loop.run
        if self._session.leaving or (run is not None and run.aborted):
            return ()
        return tuple((None, message) for message in self._messages())

    def _messages(self) -> tuple[Said, ...]:
        now = self._session.services.now()
        return tuple(said(_message(notice, now)) for notice in self.owed.values())

    def was_said(self, message: CustomMessage) -> None:
        """It is in the file. Messages of other kinds are none of ours."""
        if message.custom_type == INTERCOM:
            del self.owed[message.details["messageId"]]
        if message.custom_type == MESSAGE:
            completion_id = message.details["completionId"]
            del self.owed[completion_id]
            self._write(ACK, {"completionId": completion_id})

    def say_quietly(self) -> None:
        """Says what is owed without asking the model: it reads it with the next prompt."""
        if self._session.leaving:
            return
        for message in self._messages():
            try:
                self._session.history.say(message)
            except JournalError as error:
                self._session.services.complain(str(error))
                return
            self._session.outbox.event(MessageStart(msgspec.Raw(message.raw)))
            self._session.outbox.event(MessageEnd(msgspec.Raw(message.raw)))
            assert isinstance(message.message, CustomMessage)
            self.was_said(message.message)

    def _write(self, kind: str, data: dict[str, Any]) -> None:
        """An intent that cannot be written is still said, only not after a crash."""
        try:
            self._session.history.append("custom", customType=kind, data=data)
        except JournalError as error:
            self._session.services.complain(str(error))


def stored(entries: Iterable[Entry]) -> tuple[dict[str, CompletionEnvelope | ChildMessage], set[str], set[str]]:
    """What a file owes by its id, in its order, and which of these were said and acknowledged. What cannot be read as
    one is passed over."""
    intents: dict[str, CompletionEnvelope | ChildMessage] = {}
    said_ids: set[str] = set()
    acked: set[str] = set()
    for entry in entries:
        head = entry.head
        if head.custom_type not in _OURS:
            continue
        raw = head.details if head.type == "custom_message" else head.data
        if raw is msgspec.UNSET:
            continue
        try:
            value = decode_any(bytes(raw))
            if head.type == "custom_message":
                said_ids.add(value["messageId" if head.custom_type == INTERCOM else "completionId"])
            elif head.custom_type == RECEIVED:
                message = msgspec.convert(value, ChildMessage)
                intents[message.message_id] = message
            elif head.custom_type == ACK:
                acked.add(value["completionId"])
            else:
                envelope = msgspec.convert(value, CompletionEnvelope)
                intents[envelope.completion_id] = envelope
        except (ValueError, TypeError, KeyError):  # BadJson and msgspec's errors are ValueErrors
            continue
    return intents, said_ids, acked


def _message(notice: TaskNotice | ChildMessage, now: int) -> CustomMessage:
    if isinstance(notice, ChildMessage):
        return CustomMessage(INTERCOM, child_message.text(notice), True, now, child_message.details(notice))
    return CustomMessage(MESSAGE, text(notice), True, now, details(notice))
