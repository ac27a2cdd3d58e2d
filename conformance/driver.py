"""Drives any `<cmd> --mode rpc`: a real process, its pipes, and every record that it wrote.

Owns the child and the three pipes. Promises that a wait ends as soon as its condition holds (no sleeps, no polling),
that a line of stdout which is not exactly one JSON object fails the test, and that only the own pid is ever killed,
last of all. Needs POSIX; the helpers about memory and processes read Linux's /proc. Source: contract
`rpc-protocol.md`, "Framing".
"""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

Record = dict[str, Any]
Match = Mapping[str, Any] | Callable[[Record], bool]
T = TypeVar("T")

MARK = "CONFORMANCE_RUN"  # inherited by everything that the agent starts: how orphans are told from strangers
_ABSENT = object()
_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]')
_CLOSES = {"}": "{", "]": "["}


def line(type_: str, /, **fields: Any) -> bytes:
    """One command as it goes over the wire, LF included. Add several up for `Agent.send_raw`."""
    return json.dumps({"type": type_, **fields}, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"


def _field(record: Any, path: str) -> Any:
    """The value at a dotted path (`data.messages.-1.role`); `_ABSENT` when there is none."""
    for part in path.split("."):
        if isinstance(record, dict) and part in record:
            record = record[part]
        elif isinstance(record, list) and re.fullmatch(r"-?\d+", part) and -len(record) <= int(part) < len(record):
            record = record[int(part)]
        else:
            return _ABSENT
    return record


def matches(record: Record, wanted: Match) -> bool:
    """Whether a predicate holds, or every dotted path has its value; the value `...` asks only that the path exists."""
    if not isinstance(wanted, Mapping):
        return bool(wanted(record))
    found = ((_field(record, path), value) for path, value in wanted.items())
    return all(have is not _ABSENT if value is ... else have == value for have, value in found)


def parse_record(raw: bytes) -> Record:
    """The object that a line (without its LF) holds. Nested deeper than the json module reads: only the scalars before
    the first nested value. Raises ValueError when it is not exactly one JSON object in UTF-8."""
    text = raw.decode("utf-8")
    if text[:1] != "{" or text[-1:] != "}":
        raise ValueError("it does not start with { and end with }")
    try:
        return dict(json.loads(text, parse_constant=_refuse_number))
    except RecursionError:
        return _head_of_deep(text)


def _refuse_number(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _head_of_deep(text: str) -> Record:
    brackets = [token for token in _BRACKET.finditer(text) if token[0][0] != '"']
    stack: list[str] = []
    for token in brackets:
        if token[0] not in _CLOSES:
            stack.append(token[0])
        elif not stack or stack.pop() != _CLOSES[token[0]] or (not stack and token.end() != len(text)):
            raise ValueError("its brackets do not match")
    if stack:
        raise ValueError("its brackets do not match")
    members, comma, _ = text[: brackets[1].start()].rpartition(",")
    return dict(json.loads(members + "}")) if comma else {}


class _PipeReader:
    """Reads one pipe in a thread; `pause` takes effect before it returns, `close` gives the pipe up."""

    def __init__(self, fd: int, changed: threading.Condition, take: Callable[[bytes], None]) -> None:
        self._fd, self._changed, self._take = fd, changed, take
        self._awake, self._wake = os.pipe()
        self.paused = self.closed = self.ended = False  # closed: given up by us; ended: end of file
        self._left: int | None = None  # bytes until it pauses by itself
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def over(self) -> bool:
        """Whether nothing more comes."""
        return self.ended or self.closed

    def pause(self, paused: bool, after: int = 0) -> None:
        """Pause now, or once `after` more bytes have been read; or go on."""
        with self._changed:
            self.paused = paused and not after
            self._left = after if paused and after else None
            self._changed.notify_all()

    def close(self) -> None:
        with self._changed:
            if self.closed:
                return
            self.closed = True
            self._changed.notify_all()
        os.write(self._wake, b"!")
        self._thread.join()
        os.close(self._wake)
        os.close(self._awake)

    def _run(self) -> None:
        while chunk := self._read():
            with self._changed:
                self._take(chunk)
                self._changed.notify_all()
        with self._changed:
            os.close(self._fd)
            self.ended = not self.closed
            self._changed.notify_all()

    def _read(self) -> bytes:
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        poll.register(self._awake, select.POLLIN)
        poll.poll()
        with self._changed:
            self._changed.wait_for(lambda: self.closed or not self.paused)
            return b"" if self.closed else self._read_some()  # inside the lock: nothing is read after pause()

    def _read_some(self) -> bytes:
        chunk = os.read(self._fd, 65536 if self._left is None else min(self._left, 65536))
        if self._left is not None:
            self._left -= len(chunk)
            if not self._left:
                self.paused, self._left = True, None
        return chunk


class Process(NamedTuple):
    """A line of the process table. `command` has its arguments joined by spaces."""

    pid: int
    parent: int
    command: str
    mark: str


def process_table() -> list[Process]:
    """Every live process (zombies excepted); `mark` is empty where its environment may not be read.
    NotImplementedError without /proc."""
    if not Path("/proc/self/stat").exists():  # an empty table would make every check for orphans pass
        raise NotImplementedError("the process table is read from /proc, which this system does not have")
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state, parent = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[:2]
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
            if state not in "ZX":
                found.append(Process(int(folder.name), int(parent), command, _mark_of(folder)))
    return found


def _mark_of(folder: Path) -> str:
    with suppress(OSError):
        for variable in (folder / "environ").read_bytes().split(b"\0"):
            if variable.startswith(MARK.encode() + b"="):
                return variable.partition(b"=")[2].decode("utf-8", "replace")
    return ""


def _await_end(pid: int, seconds: float) -> None:
    with suppress(ProcessLookupError):
        fd = os.pidfd_open(pid)
        try:
            select.select([fd], [], [], seconds)
        finally:
            os.close(fd)


class Agent:
    """A running `command` (`--mode rpc` included). A context manager: leaving it closes stdin, waits for the exit, and
    raises AssertionError for every fault of the protocol that was seen; `check` tells those of one line, such as
    `conformance.schema_check.check_line`. Deadlines are seconds."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: str | Path | None = None,
        env: Mapping[str, str] | None = None,
        check: Callable[[bytes], list[str]] | None = None,
    ) -> None:
        self._check = check
        self.mark = f"{os.getpid()}-{uuid.uuid4().hex}"
        self._changed = threading.Condition()
        self._records: list[Record] = []
        self._raw: list[bytes] = []
        self._faults: list[str] = []
        self._tail = bytearray()
        self._stderr = b""
        self._code: int | None = None
        self._sent = 0
        self._end_is_known = False  # the test itself looked at the exit or caused it, so its code is not a fault
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0, cwd=cwd,
            env={**(os.environ if env is None else env), MARK: self.mark},
            start_new_session=True,  # a stray killpg of the agent must not reach the test run
        )  # fmt: skip
        stdin, stdout, stderr = self._process.stdin, self._process.stdout, self._process.stderr
        assert stdin and stdout and stderr
        self._stdin = stdin
        os.set_blocking(
            stdin.fileno(), False
        )  # our end alone: an agent that does not read must not hold a test forever
        self._out = _PipeReader(os.dup(stdout.fileno()), self._changed, self._take_stdout)
        self._err = _PipeReader(os.dup(stderr.fileno()), self._changed, self._take_stderr)
        stdout.close()
        stderr.close()
        threading.Thread(target=self._reap, daemon=True).start()

    # ---- what it said ------------------------------------------------------------------------------------------

    @property
    def records(self) -> list[Record]:
        """Every record so far, in wire order."""
        with self._changed:
            return list(self._records)

    @property
    def raw_lines(self) -> list[bytes]:
        """Every line so far as it came, without LF, those that are no JSON object included."""
        with self._changed:
            return list(self._raw)

    @property
    def cursor(self) -> int:
        """How many records there are; as `since` of a later wait it means: only what comes from now on."""
        with self._changed:
            return len(self._records)

    @property
    def stderr(self) -> str:
        with self._changed:
            return self._stderr.decode("utf-8", "replace")

    @property
    def pid(self) -> int:
        return self._process.pid

    def responses(self, id_: Any) -> list[Record]:
        """The responses so far to the request `id_`; more than one is a fault of the agent."""
        return [record for record in self.records if matches(record, {"type": "response", "id": id_})]

    @property
    def exit_code(self) -> int | None:
        """None while it runs; minus the signal's number if one killed it."""
        with self._changed:
            return self._code

    # ---- talking to it -----------------------------------------------------------------------------------------

    def send(self, type_: str, /, **fields: Any) -> Any:
        """Send a command; returns its id, a fresh one unless `fields` has one."""
        self._sent += 1
        id_ = fields.pop("id", f"c{self._sent}")
        self.send_raw(line(type_, id=id_, **fields))
        return id_

    def send_raw(self, data: bytes, deadline: float = 60.0) -> None:
        """Send bytes as they are: several records in one write, half a record, or no record at all. TimeoutError when
        the agent has not read enough within `deadline`."""
        view, fd, end = memoryview(data), self._stdin.fileno(), time.monotonic() + deadline
        while view:
            try:
                view = view[os.write(fd, view) :]
            except BlockingIOError:
                poll = select.poll()
                poll.register(fd, select.POLLOUT)
                if not poll.poll(max(0.0, end - time.monotonic()) * 1000):
                    raise TimeoutError(
                        f"the agent left {len(view)} bytes of its stdin unread for {deadline:g} s"
                    ) from None

    def request(self, type_: str, /, *, deadline: float = 20.0, **fields: Any) -> Record:
        """Send a command and wait for its response, whether or not it tells success."""
        since = self.cursor
        id_ = self.send(type_, **fields)
        return self.wait({"type": "response", "id": id_}, deadline=deadline, since=since)

    def prompt(self, message: str, *, deadline: float = 20.0, **fields: Any) -> list[Record]:
        """Prompt and wait until the agent has settled; returns all records from the prompt on. A refusal raises."""
        since = self.cursor
        response = self.request("prompt", message=message, deadline=deadline, **fields)
        assert response["success"], self._report(f"the prompt was refused: {response}")
        self.wait({"type": "agent_settled"}, deadline=deadline, since=since)
        return self.records[since:]

    # ---- waiting -----------------------------------------------------------------------------------------------

    def until(self, look: Callable[[list[Record]], T | None], deadline: float = 20.0) -> T | None:
        """What `look` says of all records, asked again whenever something new came, as soon as it says anything; None
        when `deadline` has passed or stdout has ended before that. `look` must not call this object."""
        found: list[T] = []

        def ask() -> bool:
            said = look(self._records)
            if said is not None:
                found.append(said)
            return bool(found) or self._out.over

        with self._changed:
            self._changed.wait_for(ask, deadline)
        return found[0] if found else None

    def wait(self, wanted: Match, *, deadline: float = 20.0, since: int = 0) -> Record:
        """The first record from `since` on that matches, now or within `deadline`. AssertionError if none comes."""
        found: list[Record] = []

        def look() -> bool:
            nonlocal since
            fresh, since = self._records[since:], len(self._records)
            found.extend(record for record in fresh if matches(record, wanted))
            return bool(found) or self._out.over

        with self._changed:
            in_time = self._changed.wait_for(look, deadline)
            assert found, self._report(
                f"no record {wanted} " + ("before stdout ended" if in_time else f"within {deadline} s")
            )
            return found[0]

    def wait_stderr(self, fragment: str, *, deadline: float = 20.0) -> str:
        """All of stderr once it holds `fragment`."""
        with self._changed:
            self._changed.wait_for(lambda: fragment in self.stderr or self._err.over, deadline)
            assert fragment in self.stderr, self._report(f"stderr never held {fragment!r}")
            return self.stderr

    def none_since(self, wanted: Match, since: int) -> None:
        """Assert that nothing from `since` on matches, up to the response of a `get_state` that is sent for this."""
        self.request("get_state")
        bad = [record for record in self.records[since:] if matches(record, wanted)]
        assert not bad, self._report(f"unwanted record {str(bad[0])[:400]}")

    def wait_exit(self, deadline: float = 20.0) -> int:
        """The exit code (minus the signal's number if one killed it), once stdout and stderr are read to their end."""
        self._end_is_known = True
        with self._changed:
            self._changed.wait_for(lambda: self._code is not None, deadline)
            assert self._code is not None, self._report(f"still running after {deadline} s")
            drained = self._changed.wait_for(lambda: (self._out.over or self._out.paused) and self._err.over, deadline)
            assert drained, self._report("the process is gone, but another one still holds its stdout or stderr open")
            return self._code

    # ---- pipes and signals -------------------------------------------------------------------------------------

    def close_stdin(self) -> None:
        self._stdin.close()

    def stop_reading(self, after: int = 0) -> None:
        """Be the client that does not read: once this returns, no byte is taken from stdout, or only `after` more."""
        self._out.pause(True, after)

    def resume_reading(self) -> None:
        self._out.pause(False)

    def close_stdout(self) -> None:
        """Close our end of its stdout: its next write gets EPIPE."""
        self._end_is_known = True
        self._out.close()

    def terminate(self, number: int = signal.SIGTERM) -> None:
        self._end_is_known = True
        self._process.send_signal(number)

    # ---- the process table -------------------------------------------------------------------------------------

    def peak_rss(self) -> int:
        """The most memory it has had resident, in bytes. OSError once it is gone."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        found = re.search(r"^VmHWM:\s+(\d+) kB", status, re.M)
        if not found:
            raise ProcessLookupError(f"process {self.pid} has ended")
        return int(found[1]) * 1024

    def process_tree(self) -> list[Process]:
        """Its live descendants, without those whose parent died (`orphans` finds them)."""
        table, wanted, tree = process_table(), {self.pid}, []
        while found := [process for process in table if process.parent in wanted]:
            tree += found
            wanted = {process.pid for process in found}
        return tree

    def orphans(self, marker: str | None = None, *, deadline: float = 0.0) -> list[Process]:
        """What it started (or what has `marker` in its command line) and still lives, given `deadline` to end."""
        end = time.monotonic() + deadline
        while True:
            found = [process for process in process_table() if self._is_ours(process, marker)]
            left = end - time.monotonic()
            if not found or left <= 0:
                return found
            _await_end(found[0].pid, left)

    def _is_ours(self, process: Process, marker: str | None) -> bool:
        known = process.mark == self.mark or (marker is not None and marker in process.command)
        return known and process.pid not in (self.pid, os.getpid())

    # ---- the end -----------------------------------------------------------------------------------------------

    def close(self, deadline: float = 10.0) -> None:
        """End it as a client would, by closing stdin; AssertionError if it does not end, or for any fault seen."""
        self.resume_reading()
        self.close_stdin()
        known = self._end_is_known
        try:
            code = self.wait_exit(deadline)
            if code and not known:
                self._faults.append(f"exit code {code} after stdin was closed, 0 was due")
        except AssertionError as error:
            self._faults.append(str(error).partition("\n")[0])
            self._process.kill()
            with self._changed:
                self._changed.wait_for(lambda: self._code is not None, deadline)
        self._check_tail()
        self._out.close()
        self._err.close()
        faults, self._faults = self._faults, []
        assert not faults, self._report("; ".join(faults))

    def _check_tail(self) -> None:
        killed = self._code is not None and self._code < 0  # a signal that cannot be handled may cut a record
        if self._tail and self._out.ended and not killed:
            self._faults.append(f"stdout ends without LF: {bytes(self._tail[:200])!r}")
        self._tail.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            self.close()
        except AssertionError as fault:
            if error is None:
                raise
            error.add_note(str(fault))  # the test's own failure comes first

    # ---- the threads' side -------------------------------------------------------------------------------------

    def _take_stdout(self, chunk: bytes) -> None:
        self._tail += chunk
        if b"\n" not in chunk:  # so that a line of many megabytes is not copied with every chunk
            return
        *lines, self._tail = self._tail.split(b"\n")
        for raw in map(bytes, lines):
            self._raw.append(raw)
            try:
                self._records.append(parse_record(raw))
            except ValueError as error:
                self._faults.append(f"line {len(self._raw)} of stdout is not one JSON object ({error}): {raw[:200]!r}")
                continue
            if self._check is not None:
                faults = (f"line {len(self._raw)} of stdout: {fault}" for fault in self._check(raw))
                self._faults += (f"{fault} in {raw[:200]!r}" for fault in faults)

    def _take_stderr(self, chunk: bytes) -> None:
        self._stderr += chunk

    def _reap(self) -> None:
        code = self._process.wait()
        with self._changed:
            self._code = code
            self._changed.notify_all()

    def _report(self, what: str) -> str:
        """`what`, and what a reader needs to see why."""
        with self._changed:
            last = "\n  ".join(raw[:300].decode("utf-8", "replace") for raw in self._raw[-12:])
            state = "running" if self._code is None else f"exit code {self._code}"
        return f"{what}\n{state}, {len(self._raw)} lines on stdout, the last:\n  {last}\nstderr: {self.stderr[-2000:]}"
