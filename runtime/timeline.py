"""How the demonstration shows what happens: records as rows of a timeline, in colour where there is a terminal.

Pure: the stream and the environment come in as arguments, and text goes out. A row has at most 80 columns. Records that
tell only where the agent stands (`agent_start`, `turn_end` and the like) share a row, and so do the pieces of a text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TextIO

import msgspec

Record = dict[str, Any]

WIDTH: Final = 80
INDENT: Final = 22
DIM: Final = "2"
ACCENT: Final = "1;34"


class Paint:
    """Colours for a terminal that has them; plain text elsewhere. `NO_COLOR` wins over `FORCE_COLOR`, both as
    no-color.org says, and that over `TERM=dumb`."""

    def __init__(self, stream: TextIO, env: Mapping[str, str]) -> None:
        able = stream.isatty() and env.get("TERM") != "dumb"
        self._on = not env.get("NO_COLOR") and (bool(env.get("FORCE_COLOR")) or able)

    def __call__(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._on and text else text


class Line(NamedTuple):
    """What a record has to say: the id that it belongs to, the text, its colour, and the kind of lines that it can
    share a row with (empty: none). `joined` takes the place of the text behind another line of that kind."""

    id: str
    text: str
    colour: str
    kind: str = ""
    joined: str = ""


class Timeline:
    """Rows as text that is to be written at once, and flushed: a row is ended only by what cannot join it."""

    def __init__(self, paint: Paint) -> None:
        self._paint = paint
        self._kind = ""
        self._room = 0
        self._left_out = 0

    def line(self, elapsed_s: float, arrow: str, line: Line) -> str:
        """The text for one more line, on the open row where it can."""
        if line.kind and line.kind == self._kind:
            more = " " + line.joined
            if len(more) <= self._room:
                self._room -= len(more)
                return self._paint(line.colour, more)
            if line.kind == "bookkeeping":
                self._left_out += 1
                return ""
        shown = fitted(line.text)
        ended = self.end()
        self._kind, self._room = line.kind, WIDTH - INDENT - len(shown) - len(" +99")
        return f"{ended}{self._head(elapsed_s, arrow, line.id)}{self._paint(line.colour, shown)}" + self._open()

    def _open(self) -> str:
        return "" if self._kind else "\n"

    def _head(self, elapsed_s: float, arrow: str, id: str) -> str:
        clock = self._paint(DIM, f"{elapsed_s * 1000:6.0f} ms")
        return f"{clock}  {self._paint(ACCENT if arrow == '→' else DIM, arrow)} {id:<8} "

    def end(self) -> str:
        """The text that ends the open row, if there is one."""
        more = self._paint(DIM, f" +{self._left_out}") if self._left_out else ""
        ended = more + ("\n" if self._kind else "")
        self._kind, self._left_out = "", 0
        return ended

    def title(self, text: str) -> str:
        return f"{self.end()}\n{self._paint('1', text)}\n"

    def verdict(self, text: str, holds: bool) -> str:
        """Whether something that should have happened did."""
        return f"{self.end()}{'':11}{self._paint('32', '✓ ') if holds else self._paint('31', '✗ NOT: ')}{text}\n"


def describe(record: Record) -> Line:
    """The line for a record that the agent sent."""
    kind, id = record["type"], str(record.get("id", ""))
    if kind == "response":
        return Line(id, f"{record['command']}: {outcome(record)}", "32" if record["success"] else "31")
    if kind == "bash_execution_update":
        return Line(id, f"{record['channel']} {quoted(record['delta'])}", "33")
    if kind == "message_update":
        change = record["assistantMessageEvent"]
        if "delta" not in change or change["type"] == "toolcall_delta":  # the call comes whole, when it is run
            return bookkeeping(change["type"])
        return Line(id, f"{change['type']} {quoted(change['delta'])}", "35", change["type"], quoted(change["delta"]))
    if kind.startswith("tool_execution_"):
        detail = record["args"] if kind == "tool_execution_start" else text_of(record.get("result") or {})
        return Line(id, f"{kind} {record['toolName']} {quoted(detail)}", "36")
    return bookkeeping(kind)


def bookkeeping(name: str) -> Line:
    return Line("", name, DIM, "bookkeeping", name)


def command_line(command: Record) -> Line:
    """The line for a command that the client sends."""
    said = command.get("message") or command.get("command") or command.get("requestId") or ""
    return Line(command["id"], f"{command['type']} {quoted(said)}" if said else command["type"], ACCENT)


def quoted(value: object) -> str:
    """A value as it is on the wire."""
    return msgspec.json.encode(value).decode()


def fitted(text: str) -> str:
    """`text`, cut to what a row has room for."""
    return text if len(text) <= WIDTH - INDENT else text[: WIDTH - INDENT - 1] + "…"


def outcome(response: Record) -> str:
    """A response in a few words."""
    if not response["success"]:
        return f"failed: {response['error']}"
    data = response.get("data") or {}
    shown = ("exitCode", "cancelled", "sessionId", "output")
    return ", ".join(["success", *(f"{key} {quoted(data[key])}" for key in shown if key in data)])


def text_of(message: Record) -> str:
    """The text blocks of a message or a tool result, joined."""
    return "".join(block.get("text", "") for block in message.get("content", ()) if block["type"] == "text")
