"""The history as another model may be told it.

The step between the session's messages and a dialect's own. Pure. What it promises to the dialects: every tool call
has exactly one result before the next message of another kind; ids fit the provider and are unique; names of tools are
such as every provider takes; no block and no message is empty; thinking that the model cannot verify is plain text or
gone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from msgspec import UNSET
from msgspec.structs import replace

from protocol.messages import (
    AssistantContent,
    AssistantMessage,
    ImageContent,
    Message,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserContent,
    UserMessage,
)
from protocol.model import Model

ReplayMessage = UserMessage | AssistantMessage | ToolResultMessage
# (id of a call, its assistant message) -> an id that the provider takes.
NormaliseId = Callable[[str, AssistantMessage], str]

_MAX_NAME = 64
INTERRUPTED = (
    "Tool execution was interrupted after it started; its result is unavailable. "
    "Inspect side effects before deciding whether to retry it."
)
NO_OUTPUT = "(no output)"
NOTHING_TO_SEND = "the prompt is empty: there is nothing to send"
IMAGE_OMITTED = "(image omitted: this model reads text only)"


def replay(messages: Iterable[Message], model: Model, normalise: NormaliseId) -> list[ReplayMessage]:
    """`messages` as `model` may see them. User content comes out as a list, never as a string."""
    history = _History(model, normalise)
    for message in messages:
        if isinstance(message, UserMessage):
            history.user(message)
        elif isinstance(message, AssistantMessage):
            history.assistant(message)
        elif isinstance(message, ToolResultMessage):
            history.result(message)
    history.close_calls()
    return history.messages


def asked(messages: Iterable[Message], model: Model, normalise: NormaliseId) -> list[ReplayMessage]:
    """The same, for a request. Raises ValueError when there is nothing that the model could answer: providers refuse
    what is empty or ends with a reply of the model."""
    history = replay(messages, model, normalise)
    if not history or isinstance(history[-1], AssistantMessage):
        raise ValueError(NOTHING_TO_SEND)
    return history


def is_same_model(message: AssistantMessage, model: Model) -> bool:
    """Whether `model` wrote `message`, so that it can verify its own signatures in it."""
    return (message.provider, message.api, message.model) == (model.provider, model.api, model.id)


class _History:
    """Collects the messages; `_open` holds the calls that wait for a result, by their id in the session."""

    def __init__(self, model: Model, normalise: NormaliseId) -> None:
        self.messages: list[ReplayMessage] = []
        self._model = model
        self._normalise = normalise
        self._open: dict[str, tuple[str, str]] = {}
        self._asked_at = 0
        self._taken: set[str] = set()

    def user(self, message: UserMessage) -> None:
        self.close_calls()
        content = visible(message.content, self._model)
        if content:
            self.messages.append(replace(message, content=content))

    def assistant(self, message: AssistantMessage) -> None:
        self.close_calls()
        if message.stop_reason in ("error", "aborted"):
            return
        content = [kept for block in message.content if (kept := self._block(block, message)) is not None]
        if content:
            self._asked_at = message.timestamp
            self.messages.append(replace(message, content=content))

    def result(self, message: ToolResultMessage) -> None:
        """An orphan is dropped: its call was in a reply that is not told, or has had its result."""
        known = self._open.pop(message.tool_call_id, None)
        if known is not None:
            content = visible(message.content, self._model) or [TextContent(NO_OUTPUT)]
            call_id, name = known
            self.messages.append(replace(message, tool_call_id=call_id, tool_name=name, content=content))

    def close_calls(self) -> None:
        for call_id, name in self._open.values():
            content: list[UserContent] = [TextContent(INTERRUPTED)]
            self.messages.append(ToolResultMessage(call_id, name, content, True, self._asked_at))
        self._open = {}

    def _block(self, block: AssistantContent, message: AssistantMessage) -> AssistantContent | None:
        same = is_same_model(message, self._model)
        if isinstance(block, TextContent):
            kept = block if same else replace(block, text_signature=UNSET)
            return kept if block.text.strip() else None
        if isinstance(block, ThinkingContent):
            return _thinking(block, same)
        return self._call(block, message, same)

    def _call(self, call: ToolCall, message: AssistantMessage, same: bool) -> ToolCall | None:
        if call.id in self._open:
            return None
        call_id = self._unique(self._normalise(call.id, message))
        name = fitting_name(call.name)
        self._open[call.id] = (call_id, name)
        return replace(call, id=call_id, name=name, thought_signature=call.thought_signature if same else UNSET)

    def _unique(self, wanted: str) -> str:
        """Two turns may carry one id (some servers count from zero in every reply); providers refuse that. What
        stands behind a bar is an item's id, which then cannot be this item's."""
        call_id, n = wanted, 1
        head = wanted.partition("|")[0]
        while call_id.partition("|")[0] in self._taken:
            n += 1
            call_id = f"{head[:36]}_{n}"
        self._taken.add(call_id.partition("|")[0])
        return call_id


def fitting_name(name: str) -> str:
    """A model may call a tool by a name that its own provider refuses to read again."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:_MAX_NAME] or "tool"


def _thinking(block: ThinkingContent, same: bool) -> AssistantContent | None:
    if same and block.thinking_signature:
        return block
    if block.redacted is True or not block.thinking.strip():
        return None
    return block if same else TextContent(block.thinking)


def visible(content: str | Sequence[UserContent], model: Model) -> list[UserContent]:
    """The blocks that can be sent: no blank text, and one note for each run of images that `model` cannot see."""
    blocks = [TextContent(content)] if isinstance(content, str) else content
    seen: list[UserContent] = []
    in_run = False
    for block in blocks:
        is_hidden = isinstance(block, ImageContent) and "image" not in model.input
        if is_hidden and not in_run:
            seen.append(TextContent(IMAGE_OMITTED))
        elif not is_hidden and not (isinstance(block, TextContent) and not block.text.strip()):
            seen.append(block)
        in_run = is_hidden
    return seen
