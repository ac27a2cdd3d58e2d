"""The answer of `get_state`, mostly the first that a client asks for: apart from the rest, which no start loads.

Source: contract `rpc-protocol.md`, "Commands".
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

from protocol.commands import QueueMode
from protocol.compaction import CompactionReason
from protocol.model import Model, ThinkingLevel


class SessionState(Struct, rename="camel"):
    """Data of `get_state`. `pending_message_count` counts both visible queues; `session_file` is absent in memory.

    The contract does not show what has a default."""

    model: Model | None
    thinking_level: ThinkingLevel
    is_streaming: bool
    is_compacting: bool
    steering_mode: QueueMode
    follow_up_mode: QueueMode
    session_id: str
    auto_compaction_enabled: bool
    message_count: int
    pending_message_count: int
    queued_messages_paused: bool = False
    resource_overlaps: list[Any] = []
    session_file: str | UnsetType = UNSET
    session_name: str | UnsetType = UNSET
    compaction_reason: CompactionReason | Literal["branchSummary"] | UnsetType = UNSET
    model_fallback_message: str | UnsetType = UNSET
    model_fallback_reason: (
        Literal["configured-provider-unsupported", "session-restore", "no-models-available"] | UnsetType
    ) = UNSET
