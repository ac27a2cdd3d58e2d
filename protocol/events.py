"""Events that the agent streams to its client, apart from responses.

Source: contract `rpc-protocol.md`, "Events", and the events that the reference sends beyond it (`spec/rpc.md`).
`Raw` fields hold JSON that was encoded once, for the journal, and is copied from there; `holds` names what it is, for
the schema.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType, field

from protocol.compaction import CompactionReason
from protocol.messages import ToolCall, Usage, UserContent
from protocol.model import Model, ThinkingLevel
from protocol.tasks import TaskRecord, TranscriptEntry, TranscriptEntryJson

MessageJson = Annotated[Raw, Meta(extra={"holds": "Message"})]
ToolResultJson = Annotated[Raw, Meta(extra={"holds": "ToolResultMessage"})]
EntryJson = Annotated[Raw, Meta(extra={"holds": "Entry"})]
# msgspec reads nothing but `null` into `Raw | None`
CompactionResultJson = Annotated[Any, Meta(extra={"holds": "CompactionResult"})]

# ---- assistantMessageEvent: what a streaming reply grew by -------------------------------------------------------


class TextStart(Struct, rename="camel", tag_field="type", tag="text_start"):
    """A text block begins. `content_index` is its place in `content` of the message."""

    content_index: int


class TextDelta(Struct, rename="camel", tag_field="type", tag="text_delta"):
    """More of a text block."""

    content_index: int
    delta: str


class TextEnd(Struct, rename="camel", tag_field="type", tag="text_end"):
    """A text block is whole."""

    content_index: int
    content: str


class ThinkingStart(Struct, rename="camel", tag_field="type", tag="thinking_start"):
    """A thinking block begins."""

    content_index: int


class ThinkingDelta(Struct, rename="camel", tag_field="type", tag="thinking_delta"):
    """More of a thinking block."""

    content_index: int
    delta: str


class ThinkingEnd(Struct, rename="camel", tag_field="type", tag="thinking_end"):
    """A thinking block is whole."""

    content_index: int
    content: str


class ToolCallStart(Struct, rename="camel", tag_field="type", tag="toolcall_start"):
    """A tool call begins."""

    content_index: int


class ToolCallDelta(Struct, rename="camel", tag_field="type", tag="toolcall_delta"):
    """More of a tool call's arguments, as JSON text."""

    content_index: int
    delta: str


class ToolCallEnd(Struct, rename="camel", tag_field="type", tag="toolcall_end"):
    """A tool call is whole."""

    content_index: int
    tool_call: ToolCall


class StreamStart(Struct, rename="camel", tag_field="type", tag="start"):
    """Listed by the contract; the runtime sends `message_start` instead."""


class StreamDone(Struct, rename="camel", tag_field="type", tag="done"):
    """Listed by the contract; the runtime sends `message_end` instead."""

    reason: Literal["stop", "length", "toolUse"]


class StreamError(Struct, rename="camel", tag_field="type", tag="error"):
    """Listed by the contract; the runtime sends `message_end` instead."""

    reason: Literal["aborted", "error"]


AssistantMessageEvent = (
    TextStart
    | TextDelta
    | TextEnd
    | ThinkingStart
    | ThinkingDelta
    | ThinkingEnd
    | ToolCallStart
    | ToolCallDelta
    | ToolCallEnd
    | StreamStart
    | StreamDone
    | StreamError
)

# ---- the agent loop ----------------------------------------------------------------------------------------------


class AgentStart(Struct, rename="camel", tag_field="type", tag="agent_start"):
    """A run begins."""


class AgentEnd(Struct, rename="camel", tag_field="type", tag="agent_end"):
    """A run is over. `messages` are those of this run only; what follows on its own is another run. `will_retry`, told
    with `--rpc-compat pi`, says that the next one repeats the request that failed, on this model or on another."""

    messages: list[MessageJson]
    will_retry: bool | UnsetType = UNSET


