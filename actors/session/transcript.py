"""A stretch of conversation as text: what a compaction works on, and the tail that it keeps.

In the tail nothing is lost: results are whole, and images stay images at their place. What is compacted is text alone:
an image is the line `[image]`, and a long result is cut. Either way a result is also written when its call is not in
the stretch. White space is kept where it stands with text; a section of nothing else is left out. Thinking becomes
text, its signatures end here by intention. Pure. Source: `sessions.md` 2.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from actors.session.provider_view import is_blank, whole_message
from actors.session.tokens import utf16_cut, utf16_length
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

RESULT_HEADER = "[Tool result]: "
HEADERS = ("[User]: ", "[Assistant thinking]: ", "[Assistant]: ", "[Assistant tool calls]: ", RESULT_HEADER)
RESULT_UNITS = 16_000


def retained(messages: Iterable[Message]) -> list[Piece]:
    """The stretch as pieces of text and the images between them; neighbouring text is merged."""
    pieces: list[Piece] = []
    for header, body in _sections(messages):
        pieces += ["\n\n", header] if pieces else [header]
        for place, piece in enumerate(body):
            pieces += ["\n", piece] if place and isinstance(piece, ImageContent) else [piece]
    return merged(pieces)


def compacted(messages: Iterable[Message], result_units: int = RESULT_UNITS) -> str:
    """The stretch as the text that a compaction takes lines out of. `result_units` (UTF-16) are kept of a result."""
    return "\n\n".join(_plain(header, body, result_units) for header, body in _sections(messages))


def header_of(line: str) -> str:
    """The header that a line begins with; empty for any other line."""
    return next((header for header in HEADERS if line.startswith(header)), "")


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


def _sections(messages: Iterable[Message]) -> Iterator[tuple[str, list[Piece]]]:
    """Header and body of each section; those without content are left out. A result of white space is content."""
    for message in messages:
        shown = whole_message(message)
        if isinstance(shown, AssistantMessage):
            for header, text in _assistant_sections(shown):
                if not is_blank(text):
                    yield header, [text]
        elif shown is not None and (body := _body(shown.content)):
            yield (RESULT_HEADER if isinstance(shown, ToolResultMessage) else "[User]: "), body


def _assistant_sections(message: AssistantMessage) -> Iterator[tuple[str, str]]:
    blocks = message.content
    thinking = [block.thinking for block in blocks if isinstance(block, ThinkingContent) and block.thinking]
    yield "[Assistant thinking]: ", "\n".join(thinking)
    yield "[Assistant]: ", "\n".join(block.text for block in blocks if isinstance(block, TextContent))
    yield "[Assistant tool calls]: ", "; ".join(_call(block) for block in blocks if isinstance(block, ToolCall))


def _call(call: ToolCall) -> str:
    arguments = (f"{key}={encode(value).decode()}" for key, value in call.arguments.items())
    return f"{call.name}({', '.join(arguments)})"


def _body(content: str | list[UserContent]) -> list[Piece]:
    if isinstance(content, str):
        return [content] if content else []
    blocks = (block.text if isinstance(block, TextContent) else block for block in content)
    return [block for block in blocks if block]


def _plain(header: str, body: list[Piece], result_units: int) -> str:
    """A section as text alone. An image is a line of its own; one line feed at the end is not shown."""
    text = ""
    for piece in body:
        if isinstance(piece, str):
            text += piece
        else:
            text += "\n[image]\n" if text and not text.endswith("\n") else "[image]\n"
    if header == RESULT_HEADER and (size := utf16_length(text)) > result_units:
        kept = utf16_cut(text, result_units)
        text = f"{kept}\n\n[{size - utf16_length(kept)} more characters were cut]"
    return header + text.removesuffix("\n")
