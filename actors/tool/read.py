"""The `read` tool: a window of a text file, an image, or the tree of a directory.

Holds at most the window in memory, however large the file; never blocks on what is not a regular file. Lines end at
LF alone and are given as they stand, CR included; a leading byte order mark is left out. Source: `tasks.md` 1.2.
"""

from __future__ import annotations

import heapq
import os
import shlex
import stat
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, NamedTuple

from actors.model import image_fit
from actors.tool import find, images, paths, textfile
from actors.tool.schema import whole
from actors.tool.table import ToolContext, ToolFailure, ToolOutput, text_output
from protocol.messages import ImageContent, TextContent

MAX_LINES = 3000
MAX_BYTES = 51200
BOM = b"\xef\xbb\xbf"
TREE_DEPTH = 2
TREE_CHILDREN = 12
PRUNED = frozenset((".git", "node_modules"))
NO_IMAGES = "[Current model does not support images. The image will be omitted from this request.]"


class Window(NamedTuple):
    """Whole lines `first` and on, each with its LF; `total` counts the lines of the file. `oversized` is the bytes of
    line `first` if that alone exceeds the cap; `capped` tells that the byte cap ended the window."""

    first: int
    lines: list[bytes]
    total: int
    oversized: int
    capped: bool


def window(file: BinaryIO, first: int, limit: int, check: Callable[[], None]) -> Window:
    """At most `limit` lines and `MAX_BYTES` of `file`. `check` is called now and then, to raise once cancelled."""
    passed = 0
    while passed < first - 1 and _next_line(file, check).size:
        passed += 1
    lines: list[bytes] = []
    room = MAX_BYTES
    oversized = extra = 0
    while len(lines) < limit and (line := _next_line(file, check)).size:
        if line.body > room:
            extra = 1
            oversized = 0 if lines else line.body
            break
        lines.append(line.data)
        room -= line.size
    total = passed + len(lines) + extra + _count_rest(file, check)
    return Window(first, lines, total, oversized, bool(extra))


class _Line(NamedTuple):
    data: bytes  # cut beyond the cap
    size: int  # with the LF; 0 at the end of the file
    body: int  # without it


def _next_line(file: BinaryIO, check: Callable[[], None]) -> _Line:
    check()
    data = file.readline(MAX_BYTES + 2)
    size, last = len(data), data
    while size > MAX_BYTES and not last.endswith(b"\n") and last:
        check()
        last = file.readline(textfile.CHUNK)
        size += len(last)
    return _Line(data, size, size - last.endswith(b"\n"))


def _count_rest(file: BinaryIO, check: Callable[[], None]) -> int:
    count, last = 0, b"\n"
    while data := file.read(textfile.CHUNK):
        check()
        count += data.count(b"\n")
        last = data
    return count + (not last.endswith(b"\n"))