class AgentSettled(Struct, rename="camel", tag_field="type", tag="agent_settled"):
    """Nothing more comes by itself: no retry, no compaction, no queued message."""


class TurnStart(Struct, rename="camel", tag_field="type", tag="turn_start"):
    """A request to the model begins; a run has one or more."""


class TurnEnd(Struct, rename="camel", tag_field="type", tag="turn_end"):
    """The reply of the model, and the results of its tools."""

    message: MessageJson
    tool_results: list[ToolResultJson]


class MessageStart(Struct, rename="camel", tag_field="type", tag="message_start"):
    """A message begins. That of a reply grows by `message_update`."""

    message: MessageJson


class MessageUpdate(Struct, rename="camel", tag_field="type", tag="message_update"):
    """One delta of a streaming reply; never the message so far. `usage` is the latest the provider told."""

    usage: Usage
    assistant_message_event: AssistantMessageEvent
    end_turn: bool | UnsetType = UNSET


class MessageEnd(Struct, rename="camel", tag_field="type", tag="message_end"):
    """A message is whole; this is what counts."""

    message: MessageJson


class ToolExecutionResult(Struct, rename="camel"):
    """What a tool gave: all of it, or all so far. `details` is any JSON value; each tool has its own."""

    content: list[UserContent]
    details: Any = UNSET


class ToolExecutionStart(Struct, rename="camel", tag_field="type", tag="tool_execution_start"):
    """A tool begins to work."""

    tool_call_id: str
    tool_name: str
    args: Any


class ToolExecutionUpdate(Struct, rename="camel", tag_field="type", tag="tool_execution_update"):
    """`partial_result` is the whole result so far; it replaces what was shown."""

    tool_call_id: str
    tool_name: str
    args: Any
    partial_result: ToolExecutionResult


class ToolExecutionEnd(Struct, rename="camel", tag_field="type", tag="tool_execution_end"):
    """A tool has ended."""

    tool_call_id: str
    tool_name: str
    result: ToolExecutionResult
    is_error: bool


class QueueUpdate(Struct, rename="camel", tag_field="type", tag="queue_update"):
    """What is queued now."""

    steering: list[str]
    follow_up: list[str]


# ---- shell requests of the client --------------------------------------------------------------------------------


class BashExecutionUpdate(Struct, rename="camel", tag_field="type", tag="bash_execution_update"):
    """`id` is the request's own id, any JSON scalar; absent when the request had none."""

    channel: Literal["stdout", "stderr"]
    delta: str
    id: Raw | UnsetType = UNSET


# ---- tasks -------------------------------------------------------------------------------------------------------


class TaskUpdate(Struct, rename="camel", tag_field="type", tag="task_update"):
    """A task as it is now; only after `set_task_subscription`."""

    task: TaskRecord


class TaskTranscript(Struct, rename="camel", tag_field="type", tag="task_transcript"):
    """What a subagent has said since the last of these, from the entry `first` on, and what it is saying; only for the
    one that `set_task_subscription` names, and at most ten times a second."""

    task_id: str
    first: int
    entries: list[TranscriptEntryJson]
    live: TranscriptEntry | UnsetType = UNSET


# ---- session and model -------------------------------------------------------------------------------------------


class SessionInfoChanged(Struct, rename="camel", tag_field="type", tag="session_info_changed"):
    """The session has another name; without `name` it has none."""

    name: str | UnsetType = UNSET


class EntryAppended(Struct, rename="camel", tag_field="type", tag="entry_appended"):
    """An entry was added to the session's file."""

    entry: EntryJson


class ModelChanged(Struct, rename="camel", tag_field="type", tag="model_changed"):
    """The session has another model."""

    model: Model
    source: Literal["set", "cycle", "restore", "fallback"]
    previous_model: Model | UnsetType = UNSET


class ThinkingLevelChanged(Struct, rename="camel", tag_field="type", tag="thinking_level_changed"):
    """The session has another thinking level."""

    level: ThinkingLevel


