"""The `bash` tool where nobody owns tasks: one command, its output as it comes, and how it ended.

Where a session owns its tasks the command is one of them instead (`actors.tool.shell_call`).
The child's pipes are read by a thread of their own, which hands bounded chunks over a queue; all state belongs to the
thread that runs the tool, and its waits on the queue keep both the pace of the snapshots and the time-out. A command
that left background processes is handed to `ToolContext.leave_behind`. Source: `tasks.md` 1.8, `rpc.md` 5.5.
"""

from __future__ import annotations

import math
from queue import Empty, Queue
from typing import Any

import msgspec

from actors.shell.output import Decoder, Tail
from actors.shell.process import Exit, Process, ProcessSpec, SpawnError, choose_shell, powershell_argv, shell_argv
from actors.shell.pty import Terminal, wants_pty
from actors.shell.truncate import ABORT_NOTE, MAX_BYTES, bash_tool_text, exit_note, timeout_note
from actors.tool.schema import number
from actors.tool.shell_call import environment, refused_without_owner, timeout_seconds
from actors.tool.table import ToolContext, ToolFailure, ToolOutput
from protocol.messages import TextContent

SNAPSHOT_S = 0.1
# 64 KiB each: the command waits once this much is unread.
QUEUED_CHUNKS = 16

Chunks = Queue[tuple[str, bytes] | Exit]


def run(context: ToolContext, arguments: dict[str, Any], *, powershell: bool = False) -> ToolOutput:
    """Details: `timeoutSeconds`, `requestedTimeoutSeconds`, `wallTimeMs`, `exitCode`, `truncation`, `fullOutputPath`.

    Raises `ToolFailure`, with the output so far, once cancelled or timed out.
    """
    requested = number(arguments, "timeout")
    seconds = timeout_seconds(requested)
    if (refusal := refused_without_owner(arguments)) is not None:
        raise ToolFailure(refusal)
    spec, terminal = _plan(context, arguments, powershell)
    process = Terminal() if terminal else Process()
    output = _Output(context)
    started = context.now()
    context.update(ToolOutput([]))
    # Not after the end: what a finished command left in the background is not this call's to kill.
    context.on_cancel(lambda: None if output.closed else process.kill())
    try:
        process.start(spec)
        ended, timed_out = _follow(context, process, output, started + seconds)
    except SpawnError as error:
        raise ToolFailure(str(error)) from None
    finally:
        path = output.close()
        _let_go(context, process)
    details: dict[str, Any] = {"timeoutSeconds": seconds}
    if requested is not None and requested != seconds:
        details["requestedTimeoutSeconds"] = requested
    details["wallTimeMs"] = round((context.now() - started) * 1000)
    return _result(context, ended, timed_out, output, path, details)


def _plan(context: ToolContext, arguments: dict[str, Any], powershell: bool) -> tuple[ProcessSpec, bool]:
    from shutil import which

    variables = environment(context.environment(), arguments.get("env") or {})
    cwd = arguments.get("cwd")
    try:
        shell = choose_shell(context.shell_path, lambda name: which(name, path=variables.get("PATH", "")))
    except SpawnError as error:
        raise ToolFailure(str(error)) from None
    command = arguments["command"]
    argv = powershell_argv(command) if powershell else shell_argv(shell, command, context.shell_prefix)
    spec = ProcessSpec(argv, context.resolve(cwd) if cwd else context.cwd, variables)
    return spec, wants_pty(arguments.get("pty") is True, variables)


def _follow(context: ToolContext, process: Process | Terminal, output: _Output, deadline: float) -> tuple[Exit, bool]:
    """Takes in all output; kills at the deadline. The exit, and whether that was the deadline's doing."""
    from threading import Thread

    chunks: Chunks = Queue(QUEUED_CHUNKS)
    Thread(target=_read, args=(process, chunks), name="bash-pipes", daemon=True).start()
    timed_out = False
    while True:
        now = context.now()
        if now >= deadline and not timed_out and not context.cancelled():
            timed_out = True
            process.kill()
        try:
            chunk = chunks.get(timeout=output.wait(now, math.inf if timed_out else deadline))
        except Empty:
            output.show_if_due(context.now())
            continue
        if isinstance(chunk, Exit):
            output.end()
            return chunk, timed_out
        output.take(*chunk)
        output.show_if_due(context.now())


