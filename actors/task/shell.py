"""A shell task: one command that may outlive the call that started it, its output, its end and what is left of it.

It owns the process group, what was put out and how far waits have read it. It tells its desk three things that do not
imply each other: that the command has begun, how it ended, and that nothing of it is left. Source: `tasks.md` 2.8, 2.9.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol, assert_never

import msgspec

from actors.base import Actor, Address
from actors.mail import (
    Arm,
    ClockMail,
    CommandBegun,
    CommandExited,
    CommandOutput,
    CommandSwept,
    HideOutput,
    InputTaken,
    InputTyped,
    InputTyping,
    OutputRead,
    ReadOutput,
    ResizeTerminal,
    ShellTaskMail,
    ShellTaskPlan,
    StopCommand,
    TaskDeskMail,
    TaskEnded,
    TaskOrphaned,
    TaskOverLimit,
    TaskReaped,
    TaskSpawned,
    TaskUncleaned,
    Tick,
    ToolCallMail,
    ToolUpdated,
    TypeInput,
)
from actors.shell.output import Decoder, Tail
from actors.task.command_road import CommandRoad
from actors.task.input import OVER, InputLedger, delivery_unknown
from actors.task.retained import OpenLog, Page, Retained
from actors.task.view import OutputView, output_ref
from actors.tool.table import ToolOutput
from protocol.messages import TextContent
from protocol.tasks import TaskCompleted, TaskFailed, TaskRef, TaskResult

SNAPSHOT_MS = 100
CLOSED = "StdinClosed: the task takes no input"
LEFT = "the processes of the command"
NO_TERMINAL = "StdinClosed: the task has no terminal"


class RunningCommand(Protocol):
    """A command in a pump, which also ends and reaps what the command leaves behind. None of these waits. `stop` is
    gentle and becomes a `kill` by itself; `abandon` is for when nobody takes the output any more; `resize` tells
    whether there is a terminal, by now and still."""

    def stop(self) -> None: ...
    def kill(self) -> None: ...
    def abandon(self) -> None: ...
    def type(self, data: bytes) -> None: ...
    def resize(self, columns: int, rows: int) -> bool: ...


StartCommand = Callable[[ShellTaskPlan, Address[ShellTaskMail]], RunningCommand]
"""Starts a command; what comes of it is told as `CommandBegun`, `CommandOutput`, one `CommandExited`, and
`CommandSwept` until nothing is left."""


class ShellTask(Actor[ShellTaskMail]):
    """`now` is in monotonic seconds; `open_log` makes the file of the whole output. `observer` is the call that
    launched it: it is shown snapshots for as long as it waits."""

    def __init__(
        self,
        ref: TaskRef,
        plan: ShellTaskPlan,
        desk: Address[TaskDeskMail],
        observer: Address[ToolCallMail],
        clock: Address[ClockMail],
        start_command: StartCommand,
        open_log: OpenLog,
        now: Callable[[], float],
    ) -> None:
        self._ref = ref
        self._plan = plan
        self._desk = desk
        self._observer: Address[ToolCallMail] | None = observer
        self._clock = clock
        self._start_command = start_command
        self._now = now
        self._tail = Tail()
        self._decoders = {"stdout": Decoder(), "stderr": Decoder()}
        self._retained = Retained(open_log)
        self._input = InputLedger()
        self._typing: deque[TypeInput] = deque()
        self._typed_so_far = 0
        self._read_to = 0
        self._told_over = self._exited = self._has_command = False
        self._alone = self._is_gone = False
        self._snapshot_due = self._changed = False
        self._wall_ms: int | None = None

    def begin(self) -> None:
        self._began = self._now()
        if self._observer is not None:
            self._observer.tell(ToolUpdated(ToolOutput([])))
        self._command = self._start_command(self._plan, CommandRoad(self.me, self._desk, self._ref.task_id))
        self._has_command = True

    def receive(self, mail: ShellTaskMail) -> None:
        match mail:
            case CommandOutput(channel, data, ack):
                self._take_output(channel, data)
                if ack is not None:
                    ack.settle()
            case Tick():
                self._snapshot_due = False
                self._show_if_due()
            case CommandBegun():
                self._desk.tell(TaskSpawned(self._ref.task_id))
            case CommandExited():
                self._exit(mail)
            case CommandSwept(left):
                self._swept(left)
            case StopCommand(at_once, alone):
                self._alone = self._alone or alone
                self._stop(at_once)
                self._leave()
            case HideOutput():
                self._observer = None
            case ReadOutput(number, page):
                self._desk.tell(OutputRead(number, self._view(page=page)))
            case TypeInput():
                self._type(mail)
            case ResizeTerminal():
                self._resize(mail)
            case InputTyping(accepted):
                self._typed_so_far = accepted
            case InputTaken(accepted):
                self._typed(accepted)
            case _:
                assert_never(mail)

    def last_words(self, unread: list[ShellTaskMail]) -> None:
        """The command goes too; its pump sees to what it leaves, and tells the desk."""
        if self._has_command:
            self._command.abandon()
            self._desk.tell(TaskOrphaned(self._ref.task_id, (LEFT,)))
        self._retained.close()

    def ended(self) -> None:
        """The terminal may be gone before it was told how much of an input it took."""
        for waiting in self._typing:
            accepted, self._typed_so_far = self._typed_so_far, 0  # of the first; the others were not begun
            error = delivery_unknown(waiting.operation, accepted)
            self._desk.tell(InputTyped(waiting.ticket, accepted, error))
        self._retained.close()

    # -- output

    def _take_output(self, channel: str, data: bytes) -> None:
        self._tail.append(self._decoders[channel].feed(data))
        self._retained.write(data)
        self._changed = True
        self._show_if_due()
        if self._retained.over_cap and not self._plan.pty and not self._told_over:
            self._told_over = True
            self._desk.tell(TaskOverLimit(self._ref.task_id))

    def _show_if_due(self) -> None:
        """At most one snapshot in 100 ms, and none when nobody waits for the launch."""
        if self._observer is None or self._snapshot_due or not self._changed:
            return
        self._snapshot_due = True
        self._clock.tell(Arm("snapshot", SNAPSHOT_MS, self.me))
        self._show(self._observer)

    def _show(self, observer: Address[ToolCallMail]) -> None:
        self._changed = False
        cut = self._tail.truncated()
        details = {
            "truncation": msgspec.to_builtins(cut) if cut.truncated else None,
            "fullOutputPath": self._retained.path,
        }
        observer.tell(ToolUpdated(ToolOutput([TextContent(cut.content)] if cut.content else [], details)))

    def _view(self, *, page: bool = False) -> OutputView:
        cut = self._tail.truncated()
        path = self._retained.save() if cut.truncated else self._retained.path
        tail = self._retained.tail()
        return OutputView(
            output_ref(self._ref.owner_id, self._ref.task_id, self._retained.total, self._retained.gap),
            cut,
            self._tail.last_line_bytes,
            self._wall_ms if self._wall_ms is not None else self._elapsed_ms(),
            path,
            self._next_page() if page else None,
            tail.data,
            tail.omitted is not None,
        )

    def _next_page(self) -> Page:
        page = self._retained.page(self._read_to)
        self._read_to = page.next
        return page

    def _elapsed_ms(self) -> int:
        return round((self._now() - self._began) * 1000)

    # -- the end

    def _stop(self, at_once: bool) -> None:
        if at_once:
            self._command.kill()
        else:
            self._command.stop()

    def _exit(self, mail: CommandExited) -> None:
        self._exited = True
        self._wall_ms = self._elapsed_ms()
        for decoder in self._decoders.values():
            rest = decoder.end()
            self._tail.append(rest)
            self._changed = self._changed or bool(rest)
        if self._observer is not None and self._changed:
            self._show(self._observer)
        self._observer = None
        view = self._view()
        self._desk.tell(TaskEnded(self._ref.task_id, _result(mail, view), view))

    def _swept(self, left: tuple[str, ...]) -> None:
        if left:
            self._desk.tell(TaskUncleaned(self._ref.task_id, left))
            return
        self._is_gone = True
        self._desk.tell(TaskReaped(self._ref.task_id, self._view()))
        self._leave()

    def _leave(self) -> None:
        """Its desk stops it; without one it stops by itself."""
        if self._alone and self._is_gone:
            self.me.stop()

    # -- input

    def _type(self, mail: TypeInput) -> None:
        if self._exited or not self._plan.pty:
            self._desk.tell(InputTyped(mail.ticket, 0, OVER if self._exited else CLOSED))
            return
        known = self._input.begin(mail.operation, mail.data)
        if known is not None:
            self._desk.tell(InputTyped(mail.ticket, known.accepted, known.error))
            return
        self._typing.append(mail)
        if len(self._typing) == 1:
            self._command.type(mail.data)

    def _resize(self, mail: ResizeTerminal) -> None:
        error = OVER if self._exited else None if self._plan.pty else NO_TERMINAL
        if error is None and not self._command.resize(mail.columns, mail.rows):
            error = OVER
        self._desk.tell(InputTyped(mail.ticket, 0, error))

    def _typed(self, accepted: int) -> None:
        self._typed_so_far = 0
        done = self._typing.popleft()
        receipt = self._input.end(done.operation, accepted)
        self._desk.tell(InputTyped(done.ticket, receipt.accepted, receipt.error))
        if self._typing:
            self._command.type(self._typing[0].data)


def _result(mail: CommandExited, view: OutputView) -> TaskResult:
    if mail.error is not None:
        return TaskFailed(mail.failure, mail.error, view.ref)
    if mail.code is None:
        return TaskFailed("CommandKilled", f"Command was killed by signal {mail.signal}", view.ref)
    return TaskCompleted(view.ref, mail.code)
