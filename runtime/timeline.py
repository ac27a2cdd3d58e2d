"""How the demonstration shows what happens: records as rows of a timeline, in colour where there is a terminal.

Pure: the stream and the environment come in as arguments, and rows go out as text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TextIO

Record = dict[str, Any]


class Paint:
    """Colours for a terminal; plain text elsewhere. `NO_COLOR` wins over `FORCE_COLOR`, both as no-color.org says."""

    def __init__(self, stream: TextIO, env: Mapping[str, str]) -> None:
        self._on = not env.get("NO_COLOR") and (bool(env.get("FORCE_COLOR")) or stream.isatty())

    def __call__(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._on and text else text


class Line(NamedTuple):
    """One row of the timeline: the id that it belongs to, what happened, and the colour of that."""

    id: str
    text: str
    colour: str


def describe(record: Record) -> Line:
    """The row for a record that the agent sent."""
    kind, id = record["type"], str(record.get("id", ""))
    if kind == "response":
        return Line(id, f"{record['command']}: {outcome(record)}", "32" if record["success"] else "31")
    if kind == "bash_execution_update":
        return Line(id, f"{record['channel']}  {record['delta']!r}", "33")
    if kind == "message_update":
        change = record["assistantMessageEvent"]
        return Line(id, f"{change['type']}  {change['delta']!r}" if "delta" in change else change["type"], "35")
    if kind.startswith("tool_execution_"):
        detail = record["args"] if kind == "tool_execution_start" else text_of(record.get("result") or {})
        return Line(id, f"{kind}  {record['toolName']}  {detail!r}", "36")
    role = record.get("message", {}).get("role", "")
    return Line(id, f"{kind}  {role}".rstrip(), "2")


def outcome(response: Record) -> str:
    """A response in a few words."""
    if not response["success"]:
        return f"failed: {response['error']}"
    data = response.get("data") or {}
    shown = ("exitCode", "cancelled", "output", "sessionId")
    return ", ".join(["success", *(f"{key} {data[key]!r}" for key in shown if key in data)])


def text_of(message: Record) -> str:
    """The text blocks of a message or a tool result, joined."""
    return "".join(block.get("text", "") for block in message.get("content", ()) if block["type"] == "text")


def row(paint: Paint, elapsed_s: float, arrow: str, line: Line) -> str:
    """One row: when it happened, which way it went, the id, and what it was."""
    clock = paint("2", f"{elapsed_s * 1000:6.0f} ms")
    return f"{clock}  {paint('1;34' if arrow == '→' else '2', arrow)} {line.id:<8} {paint(line.colour, line.text)}"


def verdict(paint: Paint, text: str, holds: bool) -> str:
    """Whether something that should have happened did."""
    return f"{'':11}{paint('32', '✓ ') if holds else paint('31', '✗ NOT: ')}{text}"
