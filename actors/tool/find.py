"""The `find` tool: files by path or glob; and the walk that `search` shares with it.

Directories are visited in the order of their names, `.git` never, symlinked directories only when named. A glob without
a slash is looked for at every depth. Stops at the limit, the time-out or the cancel; a time-out is a success with what
was found. Source: `tasks.md` 1.5.
"""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from actors.tool import paths
from actors.tool.paths import Scope
from actors.tool.schema import number
from actors.tool.table import ToolContext, ToolFailure, ToolOutput, text_output

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

MAX_RESULTS = 200
DEFAULT_TIMEOUT_S, MIN_TIMEOUT_S, MAX_TIMEOUT_S = 5.0, 0.5, 60.0
UPDATE_S = 0.1
MAX_BYTES = 51200


class _Ignore(NamedTuple):
    """One `.gitignore`: its rules and the directory it stands in."""

    root: str
    rules: GitIgnoreSpec


def run(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    """Details: `files`, `fileCount`, `truncated`, `timedOut`, `resultLimitReached`, `missingPaths` and more."""
    wanted = arguments["paths"]
    if not wanted:
        raise ToolFailure("find.paths must include at least one path or glob.")
    if not all(path.strip() for path in wanted):
        raise ToolFailure("find.paths entries must not be empty.")
    limit = _clamped(number(arguments, "limit"), MAX_RESULTS, 1, MAX_RESULTS)
    seconds = _clamped(number(arguments, "timeout"), DEFAULT_TIMEOUT_S, MIN_TIMEOUT_S, MAX_TIMEOUT_S)
    scopes, missing = require_scopes(wanted, context.resolve)
    deadline = context.now() + seconds
    walk = Walk(
        hidden=arguments.get("hidden") is not False,
        gitignore=arguments.get("gitignore") is not False,
        stopped=lambda: context.cancelled() or context.now() > deadline,
    )
    found = _collect(context, walk.files(scopes), math.floor(limit) + 1)
    context.check()
    return _output(found, math.floor(limit), seconds if walk.stopped_early else None, missing)


def _clamped(value: float | None, default: float, low: float, high: float) -> float:
    return default if value is None else min(max(value, low), high)


def _collect(context: ToolContext, files: Iterable[str], most: int) -> list[str]:
    found: dict[str, None] = {}
    told = context.now()
    for path in files:
        found[paths.printable(paths.relative(path, context.cwd))] = None
        if len(found) >= most:
            break
        if context.now() - told >= UPDATE_S:
            told = context.now()
            context.update(text_output("\n".join(found), {"fileCount": len(found)}))
    return list(found)


def _output(found: list[str], limit: int, timed_out_s: float | None, missing: list[str]) -> ToolOutput:
    over = len(found) > limit
    files = found[:limit]
    notices = []
    if over:
        notices.append(f"{limit} results limit reached. Refine pattern or path to narrow results")
    if timed_out_s is not None:
        notices.append(
            f"find timed out after {timed_out_s:g}s; returning {len(files)} partial matches \u2014 "
            "increase timeout or narrow pattern"
        )
    if missing:
        notices.append(f"Skipped missing paths: {', '.join(missing)}")
    text, cut = capped(files)
    if cut:
        notices.append("50.0KB limit reached")
    text = text or "No files found matching pattern"
    if notices:
        text += f"\n\n[{'. '.join(notices)}]"
    return text_output(text, _details(files, missing, limit, over, timed_out_s is not None, cut))


def _details(
    files: list[str], missing: list[str], limit: int, over: bool, timed_out: bool, cut: bool
) -> dict[str, Any]:
    return {
        "scopePath": ".",
        "fileCount": len(files),
        "files": files,
        "truncated": over or timed_out or cut,
        "timedOut": timed_out,
        **({"resultLimitReached": limit, "meta": {"limits": {"resultLimit": limit}}} if over else {}),
        "skippedMissingPaths": missing,
        "missingPaths": missing,
    }


def capped(rows: Iterable[str]) -> tuple[str, bool]:
    """Whole rows up to 50 KiB, and whether some were left out."""
    kept: list[str] = []
    size = 0
    for row in rows:
        size += len(row.encode()) + 1
        if size > MAX_BYTES + 1:
            return "\n".join(kept), True
        kept.append(row)
    return "\n".join(kept), False


def require_scopes(wanted: list[str], resolve: Callable[[str], str]) -> tuple[list[Scope], list[str]]:
    """As `paths.scopes_of`. Raises `ToolFailure` if the only path is missing."""
    scopes, missing = paths.scopes_of(wanted, resolve)
    if missing and len(wanted) == 1:
        raise ToolFailure(f"ENOENT: Path not found: {missing[0]}")
    return scopes, missing


class Walk:
    """Visits files; asks `stopped` at every entry, and says afterwards in `stopped_early` whether that ended it."""

    def __init__(self, *, hidden: bool, gitignore: bool, stopped: Callable[[], bool]) -> None:
        self._hidden = hidden
        self._gitignore = gitignore
        self._stopped = stopped
        self.stopped_early = False

    def files(self, scopes: Iterable[Scope]) -> Iterator[str]:
        """Absolute paths, each maybe twice if the scopes overlap."""
        for scope in scopes:
            if not _is_directory(scope.root):
                yield scope.root
                continue
            ignores = self._ignores_above(scope.root) if self._gitignore else []
            for path in self._below(scope.root, ignores):
                if scope.glob is None or scope.glob.match(paths.inside(path, scope.root)):
                    yield path

    def _below(self, top: str, above: list[_Ignore]) -> Iterator[str]:
        # A stack of its own, since a tree may be deeper than Python's.
        stack = [iter(self._children(top, above))]
        while stack:
            entry = next(stack[-1], None)
            if entry is None:
                stack.pop()
            elif isinstance(entry, str):
                yield entry
            else:
                stack.append(iter(self._children(*entry)))

    def _children(self, directory: str, above: list[_Ignore]) -> Iterator[str | tuple[str, list[_Ignore]]]:
        try:
            with os.scandir(directory) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError:
            return
        has_rules = self._gitignore and any(entry.name == ".gitignore" for entry in entries)
        ignores = [*_load_ignore(directory), *above] if has_rules else above
        for entry in entries:
            if self._stopped():
                self.stopped_early = True
                return
            directory_entry = is_directory(entry, follow_symlinks=False)
            if not self._skips(entry, directory_entry, ignores):
                yield (entry.path, ignores) if directory_entry else entry.path

    def _skips(self, entry: os.DirEntry[str], real_directory: bool, ignores: list[_Ignore]) -> bool:
        if entry.name == ".git" or (not self._hidden and entry.name.startswith(".")):
            return True
        if not real_directory and is_directory(entry):  # a symlink to one
            return True
        return _is_ignored(entry.path, real_directory, ignores)

    def _ignores_above(self, directory: str) -> list[_Ignore]:
        """Rules of the parents of `directory`, up to the root of its repository; the nearest first."""
        found: list[_Ignore] = []
        while not os.path.lexists(os.path.join(directory, ".git")):
            parent = os.path.dirname(directory)
            if parent == directory:
                return []
            found += _load_ignore(parent)
            directory = parent
        return found


def is_directory(entry: os.DirEntry[str], *, follow_symlinks: bool = True) -> bool:
    """False for what cannot be looked at: a symlink in a circle, or into a folder that is closed to us."""
    try:
        return entry.is_dir(follow_symlinks=follow_symlinks)
    except OSError:
        return False


def _is_directory(path: str) -> bool:
    try:
        return stat.S_ISDIR(os.stat(path).st_mode)
    except OSError:
        return False


def _load_ignore(directory: str) -> list[_Ignore]:
    from pathspec import GitIgnoreSpec

    path = os.path.join(directory, ".gitignore")
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return []
        with open(path, encoding="utf-8-sig", errors="replace") as file:
            return [_Ignore(directory, GitIgnoreSpec.from_lines(file.read(MAX_BYTES * 20).splitlines()))]
    except (OSError, ValueError):
        return []


def _is_ignored(path: str, is_directory: bool, ignores: list[_Ignore]) -> bool:
    """The nearest file with a rule for `path` decides, within it the last rule."""
    for ignore in ignores:
        inside = paths.inside(path, ignore.root)
        verdict = ignore.rules.check_file(f"{inside}/" if is_directory else inside).include
        if verdict is not None:
            return verdict
    return False
