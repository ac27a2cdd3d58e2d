"""Lines of an agent's stdout as typed values.

`read_record` gives a `Response`, a `UiRequest`, one of the events of `protocol.events`, or an `UnknownEvent` for any
other object that has a `type`: a type that is not known, or a known one of another shape. It raises `NotARecord` for
what is no such object. However deep a line nests, it is read.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from protocol import events as e
from protocol.json_text import BadJson, decode_any, encode, repair_utf8
from protocol.messages import Message
from protocol.tree_json import read_deep

BLOCKING_DIALOGS = frozenset(
    {"select", "confirm", "input", "editor", "oauth_prompt", "oauth_select", "oauth_manual_code"}
)


class NotARecord(ValueError):
    """The line is not a JSON object with a `type`."""


class Response(Struct, tag_field="type", tag="response", rename="camel"):
    """What answers a command. `id` is raw JSON; `data` too, `UNSET` when absent. A `success` that is not a boolean does
    not make a `Response`."""

    success: bool
    id: Raw = Raw(b"")
    command: str = ""
    data: Raw | UnsetType = UNSET
    error: str = ""
    error_code: str | None = None
    error_details: dict[str, Any] | None = None


class UiRequest(Struct, tag_field="type", tag="extension_ui_request", rename="camel"):
    """An extension asks the user, or tells the host's surface something. Which of the fields are there depends on
    `method`; those of the OAuth methods are in `extra` (`provider`, `loginId` and others)."""

    id: str
    method: str
    title: str | None = None
    message: str | None = None
    options: list[str] | None = None
    placeholder: str | None = None
    prefill: str | None = None
    timeout: float | None = None
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def wants_answer(self) -> bool:
        """Whether the agent waits for an `extension_ui_response`."""
        return self.method in BLOCKING_DIALOGS


class UnknownEvent(Struct):
    """A record that this client has no type for, as it came."""

    type: str
    record: dict[str, Any]


KnownEvent = (
    e.AgentStart
    | e.AgentEnd
    | e.AgentSettled
    | e.TurnStart
    | e.TurnEnd
    | e.MessageStart
    | e.MessageUpdate
    | e.MessageEnd
    | e.ToolExecutionStart
    | e.ToolExecutionUpdate
    | e.ToolExecutionEnd
    | e.QueueUpdate
    | e.BashExecutionUpdate
    | e.TaskUpdate
    | e.SessionInfoChanged
    | e.EntryAppended
    | e.ModelChanged
    | e.ThinkingLevelChanged
    | e.ModelFallbackStart
    | e.ModelFallbackEnd
    | e.AutoRetryStart
    | e.AutoRetryEnd
    | e.CompactionStart
    | e.CompactionEnd
    | e.SummarizationRetryScheduled
    | e.SummarizationRetryAttemptStart
    | e.SummarizationRetryFinished
    | e.AgentContinueError
    | e.ExtensionError
)
Event = KnownEvent | UnknownEvent
Record = Event | Response | UiRequest

_RECORD: msgspec.json.Decoder[KnownEvent | Response] = msgspec.json.Decoder(KnownEvent | Response)
_MESSAGE: msgspec.json.Decoder[Message] = msgspec.json.Decoder(Message)


def read_record(line: bytes) -> Record:
    """The record on `line` (no line feed). Raises `NotARecord`."""
    line = repair_utf8(line)
    try:
        return _RECORD.decode(line)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return _read_slowly(line)


def _read_slowly(line: bytes) -> Record:
    try:
        value = any_value(line)
    except BadJson as error:
        raise NotARecord(str(error)) from None
    if not isinstance(value, dict):
        raise NotARecord("it is not a JSON object")
    if not isinstance(value.get("type"), str):
        raise NotARecord('it has no "type"')
    return _typed(value) or UnknownEvent(value["type"], value)


def any_value(data: bytes) -> Any:
    """Any JSON, however deep. Raises `BadJson`."""
    try:
        return decode_any(data)
    except BadJson:
        return read_deep(data)


def _typed(value: dict[str, Any]) -> Record | None:
    """The two records that a client must understand whatever their shape is; the others may stay as they are."""
    if value["type"] == "extension_ui_request" and isinstance(value.get("id"), str):
        return _ui_request(value)
    if value["type"] == "response" and isinstance(value.get("success"), bool):
        return _response(value)
    return None


def _ui_request(value: dict[str, Any]) -> UiRequest:
    known = {name: value.get(name) for name in ("title", "message", "placeholder", "prefill")}
    texts = {name: text for name, text in known.items() if isinstance(text, str)}
    options, timeout = value.get("options"), value.get("timeout")
    return UiRequest(
        id=value["id"],
        method=str(value.get("method")),
        options=options if isinstance(options, list) else None,
        timeout=timeout if isinstance(timeout, (int, float)) else None,
        extra={key: item for key, item in value.items() if key not in ("type", "id", "method", *texts)},
        **texts,
    )


def _response(value: dict[str, Any]) -> Response:
    code, details, command, error = (value.get(key) for key in ("errorCode", "errorDetails", "command", "error"))
    return Response(
        success=value["success"],
        id=Raw(encode(value["id"])) if "id" in value else Raw(b""),
        command=command if isinstance(command, str) else "",
        data=Raw(encode(value["data"])) if "data" in value else UNSET,
        error=error if isinstance(error, str) else "",
        error_code=code if isinstance(code, str) else None,
        error_details=details if isinstance(details, dict) else None,
    )


def event_type(event: Event) -> str:
    """The wire's `type` of `event`."""
    return event.type if isinstance(event, UnknownEvent) else str(event.__struct_config__.tag)


def read_message(raw: Raw) -> Message | dict[str, Any]:
    """The message of an event (`MessageEnd.message` and others), typed, or as it came when its role is not known."""
    try:
        return _MESSAGE.decode(raw)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        value = any_value(bytes(raw))
        return value if isinstance(value, dict) else {"value": value}


Channel = Literal["stdout", "stderr"]


class BashDelta(Struct, frozen=True):
    """A piece of a shell request's output."""

    channel: Channel
    text: str
