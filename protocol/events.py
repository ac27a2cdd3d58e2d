"""Events that the agent streams to its client, apart from responses.

Source: contract `rpc-protocol.md`, "Events", and the events that the reference sends beyond it (`spec/rpc.md`).
`Raw` fields hold JSON that was encoded once, for the journal, and is copied from there; `holds` names what it is, for
the schema.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType, field

from protocol.messages import ToolCall, Usage, UserContent
from protocol.model import Model, ThinkingLevel

MessageJson = Annotated[Raw, Meta(extra={"holds": "Message"})]
ToolResultJson = Annotated[Raw, Meta(extra={"holds": "ToolResultMessage"})]
EntryJson = Annotated[Raw, Meta(extra={"holds": "Entry"})]
# msgspec reads nothing but `null` into `Raw | None`
CompactionResultJson = Annotated[Any, Meta(extra={"holds": "CompactionResult"})]

# ---- assistantMessageEvent: what a streaming reply grew by -------------------------------------------------------


class TextStart(Struct, rename="camel", tag_field="type", tag="text_start"):
    content_index: int


class TextDelta(Struct, rename="camel", tag_field="type", tag="text_delta"):
    content_index: int
    delta: str


class TextEnd(Struct, rename="camel", tag_field="type", tag="text_end"):
    content_index: int
    content: str


class ThinkingStart(Struct, rename="camel", tag_field="type", tag="thinking_start"):
    content_index: int


class ThinkingDelta(Struct, rename="camel", tag_field="type", tag="thinking_delta"):
    content_index: int
    delta: str


class ThinkingEnd(Struct, rename="camel", tag_field="type", tag="thinking_end"):
    content_index: int
    content: str


class ToolCallStart(Struct, rename="camel", tag_field="type", tag="toolcall_start"):
    content_index: int


class ToolCallDelta(Struct, rename="camel", tag_field="type", tag="toolcall_delta"):
    content_index: int
    delta: str


class ToolCallEnd(Struct, rename="camel", tag_field="type", tag="toolcall_end"):
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
    pass


class AgentEnd(Struct, rename="camel", tag_field="type", tag="agent_end"):
    """A run is over. `messages` are those of this run only; what follows on its own is another run. `will_retry`, told
    with `--rpc-compat pi`, says that the next one repeats the request that failed, on this model or on another."""

    messages: list[MessageJson]
    will_retry: bool | UnsetType = UNSET


class AgentSettled(Struct, rename="camel", tag_field="type", tag="agent_settled"):
    """Nothing more comes by itself: no retry, no compaction, no queued message."""


class TurnStart(Struct, rename="camel", tag_field="type", tag="turn_start"):
    pass


class TurnEnd(Struct, rename="camel", tag_field="type", tag="turn_end"):
    message: MessageJson
    tool_results: list[ToolResultJson]


class MessageStart(Struct, rename="camel", tag_field="type", tag="message_start"):
    message: MessageJson


class MessageUpdate(Struct, rename="camel", tag_field="type", tag="message_update"):
    """One delta of a streaming reply; never the message so far. `usage` is the latest the provider told."""

    usage: Usage
    assistant_message_event: AssistantMessageEvent
    end_turn: bool | UnsetType = UNSET


class MessageEnd(Struct, rename="camel", tag_field="type", tag="message_end"):
    message: MessageJson


class ToolExecutionResult(Struct, rename="camel"):
    """What a tool gave: all of it, or all so far. `details` is any JSON value; each tool has its own."""

    content: list[UserContent]
    details: Any = UNSET


class ToolExecutionStart(Struct, rename="camel", tag_field="type", tag="tool_execution_start"):
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
    tool_call_id: str
    tool_name: str
    result: ToolExecutionResult
    is_error: bool


class QueueUpdate(Struct, rename="camel", tag_field="type", tag="queue_update"):
    steering: list[str]
    follow_up: list[str]


# ---- shell requests of the client --------------------------------------------------------------------------------


class BashExecutionUpdate(Struct, rename="camel", tag_field="type", tag="bash_execution_update"):
    """`id` is the request's own id, any JSON scalar; absent when the request had none."""

    channel: Literal["stdout", "stderr"]
    delta: str
    id: Raw | UnsetType = UNSET


# ---- session and model -------------------------------------------------------------------------------------------


class SessionInfoChanged(Struct, rename="camel", tag_field="type", tag="session_info_changed"):
    name: str | UnsetType = UNSET


class EntryAppended(Struct, rename="camel", tag_field="type", tag="entry_appended"):
    entry: EntryJson


class ModelChanged(Struct, rename="camel", tag_field="type", tag="model_changed"):
    model: Model
    source: Literal["set", "cycle", "restore", "fallback"]
    previous_model: Model | UnsetType = UNSET


class ThinkingLevelChanged(Struct, rename="camel", tag_field="type", tag="thinking_level_changed"):
    level: ThinkingLevel


class ModelFallbackStart(Struct, rename="camel", tag_field="type", tag="model_fallback_start"):
    to: str
    reason: str
    attempt: int
    from_: str | UnsetType = field(default=UNSET, name="from")


class ModelFallbackEnd(Struct, rename="camel", tag_field="type", tag="model_fallback_end"):
    success: bool
    from_: str | UnsetType = field(default=UNSET, name="from")
    to: str | UnsetType = UNSET
    final_error: str | UnsetType = UNSET


# ---- retry and compaction ----------------------------------------------------------------------------------------


class AutoRetryStart(Struct, rename="camel", tag_field="type", tag="auto_retry_start"):
    attempt: int
    max_attempts: int
    delay_ms: int
    error_message: str


class AutoRetryEnd(Struct, rename="camel", tag_field="type", tag="auto_retry_end"):
    success: bool
    attempt: int
    final_error: str | UnsetType = UNSET


CompactionReason = Literal["manual", "threshold", "overflow"]


class CompactionStart(Struct, rename="camel", tag_field="type", tag="compaction_start"):
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
    attempt: int
    max_attempts: int
    delay_ms: int
    error_message: str


class SummarizationRetryAttemptStart(Struct, rename="camel", tag_field="type", tag="summarization_retry_attempt_start"):
    source: Literal["compaction", "branchSummary"]
    reason: CompactionReason | UnsetType = UNSET


class SummarizationRetryFinished(Struct, rename="camel", tag_field="type", tag="summarization_retry_finished"):
    pass


class AgentContinueError(Struct, rename="camel", tag_field="type", tag="agent_continue_error"):
    source: Literal["post_compaction"]
    error_message: str


class ExtensionError(Struct, rename="camel", tag_field="type", tag="extension_error"):
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
