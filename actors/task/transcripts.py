"""The desk's side of transcripts: pages for those who ask, and what is new for those who watch.

Part of the desk. Of an agent that runs its actor is asked; of one that is over the view holds the end. What came before
that is read from the child's session file.
"""

from __future__ import annotations

from collections.abc import Callable

from actors.base import Address
from actors.mail import HistoryRead, TaskDeskMail, TranscriptRead
from actors.task.runners import Runners
from actors.task.state import Refused, Task
from actors.task.transcript import History, Span, earlier, page, span_of
from protocol.commands import TranscriptPage
from protocol.tasks import Transcript, TranscriptEntry

ReadHistory = Callable[[int, History, Span, Address[TaskDeskMail]], None]
"""Reads entries out of a session file in a pump; the desk is told `HistoryRead` with the number."""

TakePage = Callable[[Transcript], None]
ONLY_AGENTS = 'get_task: "transcript" is for subagents; {} is a command'


class Transcripts:
    """`desk` is whom the pump tells."""

    def __init__(self, runners: Runners, read_history: ReadHistory | None, desk: Address[TaskDeskMail]) -> None:
        self._runners = runners
        self._read_history = read_history
        self._desk = desk
        self._waiting: dict[int, tuple[History, Span, TranscriptEntry | None, TakePage]] = {}
        self._asked = 0

    def show(self, task: Task, wanted: TranscriptPage, take: TakePage) -> None:
        """`take` gets the page, now or later. Raises `Refused` for a command."""
        if task.launch.kind != "agent":
            raise Refused("UnknownTask", text=ONLY_AGENTS.format(task.id))

        def read(found: TranscriptRead | None) -> None:
            history = found.history if found is not None else self._runners.history(task.id)
            self._page(history, wanted, found.live if found is not None else None, take)

        self._runners.read_transcript(task.id, read)

    def _page(self, history: History, wanted: TranscriptPage, live: TranscriptEntry | None, take: TakePage) -> None:
        span = span_of(history.total, wanted.before, wanted.limit)
        on_file = earlier(history, span)
        if on_file is None or self._read_history is None:
            take(page(history, span, None, live))
            return
        self._asked += 1
        self._waiting[self._asked] = (history, span, live, take)
        self._read_history(self._asked, history, on_file, self._desk)

    def have_read(self, mail: HistoryRead) -> None:
        history, span, live, take = self._waiting.pop(mail.number)
        take(page(history, span, mail.entries, live))
