"""The engine under `search`: which lines of which files match, from `rg` if it is there, else from a child of ours.

Either way a child process looks, so that a pattern that takes forever can be killed: in this process Python's regular
expressions would hold up every thread. Our child speaks the part of `rg --json` that is read here. Both skip binary
files, symlinks met on the way, and files above 4 MiB unless named. Source: `tasks.md` 1.6.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec

from actors.shell.process import Exit, Process, ProcessSpec
from actors.tool import find, textfile
from actors.tool.paths import Scope, inside
from actors.tool.table import ToolContext, ToolFailure

MAX_MATCHES = 2000
MAX_FILE_BYTES = 4 << 20
LINE_BYTES = 65536  # of a longer line only so much is looked at by our child
DEADLINE_S = 30.0
RG_WENT_WELL = (0, 1)  # exit codes: found something, found nothing
BAD_PATTERN = 2  # exit code of our child
_CHILD = "import sys; sys.path.append(sys.argv[1]); from actors.tool import scan; sys.exit(scan.child(sys.argv[2]))"


class Query(NamedTuple):
    """`per_file` is the number of matching lines told of one file; one more is looked for, to know."""

    pattern: str
    ignore_case: bool
    gitignore: bool
    per_file: int
    scopes: list[Scope]


class Hits:
    """Collects matching line numbers by file, in order, from what a child prints. `full` at the ceiling. Pure."""

    def __init__(self, scopes: list[Scope], per_file: int) -> None:
        self.files: dict[str, list[int]] = {}
        self.count = 0
        self._scopes = scopes
        self._per_file = per_file
        self._rest = b""

    @property
    def full(self) -> bool:
        return self.count >= MAX_MATCHES

    def feed(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if b'"match"' in line[:32] and not self.full:
                found = msgspec.json.decode(line, type=_Record).data
                self._add(_path(found.path), found.line_number)

    def _add(self, path: str, number: int) -> None:
        lines = self.files.get(path)
        if lines is None:
            if not any(_covers(scope, path) for scope in self._scopes):
                return
            lines = self.files[path] = []
        if len(lines) <= self._per_file and number not in lines:
            lines.append(number)
            self.count += 1


class _Found(msgspec.Struct):
    path: dict[str, str]
    line_number: int


class _Record(msgspec.Struct):
    data: _Found


class Outcome(NamedTuple):
    hits: Hits
    timed_out: bool


def scan(context: ToolContext, query: Query) -> Outcome:
    """Run the query. Raises `ToolFailure` for a pattern that no engine takes, and once cancelled."""
    environment = context.environment()
    rg = _which_rg(environment.get("PATH", ""))
    if rg:
        outcome, code, _ = _run(context, _rg_command(rg, query), environment, query)
        if code in RG_WENT_WELL or outcome.hits.count or outcome.timed_out:
            return outcome
        # Else ours decides: its expressions know more, look-around for one.
    outcome, code, fault = _run(context, _own_command(query), environment, query)
    if code == BAD_PATTERN:
        raise ToolFailure(f"Invalid pattern: {fault.strip()}")
    if code != 0 and not (outcome.hits.full or outcome.timed_out):
        raise ToolFailure(f"Search failed: {fault.strip()[-500:]}")
    return outcome


def _which_rg(path: str) -> str | None:
    from shutil import which

    # Only absolute entries: a folder that the program happens to stand in must not supply it.
    return which("rg", path=os.pathsep.join(filter(os.path.isabs, path.split(os.pathsep))))


def _rg_command(rg: str, query: Query) -> tuple[str, ...]:
    switches = ["--json", "--no-config", "--no-messages", "--hidden", "--no-require-git", "--crlf", "--sort=path"]
    switches += ["--glob=!.git", f"--max-count={query.per_file + 1}"]
    switches += ["--ignore-case"] if query.ignore_case else []
    switches += [] if query.gitignore else ["--no-ignore"]
    if any(os.path.isdir(scope.root) for scope in query.scopes):
        switches.append(f"--max-filesize={MAX_FILE_BYTES}")
    return (rg, *switches, "-e", query.pattern, "--", *dict.fromkeys(scope.root for scope in query.scopes))


def _own_command(query: Query) -> tuple[str, ...]:
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    scopes = [(os.fsencode(scope.root), scope.glob and scope.glob.pattern) for scope in query.scopes]
    request = msgspec.json.encode((*query[:-1], scopes))
    # Isolated: neither the folder it stands in nor PYTHON* variables may supply its modules.
    return (sys.executable, "-I", "-W", "ignore", "-c", _CHILD, root, request.decode())


def _run(
    context: ToolContext, command: tuple[str, ...], environment: dict[str, str], query: Query
) -> tuple[Outcome, int | None, str]:
    from threading import Timer

    hits = Hits(query.scopes, query.per_file)
    errors = bytearray()
    process = Process()

    def take(channel: str, data: bytes) -> None:
        if channel == "stdout":
            hits.feed(data)
            if hits.full:
                process.kill()
        elif len(errors) < find.MAX_BYTES:
            errors.extend(data)

    context.on_cancel(process.kill)
    timer = Timer(DEADLINE_S, process.kill)
    timer.daemon = True
    timer.start()
    try:
        ended = _pump(process, command, environment, take)
    finally:
        timer.cancel()
        process.close()
    context.check()
    return Outcome(hits, process.killed and not hits.full), ended.code, errors.decode(errors="replace")


def _pump(
    process: Process, command: tuple[str, ...], environment: dict[str, str], take: Callable[[str, bytes], None]
) -> Exit:
    try:
        process.start(ProcessSpec(command, os.path.abspath(os.sep), environment))
    except OSError as error:
        raise ToolFailure(f"Cannot search: {error}") from None
    return process.pump(take)


def _covers(scope: Scope, path: str) -> bool:
    if path == scope.root:
        return True
    below = path.startswith(scope.root.rstrip(os.sep) + os.sep)
    return below and (scope.glob is None or scope.glob.match(inside(path, scope.root)) is not None)


def _path(told: dict[str, str]) -> str:
    if "text" in told:
        return told["text"]
    from base64 import b64decode

    return os.fsdecode(b64decode(told["bytes"]))


def lines(file: Any) -> Iterator[tuple[int, bytes]]:
    """Number and first 64 KiB of each line of a binary file, without its line end."""
    number, fresh = 0, True
    while data := file.readline(LINE_BYTES):
        if fresh:
            number += 1
            yield number, data.removesuffix(b"\n").removesuffix(b"\r")
        fresh = data.endswith(b"\n")


def child(request: str) -> int:
    """The search in a process of its own: prints a record a match, returns the exit code."""
    import re

    asked = msgspec.json.decode(request, type=tuple[str, bool, bool, int, list[tuple[bytes, str | None]]])
    pattern, ignore_case, gitignore, per_file, told = asked
    try:
        regex = re.compile(pattern, re.IGNORECASE if ignore_case else 0)
    except Exception as error:
        sys.stderr.write(f"{error}\n")
        return BAD_PATTERN
    scopes = [Scope(os.fsdecode(root), re.compile(glob, re.DOTALL) if glob else None) for root, glob in told]
    walk = find.Walk(hidden=True, gitignore=gitignore, stopped=lambda: False)
    named = {scope.root for scope in scopes}
    for path in walk.files(scopes):
        if path in named or _is_small_file(path):
            _scan_file(path, regex.search, per_file + 1)
    return 0


def _is_small_file(path: str) -> bool:
    """False for symlinks, and for what is gone or closed to us since the walk saw it."""
    try:
        return not os.path.islink(path) and os.path.getsize(path) <= MAX_FILE_BYTES
    except OSError:
        return False


def _scan_file(path: str, search: Callable[[str], object], most: int) -> None:
    try:
        with textfile.open_regular(path, "search") as file:
            if b"\0" in file.peek(textfile.BINARY_PROBE)[: textfile.BINARY_PROBE]:
                return
            for number, line in lines(file):
                if search(line.decode(errors="replace")):
                    _tell(path, number)
                    most -= 1
                    if not most:
                        return
    except (OSError, ToolFailure):
        return  # unreadable, or gone since the walk saw it: rg passes over these too


def _tell(path: str, number: int) -> None:
    from base64 import b64encode

    told = {"bytes": b64encode(os.fsencode(path)).decode()}
    sys.stdout.buffer.write(
        msgspec.json.encode({"type": "match", "data": {"path": told, "line_number": number}}) + b"\n"
    )
    sys.stdout.buffer.flush()
