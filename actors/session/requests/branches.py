"""Commands that name, label and move about in the session's tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from actors.mail import Ticket
from actors.session.context import context_message
from actors.session.forking import user_text
from actors.session.journal import JournalError
from actors.session.provider_view import shown_message
from actors.session.requests.group import Answers, Group
from actors.session.stored import text_of
from actors.session.tree import Entry
from protocol import commands as c
from protocol.events import SessionInfoChanged
from protocol.responses import Navigated

if TYPE_CHECKING:
    pass

BUSY_TREE = "Wait for the current response to finish before navigating the session tree."


class BranchRequests(Group):
    def answers(self) -> Answers:
        return {
            c.SetSessionName: self._set_session_name,
            c.NavigateTree: self._navigate_tree,
            c.SetLabel: self._set_label,
        }

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
            text = _custom_text(target)
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


def _custom_text(entry: Entry) -> str:
    message = context_message(entry)
    shown = None if message is None else shown_message(message.message())
    return "" if shown is None else text_of(shown.content)
