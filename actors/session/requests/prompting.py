"""Commands that talk to the agent and to the queue."""

from __future__ import annotations

from typing import Any

from actors.mail import ClearQueue, Enqueue, PauseQueue, QueueKind, ResumeQueue, SetQueueMode, Ticket
from actors.session.requests.group import Answers, Group
from protocol import commands as c
from protocol.events import ExtensionError
from protocol.messages import TextContent, UserContent, UserMessage

BUSY = "Agent is already processing. Specify streamingBehavior ('steer' or 'followUp') to queue the message."


class Prompting(Group):
    """A prompt is accepted or refused here, in one mail, so no two can be accepted as idle."""

    def answers(self) -> Answers:
        tell_queue = self._session.waiting.tell
        return {
            c.Prompt: self._prompt,
            c.Steer: lambda ticket, steer: self._queue(ticket, "steering", steer),
            c.FollowUp: lambda ticket, follow_up: self._queue(ticket, "followUp", follow_up),
            c.Abort: self._abort,
            c.ClearQueue: lambda ticket, _: tell_queue(ClearQueue(ticket)),
            c.PauseQueuedMessages: lambda ticket, _: tell_queue(PauseQueue(ticket)),
            c.ResumeQueuedMessages: lambda ticket, _: tell_queue(ResumeQueue(ticket)),
            c.SetSteeringMode: lambda ticket, mode: self._set_queue_mode(ticket, "steering", mode),
            c.SetFollowUpMode: lambda ticket, mode: self._set_queue_mode(ticket, "followUp", mode),
            c.AbortRetry: self._abort_retry,
            c.CancelLoginProvider: self._nothing_to_cancel,
        }

    def _prompt(self, ticket: Ticket, command: c.Prompt) -> None:
        if self._refuses_images(ticket, command):
            return
        kind: QueueKind = "followUp" if command.streaming_behavior == "followUp" else "steering"
        message, reason = self._session.fallback
        if reason == "configured-provider-unsupported" and message:
            self._outbox.failed(ticket, message)
        elif self._session.waiting.view.paused or (self._session.busy and command.streaming_behavior):
            self._enqueue(ticket, kind, command)
        elif self._session.busy:
            self._outbox.failed(ticket, BUSY)
        elif (refusal := self._setting.catalog.refusal(self._setting.model)) is not None:
            self._outbox.failed(ticket, refusal)
        else:
            self._session.headroom.admit(ticket, lambda: self._start(ticket, command))

    def _start(self, ticket: Ticket, command: c.Prompt) -> None:
        text = self._expanded(command.message)
        self._outbox.accepted(ticket, "started")
        self._session.cycle.start(UserMessage(_content(text, command), self._services.now()))

    def _queue(self, ticket: Ticket, kind: QueueKind, command: c.Steer | c.FollowUp) -> None:
        if not self._refuses_images(ticket, command):
            self._enqueue(ticket, kind, command)

    def _refuses_images(self, ticket: Ticket, command: c.Prompt | c.Steer | c.FollowUp) -> bool:
        """A broken image would stay in the history, and providers would refuse every later request with it."""
        if not command.images:
            return False
        from actors.model.image_check import image_fault

        for index, image in enumerate(command.images):
            if (fault := image_fault(image.data, image.mime_type)) is not None:
                name = type(command).__struct_config__.tag
                self._outbox.failed(ticket, f'{name}: "images[{index}]" cannot be used: {fault}')
                return True
        return False

    def _enqueue(self, ticket: Ticket, kind: QueueKind, command: c.Prompt | c.Steer | c.FollowUp) -> None:
        """What a pause holds back stays as it was typed."""
        text = command.message if self._session.waiting.view.paused else self._expanded(command.message)
        self._session.waiting.tell(Enqueue(ticket, kind, text, tuple(_content(text, command))))

    def _expanded(self, message: str) -> str:
        expanded = self._setting.surroundings.expander.expand(message)
        if expanded.error is not None:
            error = expanded.error
            self._outbox.event(ExtensionError(error.extension_path, error.event, error.error))
        return expanded.text

    def _abort(self, ticket: Ticket, _: c.Abort) -> None:
        self._session.aborts.append(ticket)
        if self._session.loop.run is None:
            self._session.abort()
            self._session.cycle.answer_aborts()
        else:
            self._session.loop.abort()

    def _abort_retry(self, ticket: Ticket, _: c.AbortRetry) -> None:
        self._session.cycle.cancel_wait()
        self._outbox.ok(ticket)

    def _set_queue_mode(self, ticket: Ticket, kind: QueueKind, command: c.SetSteeringMode | c.SetFollowUpMode) -> None:
        key = "steeringMode" if kind == "steering" else "followUpMode"
        self._session.modes[kind] = command.mode
        self._session.waiting.tell(SetQueueMode(ticket, kind, command.mode))
        self.save((key,), command.mode)

    def _nothing_to_cancel(self, ticket: Ticket, _: Any) -> None:
        self._outbox.ok(ticket)


def _content(text: str, command: c.Prompt | c.Steer | c.FollowUp) -> list[UserContent]:
    return [TextContent(text), *command.images]
