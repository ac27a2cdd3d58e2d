"""What a running program tells an inspector, read from JSON lines; what this version does not know is passed over."""

from __future__ import annotations

from typing import Any, Literal, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from protocol.codec import BadJson, decode_any, encode
from protocol.tasks import TaskRecord

T = TypeVar("T")


class Session(Struct, rename="camel", tag_field="type", tag="inspector_session", frozen=True, kw_only=True):
    """The session that is current in the program, and how it runs."""

    session_id: str
    cwd: str
    pid: int = 0
    version: int = 1
    session_name: str | UnsetType = UNSET
    session_file: str | UnsetType = UNSET
    model: str | UnsetType = UNSET
    thinking_level: str | UnsetType = UNSET


class Hello(Session, tag="inspector_hello", frozen=True):
    """The first record of a connection."""


class Refusal(Struct, tag_field="type", tag="inspector_refused", frozen=True):
    """Instead of the greeting: nobody is let in, and why."""

    error: str


class Response(Struct, tag_field="type", tag="response", frozen=True):
    """The answer to one request. `data` is JSON as it came."""

    success: bool
    id: str | None = None
    command: str | None = None
    data: Raw = Raw(b"null")
    error: str = ""


class TaskUpdate(Struct, tag_field="type", tag="task_update", frozen=True):
    task: TaskRecord


Role = Literal["user", "assistant", "toolCall", "toolResult", "notice"]


class Entry(Struct, rename="camel", frozen=True):
    """One piece of an agent's conversation. `index` counts from 0 in the agent's own order."""

    index: int
    role: Role
    text: str
    tool: str | UnsetType = UNSET
    tool_call_id: str | UnsetType = UNSET
    is_error: bool = False
    timestamp: int | UnsetType = UNSET


class Transcript(Struct, frozen=True):
    """A page. `total` counts all entries that there ever were, `missing` those at the beginning that are gone; `live`
    is what is being said now."""

    entries: tuple[Entry, ...]
    first: int
    total: int
    missing: int = 0
    live: Entry | None = None


class TaskTranscript(Struct, rename="camel", tag_field="type", tag="task_transcript", frozen=True):
    """Entries that are new or have changed."""

    task_id: str
    first: int
    entries: tuple[Entry, ...] = ()
    live: Entry | None = None


class Asked(Struct, frozen=True):
    """One question of an interview. `options` are there to choose from."""

    type: str = "text"
    question: str = ""
    options: tuple[str, ...] = ()


class Question(Struct, rename="camel", frozen=True):
    """What an agent waits to have answered. An interview has several `questions`."""

    request_id: str
    message: str = ""
    reason: str = ""
    questions: tuple[Asked, ...] = ()


class TaskList(Struct, frozen=True):
    tasks: tuple[TaskRecord, ...]


class Detail(Struct, rename="camel", frozen=True, kw_only=True):
    """The answer to `get_task`."""

    task: TaskRecord
    command: str | UnsetType = UNSET
    prompt: str | UnsetType = UNSET
    cwd: str | UnsetType = UNSET
    timeout_seconds: int | UnsetType = UNSET
    tail: str | UnsetType = UNSET
    full_output_path: str | UnsetType = UNSET
    transcript: Transcript | UnsetType = UNSET
    questions: tuple[Question, ...] = ()


Incoming = Hello | Refusal | Session | Response | TaskUpdate | TaskTranscript
_TYPES = frozenset(
    {"inspector_hello", "inspector_refused", "inspector_session", "response", "task_update", "task_transcript"}
)


class BadRecord(ValueError):
    """A line that is no record of this wire, or data that is not what was asked for."""


def read_record(line: bytes) -> Incoming | None:
    """None for a record of a kind that is not known here. Raises `BadRecord`."""
    try:
        return msgspec.json.decode(line, type=Incoming)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return _read_slowly(line)


def read_data(response: Response, kind: type[T]) -> T:
    """The data of a success. Raises `BadRecord`."""
    try:
        return msgspec.convert(decode_any(bytes(response.data)), kind)
    except (msgspec.ValidationError, BadJson, RecursionError) as error:
        raise BadRecord(f"the answer to {response.command} makes no sense here: {error}") from None


def _read_slowly(line: bytes) -> Incoming | None:
    """Texts may hold lone surrogates, which the fast way refuses."""
    try:
        record: Any = decode_any(line)
        if not isinstance(record, dict) or not isinstance(record.get("type"), str):
            raise BadRecord("a line is no record")
        if record["type"] not in _TYPES:
            return None
        if "data" in record:
            record["data"] = Raw(encode(record["data"]))
        read: Incoming = msgspec.convert(record, Incoming)
        return read
    except (msgspec.ValidationError, BadJson, RecursionError) as error:
        raise BadRecord(f"a record makes no sense here: {error}") from None