def _read(process: Process | Terminal, chunks: Chunks) -> None:
    ended = Exit(None)
    try:
        ended = process.pump(lambda channel, data: chunks.put((channel, data)))
    finally:
        chunks.put(ended)


def _let_go(context: ToolContext, process: Process | Terminal) -> None:
    """What is left on a terminal ends with it."""
    if isinstance(process, Process):
        if process.close():
            context.leave_behind(process)
        return
    if process.leader is not None and process.leader.members():
        process.kill()
    process.close()


def _result(
    context: ToolContext, ended: Exit, timed_out: bool, output: _Output, path: str | None, details: dict[str, Any]
) -> ToolOutput:
    cut = output.tail.truncated()
    if cut.truncated:
        details["truncation"] = msgspec.to_builtins(cut)
    if path is not None:
        details["fullOutputPath"] = path
    failed = timed_out or context.cancelled()
    if not failed and ended.code:
        details["exitCode"] = ended.code
    ending = timeout_note(details["timeoutSeconds"]) if timed_out else _ending(context, ended)
    if ending:
        cut = msgspec.structs.replace(cut, content=cut.content.removesuffix("\n"))
    text = bash_tool_text(cut, path, output.tail.last_line_bytes, ending)
    if failed:
        raise ToolFailure(text, details)
    return ToolOutput([TextContent(text)], details, is_error=ended.code != 0)


def _ending(context: ToolContext, ended: Exit) -> str:
    if context.cancelled():
        return ABORT_NOTE
    return f"Command was killed by signal {ended.signal}" if ended.code is None else exit_note(ended.code)


class _Output:
    """What came so far: the tail as text, the raw bytes for the log once it is needed, and the pace of snapshots."""

    def __init__(self, context: ToolContext) -> None:
        self.tail = Tail()
        self._context = context
        self._decoders = {"stdout": Decoder(), "stderr": Decoder()}
        self._spill = context.spill()
        self._held: list[bytes] | None = []  # None once the log is open
        self._raw_bytes = 0
        self._shown = -math.inf
        self._changed = False
        self.closed = False

    def take(self, channel: str, data: bytes) -> None:
        self.tail.append(self._decoders[channel].feed(data))
        self._changed = True
        self._raw_bytes += len(data)
        if self._held is None:
            self._spill.write(data)
            return
        self._held.append(data)
        if self._raw_bytes > MAX_BYTES:
            self._open_log()

    def wait(self, now: float, deadline: float) -> float | None:
        """Seconds until something is due; `None` if nothing ever is."""
        due = min(deadline, self._shown + SNAPSHOT_S if self._changed else math.inf)
        return None if due == math.inf else max(due - now, 0)

    def show_if_due(self, now: float) -> None:
        if self._changed and now - self._shown >= SNAPSHOT_S:
            self._shown = now
            self._show()

    def end(self) -> None:
        """Flushes the decoders and shows what was not shown yet."""
        for decoder in self._decoders.values():
            rest = decoder.end()
            self.tail.append(rest)
            self._changed = self._changed or bool(rest)
        if self._held is not None and self.tail.truncated().truncated:
            self._open_log()
        if self._changed:
            self._show()

    def close(self) -> str | None:
        """Path of the log, if there is one."""
        self.closed = True
        return self._spill.close()

    def _open_log(self) -> None:
        self._spill.write(b"".join(self._held or ()))
        self._held = None

    def _show(self) -> None:
        self._changed = False
        cut = self.tail.truncated()
        details = {
            "truncation": msgspec.to_builtins(cut) if cut.truncated else None,
            "fullOutputPath": self._spill.path,
        }
        self._context.update(ToolOutput([TextContent(cut.content)] if cut.content else [], details))
