"""The lines of a session file that a forked subagent begins with: its parent's branch, without what is the parent's
alone.

Pure. Left out are labels, completion notices and what they owe, what subagents said, and calls of `subagent` and
`intercom` with their results; what hung on them hangs on the entry before. Source: `tasks.md` 3.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from actors.task import child_message
from actors.task.notice import ACK, INTENT, MESSAGE
from protocol.codec import decode_any, encode

if TYPE_CHECKING:
    from actors.session.tree import Entry

TOOLS = ("subagent", "intercom")
PARENTS_OWN = (INTENT, ACK, MESSAGE, child_message.RECEIVED, child_message.MESSAGE)
_NAMED = tuple(f'"{tool}"'.encode() for tool in TOOLS)


def fork_lines(branch: Sequence[Entry]) -> list[bytes]:
    """In the order of the branch, root first."""
    lines: list[bytes] = []
    moved: dict[str, str | None] = {}  # what is left out, to what comes next
    waiting: list[str] = []
    parent: str | None = None
    for entry in branch:
        content = _kept(entry)
        if content is None:
            waiting.append(entry.head.id)
            continue
        moved.update(dict.fromkeys(waiting, entry.head.id))
        waiting.clear()
        lines.append(_line(entry, content, parent, moved))
        parent = entry.head.id
    return lines


def _line(entry: Entry, content: list[Any] | bool, parent: str | None, moved: dict[str, str | None]) -> bytes:
    first_kept = entry.head.first_kept_entry_id
    if entry.head.parent_id == parent and content is True and first_kept not in moved:
        return entry.raw
    fields = {**decode_any(entry.raw), "parentId": parent}
    if first_kept in moved:
        kept_from = moved[first_kept]
        fields["firstKeptEntryId"] = (
            None if kept_from == entry.head.id else kept_from
        )  # nothing of what it kept is left
    if isinstance(content, list):
        fields["message"] = {**fields["message"], "content": content}
    return encode(fields)


def _kept(entry: Entry) -> list[Any] | bool | None:
    """True: all of it; a list: with this content; None: it is left out."""
    head = entry.head
    if head.type == "label" or head.custom_type in PARENTS_OWN:
        return None
    if head.type != "message" or head.message is UNSET or not any(tool in bytes(head.message) for tool in _NAMED):
        return True
    message = decode_any(bytes(head.message))
    if message.get("role") == "toolResult":
        return None if message.get("toolName") in TOOLS else True
    content = message.get("content")
    if message.get("role") != "assistant" or not isinstance(content, list):
        return True
    rest = [block for block in content if block.get("type") != "toolCall" or block.get("name") not in TOOLS]
    if len(rest) == len(content):
        return True
    return rest if any(block.get("type") in ("text", "toolCall") for block in rest) else None
