"""The `edit` tool: exact replacements in one text file, all or none.

Every old text refers to the file as it was before the call and must occur there exactly once. Matching ignores whether
lines end in LF or CRLF; what is written keeps the byte order mark, the line endings around each replacement, and every
byte outside of them, valid UTF-8 or not. Source: `tasks.md` 1.4, with old and new text in place of scripts.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise
from typing import Any, NamedTuple

from actors.tool import textfile
from actors.tool.table import ToolContext, ToolFailure, ToolOutput, text_output

BOM = "\ufeff"
CONTEXT = 3  # lines around a change
COMPARED = 400  # lines of a block: its comparison may take the square of that


class Refused(ValueError):
    """The edits do not fit the text; `str()` of it is one sentence without its full stop."""


class Edit(NamedTuple):
    """`old` and `new` with LF line ends; `name` is what errors call the edit."""

    old: str
    new: str
    name: str


class Change(NamedTuple):
    """`new` replaces characters `start` to `end` of the text with LF line ends."""

    start: int
    end: int
    new: str
    name: str


def run(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    """Details: `diff` (rows with line numbers), `firstChangedLine`."""
    path = context.resolve(arguments["path"])
    data = textfile.load(path, "edit")
    try:
        edits = wanted(arguments)
        raw = decode(data)
        text = raw.replace("\r\n", "\n")
        changes = plan(text, edits)
        if not changes:
            raise Refused("The replacements change nothing")
    except Refused as refused:
        raise ToolFailure(f"Could not edit file: {arguments['path']}. {refused}.") from None
    context.check()
    textfile.replace(path, apply(raw, changes).encode(errors="surrogateescape"), "edit")
    shown, line = numbered_diff(text, changes)
    done = f"Successfully replaced {len(edits)} {'block' if len(edits) == 1 else 'blocks'} in {arguments['path']}"
    return text_output(done, {"diff": shown, "firstChangedLine": line})


def wanted(arguments: dict[str, Any]) -> list[Edit]:
    """The edits that a call asks for. Raises `Refused`."""
    items = list(arguments.get("edits") or ())
    names = [f"edits[{index}]." for index in range(len(items))]
    single = {key: arguments[key] for key in ("oldText", "newText") if arguments.get(key) is not None}
    if single:
        items.append(single)
        names.append("")
    if not items:
        raise Refused("edits is missing; it must be a list of objects with oldText and newText")
    return [_edit(item, name) for item, name in zip(items, names, strict=True)]


def _edit(item: dict[str, Any], name: str) -> Edit:
    for key in ("oldText", "newText"):
        if not isinstance(item.get(key), str):
            raise Refused(f"{name}{key} is missing")
        if any("\ud800" <= character <= "\udfff" for character in item[key]):
            raise Refused(f"{name}{key} must not contain a lone surrogate")
    old = item["oldText"].replace("\r\n", "\n").removeprefix(BOM)
    if not old:
        raise Refused(f"{name}oldText must not be empty")
    return Edit(old, item["newText"].replace("\r\n", "\n").removeprefix(BOM), name)


def decode(data: bytes) -> str:
    """Text that encodes to exactly `data` again. Raises `Refused` for a binary file."""
    if b"\0" in data[: textfile.BINARY_PROBE]:
        raise Refused("It is a binary file, not text")
    return data.decode(errors="surrogateescape")


def plan(text: str, edits: list[Edit]) -> list[Change]:
    """What each edit changes in `text` (LF line ends), in order of position and without the ends that it only repeats,
    so that their line ends stay as they are. Raises `Refused`."""
    changes = sorted(_locate(text, edit) for edit in edits)
    for before, after in pairwise(changes):
        if after.start < before.end:
            first, second = sorted((before.name, after.name))
            raise Refused(f"{first}oldText and {second}oldText overlap; make them one edit")
    trimmed = (_trimmed(text, change) for change in changes)
    return [change for change in trimmed if change.new or change.end > change.start]


def _trimmed(text: str, change: Change) -> Change:
    old, new = text[change.start : change.end], change.new
    same = _common(old, new)
    old, new = old[same:], new[same:]
    tail = _common(old[::-1], new[::-1])
    return change._replace(start=change.start + same, end=change.end - tail, new=new[: len(new) - tail])


def _locate(text: str, edit: Edit) -> Change:
    start = text.find(edit.old)
    if start < 0:
        raise Refused(f"{edit.name}oldText was not found; it must match the file exactly, white space included")
    if text.find(edit.old, start + 1) >= 0:
        count = max(text.count(edit.old), 2)
        raise Refused(f"{edit.name}oldText occurs {count} times; add lines around it until it occurs once")
    return Change(start, start + len(edit.old), edit.new, edit.name)


def _common(one: str, other: str) -> int:
    """Characters that both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((index for index, (left, right) in pairs if left != right), min(len(one), len(other)))


