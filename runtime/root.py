"""The process's own actor: its phase, its exit code, its deadlines, and the death of its parts.

It lives on the main thread, so that a signal handler only has to put a mail. It ends the process in order: first no new
work, then sessions and shells in parallel, then the Writer, which flushes. Whatever hangs is named on stderr when
the deadline passes, and no child process is left.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, assert_never

from actors.base import Actor, Address, Down
from actors.mail import (
    AnswerOpen,
    Arm,
    ClockMail,
    CloseIntake,
    CloseSessions,
    CloseShells,
    CloseWriter,
    InputEnded,
    InputEnding,
    IntakeMail,
    RootMail,
    SessionDeskMail,
    SessionsClosed,
    ShellDeskMail,
    ShellsClosed,
    SignalReceived,
    StdoutClosed,
    Tick,
    WriterClosed,
    WriterMail,
)
from runtime.stdio import CANNOT_WRITE

DEADLINE_MS = 5000
LAST_WORDS_MS = 1000
UNANSWERED = "atomic ended before it could answer"
"""For a command that died on its way. In a run without a fault nobody gets it."""
Phase = Literal["running", "closing input", "draining", "flushing", "over"]


class Root(Actor[RootMail]):
    """`progress` counts what the client has read, `sweep` kills every process that is left below us."""

    def __init__(self, complain: Callable[[str], None], progress: Callable[[], int], sweep: Callable[[], None]) -> None:
        self._complain = complain
        self._progress = progress
        self._sweep = sweep
        self.phase: Phase = "running"
        self.exit_code = 0
        self._waiting: set[str] = set()
        self._seen_progress = 0
        self._asked_for_the_rest = False
        self._gave_up = False

    def connect(
        self,
        intake: Address[IntakeMail],
        desk: Address[SessionDeskMail],
        shells: Address[ShellDeskMail],
        writer: Address[WriterMail],
        clock: Address[ClockMail],
    ) -> None:
        """Called by the wiring before the first mail."""
        self._intake, self._desk, self._shells = intake, desk, shells
        self._writer, self._clock = writer, clock

    def receive(self, mail: RootMail) -> None:
        match mail:
            case InputEnded(answered, exit_code):
                if self.phase == "running":
                    self.exit_code = exit_code
                self._drain()
                if answered:
                    self._closed("open commands")
            case InputEnding():
                if self.phase == "running":
                    self.phase = "closing input"
                    self._arm_deadline()
            case SignalReceived(number):
                self._stop(128 + number)
            case StdoutClosed(error):
                self._stdout_closed(error)
            case SessionsClosed():
                self._closed("sessions")
            case ShellsClosed():
                self._closed("shell requests")
            case WriterClosed():
                self._end()
            case Down(key, error):
                self._bury(key, error)
            case Tick():
                self._deadline_passed()
            case _:
                assert_never(mail)

    def _stop(self, exit_code: int) -> None:
        """The first trigger begins the orderly end; a second one ends at once."""
        if self.phase == "running":
            self.phase = "closing input"
            self.exit_code = exit_code
            self._arm_deadline()
            self._intake.tell(CloseIntake())
        else:
            self.exit_code = exit_code
            self._end()

    def _stdout_closed(self, error: str) -> None:
        """During an end that has begun it is no second trigger; but what the client did not get is no success."""
        if error:
            self._complain(CANNOT_WRITE.format(error))
        if self.phase == "running":
            self._stop(1)
        elif self.exit_code == 0:
            self.exit_code = 1

    def _drain(self) -> None:
        if self.phase not in ("running", "closing input"):
            return
        if self.phase == "running":
            self._arm_deadline()
        self.phase = "draining"
        self._waiting = {"sessions", "shell requests"}
        self._desk.tell(CloseSessions())
        self._shells.tell(CloseShells())

    def _closed(self, part: str) -> None:
        self._waiting.discard(part)
        if part == "sessions":  # only now is it certain that no session begins another shell request
            self._shells.tell(CloseShells(last=True))
        if self.phase == "draining" and not self._waiting:
            self._answer_the_rest()

    def _answer_the_rest(self) -> None:
        """Whoever could answer has ended. What is open all the same, since it died on its way, gets its answer now."""
        if self._asked_for_the_rest:
            self.phase = "flushing"
            self._writer.tell(CloseWriter())
            return
        self._asked_for_the_rest = True
        self._waiting = {"open commands"}
        self._intake.tell(AnswerOpen(UNANSWERED, last=True))

    def _bury(self, key: Any, error: str) -> None:
        """A permanent part died. A fresh one would lie about its state: what is open is answered, then it all ends."""
        self._complain(f"{key} failed: {error}")
        self.exit_code = 1
        self._intake.tell(AnswerOpen(f"atomic failed: {key}: {error}"))
        if key in ("writer", "printer"):
            self._end()
            return
        self._asked_for_the_rest = self._asked_for_the_rest or key == "intake"  # which is dead then
        self._drain()
        gone = {"session desk": "sessions", "shell desk": "shell requests", "intake": "open commands"}.get(key)
        if gone is not None:
            self._closed(gone)

    def _arm_deadline(self) -> None:
        self._seen_progress = self._progress()
        self._clock.tell(Arm("deadline", DEADLINE_MS, self.me))

    def _deadline_passed(self) -> None:
        """A client that still reads what is being flushed, or what the last commands wait behind, gets more time."""
        if self.phase in ("closing input", "flushing") and self._progress() != self._seen_progress:
            self._arm_deadline()
            return
        if not self._gave_up:
            what = ", ".join(sorted(self._waiting)) or ("unread output" if self.phase == "flushing" else self.phase)
            self._complain(f"gave up after {DEADLINE_MS / 1000:g} s; still there: {what}")
        if self._gave_up or self.phase == "flushing" or self._asked_for_the_rest:
            self._end()
        else:
            self._last_words()

    def _last_words(self) -> None:
        """What hangs is left behind, but not without an answer to those who wait for it."""
        self._gave_up = True
        self.phase = "draining"
        self._clock.tell(Arm("deadline", LAST_WORDS_MS, self.me))
        self._answer_the_rest()

    def _end(self) -> None:
        self.phase = "over"
        self._sweep()