def run(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    """Details: `meta.sourcePath`, `truncation` of a cut text, `isDirectory` of a directory."""
    path = context.resolve(arguments["path"])
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        raise textfile.failure(error, "open", path) from None
    if stat.S_ISDIR(mode):
        return _directory(context, path)
    with textfile.open_regular(path, "read") as file:
        head = file.peek(textfile.BINARY_PROBE)[: textfile.BINARY_PROBE]
        mime = images.mime_type(head)
        may_be_text = head[:1].isascii() and b"\0" not in head
        if mime is not None and (found := _image(context, path, mime, file, may_be_text)) is not None:
            return found
        if b"\0" in head:
            raise ToolFailure(f"Cannot read {path}: it is a binary file, not text")
        if head.startswith(BOM):
            file.read(len(BOM))
        return _text(context, arguments, path, file)


def _text(context: ToolContext, arguments: dict[str, Any], path: str, file: BinaryIO) -> ToolOutput:
    first = whole(arguments, "offset") or 1
    asked = whole(arguments, "limit")
    limit = MAX_LINES if asked is None else min(asked, MAX_LINES)
    found = window(file, first, limit, context.check)
    text, cut_by = shape(found, path, asked is not None and asked <= MAX_LINES)
    details: dict[str, Any] = {"meta": {"source": "file", "sourcePath": path}}
    if cut_by is not None:
        details["truncation"] = _truncation(found, text, cut_by)
    return text_output(text, details)


def shape(found: Window, path: str, limited: bool) -> tuple[str, str | None]:
    """Text for the model, and what cut it ("lines", "bytes" or `None`). `limited`: the caller set the limit."""
    total, first = found.total, found.first
    if first > max(total, 1):
        hint = f" Use offset={total} to read the final line." if total else ""
        return f"Requested line {first} is beyond end of file ({total} lines total).{hint}", None
    if found.oversized:
        command = f"sed -n '{first}p' {shlex.quote(path)} | head -c {MAX_BYTES}"
        return f"[Line {first} is {_size(found.oversized)}, exceeds 50.0KB limit. Use bash: {command}]", "bytes"
    if not total:
        return "(empty file)", None
    text = b"".join(found.lines).decode(errors="replace")
    last = first + len(found.lines) - 1
    if last >= total:
        return text, None
    text = text.removesuffix("\n")
    if found.capped:
        return f"{text}\n\n[Showing lines {first}-{last} of {total} (50.0KB limit). {_more(last)}]", "bytes"
    if limited:
        return f"{text}\n\n[{total - last} more lines in file. {_more(last)}]", None
    return f"{text}\n\n[Showing lines {first}-{last} of {total}. {_more(last)}]", "lines"


def _more(last: int) -> str:
    return f"Continue with offset={last + 1}."


def _size(count: int) -> str:
    if count < 1024:
        return f"{count}B"
    return f"{count / 1024:.1f}KB" if count < 1048576 else f"{count / 1048576:.1f}MB"


def _truncation(found: Window, text: str, cut_by: str) -> dict[str, Any]:
    return {
        "content": text,
        "truncated": True,
        "truncatedBy": cut_by,
        "totalLines": found.total,
        "outputLines": len(found.lines),
        "outputBytes": sum(map(len, found.lines)),
        "lastLinePartial": False,
        "firstLineExceedsLimit": bool(found.oversized),
        "maxLines": MAX_LINES,
        "maxBytes": MAX_BYTES,
    }


def _image(context: ToolContext, path: str, mime: str, file: BinaryIO, may_be_text: bool) -> ToolOutput | None:
    """None for a text that only begins like an image (`GIF89a was the ...`); nothing has been read then."""
    resize = context.options.resize_images
    most = image_fit.MAX_SOURCE_BYTES if resize else images.MAX_BYTES
    size = os.fstat(file.fileno()).st_size
    if size > most:
        if may_be_text:
            return None
        told = f"and at most {_size(most)} are made smaller" if resize else f"and models take at most {_size(most)}"
        raise ToolFailure(f"Cannot read {path}: the image is {_size(size)}, {told}")
    data = file.read()
    context.check()
    try:
        smaller = image_fit.checked(data, mime, resize=resize)
    except image_fit.CannotFit as fault:
        if may_be_text:
            file.seek(0)
            return None
        raise ToolFailure(f"Cannot read {path}: {fault}") from None
    notes = [f"Read image file [{mime}]"]
    if smaller is not None:
        data, mime = smaller.data, smaller.mime_type
        notes.append(smaller.note)
    if not context.supports_images:
        notes.append(NO_IMAGES)
    import base64

    details = {"meta": {"source": "file", "sourcePath": path}}
    return ToolOutput([TextContent("\n".join(notes)), ImageContent(base64.b64encode(data).decode(), mime)], details)


def _directory(context: ToolContext, path: str) -> ToolOutput:
    rows = list(_tree(context, path, 1))
    details = {
        "isDirectory": True,
        "resolvedPath": path,
        "meta": {"limits": {"depth": TREE_DEPTH, "childrenPerDirectory": TREE_CHILDREN}},
    }
    return text_output("\n".join([f"{path}/", *rows]) if rows else "(empty directory)", details)


def _tree(context: ToolContext, path: str, depth: int) -> Iterator[str]:
    context.check()
    try:
        with os.scandir(path) as found:
            entries = [entry for entry in found if entry.name not in PRUNED]
    except OSError as error:
        if depth == 1:
            raise textfile.failure(error, "scandir", path) from None
        return
    indent = "  " * depth
    for entry in heapq.nlargest(TREE_CHILDREN, entries, key=_newest):
        directory = find.is_directory(entry, follow_symlinks=False)
        yield f"{indent}{paths.printable(entry.name)}{'/' if directory else ''}"
        if directory and depth < TREE_DEPTH:
            yield from _tree(context, entry.path, depth + 1)
    if len(entries) > TREE_CHILDREN:
        yield f"{indent}... {len(entries) - TREE_CHILDREN} more"


def _newest(entry: os.DirEntry[str]) -> float:
    try:
        return entry.stat(follow_symlinks=False).st_mtime
    except OSError:
        return 0.0