class ModelFallbackStart(Struct, rename="camel", tag_field="type", tag="model_fallback_start"):
    """Another model takes over."""

    to: str
    reason: str
    attempt: int
    from_: str | UnsetType = field(default=UNSET, name="from")


class ModelFallbackEnd(Struct, rename="camel", tag_field="type", tag="model_fallback_end"):
    """The first model is back; `success` tells whether another one did it."""

    success: bool
    from_: str | UnsetType = field(default=UNSET, name="from")
    to: str | UnsetType = UNSET
    final_error: str | UnsetType = UNSET


# ---- retry and compaction ----------------------------------------------------------------------------------------


class AutoRetryStart(Struct, rename="camel", tag_field="type", tag="auto_retry_start"):
    """The run failed; it is tried again in `delay_ms` milliseconds."""

    attempt: int
    max_attempts: int
    delay_ms: int
    error_message: str


class AutoRetryEnd(Struct, rename="camel", tag_field="type", tag="auto_retry_end"):
    """The retries are over; `success` tells whether the last one did it."""

    success: bool
    attempt: int
    final_error: str | UnsetType = UNSET


class CompactionStart(Struct, rename="camel", tag_field="type", tag="compaction_start"):
    """The context is being shortened."""

    reason: CompactionReason
    mid_turn: bool | UnsetType = UNSET


class CompactionEnd(Struct, rename="camel", tag_field="type", tag="compaction_end"):
    """`result` is a `CompactionResult` or `None`. It and `error_message` are independent: a committed boundary may be
    followed by a failure."""

    reason: CompactionReason
    result: CompactionResultJson | None
    aborted: bool
    will_retry: bool
    error_message: str | UnsetType = UNSET
    unresolved_overflow: bool | UnsetType = UNSET
    mid_turn: bool | UnsetType = UNSET
    manual_takeover_pending: bool | UnsetType = UNSET


class SummarizationRetryScheduled(Struct, rename="camel", tag_field="type", tag="summarization_retry_scheduled"):
    """A request for a compaction or summary failed; it is tried again in `delay_ms` milliseconds."""

    attempt: int
    max_attempts: int
    delay_ms: int
    error_message: str


class SummarizationRetryAttemptStart(Struct, rename="camel", tag_field="type", tag="summarization_retry_attempt_start"):
    """A request for a compaction or summary is tried again. Of a branch summary there is no `reason`."""

    source: Literal["compaction", "branchSummary"]
    reason: CompactionReason | UnsetType = UNSET


class SummarizationRetryFinished(Struct, rename="camel", tag_field="type", tag="summarization_retry_finished"):
    """The retries of a compaction or summary are over."""


class AgentContinueError(Struct, rename="camel", tag_field="type", tag="agent_continue_error"):
    """The run could not go on after a compaction."""

    source: Literal["post_compaction"]
    error_message: str


class ExtensionError(Struct, rename="camel", tag_field="type", tag="extension_error"):
    """Code of an extension, a skill or a command failed."""

    extension_path: str
    event: str
    error: str


Event = (
    AgentStart
    | AgentEnd
    | AgentSettled
    | TurnStart
    | TurnEnd
    | MessageStart
    | MessageUpdate
    | MessageEnd
    | ToolExecutionStart
    | ToolExecutionUpdate
    | ToolExecutionEnd
    | QueueUpdate
    | BashExecutionUpdate
    | TaskUpdate
    | TaskTranscript
    | SessionInfoChanged
    | EntryAppended
    | ModelChanged
    | ThinkingLevelChanged
    | ModelFallbackStart
    | ModelFallbackEnd
    | AutoRetryStart
    | AutoRetryEnd
    | CompactionStart
    | CompactionEnd
    | SummarizationRetryScheduled
    | SummarizationRetryAttemptStart
    | SummarizationRetryFinished
    | AgentContinueError
    | ExtensionError
)
