"""The client's side of the pipes: it writes a script in pieces of any size, and closes stdin or sends signals."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from actors.base import Address
from actors.mail import InputEnding, IntakeMail, RootMail, SignalReceived, StdinBytes, StdinEnded
from actors.pump import Ack
from protocol.entry_head import read_entry
from runtime.simulation.course import Course
from runtime.simulation.disk import Disk
from runtime.simulation.pumps import CountedWindow, Once, Pump
from runtime.simulation.script import UNTIL_QUIET, resolved

READ_BYTES = 64 * 1024


class Client(Pump):
    """`sent` are the lines so far, `written` counts those that are out whole; `heard` were before the first signal. It
    waits where the program's own reader would: at the window."""

    def __init__(
        self,
        course: Course,
        disk: Disk,
        intake: Address[IntakeMail],
        root: Address[RootMail],
        add_pump: Callable[[Pump, str], None],
        task_ids: Callable[[], list[str]],
        question: Callable[[int], str],
    ) -> None:
        super().__init__()
        self.window = CountedWindow(1 << 20, 2)
        self.sent: list[bytes] = []
        self.heard: int | None = None
        self.written = 0
        self.signalled = 0
        self._course = course
        self._disk = disk
        self._intake = intake
        self._root = root
        self._add_pump = add_pump
        self._task_ids = task_ids
        self._question = question
        self._resting = False

    def wake(self) -> bool:
        """Nothing else can move: whether the client was waiting for that."""
        was_resting, self._resting = self._resting, False
        return was_resting

    def _run(self) -> Iterator[bool]:
        pending = b""
        for line in self._course.lines:
            text = resolved(line.text, self.referents())
            self.sent.append(text)
            pending += text + b"\n"
            if line.joined:
                continue
            while not self.window.has_room(1):
                yield False
            cut = int(len(pending) * line.cut)
            self._write(pending[:cut])
            pending = pending[cut:]
            self._signal_when(len(self.sent) - pending.count(b"\n"))
            for _ in range(line.pause):
                yield True
            self._resting = line.pause == UNTIL_QUIET
            while self._resting:
                yield False
        yield from self._end(pending)

    def _end(self, pending: bytes) -> Iterator[bool]:
        by_eof = not self._course.signals
        if pending:  # the last line may lack its line feed
            self._write(pending[:-1] if by_eof and not pending.endswith(b"\n\n") and pending != b"\n" else pending)
            yield True
        if by_eof:
            self._root.tell(InputEnding())
            self._intake.tell(StdinEnded())
        else:
            self._signal_when(len(self.sent) + self._course.after_lines)

    def _write(self, data: bytes) -> None:
        self.written += data.count(b"\n")
        for start in range(0, len(data), READ_BYTES):
            piece = data[start : start + READ_BYTES]
            self._intake.tell(StdinBytes(piece, self._ack(len(piece))))

    def _ack(self, size: int) -> Ack | None:
        return self.window.admit(size) if self.window.has_room(size) else None

    def _signal_when(self, written: int) -> None:
        if self._course.signals and self.heard is None and written >= self._course.after_lines:
            self.heard = min(written, len(self.sent))
            self._signal(self._course.signals)

    def _signal(self, signals: tuple[int, ...]) -> None:
        self.signalled += 1
        self._root.tell(SignalReceived(signals[0]))
        if signals[1:]:
            self._add_pump(Once(lambda: self._signal(signals[1:])), "client")

    # -- what references stand for

    def referents(self) -> dict[str, Callable[[int], str]]:
        files = {"file": self._file, "other": self._other, "made": _made}
        return {**files, "entry": self._entry, "task": self._task, "question": self._question}

    def _file(self, number: int) -> str:
        paths = list(self._disk.files)
        return paths[number % len(paths)] if paths else _made(number)

    def _other(self, number: int) -> str:
        return "/simulated/other/" + self._file(number).rsplit("/", 1)[1]

    def _task(self, number: int) -> str:
        """One of the last tasks, or any."""
        known = self._task_ids()
        return known[-1 - number % min(len(known), 2 if number < 60 else len(known))] if known else "task-none"

    def _entry(self, number: int) -> str:
        """One of the first or the last entries of the journal that was written last, or any."""
        log = self._disk.log
        if not log or number >= 95:
            return "nowhere"
        lines = [line for journal, line in log if journal is log[-1][0]]
        if number < 40:
            line = lines[number % min(len(lines), 3)]
        elif number < 80:
            line = lines[-1 - number % min(len(lines), 10)]
        else:
            line = log[number % len(log)][1]
        head = read_entry(line)
        return "nowhere" if head is None else head.id


def _made(number: int) -> str:
    return f"/simulated/sessions/made-{number % 3}.jsonl"