def apply(raw: str, changes: list[Change]) -> str:
    """`raw` with `changes`, whose positions count each CRLF as one character."""
    crlf = _crlf_positions(raw)
    parts: list[str] = []
    done = 0
    for change in changes:
        start = change.start + bisect_left(crlf, change.start)
        end = change.end + bisect_left(crlf, change.end)
        parts += raw[done:start], change.new.replace("\n", _line_end(raw, start, end))
        done = end
    return "".join((*parts, raw[done:]))


def _crlf_positions(raw: str) -> list[int]:
    """Index in the LF text of each line end that is CRLF in `raw`."""
    found: list[int] = []
    at = raw.find("\r\n")
    while at >= 0:
        found.append(at - len(found))
        at = raw.find("\r\n", at + 2)
    return found


def _line_end(raw: str, start: int, end: int) -> str:
    """The line end in use at `raw[start:end]`: the first in it or after it, else the last before it."""
    at = raw.find("\n", start)
    if at < 0:
        at = raw.rfind("\n", 0, end)
    return "\r\n" if at > 0 and raw[at - 1] == "\r" else "\n"


class Rows(NamedTuple):
    """Lines `old` (from 0, `end` exclusive) of the text are replaced by `new`."""

    start: int
    end: int
    new: list[str]


def numbered_diff(text: str, changes: list[Change]) -> tuple[str, int | None]:
    """Rows ` N same`, `-N old`, `+N new` around each change, `...` between; and the first changed line, from 1.

    Old lines bear their old numbers, all others their new ones. The known positions spare a search through the whole
    text: a diff of 100,000 lines costs no more than one of the changed blocks.
    """
    lines = _lines(text.removeprefix(BOM))
    blocks = [rows for block in _blocks(text, changes) for rows in _minimal(lines, block)]
    out: list[str] = []
    shown = shift = 0
    for block, following in zip(blocks, [*blocks[1:], None], strict=False):
        before = max(block.start - CONTEXT, shown)
        if before > shown:
            out.append("...")
        out += [f" {at + shift + 1} {lines[at]}" for at in range(before, block.start)]
        out += [f"-{at + 1} {lines[at]}" for at in range(block.start, block.end)]
        out += [f"+{block.start + shift + at + 1} {line}" for at, line in enumerate(block.new)]
        shift += len(block.new) - (block.end - block.start)
        shown = min(block.end + CONTEXT, len(lines) if following is None else following.start)
        out += [f" {at + shift + 1} {lines[at]}" for at in range(block.end, shown)]
    if shown < len(lines):
        out.append("...")
    return _printable("\n".join(out)), blocks[0].start + 1 if blocks else None


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


def _blocks(text: str, changes: list[Change]) -> list[Rows]:
    """The whole lines that the changes touch; changes on one line or neighbouring ones share a block."""
    groups: list[tuple[int, int, list[Change]]] = []
    for change in changes:
        start = text.rfind("\n", 0, change.start) + 1
        end = text.find("\n", change.end) + 1 or len(text)
        if groups and start <= groups[-1][1]:
            groups[-1] = (groups[-1][0], end, [*groups[-1][2], change])
        else:
            groups.append((start, end, [change]))
    return [_rows(text, start, end, inside) for start, end, inside in groups]


def _rows(text: str, start: int, end: int, changes: list[Change]) -> Rows:
    parts: list[str] = []
    done = start
    for change in changes:
        parts += text[done : change.start], change.new
        done = change.end
    new = "".join((*parts, text[done:end])).removeprefix(BOM)
    first = text.count("\n", 0, start)
    return Rows(first, first + len(_lines(text[start:end])), _lines(new))


def _minimal(lines: list[str], block: Rows) -> list[Rows]:
    """The parts of `block` that differ; the whole of it when comparing could take long."""
    old = lines[block.start : block.end]
    if len(old) > COMPARED or len(block.new) > COMPARED:
        return [block]
    from difflib import SequenceMatcher

    return [
        Rows(block.start + old_start, block.start + old_end, block.new[new_start:new_end])
        for tag, old_start, old_end, new_start, new_end in SequenceMatcher(None, old, block.new, False).get_opcodes()
        if tag != "equal"
    ]


def _printable(text: str) -> str:
    return text.encode(errors="surrogateescape").decode(errors="replace")
