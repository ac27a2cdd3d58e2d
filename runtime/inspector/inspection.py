"""A look at one session: the connection, what is known through it, and the task that is looked at more closely.

Owns which connection counts. Knows no terminal: `changed` is called when there is something new to show, `later` is
given work that nobody waits for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from protocol.tasks import TaskRecord
from runtime.inspector.board import ACTIVE, Board
from runtime.inspector.footer import git_branch
from runtime.inspector.link import Link, LinkLost
from runtime.inspector.programs import is_live
from runtime.inspector.records import Incoming, Response, Session, TaskList, TaskTranscript, TaskUpdate, read_data
from runtime.inspector.sessions import Door
from runtime.inspector.watched import Watched

LOOKS = 10
"""So many ticks after a loss it is asked whether the program is still there."""


class Inspection:
    """What is asked of the program raises `LinkLost`, `Refused` or `BadRecord`."""

    def __init__(
        self,
        door: Door,
        now: Callable[[], float],
        changed: Callable[[], None],
        later: Callable[[Awaitable[None]], None],
    ) -> None:
        self.door = door
        self.board = Board()
        self.branch: str | None = None
        self.watched: Watched | None = None
        self._now, self._changed, self._later = now, changed, later
        self._link: Link | None = None
        self._looks = 0

    # -- the connection

    async def connect(self) -> None:
        """Begins, or begins anew after a loss."""
        self.close()
        link = self._link = Link(self.door.address)
        try:
            hello = await link.connect(self._hear, self._over)
        except LinkLost as error:
            self._lose(str(error))
            raise
        await self._begin(link, hello)

    async def follow(self) -> None:
        """Turns to the session that took the place of this one."""
        successor = self.board.successor
        if successor is not None and self._link is not None:
            self.watched = None
            await self._begin(self._link, successor)

    def close(self) -> None:
        if self._link is not None:
            self._link.close()
        self._link = None

    async def ask(self, kind: str, then: Callable[[Response], None] | None = None, **fields: object) -> Response:
        if self._link is None:
            raise LinkLost("there is no connection")
        return await self._link.ask(kind, then, **fields)

    async def _begin(self, link: Link, session: Session) -> None:
        def took(response: Response) -> None:
            self.board.begin(session, read_data(response, TaskList).tasks, self._now())

        await link.ask("set_task_subscription", enabled=True)
        await link.ask("get_tasks", took)
        self.branch = git_branch(session.cwd)
        if self.watched is not None:
            await self.watched.begin()

    def _over(self, reason: str) -> None:
        self._lose(reason)
        self._changed()

    def _lose(self, reason: str) -> None:
        self._looks = LOOKS
        self.board.lose(reason, is_alive=is_live(self.door.address), now=self._now())

    async def _look(self) -> None:
        """A program that is ending may still have listened when the connection was lost."""
        is_alive = await asyncio.to_thread(is_live, self.door.address)
        if self.board.state == "lost" and not is_alive:
            self.board.lose(self.board.reason, is_alive=False, now=self._now())

    def _hear(self, record: Incoming) -> None:
        self.board.hear(record, self._now())
        watched = self.watched
        if watched is not None and self.board.is_live:
            if isinstance(record, TaskTranscript) and record.task_id == watched.task_id:
                if watched.hear(record):
                    self._later(watched.fill_gap())
            elif isinstance(record, TaskUpdate) and record.task.ref.task_id == watched.task_id:
                self._later(watched.refresh())
        self._changed()

    # -- one task

    def watch(self, task_id: str) -> Watched | None:
        """Looks at a task more closely; None if there is no such task."""
        record = self.board.task(task_id)
        if record is None:
            return None
        if self.watched is None or self.watched.task_id != task_id:
            self.watched = Watched(record, self.ask, self._took, self._changed)
            if self.board.is_live:
                self._later(self.watched.begin())
        return self.watched

    def unwatch(self) -> None:
        watched, self.watched = self.watched, None
        if watched is not None and self.board.is_live:
            self._later(watched.end())

    def can_stop(self, record: TaskRecord) -> bool:
        return self.board.is_live and record.state in ACTIVE and record.state != "stopping"

    async def stop(self, task_id: str) -> None:
        await self.ask("cancel_task", taskId=task_id)

    async def type(self, task_id: str, text: str) -> None:
        """Types at a command's terminal."""
        await self.ask("send_task_input", taskId=task_id, input=text)
        if self.watched is not None:
            await self.watched.refresh()

    async def answer(self, task_id: str, request_id: str, text: str) -> None:
        await self.ask("send_task_input", taskId=task_id, input=text, requestId=request_id)

    def tick(self) -> None:
        """Time has passed: what nobody tells is looked at again."""
        if self.board.state == "lost" and self._looks > 0:
            self._looks -= 1
            self._later(self._look())
        watched = self.watched
        record = self.board.task(watched.task_id) if watched is not None else None
        is_running = self.board.is_live and record is not None and record.state in ACTIVE
        if watched is not None and is_running and not watched.is_agent:
            self._later(watched.refresh())
        if self.board.session is not None:
            self.branch = git_branch(self.board.session.cwd)

    def _took(self, record: TaskRecord) -> None:
        self.board.renew(record, self._now())
