"""Commands that talk to the agent and to the queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from actors.mail import ClearQueue, Enqueue, PauseQueue, QueueKind, ResumeQueue, SavePreference, SetQueueMode, Ticket
from protocol import commands as c
from protocol.messages import TextContent, UserContent, UserMessage

if TYPE_CHECKING:
    from actors.session.actor import Session
    from actors.session.requests.dispatch import Answers

BUSY = "Agent is already processing. Specify streamingBehavior ('steer' or 'followUp') to queue the message."


class Prompting:
    """A prompt is accepted or refused here, in one mail, so no two can be accepted as idle."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._services = session.services
        self._history = session.history
        self._outbox = session.outbox
        self._setting = session.setting

    def answers(self) -> Answers:
        tell_queue = self._session.tell_queue
        return {
            c.Prompt: self._prompt,
            c.Steer: lambda ticket, steer: self._enqueue(ticket, "steering", steer),
            c.FollowUp: lambda ticket, follow_up: self._enqueue(ticket, "followUp", follow_up),
            c.Abort: self._abort,
            c.ClearQueue: lambda ticket, _: tell_queue(ClearQueue(ticket)),
            c.PauseQueuedMessages: lambda ticket, _: tell_queue(PauseQueue(ticket)),
            c.ResumeQueuedMessages: lambda ticket, _: tell_queue(ResumeQueue(ticket)),
            c.SetSteeringMode: lambda ticket, mode: self._set_queue_mode(ticket, "steering", mode),
            c.SetFollowUpMode: lambda ticket, mode: self._set_queue_mode(ticket, "followUp", mode),
            c.AbortRetry: self._nothing_to_cancel,
            c.AbortCompaction: self._nothing_to_cancel,
            c.CancelLoginProvider: self._nothing_to_cancel,
        }

    def _prompt(self, ticket: Ticket, command: c.Prompt) -> None:
        kind: QueueKind = "followUp" if command.streaming_behavior == "followUp" else "steering"
        message, reason = self._session.fallback
        if reason == "configured-provider-unsupported" and message:
            self._outbox.failed(ticket, message)
        elif self._session.view.paused or (self._session.busy and command.streaming_behavior):
            self._enqueue(ticket, kind, command)
        elif self._session.busy:
            self._outbox.failed(ticket, BUSY)
        elif (refusal := self._services.catalog.refusal(self._setting.model)) is not None:
            self._outbox.failed(ticket, refusal)
        else:
            self._outbox.ok(ticket)
            self._session.start_run(UserMessage(_content(command), self._services.now()))

    def _enqueue(self, ticket: Ticket, kind: QueueKind, command: c.Prompt | c.Steer | c.FollowUp) -> None:
        self._session.tell_queue(Enqueue(ticket, kind, command.message, tuple(_content(command))))

    def _abort(self, ticket: Ticket, _: c.Abort) -> None:
        if self._session.loop.run is None:
            self._outbox.ok(ticket)
            return
        self._session.aborts.append(ticket)
        self._session.loop.abort()

    def _set_queue_mode(self, ticket: Ticket, kind: QueueKind, command: c.SetSteeringMode | c.SetFollowUpMode) -> None:
        key = "steeringMode" if kind == "steering" else "followUpMode"
        self._session.modes[kind] = command.mode
        self._session.tell_queue(SetQueueMode(ticket, kind, command.mode))
        self._services.preferences.tell(SavePreference((key,), command.mode))

    def _nothing_to_cancel(self, ticket: Ticket, _: Any) -> None:
        self._outbox.ok(ticket)


def _content(command: c.Prompt | c.Steer | c.FollowUp) -> list[UserContent]:
    return [TextContent(command.message), *command.images]
