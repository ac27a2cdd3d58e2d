"""Cutting long text to whole lines within a number of lines and of UTF-8 bytes, and the notes that tell of it.

Source: contract, tools ("Shared output cap"), direct bash ("Result truncation") and the bash tool's result text.
Lines end with LF alone, and a trailing LF begins no line.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

MAX_LINES = 3000
MAX_BYTES = 51200


class Truncation(Struct, frozen=True, rename="camel"):
    """What is left of a text and what was there. `last_line_partial`: the tail of one over-long last line is all that
    is left. `first_line_exceeds_limit`: nothing is, since not even the first line fits."""

    content: str
    truncated: bool
    truncated_by: Literal["lines", "bytes"] | None
    total_lines: int
    total_bytes: int
    output_lines: int
    output_bytes: int
    last_line_partial: bool
    first_line_exceeds_limit: bool
    max_lines: int
    max_bytes: int


def count_bytes(text: str) -> int:
    """The length of `text` in UTF-8. Lone surrogates count as the U+FFFD that would be sent for them."""
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))


def count_lines(text: str) -> int:
    """The number of lines; a trailing LF begins none."""
    return text.count("\n") + (text != "" and not text.endswith("\n"))


def truncate_tail(
    text: str,
    max_lines: int = MAX_LINES,
    max_bytes: int = MAX_BYTES,
    *,
    total_lines: int | None = None,
    total_bytes: int | None = None,
) -> Truncation:
    """The last whole lines of `text` within both limits; of a last line over `max_bytes` its tail.

    The totals are given when `text` is itself only the tail of what there was; it must then be longer than the limits.
    The final LF stays only when nothing was cut."""
    lines_there = count_lines(text) if total_lines is None else total_lines
    bytes_there = count_bytes(text) if total_bytes is None else total_bytes
    if lines_there <= max_lines and bytes_there <= max_bytes:
        return _whole(text, lines_there, bytes_there, max_lines, max_bytes)
    lines = text.removesuffix("\n").rsplit("\n", max_lines)[-max_lines:] if max_lines > 0 else []
    kept, size = _fitting(lines[::-1], max_bytes)
    partial = kept == 0 and bool(lines)
    content = _last_bytes(lines[-1], max_bytes) if partial else "\n".join(lines[len(lines) - kept :])
    return Truncation(
        content=content,
        truncated=True,
        truncated_by="bytes" if kept < len(lines) or lines_there <= max_lines else "lines",
        total_lines=lines_there,
        total_bytes=bytes_there,
        output_lines=1 if partial else kept,
        output_bytes=count_bytes(content) if partial else size,
        last_line_partial=partial,
        first_line_exceeds_limit=False,
        max_lines=max_lines,
        max_bytes=max_bytes,
    )


def truncate_head(text: str, max_lines: int = MAX_LINES, max_bytes: int = MAX_BYTES) -> Truncation:
    """The first whole lines of `text` within both limits; none when the first line is over `max_bytes`."""
    lines_there, bytes_there = count_lines(text), count_bytes(text)
    if lines_there <= max_lines and bytes_there <= max_bytes:
        return _whole(text, lines_there, bytes_there, max_lines, max_bytes)
    lines = text.removesuffix("\n").split("\n", max_lines)[:max_lines]
    kept, size = _fitting(lines, max_bytes)
    return Truncation(
        content="\n".join(lines[:kept]),
        truncated=True,
        truncated_by="bytes" if kept < len(lines) or lines_there <= max_lines else "lines",
        total_lines=lines_there,
        total_bytes=bytes_there,
        output_lines=kept,
        output_bytes=size,
        last_line_partial=False,
        first_line_exceeds_limit=kept == 0 and bool(lines),
        max_lines=max_lines,
        max_bytes=max_bytes,
    )


def _whole(text: str, lines: int, size: int, max_lines: int, max_bytes: int) -> Truncation:
    return Truncation(text, False, None, lines, size, lines, size, False, False, max_lines, max_bytes)


def _fitting(lines: list[str], max_bytes: int) -> tuple[int, int]:
    """How many of `lines`, from the first on, fit into `max_bytes` when joined by LF, and their size."""
    size = -1
    for index, line in enumerate(lines):
        grown = size + 1 + count_bytes(line)
        if grown > max_bytes:
            return index, max(size, 0)
        size = grown
    return len(lines), max(size, 0)


def _last_bytes(line: str, max_bytes: int) -> str:
    """The longest end of `line` that begins with a whole character and has at most `max_bytes`."""
    data = line[-max_bytes:].encode(errors="surrogatepass") if max_bytes > 0 else b""
    start = max(len(data) - max_bytes, 0)
    while start < len(data) and data[start] & 0xC0 == 0x80:
        start += 1
    return data[start:].decode(errors="surrogatepass")


def format_size(size: int) -> str:
    """`512B`, `50.0KB` or `1.2MB`."""
    if size < 1024:
        return f"{size}B"
    return f"{size / 1024:.1f}KB" if size < 1024 * 1024 else f"{size / (1024 * 1024):.1f}MB"


def bash_tool_note(cut: Truncation, full_output_path: str | None, last_line_bytes: int) -> str:
    """The bracket note under truncated output of the bash tool, "" when all is shown. `last_line_bytes` is the whole
    size of the last line. Without a file the clause that names it is left out."""
    if not cut.truncated:
        return ""
    last = cut.total_lines
    path = f". Full output: {full_output_path}" if full_output_path else ""
    if cut.last_line_partial:
        shown = f"last {format_size(cut.output_bytes)} of line {last} (line is {format_size(last_line_bytes)})"
    else:
        limit = f" ({format_size(cut.max_bytes)} limit)" if cut.truncated_by == "bytes" else ""
        shown = f"lines {last - cut.output_lines + 1}-{last} of {last}{limit}"
    return f"[Showing {shown}{path}]"


def bash_tool_text(cut: Truncation, full_output_path: str | None, last_line_bytes: int, ending: str = "") -> str:
    """The bash tool's result: the output or `(no output)`, the note, and how it ended, with blank lines between."""
    note = bash_tool_note(cut, full_output_path, last_line_bytes)
    return "\n\n".join(part for part in (cut.content or "(no output)", note, ending) if part)


def exit_note(code: int) -> str:
    """How a command that failed ended; "" for 0."""
    return f"Command exited with code {code}" if code else ""


def timeout_note(seconds: int) -> str:
    return f"Command timed out after {seconds} seconds"


ABORT_NOTE = "Command aborted"
