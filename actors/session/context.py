"""The context of a session: the messages that the branch of a leaf gives, its thinking level and its model.

Derived from the tree, never stored. A context message keeps its JSON, so that `get_messages` copies it, and is decoded
when a request first needs it. Behind an active compaction boundary stands one message: the compacted text, and the kept
tail without loss. Pure. Source: `sessions.md` 1.8.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec import UNSET, Struct

from actors.session import tokens
from actors.session.naming import epoch_ms
from actors.session.provider_view import ProviderMessage, provider_view
from actors.session.stored import is_ordinary, known_role, message_head, read_message, with_content
from actors.session.tree import Entry, Tree
from protocol.codec import BadJson, decode_any, encode
from protocol.messages import BranchSummaryMessage, CustomMessage, Message
from protocol.model import THINKING_LEVELS, ThinkingLevel

if TYPE_CHECKING:
    from protocol.responses import ContextUsage

BOUNDARY = "compaction"
STRATEGY = "verbatim-lines"
RETRIED = "retriedEntryIds"
_PREFIX = (
    "Earlier parts of this conversation were removed to save space. What remains of them follows as a transcript: "
    "its lines are unchanged, and a line of the form (filtered N lines) stands for N lines that are gone.\n\n"
)


class ContextMessage:
    """One message of the context: `raw` is its JSON as `get_messages` shows it, `entry_id` its entry,
    `timestamp` (ISO) that entry's, for a message without one."""

    __slots__ = ("_message", "_timestamp", "entry_id", "raw")

    def __init__(self, raw: bytes, entry_id: str | None, message: Message | None = None, timestamp: str = "") -> None:
        self.raw = raw
        self.entry_id = entry_id
        self._message = message
        self._timestamp = timestamp

    def message(self) -> Message:
        """The message decoded, once."""
        if self._message is None:
            self._message = read_message(self.raw, epoch_ms(self._timestamp))
        return self._message


class Context(Struct, frozen=True):
    """`model` is (provider, model id), `None` when the branch names none."""

    messages: list[ContextMessage]
    thinking_level: ThinkingLevel = "off"
    model: tuple[str, str] | None = None


def build_context(tree: Tree, leaf_id: str | None) -> Context:
    """The context at `leaf_id`: empty for `None`, that of the last entry for an id that is not in the tree."""
    if leaf_id is None or not tree.entries:
        return Context([])
    path = tree.path(leaf_id if leaf_id in tree else tree.entries[-1].head.id)
    return Context(path_messages(path), _thinking_level(path), _model(path))


def derived(entries: Iterable[Entry]) -> tuple[Tree, Context]:
    """The tree of these entries and the context at its leaf: 2 us for each, so long files want a pump for it."""
    tree = Tree(entries)
    return tree, build_context(tree, tree.leaf_id)


def context_message(entry: Entry) -> ContextMessage | None:
    """The message that an entry puts into the context; `None` for entries that put none."""
    head = entry.head
    match head.type:
        case "message":
            return _stored_message(entry)
        case "custom_message":
            return _custom_message(entry)
        case "branch_summary" if head.summary:
            summary = BranchSummaryMessage(head.summary, head.from_id or "root", epoch_ms(head.timestamp))
            return ContextMessage(encode(summary), head.id)
    return None


def is_boundary(entry: Entry) -> bool:
    """Whether the entry is a compaction whose text replaces what stands before it."""
    details = entry.head.details
    if entry.head.type != "compaction" or details is UNSET:
        return False
    try:
        decoded = decode_any(bytes(details))
    except BadJson:
        return False
    return isinstance(decoded, dict) and decoded.get("strategy") == STRATEGY


def retried_ids(boundary: Entry) -> frozenset[str]:
    """The entries in a boundary's tail whose replies were asked for again: the context is without them."""
    details = decode_any(bytes(boundary.head.details or b"null"))
    ids = details.get(RETRIED) if isinstance(details, dict) else None
    return frozenset(each for each in ids if isinstance(each, str)) if isinstance(ids, list) else frozenset()


def without(entries: Sequence[Entry], ids: Collection[str]) -> list[Entry]:
    return [entry for entry in entries if entry.head.id not in ids]


