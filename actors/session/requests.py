"""What each command does in a session: one method a command, found by the command's type.

Part of the session actor. Commands that only read are answered from the history without re-encoding what is stored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from actors.mail import (
    AbortBash,
    ClearQueue,
    Enqueue,
    PauseQueue,
    QueueKind,
    ResumeQueue,
    RunBash,
    SavePreference,
    SetQueueMode,
    ShellPlan,
    Ticket,
)
from actors.session.context import context_usage, messages_data
from actors.session.forking import fork_messages, user_text
from actors.session.journal import JournalError
from actors.session.provider_view import shown_message
from actors.session.stats import last_assistant_text, session_stats
from actors.session.stored import text_of
from actors.session.tree import UnknownEntry
from protocol import commands as c
from protocol.codec import Rejected, encode
from protocol.events import ModelChanged, SessionInfoChanged, ThinkingLevelChanged
from protocol.messages import TextContent, UserContent, UserMessage
from protocol.model import clamp_level
from protocol.responses import (
    Catalogue,
    ForkMessageList,
    LastAssistantText,
    Navigated,
    SessionState,
)

if TYPE_CHECKING:
    from actors.session.actor import Session

BUSY = "Agent is already processing. Specify streamingBehavior ('steer' or 'followUp') to queue the message."
BUSY_TREE = "Wait for the current response to finish before navigating the session tree."

Answer = Callable[[Ticket, Any], None]


class Requests:
    """Answers commands for its session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._services = session.services
        self._history = session.history
        self._outbox = session.outbox
        self._setting = session.setting
        self._fallback: tuple[str | None, Any] = (None, None)
        self._state: tuple[Any, bytes] = (None, b"")
        self._answers: dict[type[Any], Answer] = {
            c.GetState: self._get_state,
            Rejected: lambda ticket, rejected: self._outbox.failed(ticket, rejected.error),
            c.Prompt: self._prompt,
            c.Steer: lambda ticket, steer: self._enqueue(ticket, "steering", steer),
            c.FollowUp: lambda ticket, follow_up: self._enqueue(ticket, "followUp", follow_up),
            c.Abort: self._abort,
            c.ClearQueue: lambda ticket, _: session.tell_queue(ClearQueue(ticket)),
            c.PauseQueuedMessages: lambda ticket, _: session.tell_queue(PauseQueue(ticket)),
            c.ResumeQueuedMessages: lambda ticket, _: session.tell_queue(ResumeQueue(ticket)),
            c.SetSteeringMode: lambda ticket, mode: self._set_queue_mode(ticket, "steering", mode),
            c.SetFollowUpMode: lambda ticket, mode: self._set_queue_mode(ticket, "followUp", mode),
            c.Bash: self._bash,
            c.UserBash: self._bash,
            c.AbortBash: self._abort_bash,
            c.AbortRetry: self._nothing_to_cancel,
            c.AbortCompaction: self._nothing_to_cancel,
            c.CancelLoginProvider: self._nothing_to_cancel,
            c.GetMessages: self._get_messages,
            c.GetEntries: self._get_entries,
            c.GetTree: self._get_tree,
            c.GetForkMessages: self._get_fork_messages,
            c.GetLastAssistantText: self._get_last_assistant_text,
            c.GetSessionStats: self._get_session_stats,
            c.SetSessionName: self._set_session_name,
            c.NavigateTree: self._navigate_tree,
            c.SetLabel: self._set_label,
            c.SetModel: self._set_model,
            c.GetAvailableModels: self._get_available_models,
        }

    def take(self, ticket: Ticket, command: c.Command | Rejected) -> None:
        answer = self._answers.get(type(command))
        if answer is None:
            self._outbox.failed(ticket, f"{ticket.command} is not supported yet")
            return
        try:
            answer(ticket, command)
        except JournalError as error:
            self._services.complain(str(error))
            self._outbox.failed(ticket, str(error))

    # -- prompting

    def _prompt(self, ticket: Ticket, command: c.Prompt) -> None:
        kind: QueueKind = "followUp" if command.streaming_behavior == "followUp" else "steering"
        message, reason = self._fallback
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

    # -- shell

    def _bash(self, ticket: Ticket, command: c.Bash | c.UserBash) -> None:
        history = self._history
        plan = ShellPlan(
            command.command,
            history.cwd,
            history.session_id,
            self._services.environment(
                history.session_id,
                history.path if history.journal.exists_on_disk else None,
                self._setting.model,
                self._setting.level,
            ),
            command.exclude_from_context,
        )
        self._session.shells.add(ticket.serial)
        self._services.shells.tell(RunBash(ticket, plan, self._session.me))

    def _abort_bash(self, ticket: Ticket, command: c.AbortBash) -> None:
        self._services.shells.tell(AbortBash(ticket, bytes(command.request_id) or None))

    # -- state

    def _get_state(self, ticket: Ticket, _: c.GetState) -> None:
        """Clients poll this: the encoded data is kept until something in it changes."""
        session, history, setting = self._session, self._history, self._setting
        key = (
            setting.model,
            setting.level,
            session.busy,
            session.view,
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
        message, reason = self._fallback
        return SessionState(
            model=self._setting.model,
            thinking_level=self._setting.level,
            is_streaming=session.busy,
            is_compacting=False,
            steering_mode=session.modes["steering"],
            follow_up_mode=session.modes["followUp"],
            session_id=history.session_id,
            auto_compaction_enabled=self._services.auto_compaction,
            message_count=len(history.messages),
            pending_message_count=session.view.pending,
            queued_messages_paused=session.view.paused,
            resource_overlaps=[],
            session_file=history.path or UNSET,
            session_name=history.tree.name or UNSET,
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
        self._outbox.ok(ticket, self._history.tree.tree_data())

    def _get_fork_messages(self, ticket: Ticket, _: c.GetForkMessages) -> None:
        self._outbox.ok(ticket, ForkMessageList(fork_messages(self._history.tree)))

    def _get_last_assistant_text(self, ticket: Ticket, _: c.GetLastAssistantText) -> None:
        self._outbox.ok(ticket, LastAssistantText(last_assistant_text(self._history.messages)))

    def _get_session_stats(self, ticket: Ticket, _: c.GetSessionStats) -> None:
        history, model = self._history, self._setting.model
        usage = context_usage(history.messages, model.context_window) if model is not None else None
        self._outbox.ok(ticket, session_stats(history.tree, history.session_id, history.path, usage))

    # -- the tree

    def _set_session_name(self, ticket: Ticket, command: c.SetSessionName) -> None:
        name = command.name.strip()
        if not name:
            self._outbox.failed(ticket, "Session name cannot be empty")
            return
        self._history.append("session_info", name=name)
        self._outbox.event(SessionInfoChanged(name))
        self._outbox.ok(ticket)

    def name(self, name: str) -> None:
        """The name that the command line gave the first session."""
        if self._history.tree.name == name.strip():
            return
        try:
            self._history.append("session_info", name=name.strip())
        except JournalError as error:
            self._services.complain(str(error))

    def _set_label(self, ticket: Ticket, command: c.SetLabel) -> None:
        if command.entry_id not in self._history.tree:
            self._outbox.failed(ticket, f"Entry {command.entry_id} not found")
            return
        self._label(command.entry_id, command.label)
        self._outbox.ok(ticket)

    def _label(self, entry_id: str, label: str | None) -> None:
        self._history.append("label", targetId=entry_id, **({"label": label} if label else {}))

    def _navigate_tree(self, ticket: Ticket, command: c.NavigateTree) -> None:
        tree, target_id = self._history.tree, command.target_id
        target = tree.get(target_id)
        if self._session.busy:
            self._outbox.failed(ticket, BUSY_TREE)
        elif command.options.summarize:
            self._outbox.failed(ticket, "navigate_tree with options.summarize is not supported yet")
        elif target is None:
            self._outbox.failed(ticket, f"Entry {target_id} not found")
        elif target_id == tree.leaf_id:
            self._outbox.ok(ticket, Navigated(False))
        else:
            self._outbox.ok(ticket, Navigated(False, self._move_leaf(target_id, command.options.label)))

    def _move_leaf(self, target_id: str, label: str | None) -> Any:
        """Moves to the target; to before it if it is something that the user can say again. That text is returned."""
        tree = self._history.tree
        before = tree.leaf_id
        target = tree.get(target_id)
        assert target is not None
        text = user_text(target)
        if text is None and target.head.type == "custom_message":
            text = _custom_text(self._history, target)
        path = tree.path(target_id)
        parent = path[-2].head.id if len(path) > 1 else None
        leaf = target_id if text is None else parent
        if leaf is None:
            tree.reset()
        else:
            tree.branch(leaf)
        try:
            if label:
                self._label(target_id, label)
        except JournalError:
            tree.leaf_id = before
            raise
        self._history.rebuild()
        return UNSET if text is None else text

    # -- models

    def choose_model(self, *, first: bool) -> None:
        """The model and level at the start of the session, and the entries that tell them. `first` tells that it is
        the first session of the process."""
        history = self._history
        fresh = not history.messages
        level = history.saved_level if history.has_level else None
        saved = None if fresh else history.saved_model
        choice = self._services.catalog.choose(saved, None if fresh else level, first=first)
        self._setting.model, self._setting.level = choice.model, choice.thinking_level
        self._fallback = (choice.message, choice.reason)
        try:
            if fresh and choice.model is not None:
                history.append("model_change", provider=choice.model.provider, modelId=choice.model.id)
            if fresh or level is None:
                history.append("thinking_level_change", thinkingLevel=choice.thinking_level)
        except JournalError as error:
            self._services.complain(str(error))

    def _set_model(self, ticket: Ticket, command: c.SetModel) -> None:
        wanted = (command.provider, command.model_id)
        found = next((m for m in self._services.catalog.available() if (m.provider, m.id) == wanted), None)
        if found is None:
            self._outbox.failed(ticket, f"Model not found: {command.provider}/{command.model_id}")
            return
        previous, setting = self._setting.model, self._setting
        self._history.append("model_change", provider=found.provider, modelId=found.id)
        setting.model = found
        self._fallback = (None, None)
        self._clamp_level()
        if previous != found:
            self._outbox.event(ModelChanged(found, "set", previous or UNSET))
        if command.persist:
            self._persist_model()
        self._outbox.ok(ticket, found)

    def _clamp_level(self) -> None:
        level = clamp_level(self._setting.model, self._setting.level)
        if level != self._setting.level:
            self._history.append("thinking_level_change", thinkingLevel=level)
            self._setting.level = level
            self._outbox.event(ThinkingLevelChanged(level))

    def _persist_model(self) -> None:
        model = self._setting.model
        assert model is not None
        save = self._services.preferences.tell
        save(SavePreference(("defaultProvider",), model.provider))
        save(SavePreference(("defaultModel",), model.id))
        save(SavePreference(("defaultThinkingLevel",), self._setting.level))

    def _get_available_models(self, ticket: Ticket, _: c.GetAvailableModels) -> None:
        self._outbox.ok(ticket, Catalogue(self._services.catalog.available(), [], oauth_providers=[]))


def _content(command: c.Prompt | c.Steer | c.FollowUp) -> list[UserContent]:
    return [TextContent(command.message), *command.images]


def _custom_text(history: Any, entry: Any) -> str:
    from actors.session.context import context_message

    message = context_message(entry)
    shown = None if message is None else shown_message(message.message())
    return "" if shown is None else text_of(shown.content)
