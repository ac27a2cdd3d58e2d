"""A model's reply while it streams: bytes in, events and one final message out.

`ReplyReader` is what the rest of the program sees of a dialect. `Reply` is the part that all dialects share: it
assembles blocks, keeps the partial message and decides how the reply ends. Sans-io, and no byte string makes it
raise. `message` is a value: it is replaced and never changed, so it may be handed to another thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from msgspec.structs import replace

from actors.model.pricing import priced
from actors.model.prompt import mend_text
from actors.model.sse import SseDecoder, SseEvent
from protocol.events import (
    AssistantMessageEvent,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from protocol.messages import (
    AssistantContent,
    AssistantMessage,
    StopReason,
    TextContent,
    ThinkingContent,
    ToolCall,
    Usage,
)
from protocol.model import Model

if TYPE_CHECKING:
    pass

Events = list[AssistantMessageEvent]


class ReplyReader(Protocol):
    """Reads one reply. `message` is the partial (`stop_reason` "pending"; the text of an open block joins it when the
    block ends), `started` tells that the provider's stream has begun, `finished` that nothing more need be read."""

    message: AssistantMessage
    started: bool
    finished: bool

    def feed(self, data: bytes) -> Events:
        """Events that `data`, raw body bytes in any chunking, adds. Never raises."""

    def drain(self) -> Events:
        """The body is over: events of what was still held. Call it before `end`; a second call gives nothing."""

    def end(self) -> AssistantMessage:
        """The final message; one with an error when the body was over too early."""

    def fail(self, error: str, *, aborted: bool = False) -> AssistantMessage:
        """The final message after a transport failure or an abort. Keeps the blocks so far."""


class ReplyError(Exception):
    """The provider said, or its bytes mean, that this reply failed. The text is for the user."""


class UnreadableEvent(ReplyError):
    """An event is no JSON. At the very end of a body that only means that the body was cut."""


class Reply:
    """Base of the dialects: they implement `_read`, and `_shortfall` when no single event ends a reply."""

    early_end = "The provider's stream ended before its terminal event"

    def __init__(self, model: Model, now_ms: int) -> None:
        self.message = AssistantMessage([], model.api, model.provider, model.id, Usage(), "pending", now_ms)
        self.started = False
        self.finished = False
        self._model = model
        self._sse = SseDecoder()
        self._pieces: dict[int, list[str]] = {}
        self._held: dict[int, str] = {}
        self._stop: StopReason = "pending"
        self._error: str | None = None
        self._drained = False

    # ---- what the rest of the program calls

    def feed(self, data: bytes) -> Events:
        return [] if self.finished else self._take(self._sse.feed(data))

    def drain(self) -> Events:
        if self._drained:
            return []
        self._drained = True
        events = [] if self.finished else self._take(self._sse.end(), is_cut=True)
        if self._error is None:
            self._error = self._shortfall()
        if self._error is None:
            for index in sorted(self._pieces):
                self._finish(index, events)
        return events

    def end(self) -> AssistantMessage:
        self.drain()
        return self._settled("error" if self._error is not None else self._stop, self._error)

    def fail(self, error: str, *, aborted: bool = False) -> AssistantMessage:
        return self._settled("aborted" if aborted else "error", error)

    # ---- what the dialects implement and call

    def _read(self, name: bytes, data: bytes, events: Events) -> None:
        raise NotImplementedError

    def _shortfall(self) -> str | None:
        """What the body lacks, now that it is over; None when the reply is whole."""
        if not self.finished:
            return self.early_end
        return "The provider's stream ended without a stop reason" if self._stop == "pending" else None

    def _take(self, received: list[SseEvent], *, is_cut: bool = False) -> Events:
        events: Events = []
        try:
            for name, data in received:
                self._read(name, data, events)
                if self.finished:
                    break
        except UnreadableEvent as error:
            if not is_cut:
                self._break(str(error))
        except ReplyError as error:
            self._break(str(error))
        except Exception as error:  # an event of another shape than the dialect's: the reply fails, not the process
            self._break(f"The provider sent an event that cannot be read ({type(error).__name__})")
        return events

    def _conclude(self, events: Events) -> None:
        """The provider's last event was read."""
        self.finished = True
        events.extend(self.drain())

    def _break(self, error: str) -> None:
        self._error = error
        self.finished = True

    def _set_usage(self, usage: Usage, factor: float = 1) -> None:
        self.message = replace(self.message, usage=priced(usage, self._model, factor))

    def _put(self, index: int, block: AssistantContent) -> None:
        content = self.message.content
        self.message = replace(self.message, content=[*content[:index], block, *content[index + 1 :]])

    def _open(self, block: AssistantContent, events: Events) -> int:
        """Starts `block` as the last one; returns its content index."""
        index = len(self.message.content)
        self._put(index, block)
        self._pieces[index] = []
        events.append(_START[type(block)](index))
        return index

    def _grow(self, index: int, text: str, events: Events) -> None:
        """Adds to the open block at `index`."""
        if self._held or not text.isascii():
            text = self._whole(index, text)
        if text:
            self._pieces[index].append(text)
            events.append(_DELTA[type(self.message.content[index])](index, text))

    def _whole(self, index: int, text: str) -> str:
        """`text` without half of a surrogate pair at its end, which is kept for the next delta of the block."""
        text = self._held.pop(index, "") + text
        if "\ud800" <= text[-1:] <= "\udbff":
            self._held[index] = text[-1]
            text = text[:-1]
        return mend_text(text)

    def _finish(self, index: int, events: Events) -> None:
        """Ends the open block at `index`."""
        block = self._joined(index)
        self._put(index, block)
        if isinstance(block, TextContent):
            events.append(TextEnd(index, block.text))
        elif isinstance(block, ThinkingContent):
            events.append(ThinkingEnd(index, block.thinking))
        else:
            events.append(ToolCallEnd(index, block))

    def _joined(self, index: int) -> AssistantContent:
        block = self.message.content[index]
        text = "".join(self._pieces.pop(index)) + ("\ufffd" if self._held.pop(index, "") else "")
        if isinstance(block, TextContent):
            return replace(block, text=block.text + text)
        if isinstance(block, ThinkingContent):
            return replace(block, thinking=block.thinking + text)
        if not text:
            return block
        from actors.model.partial_json import parse_arguments

        return replace(block, arguments=parse_arguments(text))

    def _settled(self, stop: StopReason, error: str | None) -> AssistantMessage:
        for index in sorted(self._pieces):
            self._put(index, self._joined(index))
        self.finished = self._drained = True
        changes: dict[str, Any] = {"stop_reason": stop}
        if error is not None:
            changes["error_message"] = mend_text(error)
        self.message = replace(self.message, **changes)
        return self.message


_START: dict[type, Any] = {TextContent: TextStart, ThinkingContent: ThinkingStart, ToolCall: ToolCallStart}
_DELTA: dict[type, Any] = {TextContent: TextDelta, ThinkingContent: ThinkingDelta, ToolCall: ToolCallDelta}