def provider_messages(
    messages: Iterable[ContextMessage], *, reopened: bool = False, block_images: bool = False
) -> tuple[ProviderMessage, ...]:
    """What a request carries of `messages`; see `provider_view`."""
    told = (message.message() for message in messages)
    return provider_view(told, reopened=reopened, block_images=block_images)


def estimate_tokens(messages: Iterable[ContextMessage]) -> int:
    """The tokens of a context; see `tokens.estimate_tokens`."""
    return tokens.estimate_tokens(message.message() for message in messages)


def context_usage(messages: Sequence[ContextMessage], context_window: int) -> ContextUsage | None:
    """`contextUsage` of `get_session_stats`; see `tokens.context_usage`."""
    return tokens.context_usage([message.message() for message in messages], context_window)


def messages_data(messages: Iterable[ContextMessage]) -> bytes:
    """Data of `get_messages`, as JSON."""
    return b"".join((b'{"messages":[', b",".join([message.raw for message in messages]), b"]}"))


# ---- messages ----------------------------------------------------------------------------------------------------


def path_messages(path: Sequence[Entry]) -> list[ContextMessage]:
    """The messages of a branch, root first."""
    for position in range(len(path) - 1, -1, -1):
        if is_boundary(path[position]):
            return [_boundary_message(path, position), *_plain_messages(path[position + 1 :])]
    return _plain_messages(path)


def _plain_messages(entries: Iterable[Entry]) -> list[ContextMessage]:
    return [message for entry in entries if (message := context_message(entry)) is not None]


def _stored_message(entry: Entry) -> ContextMessage | None:
    head = entry.head
    if head.message is UNSET:
        return None
    raw = bytes(head.message)
    if is_ordinary(raw):
        return ContextMessage(raw, head.id, None, head.timestamp)
    found = message_head(raw)
    if not known_role(found.role):
        return None
    return ContextMessage(with_content(raw, found), head.id, None, head.timestamp)


def _custom_message(entry: Entry) -> ContextMessage:
    head = entry.head
    raw = encode(
        CustomMessage(
            custom_type=head.custom_type or "",
            content=[],
            display=head.display is not False,
            timestamp=epoch_ms(head.timestamp),
            details=head.details,
            exclude_from_context=True if head.exclude_from_context is True else UNSET,
        )
    )
    if head.content is not UNSET and bytes(head.content) != b"null":
        raw = raw.replace(b'"content":[]', b'"content":' + bytes(head.content), 1)
    return ContextMessage(raw, head.id)


def _boundary_message(path: Sequence[Entry], position: int) -> ContextMessage:
    from actors.session.transcript import as_content, merged, retained

    head = path[position].head
    summary = head.summary or ""
    tail = _plain_messages(without(_tail(path[:position], head.first_kept_entry_id), retried_ids(path[position])))
    pieces = retained(message.message() for message in tail)
    opening = _PREFIX + summary + ("\n\n" if summary and pieces else "")
    content = as_content(merged([opening, *pieces]))
    time = epoch_ms(head.timestamp)
    return ContextMessage(encode(CustomMessage(BOUNDARY, content, True, time, details=head.details)), head.id)


def _tail(before: Sequence[Entry], first_kept: object) -> Sequence[Entry]:
    for position, entry in enumerate(before):
        if entry.head.id == first_kept:
            return before[position:]
    return []


# ---- level and model ---------------------------------------------------------------------------------------------


def _thinking_level(path: list[Entry]) -> ThinkingLevel:
    for entry in reversed(path):
        if entry.head.type == "thinking_level_change":
            for level in THINKING_LEVELS:
                if level == entry.head.thinking_level:
                    return level
    return "off"


def _model(path: list[Entry]) -> tuple[str, str] | None:
    for entry in reversed(path):
        head = entry.head
        if head.type == "model_change" and head.provider and head.model_id:
            return head.provider, head.model_id
        if head.type == "message" and head.message is not UNSET:
            found = message_head(head.message)
            if found.role == "assistant" and found.provider and found.model:
                return found.provider, found.model
    return None
