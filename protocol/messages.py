"""Messages of a conversation: what users, models, tools and shells said, as it stands on the wire and in files.

Source: contract `rpc-protocol.md`, section "Types". Every struct ignores fields it does not know, and leaves
out on encoding whatever is `UNSET`. Timestamps are milliseconds since the epoch.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType, field

StopReason = Literal["pending", "stop", "length", "toolUse", "error", "aborted"]


class Cost(Struct, rename="camel"):
    """US dollars, by kind of token."""

    input: float = 0
    output: float = 0
    cache_read: float = 0
    cache_write: float = 0
    total: float = 0


class Usage(Struct, rename="camel"):
    """Tokens of one request. `cache_write_1h` is the part of `cache_write` kept for an hour, `reasoning` the part
    of `output` that was thinking; both are left out when the provider did not tell them."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    total_tokens: int = 0
    cost: Cost = field(default_factory=Cost)
    cache_write_1h: int | UnsetType = field(default=UNSET, name="cacheWrite1h")
    reasoning: int | UnsetType = UNSET


class TextContent(Struct, rename="camel", tag_field="type", tag="text"):
    """A run of text. `text_signature` is the provider's own identity of it, needed on replay."""

    text: str
    text_signature: str | UnsetType = UNSET


class ThinkingContent(Struct, rename="camel", tag_field="type", tag="thinking"):
    """What the model thought. A redacted block keeps its payload in `thinking_signature`."""

    thinking: str
    thinking_signature: str | UnsetType = UNSET
    redacted: bool | UnsetType = UNSET


class ImageContent(Struct, rename="camel", tag_field="type", tag="image"):
    """An image: base64 `data` of the kind `mime_type`."""

    data: str
    mime_type: str


class ToolCall(Struct, rename="camel", tag_field="type", tag="toolCall"):
    """The model asks for a tool."""

    id: str
    name: str
    arguments: dict[str, Any]
    thought_signature: str | UnsetType = UNSET


UserContent = TextContent | ImageContent
AssistantContent = TextContent | ThinkingContent | ToolCall


class UserMessage(Struct, rename="camel", tag_field="role", tag="user"):
    """What the user said."""

    content: str | list[UserContent]
    timestamp: int


class AssistantMessage(Struct, rename="camel", tag_field="role", tag="assistant"):
    """One reply. `stop_reason` is `pending` only in the `message_start` of a reply that still streams."""

    content: list[AssistantContent]
    api: str
    provider: str
    model: str
    usage: Usage
    stop_reason: StopReason
    timestamp: int
    response_id: str | UnsetType = UNSET
    response_model: str | UnsetType = UNSET
    raw_stop_reason: str | UnsetType = UNSET
    error_message: str | UnsetType = UNSET
    end_turn: bool | UnsetType = UNSET

    @property
    def tool_calls(self) -> list[ToolCall]:
        return [block for block in self.content if isinstance(block, ToolCall)]


class ToolResultMessage(Struct, rename="camel", tag_field="role", tag="toolResult"):
    """What a tool answered to the call `tool_call_id`."""

    tool_call_id: str
    tool_name: str
    content: list[UserContent]
    is_error: bool
    timestamp: int
    details: Any = UNSET
    usage: Usage | UnsetType = UNSET


class BashExecutionMessage(Struct, rename="camel", tag_field="role", tag="bashExecution"):
    """A shell command that the client ran itself (`bash`, `user_bash`). `exit_code` is absent after a signal."""

    command: str
    output: str
    cancelled: bool
    truncated: bool
    timestamp: int
    exit_code: int | UnsetType = UNSET
    full_output_path: str | UnsetType | None = UNSET
    exclude_from_context: bool | UnsetType = UNSET


class CustomMessage(Struct, rename="camel", tag_field="role", tag="custom"):
    """A message that an extension or a compaction boundary put into the context."""

    custom_type: str
    content: str | list[UserContent]
    display: bool
    timestamp: int
    details: Any = UNSET
    exclude_from_context: bool | UnsetType = UNSET


class BranchSummaryMessage(Struct, rename="camel", tag_field="role", tag="branchSummary"):
    """What happened on a branch that was left."""

    summary: str
    from_id: str
    timestamp: int


Message = (
    UserMessage | AssistantMessage | ToolResultMessage | BashExecutionMessage | CustomMessage | BranchSummaryMessage
)
