"""Documents: the schemas that are published, each whole in itself.

Owns which there are and what stands in each; `docs/schema/` holds them as files, `atomic schema` prints them. Names of
definitions are a promise to those who generate code from them. The tree of `get_tree` is described here by hand, since
no struct of ours may contain itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, get_args

import msgspec

from protocol.commands import COMMANDS, REPLIES, ExtensionUiResponse, QueueMode, StreamingBehavior
from protocol.compaction import CompactionReason
from protocol.entries import Entry
from protocol.entry_head import SessionHeader
from protocol.events import AssistantMessageEvent, Event
from protocol.messages import AssistantContent, Cost, Message, StopReason, ToolResultMessage, Usage, UserContent
from protocol.model import Modality, ModelCost, ThinkingLevel
from protocol.responses import CompactionResult, Disposition
from protocol.schema.definitions import REQUEST_ID, Definitions, Schema, any_of, ref, tagged_union
from protocol.schema.responses import add_responses
from protocol.ui import ExtensionUiRequest

DIALECT = "https://json-schema.org/draft/2020-12/schema"
WHOLE = "atomic-rpc"
# What each document describes: its title, and the definition of one of its values.
DOCUMENTS = {
    "commands": ("What a client may send: one line of stdin, answers to dialogs apart", "Command"),
    "responses": ("What answers a command: one line of stdout", "Response"),
    "events": ("What happens meanwhile: one line of stdout", "Event"),
    "messages": ("What users, models, tools and shells said", "Message"),
    "entries": ("One line of a session file; what get_entries and get_tree show", "SessionLine"),
    "ui": ("What an extension asks of the client's user, and the answer", "UiFrame"),
    WHOLE: ("Everything of the protocol: a line of stdin, of stdout or of a session file", "Line"),
}
NAMES = tuple(name for name in DOCUMENTS if name != WHOLE)

_ALIASES: dict[str, Any] = {
    "Message": Message,
    "UserContent": UserContent,
    "AssistantContent": AssistantContent,
    "StopReason": StopReason,
    "ThinkingLevel": ThinkingLevel,
    "Modality": Modality,
    "QueueMode": QueueMode,
    "StreamingBehavior": StreamingBehavior,
    "Disposition": Disposition,
    "CompactionReason": CompactionReason,
    "CompactionResult": CompactionResult,
    "ToolResultMessage": ToolResultMessage,
    "AssistantMessageEvent": AssistantMessageEvent,
    "Event": Event,
    "Entry": Entry,
    "ExtensionUiRequest": ExtensionUiRequest,
}
# Their defaults are for whoever adds them up. The contract shows an assistant message without `totalTokens`.
_ALWAYS: dict[type, frozenset[str]] = {
    Cost: frozenset({"input", "output", "cacheRead", "cacheWrite", "total"}),
    ModelCost: frozenset({"input", "output", "cacheRead", "cacheWrite"}),
    Usage: frozenset({"input", "output", "cacheRead", "cacheWrite", "cost"}),
}
_REQUEST_ID: Schema = {
    "title": REQUEST_ID,
    "description": "The client's own id of a command, any JSON scalar, echoed as it was given.",
    "type": ["string", "number", "boolean", "null"],
}
_TREE_NODE: Schema = {
    "title": "TreeNode",
    "description": "An entry and what hangs on it. A conversation is a chain, so nodes nest as deep as it is long.",
    "type": "object",
    "properties": {
        "entry": ref("Entry"),
        "children": {"type": "array", "items": ref("TreeNode")},
        "label": {"type": "string"},
        "labelTimestamp": {"type": "string"},
    },
    "required": ["entry", "children"],
}
_SESSION_TREE: Schema = {
    "title": "SessionTree",
    "description": "Data of `get_tree`: the roots, and the entry that the next one will hang on.",
    "type": "object",
    "properties": {"tree": {"type": "array", "items": ref("TreeNode")}, "leafId": {"type": ["string", "null"]}},
    "required": ["tree", "leafId"],
}


@cache
def document(name: str) -> Schema:
    """The document `name`, one of `NAMES` or `WHOLE`. Do not change it. Raises KeyError."""
    title, root = DOCUMENTS[name]
    found = _definitions()
    reached = set(found) if name == WHOLE else _reached(found, root)
    used = {each: found[each] for each in found if each in reached}
    head = {"$schema": DIALECT, "$id": f"urn:atomic-runtime:schema:{name}", "title": title}
    return {**head, **ref(root), "$defs": used}


def text(name: str) -> str:
    """The document `name` as a file. Raises KeyError."""
    return msgspec.json.format(msgspec.json.encode(document(name)), indent=2).decode() + "\n"


def _reached(found: dict[str, Schema], root: str) -> set[str]:
    """The definitions that one of them needs, itself included."""
    reached, waiting = {root}, [root]
    while waiting:
        fresh = {name for name in _named_in(found[waiting.pop()]) if name not in reached}
        reached |= fresh
        waiting += fresh
    return reached


def _named_in(schema: Any) -> Iterator[str]:
    for key, value in schema.items() if isinstance(schema, dict) else enumerate(schema):
        if key == "$ref":
            yield value.rpartition("/")[2]
        elif isinstance(value, dict | list):
            yield from _named_in(value)


@cache
def _definitions() -> dict[str, Schema]:
    commands = {kind: f"{kind.__name__}Command" for name, kind in COMMANDS.items() if name not in REPLIES}
    replies = {COMMANDS[name]: COMMANDS[name].__name__ for name in REPLIES}
    events = {kind: f"{kind.__name__}Event" for kind in get_args(Event)}
    titles = {kind: f"command {kind.__struct_config__.tag}" for kind in commands}
    titles |= {kind: f"event {kind.__struct_config__.tag}" for kind in events}
    made = Definitions(_ALIASES, {**commands, **replies, **events}, titles, _ALWAYS)
    made.found |= {REQUEST_ID: _REQUEST_ID, "TreeNode": _TREE_NODE, "SessionTree": _SESSION_TREE}
    made.found["Command"] = tagged_union("Command", [made.add(kind, taken=True) for kind in commands], "type")
    add_responses(made)
    made.named("Event")
    made.named("Message")
    _add_entries(made)
    _add_ui(made)
    made.found["ClientRecord"] = any_of(["Command", "ExtensionUiResponse"], "ClientRecord", "A line of stdin.")
    records = ["Response", "Event", "ExtensionUiRequest"]
    made.found["AgentRecord"] = any_of(records, "AgentRecord", "A line of stdout.")
    made.found["Line"] = any_of(["ClientRecord", "AgentRecord", "SessionLine"], "Line")
    return made.found


def _add_entries(made: Definitions) -> None:
    """Entries of types that we do not write are kept and shown as they stand."""
    header, known = made.add(SessionHeader), made.named("Entry")
    tags = [kind.__struct_config__.tag for kind in (SessionHeader, *get_args(Entry))]
    made.found["OtherEntry"] = {
        "title": "OtherEntry",
        "description": "An entry of another type, from another program or an older version: passed on as it stands.",
        "type": "object",
        "properties": {"type": {"type": "string", "not": {"enum": tags}}, "id": {"type": "string"}},
        "required": ["type", "id"],
    }
    made.found[known]["anyOf"].append(ref("OtherEntry"))
    made.found["SessionLine"] = any_of(
        [header, known], "SessionLine", "A line of a session file; the first is the header."
    )


def _add_ui(made: Definitions) -> None:
    """The answer is read like a command, but nothing without an id of ours is one."""
    requests, reply = made.named("ExtensionUiRequest"), made.add(ExtensionUiResponse, taken=True)
    made.found[reply]["properties"]["id"] = {"type": "string"}
    made.found[reply]["required"] = ["type", "id"]
    made.found["UiFrame"] = any_of([requests, reply], "UiFrame")
