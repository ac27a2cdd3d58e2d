"""A stretch of conversation as text: the tail that a compaction keeps, written into its boundary message.

Nothing is lost on the way: results are whole and also written when their call is not in the stretch, images stay
images at their place. Thinking becomes text, its signatures end here by intention. Pure. Source: `sessions.md` 2.2,
retained mode.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from actors.session.provider_view import ProviderMessage, shown_message
from protocol.codec import encode
from protocol.messages import (
    AssistantMessage,
    ImageContent,
    Message,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserContent,
)

Piece = str | ImageContent


def retained(messages: Iterable[Message]) -> list[Piece]:
    """The stretch as pieces of text and the images between them; neighbouring text is merged."""
    pieces: list[Piece] = []
    for message in messages:
        shown = shown_message(message)
        for section in _sections(shown) if shown is not None else ():
            pieces += ["\n\n", *section] if pieces else section
    return merged(pieces)


def merged(pieces: Iterable[Piece]) -> list[Piece]:
    """`pieces` with neighbouring text joined."""
    runs: list[list[str] | ImageContent] = []
    for piece in pieces:
        last = runs[-1] if runs else None
        if isinstance(piece, ImageContent):
            runs.append(piece)
        elif isinstance(last, list):
            last.append(piece)
        else:
            runs.append([piece])
    return ["".join(run) if isinstance(run, list) else run for run in runs]


def as_content(pieces: Iterable[Piece]) -> list[UserContent]:
    return [TextContent(piece) if isinstance(piece, str) else piece for piece in pieces]


def _sections(message: ProviderMessage) -> Iterator[list[Piece]]:
    """The sections of one message, each led by its header; those without content are left out."""
    if isinstance(message, AssistantMessage):
        for header, text in _assistant_sections(message):
            if text:
                yield [f"{header}: {text}"]
        return
    header = "[Tool result]: " if isinstance(message, ToolResultMessage) else "[User]: "
    body = _body(message.content)
    if body:
        yield [header, *body]


def _assistant_sections(message: AssistantMessage) -> Iterator[tuple[str, str]]:
    blocks = message.content
    thinking = [block.thinking for block in blocks if isinstance(block, ThinkingContent) and block.thinking]
    yield "[Assistant thinking]", "\n".join(thinking)
    yield "[Assistant]", "\n".join(block.text for block in blocks if isinstance(block, TextContent))
    yield "[Assistant tool calls]", "; ".join(_call(block) for block in blocks if isinstance(block, ToolCall))


def _call(call: ToolCall) -> str:
    arguments = (f"{key}={encode(value).decode()}" for key, value in call.arguments.items())
    return f"{call.name}({', '.join(arguments)})"


def _body(content: str | list[UserContent]) -> list[Piece]:
    """Text joined with nothing; an image stands on a line of its own unless it is the first thing of its section."""
    if isinstance(content, str):
        return [content] if content else []
    body: list[Piece] = []
    for block in content:
        if isinstance(block, TextContent):
            if block.text:
                body.append(block.text)
            continue
        if body:
            body.append("\n")
        body.append(block)
    return body
