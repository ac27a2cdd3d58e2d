"""Commands that only read. What is stored is copied, never encoded again."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Struct

from actors.mail import AnswerMade, Exported, Ticket
from actors.session.context import context_usage, messages_data
from actors.session.requests.group import Answers, Group
from actors.session.tree import UnknownEntry
from protocol import commands as c
from protocol.codec import encode
from protocol.state import SessionState

if TYPE_CHECKING:
    from actors.session.actor import Session
    from actors.session.stats import Tally
    from protocol.responses import SessionStats


class StateRequests(Group):
    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._state: tuple[Any, bytes] = (None, b"")
        self._making: dict[int, Callable[[Any], bytes | Struct]] = {}

    def answers(self) -> Answers:
        return {
            c.GetState: self._get_state,
            c.GetMessages: self._get_messages,
            c.GetEntries: self._get_entries,
            c.GetTree: self._get_tree,
            c.GetForkMessages: self._get_fork_messages,
            c.GetLastAssistantText: self._get_last_assistant_text,
            c.GetSessionStats: self._get_session_stats,
            c.ExportHtml: self._export,
        }

    def _get_state(self, ticket: Ticket, _: c.GetState) -> None:
        """Clients poll this: the encoded data is kept until something in it changes."""
        session, history, setting = self._session, self._history, self._setting
        key = (
            setting.model,
            setting.level,
            setting.defaults.auto_compaction,
            session.fallback,
            session.cycle.busy,
            session.compaction_reason,
            session.waiting.view,
            tuple(session.modes.values()),
            history.session_id,
            history.tree.name,
            len(history.messages),
        )
        if self._state[0] != key:
            self._state = (key, encode(self._session_state()))
        self._outbox.ok(ticket, self._state[1])

    def _session_state(self) -> SessionState:
        session, history = self._session, self._history
        message, reason = self._session.fallback
        return SessionState(
            model=self._setting.model,
            thinking_level=self._setting.level,
            is_streaming=session.cycle.busy,
            is_compacting=session.compaction_reason is not None,
            steering_mode=session.modes["steering"],
            follow_up_mode=session.modes["followUp"],
            session_id=history.session_id,
            auto_compaction_enabled=self._setting.defaults.auto_compaction,
            message_count=len(history.messages),
            pending_message_count=session.waiting.view.pending,
            queued_messages_paused=session.waiting.view.paused,
            resource_overlaps=[],
            session_file=history.path or UNSET,
            session_name=history.tree.name or UNSET,
            compaction_reason=session.compaction_reason or UNSET,
            model_fallback_message=message or UNSET,
            model_fallback_reason=reason or UNSET,
        )

    def _get_messages(self, ticket: Ticket, _: c.GetMessages) -> None:
        self._outbox.ok(ticket, messages_data(self._history.messages))

    def _get_entries(self, ticket: Ticket, command: c.GetEntries) -> None:
        try:
            self._outbox.ok(ticket, self._history.tree.entries_data(command.since))
        except UnknownEntry as error:
            self._outbox.failed(ticket, str(error))

    def _get_tree(self, ticket: Ticket, _: c.GetTree) -> None:
        tree = self._history.tree
        if len(tree) < self._services.long:
            self._outbox.ok(ticket, tree.tree_data())
        else:
            self._make(ticket, tree.copy().tree_data, lambda data: data)

    def _get_fork_messages(self, ticket: Ticket, _: c.GetForkMessages) -> None:
        from actors.session.forking import fork_messages

        tree, texts = self._history.tree, self._history.fork_texts
        unread = texts.unread(tree)

        def data(told: list[bytes]) -> bytes:
            texts.take(unread, told)
            return texts.data(tree)

        if len(unread) < self._services.long:
            self._outbox.ok(ticket, texts.data(tree))
        else:
            self._make(ticket, lambda: fork_messages(unread), data)

    def _get_last_assistant_text(self, ticket: Ticket, _: c.GetLastAssistantText) -> None:
        from actors.session.stats import last_assistant_text
        from protocol.responses import LastAssistantText

        self._outbox.ok(ticket, LastAssistantText(last_assistant_text(self._history.messages)))

    def _get_session_stats(self, ticket: Ticket, _: c.GetSessionStats) -> None:
        from actors.session.stats import Tally

        entries = self._history.tally.uncounted(self._history.tree)
        if len(entries) < self._services.long or len(entries) < len(self._history.tree):
            self._outbox.ok(ticket, self._stats())
        else:  # the first time; later ones only count on
            self._make(ticket, lambda: Tally().count(entries), self._stats)

    def _stats(self, counted: Tally | None = None) -> SessionStats:
        history, model = self._history, self._setting.model
        if counted is not None:
            history.tally = counted
        usage = context_usage(history.messages, model.context_window) if model is not None else None
        return history.tally.stats(history.tree, history.session_id, history.path, usage)

    def _make(self, ticket: Ticket, make: Callable[[], Any], finish: Callable[[Any], bytes | Struct]) -> None:
        """In a pump; commands that follow wait for it, so that answers leave in order."""
        self._making[ticket.serial] = finish
        self._session.waiting.hold()
        self._services.make_answer(ticket, make, self._session.me)

    def made(self, mail: AnswerMade) -> None:
        finish = self._making.pop(mail.ticket.serial)
        if mail.error:
            self._outbox.failed(mail.ticket, mail.error)
        else:
            self._outbox.ok(mail.ticket, finish(mail.value))
        self._session.waiting.release()

    def _export(self, ticket: Ticket, command: c.ExportHtml) -> None:
        from actors.session.export import IN_MEMORY, NOTHING_YET
        from actors.session.exporting import ExportPlan

        history = self._history
        if history.path is None or not history.journal.exists_on_disk:
            self._outbox.failed(ticket, IN_MEMORY if history.path is None else NOTHING_YET)
            return
        self._session.loads.add(ticket.serial)
        plan = ExportPlan(
            history.path,
            command.output_path,
            history.header,
            tuple(history.tree.entries),
            history.tree.leaf_id,
            history.tree.name,
            self._system_prompt(),
            self._session.loop.tools.specs,
        )
        self._services.export(ticket, plan, self._session.me)

    def exported(self, mail: Exported) -> None:
        from protocol.responses import ExportedPath

        self._session.loads.discard(mail.ticket.serial)
        if mail.path is None:
            self._outbox.failed(mail.ticket, mail.error)
        else:
            self._outbox.ok(mail.ticket, ExportedPath(mail.path))

    def _system_prompt(self) -> str | None:
        model = self._setting.model
        return None if model is None else self._setting.surroundings.system_prompt(model, self._setting.level)
