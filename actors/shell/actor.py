"""One shell request of the client: its process group, its output, its answer.

It belongs to the session in which it began, whatever is current later. Its deltas go to the client in the order in
which they were seen; then its home session records the result, and only then comes the one response.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol, assert_never

from msgspec import UNSET, Raw

from actors.base import Actor, Address
from actors.mail import (
    BashFinished,
    BashRecorded,
    CancelShell,
    LeftBehind,
    NewHome,
    Record,
    Remains,
    SessionMail,
    ShellDeskMail,
    ShellEnded,
    ShellExited,
    ShellMail,
    ShellOutput,
    ShellPlan,
    Ticket,
    Write,
    WriterMail,
)
from actors.shell.output import Sanitizer, Tail
from actors.shell.spill import Spill
from actors.shell.truncate import MAX_BYTES
from protocol.codec import encode
from protocol.events import BashExecutionUpdate
from protocol.messages import BashExecutionMessage
from protocol.responses import BashResult


class RunningProcess(Remains, Protocol):
    """A process in a pump. `kill` ends all of its group at once and does not wait; `close` also reaps it."""

    def kill(self) -> None: ...


StartProcess = Callable[[ShellPlan, Address[ShellMail]], RunningProcess]
"""Starts a process; what comes of it is told as `ShellOutput` and one `ShellExited`."""


class Shell(Actor[ShellMail]):
    """`now` is in milliseconds; `spill` makes the log of the full output, which is opened only if it is needed."""

    def __init__(
        self,
        ticket: Ticket,
        plan: ShellPlan,
        home: Address[SessionMail],
        desk: Address[ShellDeskMail],
        writer: Address[WriterMail],
        start_process: StartProcess,
        spill: Callable[[str], Spill],
        now: Callable[[], int],
    ) -> None:
        self._ticket = ticket
        self._plan = plan
        self._home = home
        self._desk = desk
        self._writer = writer
        self._start_process = start_process
        self._now = now
        self._sanitizers = {"stdout": Sanitizer(), "stderr": Sanitizer()}
        self._tail = Tail()
        self._spill = spill(plan.session_id)
        self._spilling = False
        self._raw_bytes = 0
        self._cancelled = False
        self._finished: BashFinished | None = None
        self._homeless: str | None = None

    def begin(self) -> None:
        self._process = self._start_process(self._plan, self.me)

    def receive(self, mail: ShellMail) -> None:
        match mail:
            case ShellOutput(channel, data, ack):
                self._writer.tell(Write((self._take_output(channel, data),), ack=ack))
            case ShellExited(code, error):
                if self._process.close():
                    self._desk.tell(LeftBehind(self._process))
                self._finish(code, error)
            case CancelShell():
                if self._finished is None:
                    self._cancelled = True
                    self._process.kill()
            case BashRecorded(error):
                if self._finished is None:  # nobody is left who could record it
                    self._homeless = error
                else:
                    self._answer(error)
            case NewHome(home):
                self._home = home
                if self._finished is not None:
                    self._home.tell(self._finished)
            case _:
                assert_never(mail)

    def last_words(self, unread: list[ShellMail]) -> None:
        if self._finished is None:
            self._process.kill()
        self._process.close()

    def _take_output(self, channel: Literal["stdout", "stderr"], data: bytes) -> Record:
        text = self._sanitizers[channel].feed(data)
        self._raw_bytes += len(data)
        self._keep(text)
        request = Raw(self._ticket.id) if self._ticket.id else UNSET
        return Record(encode(BashExecutionUpdate(channel, text, request)) + b"\n")

    def _keep(self, text: str) -> None:
        if self._spilling:
            self._spill.write(text)
        self._tail.append(text)
        if not self._spilling and self._raw_bytes > MAX_BYTES:
            self._begin_spill()

    def _begin_spill(self) -> None:
        """Everything so far is still in the tail, which holds more than the size at which the log begins."""
        self._spilling = True
        self._spill.write(self._tail.text())

    # -- the end

    def _finish(self, code: int | None, error: str | None) -> None:
        message = None
        if error is not None and not self._cancelled:
            self._writer.tell(Write((self._ticket.failed(error),)))
        else:
            message = self._message(code)
        self._finished = BashFinished(self._ticket.serial, message, self.me)
        if self._homeless is None:
            self._home.tell(self._finished)
        else:
            self._answer(self._homeless)

    def _message(self, code: int | None) -> BashExecutionMessage:
        for sanitizer in self._sanitizers.values():
            self._keep(sanitizer.end())
        cut = self._tail.truncated()
        if cut.truncated and not self._spilling:
            self._begin_spill()
        path = self._spill.close()
        missing = None if cut.truncated else UNSET
        return BashExecutionMessage(
            command=self._plan.command,
            output=cut.content,
            cancelled=self._cancelled,
            truncated=cut.truncated,
            timestamp=self._now(),
            exit_code=UNSET if code is None or self._cancelled else code,
            full_output_path=path or missing,
            exclude_from_context=True if self._plan.exclude_from_context else UNSET,
        )

    def _answer(self, error: str | None) -> None:
        if self._finished is not None and self._finished.message is not None:
            message = self._finished.message
            result = BashResult(
                message.output, message.cancelled, message.truncated, message.exit_code, message.full_output_path
            )
            if error is None:
                record = self._ticket.ok(encode(result))
            else:
                record = self._ticket.failed(f"{error}\nOutput that was not recorded:\n{message.output}")
            self._writer.tell(Write((record,)))
        self._desk.tell(ShellEnded(self._ticket.serial))
        self.me.stop()
