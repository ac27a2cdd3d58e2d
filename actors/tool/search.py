"""The `search` tool: lines that match a regular expression, with their surroundings, in pages of files.

A page has 20 files of at most 20 matches; one file alone shows 200. `scan` finds the lines; the rows are read here,
so that both engines give the same text. Source: `tasks.md` 1.6.
"""

from __future__ import annotations

import os
import re
import stat
from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

from actors.tool import find, paths, scan, textfile
from actors.tool.schema import number, shorten
from actors.tool.table import ToolContext, ToolFailure, ToolOptions, ToolOutput, text_output

PAGE_FILES = 20
FILE_MATCHES = 20
SINGLE_FILE_MATCHES = 200
LINE_CHARACTERS = 512
_LINE_BREAK = re.compile(r"\n|(?<!\\)(?:\\\\)*\\n")


class Page(NamedTuple):
    """The files shown: path and matching lines. `total` files matched, from `skip` on they are shown."""

    files: list[tuple[str, list[int]]]
    skip: int
    total: int


def run(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    """Details: `files`, `fileMatches`, `matchCount`, `fileCount`, `missingPaths`, the limits reached, and more."""
    pattern = _pattern(arguments["pattern"])
    skip = _skip(arguments)
    wanted = _wanted(arguments.get("paths"))
    told, missing = find.require_scopes(wanted, context.resolve)
    scopes, closed = _reachable(told, context.cwd)
    missing += closed
    single = _is_single(scopes)
    query = scan.Query(
        pattern=pattern,
        ignore_case=arguments.get("i") is True or arguments.get("case") is False,
        gitignore=arguments.get("gitignore") is not False,
        per_file=SINGLE_FILE_MATCHES if single else FILE_MATCHES,
        scopes=scopes,
    )
    outcome = scan.scan(context, query)
    found = list(outcome.hits.files.items())
    page = Page(found[:1], 0, len(found)) if single else Page(found[skip : skip + PAGE_FILES], skip, len(found))
    blocks = {path: _rows(path, matches[: query.per_file], context.options) for path, matches in page.files}
    text, cut = find.capped(_block_rows(context.cwd, blocks))
    notices = list(_notices(page, outcome, single and skip > 0, missing, cut))
    details = _details(context, wanted, page, outcome, query.per_file, missing)
    details["linesTruncated"] = any(row.endswith("\u2026") for rows in blocks.values() for row in rows)
    return text_output("\n\n".join([text or "No matches found", *notices]), details)


def _pattern(pattern: str) -> str:
    if not pattern.strip():
        raise ToolFailure("Pattern must not be empty")
    if _LINE_BREAK.search(pattern):
        raise ToolFailure(f"Pattern must not contain a line break: lines are searched one by one: {shorten(pattern)}")
    if "\0" in pattern or any("\ud800" <= character <= "\udfff" for character in pattern):
        raise ToolFailure(f"Pattern must not contain a NUL character or a lone surrogate: {shorten(pattern)}")
    return pattern


def _skip(arguments: dict[str, Any]) -> int:
    skip = number(arguments, "skip") or 0
    if not 0 <= skip < float("inf"):
        raise ToolFailure("Skip must be a non-negative number")
    return int(skip)


def _wanted(told: str | list[str] | None) -> list[str]:
    """One string is one path, whatever spaces or commas it holds."""
    wanted = [told] if isinstance(told, str) else told or []
    return [path for path in wanted if path.strip()] or ["."]


def _reachable(scopes: list[paths.Scope], cwd: str) -> tuple[list[paths.Scope], list[str]]:
    """Those that can be looked at, and the paths of those that cannot: a symlink in a circle or to nowhere, a closed
    folder. Raises `ToolFailure` if none is left."""
    kept: list[paths.Scope] = []
    closed: dict[str, OSError] = {}
    for scope in scopes:
        try:
            os.stat(scope.root)
            kept.append(scope)
        except OSError as error:
            closed[scope.root] = error
    if closed and not kept:
        path, first = next(iter(closed.items()))
        raise textfile.failure(first, "stat", path)
    return kept, [paths.printable(paths.relative(path, cwd)) for path in closed]


def _is_single(scopes: list[paths.Scope]) -> bool:
    """Whether the search is in one file. Raises `ToolFailure` for a named pipe, socket or device."""
    files = 0
    for scope in scopes:
        try:
            mode = os.stat(scope.root).st_mode
        except OSError as error:
            raise textfile.failure(error, "stat", scope.root) from None
        if not stat.S_ISDIR(mode):
            textfile.require_regular(mode, "search", scope.root)
            files += 1
    return files == len(scopes) == 1


def _block_rows(cwd: str, blocks: dict[str, list[str]]) -> Iterator[str]:
    for index, (path, rows) in enumerate(blocks.items()):
        if index:
            yield ""
        yield f"[{paths.printable(paths.relative(path, cwd))}]"
        yield from rows


def _rows(path: str, matches: list[int], options: ToolOptions) -> list[str]:
    """Rows `*LINE:text` of matches and ` LINE:text` around them; none if the file has gone meanwhile. No more than can
    be shown, whatever the settings ask for."""
    hits, waiting = set(matches), deque(sorted(matches))
    rows: list[str] = []
    size = 0
    try:
        with textfile.open_regular(path, "search") as file:
            for at, data in scan.lines(file):
                while waiting and waiting[0] + options.lines_after < at:
                    waiting.popleft()
                if not waiting or size > find.MAX_BYTES:
                    break
                if waiting[0] - options.lines_before <= at:
                    rows.append(f"{'*' if at in hits else ' '}{at}:{_cut(data.decode(errors='replace'))}")
                    size += len(rows[-1])
    except (OSError, ToolFailure):
        rows.clear()
    return rows


def _cut(line: str) -> str:
    return line if len(line) <= LINE_CHARACTERS else line[:LINE_CHARACTERS] + "\u2026"


def _notices(page: Page, outcome: scan.Outcome, skip_ignored: bool, missing: list[str], cut: bool) -> Iterator[str]:
    following = page.skip + len(page.files)
    if skip_ignored:
        yield "[skip is ignored: the search is in a single file]"
    if page.skip >= page.total > 0:
        yield f"[skip={page.skip} is past the last of {page.total} matching files.]"
    elif following < page.total:
        yield f"[{len(page.files)} matching files shown. Use skip={following} to view more.]"
    if outcome.hits.full:
        yield (
            f"[Search collected the first {scan.MAX_MATCHES} matches before pagination; "
            "refine the pattern or path for later results.]"
        )
    if outcome.timed_out:
        yield f"[Search timed out after {scan.DEADLINE_S:g}s; the results are partial. Refine the pattern or path.]"
    if cut:
        yield "[50.0KB combined output limit reached]"
    if missing:
        yield f"[Skipped missing paths: {', '.join(missing)}]"


def _details(
    context: ToolContext, wanted: list[str], page: Page, outcome: scan.Outcome, per_file: int, missing: list[str]
) -> dict[str, Any]:
    names = {path: paths.printable(paths.relative(path, context.cwd)) for path, _ in page.files}
    return {
        "scopePath": ", ".join(wanted),
        "searchPath": context.cwd,
        "cwd": context.cwd,
        "matchCount": sum(min(len(lines), per_file) for lines in outcome.hits.files.values()),
        "fileCount": page.total,
        "files": list(names.values()),
        "fileMatches": [{"path": names[path], "count": min(len(lines), per_file)} for path, lines in page.files],
        "missingPaths": missing,
        "fileLimitReached": page.skip + len(page.files) < page.total,
        "perFileLimitReached": any(len(lines) > per_file for _, lines in page.files),
        "timedOut": outcome.timed_out,
    }
