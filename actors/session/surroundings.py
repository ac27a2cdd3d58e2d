"""What the user's files and the session's folder bring to a session. A value; `reload` and every new session read it
anew, in a pump."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from actors.model.attempts import RequestLimits
from actors.session.compaction.parameters import CompactionSettings
from actors.session.expansion import Expander
from actors.session.retry import RetryPolicy
from actors.tool.table import ToolOptions
from protocol.model import Model, ThinkingLevel


class Surroundings(Struct, frozen=True):
    """`system_prompt` is made for a model at a level. `block_images` keeps images out of requests, not out of the
    session. `warnings` are lines for stderr."""

    system_prompt: Callable[[Model, ThinkingLevel], str]
    expander: Expander = Expander()
    retry: RetryPolicy = RetryPolicy()
    compaction: CompactionSettings = CompactionSettings()
    request_limits: RequestLimits = RequestLimits()
    fallback_models: tuple[str, ...] = ()
    fallback_level: ThinkingLevel | None = None
    cache_retention: Literal["none", "short", "long"] = "short"
    thinking_budgets: dict[str, int] | None = None
    block_images: bool = False
    tools: ToolOptions = ToolOptions()
    branch_summary_reserve_tokens: int = 16384
    session_summary: bool = False
    warnings: tuple[str, ...] = ()
