"""What a session has said and done: its tree, its file, and the live context that the next request is built from.

Every entry is in the file before it is in the tree, and in the tree before anybody is told (design law 10). What is
recorded in mid-run, but is for the next prompt (shell results), waits beside the live context until the run settles.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from actors.session.context import Context, ContextMessage, build_context, derived
from actors.session.file import OpenedSession
from actors.session.naming import iso_time
from actors.session.tree import Entry
from actors.session.turn import Said
from protocol.codec import encode
from protocol.entry_head import message_line, read_entry
from protocol.messages import AssistantMessage, CustomMessage, Message

if TYPE_CHECKING:
    from actors.session.forking import ForkTexts
    from actors.session.stats import Tally


class History:
    """`now` is in milliseconds, `uuid4` gives random ids. Appending raises `JournalError` and then changes nothing."""

    def __init__(self, opened: OpenedSession, now: Callable[[], int], uuid4: Callable[[], str]) -> None:
        self._now = now
        self._uuid4 = uuid4
        self._waiting: list[ContextMessage] = []
        self._dropped: set[str] = set()
        self.reload(opened)

    def reload(self, opened: OpenedSession, late: Sequence[Entry] = ()) -> None:
        """Starts anew from what the file says. `late` was appended while it was read, and may have been missed."""
        self.header = opened.header
        self.journal = opened.journal
        self.tree, context = opened.derived or derived(opened.entries)
        opened.derived = None
        self._tally: Tally | None = None
        self._fork_texts: ForkTexts | None = None
        missed = [entry for entry in late if entry.head.id not in self.tree]
        for entry in missed:
            self.tree.add(entry.raw, entry.head)
        self._use(build_context(self.tree, self.tree.leaf_id) if missed else context)

    def rebuild(self) -> None:
        """Derives the live context from the leaf, as after a move in the tree."""
        self._use(build_context(self.tree, self.tree.leaf_id))

    def _use(self, context: Context) -> None:
        self.messages = context.messages
        self._waiting.clear()
        self._dropped.clear()
        self.saved_level = context.thinking_level
        self.saved_model = context.model

    @property
    def tally(self) -> Tally:
        """Made when somebody first asks for sums."""
        from actors.session.stats import Tally

        if self._tally is None:
            self._tally = Tally()
        return self._tally

    @tally.setter
    def tally(self, tally: Tally) -> None:
        """Counted elsewhere, from the first entry on."""
        self._tally = tally

    @property
    def fork_texts(self) -> ForkTexts:
        from actors.session.forking import ForkTexts

        if self._fork_texts is None:
            self._fork_texts = ForkTexts()
        return self._fork_texts

    @property
    def session_id(self) -> str:
        return self.header.id

    @property
    def cwd(self) -> str:
        return self.header.cwd or os.curdir

    @property
    def path(self) -> str | None:
        return self.journal.path

    @property
    def has_level(self) -> bool:
        """Whether the branch names a thinking level."""
        return any(entry.head.type == "thinking_level_change" for entry in self.tree.path(self.tree.leaf_id))

    def append(self, kind: str, **fields: Any) -> str:
        """An entry that is no message, from wire names; its id."""
        entry_id = self.tree.new_id(self._uuid4)
        entry = {"type": kind, "id": entry_id, "parentId": self.tree.leaf_id, "timestamp": iso_time(self._now())}
        self._write(encode({**entry, **fields}))
        return entry_id

    def say(self, message: Said) -> None:
        """A message of the run: in the file, then in the context."""
        if isinstance(message.message, CustomMessage):
            entry_id = self._append_custom(message.message)
        else:
            entry_id = self._append_message(message.raw)
        self.messages.append(ContextMessage(message.raw, entry_id, message.message))

    def record(self, message: Message, raw: bytes, *, wait: bool) -> None:
        """A message that the run did not make. With `wait` it joins the context only when the run settles."""
        entry_id = self._append_message(raw)
        (self._waiting if wait else self.messages).append(ContextMessage(raw, entry_id, message))

    def settle(self) -> None:
        """The run is over: what waited joins the context."""
        self.messages += self._waiting
        self._waiting.clear()

    def compact(self, boundary: dict[str, Any]) -> None:
        """Appends a boundary: the live context is what it leaves, and what waited to join is part of that."""
        self.append("compaction", **boundary)
        self.rebuild()

    def holds(self, raw: bytes) -> bool:
        """Whether a message with exactly this JSON is recorded."""
        return any(bytes(entry.head.message or b"") == raw for entry in self.tree.entries)

    def drop_last(self) -> None:
        """Takes the last message out of the live context; the file keeps it."""
        dropped = self.messages.pop().entry_id
        if dropped is not None:
            self._dropped.add(dropped)

    def drop_reply(self) -> None:
        """The same, if it is a reply: a compaction may have made it part of the boundary's text."""
        if self.messages and isinstance(self.messages[-1].message(), AssistantMessage):
            self.drop_last()

    @property
    def dropped(self) -> frozenset[str]:
        """The entries of the branch whose messages were taken out of the live context."""
        return frozenset(self._dropped)

    @property
    def reply_id(self) -> str | None:
        """The entry of the reply that the live context ends with; None if it ends with something else."""
        last = self.messages[-1] if self.messages else None
        return last.entry_id if last is not None and isinstance(last.message(), AssistantMessage) else None

    def _append_custom(self, message: CustomMessage) -> str:
        """Custom messages have an entry of their own."""
        kind, shown = message.custom_type, message.display
        return self.append(
            "custom_message", customType=kind, content=message.content, display=shown, details=message.details
        )

    def _append_message(self, raw: bytes) -> str:
        entry_id = self.tree.new_id(self._uuid4)
        self._write(message_line(entry_id, self.tree.leaf_id, iso_time(self._now()), raw))
        return entry_id

    def _write(self, line: bytes) -> None:
        head = read_entry(line)
        assert head is not None
        self.journal.append(line)
        self.tree.add(line, head)
