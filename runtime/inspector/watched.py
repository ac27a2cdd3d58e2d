"""The one task that somebody looks at: its details, its transcript, and the requests that keep both current.

Owns which request is under way. Promises that a change which comes during one is asked for afterwards.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from protocol.tasks import TaskRecord
from runtime.inspector.records import Detail, Response, TaskTranscript, read_data
from runtime.inspector.transcript import PAGE, Loaded

Ask = Callable[..., Awaitable[Response]]


class Watched:
    """`ask` sends a request and raises what `Link.ask` raises; `changed` is called when there is something new to
    show."""

    def __init__(
        self, record: TaskRecord, ask: Ask, took: Callable[[TaskRecord], None], changed: Callable[[], None]
    ) -> None:
        self.record = record
        self.task_id = record.ref.task_id
        self.is_agent = record.kind == "agent"
        self.detail: Detail | None = None
        self.transcript = Loaded()
        self._ask, self._took, self._changed = ask, took, changed
        self._is_asking = self._is_stale = self._is_paging = False
        self._wants_page = True

    async def begin(self) -> None:
        """From now on the transcript's changes come too. What was said before is asked for, also after a loss."""
        self._wants_page = True
        if self.is_agent:
            await self._ask("set_task_subscription", enabled=True, transcript=self.task_id)
        await self.refresh()

    async def end(self) -> None:
        if self.is_agent:
            await self._ask("set_task_subscription", enabled=True)

    async def refresh(self) -> None:
        """Asks for the details; once more if they changed meanwhile."""
        self._is_stale = True
        if self._is_asking:
            return
        self._is_asking = True
        try:
            while self._is_stale:
                self._is_stale = False
                await self._ask("get_task", self._take, taskId=self.task_id, **self._page())
        finally:
            self._is_asking = False

    async def load_earlier(self) -> None:
        """The page before the first entry that is loaded, unless there is none or it is under way."""
        if not self._is_paging and self.transcript.has_earlier:
            await self._load_before(self.transcript.first)

    def hear(self, change: TaskTranscript) -> bool:
        """Whether something between what is loaded is missing now."""
        self.transcript.take_change(change)
        return self.transcript.gap is not None

    async def fill_gap(self) -> None:
        before = self.transcript.gap
        if before is not None and not self._is_paging:
            await self._load_before(before)

    async def _load_before(self, before: int) -> None:
        self._is_paging = True
        try:
            page = {"before": before, "limit": PAGE}
            await self._ask("get_task", self._take_earlier, taskId=self.task_id, transcript=page)
        finally:
            self._is_paging = False

    def _page(self) -> dict[str, Any]:
        if not self.is_agent or not self._wants_page:
            return {}
        return {"transcript": {"limit": PAGE}}

    def _take(self, response: Response) -> None:
        self.detail = read_data(response, Detail)
        if self.detail.transcript:
            self._wants_page = False
            self.transcript.take_page(self.detail.transcript)
        elif self._wants_page:
            self.transcript.is_absent = True
        self._took(self.detail.task)
        self._changed()

    def _take_earlier(self, response: Response) -> None:
        page = read_data(response, Detail).transcript
        if page:
            self.transcript.take_page(page, is_tail=False)
        self._changed()
