"""`AsyncRpcClient`: an agent for programs on asyncio.

The same core and flows as the blocking face. Belongs to the event loop in which it was started; any number of tasks
may use it. Whoever is cancelled while waiting takes nothing from the others: an answer that comes for it is dropped, an
event that it would have got next is still there.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

import msgspec
from msgspec import UNSET

from conformance.client import flows
from conformance.client.blocking import plain_data
from conformance.client.calls import Call
from conformance.client.core import Core, Feed
from conformance.client.errors import AgentDied, ClientClosed, TransportError
from conformance.client.flows import Deadline, Flow, Wait
from conformance.client.methods import Methods
from conformance.client.options import EndsOn, Options
from conformance.client.process import KILL_GRACE, Child
from conformance.client.prompt_course import Course, Outcome
from conformance.client.records import BashDelta, Event, UiRequest
from conformance.client.shell_course import ShellCourse
from protocol.commands import Bash, Prompt, StreamingBehavior, UserBash
from protocol.messages import ImageContent
from protocol.responses import BashResult

T = TypeVar("T")
UiReply = Mapping[str, Any] | None
_LOG = logging.getLogger("conformance.client")


class AsyncRpcClient(Methods):
    """`async with AsyncRpcClient(command) as client:`, or `await client.start()` and `await client.close()`. The
    parameters are those of `RpcClient`; `on_ui` and `on_stderr` may be coroutine functions."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: str | Path | None = None,
        env: Mapping[str, str] | None = None,
        on_ui: Callable[[UiRequest], UiReply | Awaitable[UiReply]] | None = None,
        on_stderr: Callable[[str], object] | None = None,
        options: Options | None = None,
    ) -> None:
        self.options = options or Options()
        self._command, self._cwd, self._env = list(command), cwd, env
        self._on_ui, self._on_stderr = on_ui, on_stderr
        self._core = Core(buffer_bytes=self.options.buffer_bytes, now=time.monotonic)
        self._child: Child | None = None
        self._closing = asyncio.Lock()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._transports: list[asyncio.BaseTransport | _Abortable] = []

    async def start(self) -> None:
        """Start the process and wait for its first answer. Raises what the constructor of `RpcClient` raises."""
        if self._child is not None:
            raise ClientClosed("the client was started already")
        loop = asyncio.get_running_loop()
        self._child = Child(self._command, self._cwd, self._env, lambda status: self._from_reaper(loop, status))
        try:
            self._serve_callbacks()
            await self._connect(self._child)
            await self._drive(flows.started(self._core, self.options.start_deadline))
        except BaseException:
            await self._end(0.0)
            raise

    # ---- requests ----------------------------------------------------------------------------------------------

    async def call(self, call: Call[T], *, deadline: float | msgspec.UnsetType | None = UNSET) -> T:
        """Send a command and give its result. `deadline` in seconds, `None` for no limit; without it that of the
        call's pace. Raises `CommandRefused`, `DeadlineExceeded`, `TransportError`."""
        self._check_started()
        seconds = self.options.deadline_of(call.pace) if deadline is UNSET else deadline
        return call.read(await self._drive(flows.call(self._core, call.command, seconds)))

    def within(self, deadline: float | None) -> AsyncWithin:
        """This client with another deadline: `await client.within(5).get_state()`."""
        return AsyncWithin(self, deadline)

    async def request(self, command: str, *, deadline: float | msgspec.UnsetType | None = UNSET, **fields: Any) -> Any:
        """Send any command by its name on the wire, with its fields as there; gives the `data` as plain values."""
        self._check_started()
        seconds = self.options.quick_deadline if deadline is UNSET else deadline
        return plain_data(await self._drive(flows.call(self._core, {"type": command, **fields}, seconds)))

    def prompt(
        self,
        message: str,
        *,
        images: Iterable[ImageContent] = (),
        streaming_behavior: StreamingBehavior | None = None,
        ends_on: EndsOn | None = None,
        deadline: float | None = None,
        abort_on_leave: bool = False,
    ) -> AsyncPromptRun:
        """A prompt, which is sent when it is first awaited, entered or iterated over: `run = await client.prompt(...)`,
        `async with client.prompt(...) as run:` and `async for event in client.prompt(...):` each raise
        `CommandRefused`. The parameters are those of `RpcClient.prompt`."""
        self._check_started()
        prompt = Prompt(message=message, images=tuple(images), streaming_behavior=streaming_behavior)
        course = Course(self._core, prompt, self.options, ends_on or self.options.ends_on, deadline)
        return AsyncPromptRun(self._drive, course, abort_on_leave)

    def bash(self, command: str, *, exclude_from_context: bool = False, deadline: float | None = None) -> AsyncShellRun:
        """Start a shell command, at once; it runs beside whatever else does."""
        return self._shell(Bash(command=command, exclude_from_context=exclude_from_context), deadline)

    def user_bash(
        self, command: str, *, exclude_from_context: bool = False, deadline: float | None = None
    ) -> AsyncShellRun:
        return self._shell(UserBash(command=command, exclude_from_context=exclude_from_context), deadline)

    def _shell(self, command: Bash | UserBash, deadline: float | None) -> AsyncShellRun:
        self._check_started()
        course = ShellCourse(self._core, command, self.options, deadline)
        course.begin()
        return AsyncShellRun(self._drive, course)

    # ---- what the agent tells ----------------------------------------------------------------------------------

    def events(self) -> AsyncEvents[Event]:
        """All events from now on, until the client is closed. Raises what ended the connection otherwise."""
        return AsyncEvents(self._drive, self._core, self._core.listen())

    async def wait_for(self, wanted: str | Callable[[Event], bool], *, deadline: float | None) -> Event:
        """The first event from now on of this type, or of which the predicate holds."""
        return await self._drive(flows.found(self._core, wanted, deadline))

    async def wait_idle(self, *, deadline: float | None) -> None:
        """Until the agent has nothing to do: at once, or with the end of the prompt that runs."""
        await self._drive(flows.idle(self._core, self.options.ends_on, deadline))

    def dialogs(self) -> AsyncEvents[UiRequest]:
        """What extensions ask and tell, in place of `on_ui`; `answer` replies. From the first call on nothing is
        answered by itself."""
        return AsyncEvents(self._drive, self._core, self._core.listen_to_ui())

    def answer(self, request: UiRequest, **reply: Any) -> None:
        """Reply to a dialog with `value=...`, `confirmed=...` or `cancelled=True`."""
        self._core.answer_ui(request.id, reply)

    @property
    def stderr(self) -> str:
        """The last 256 KiB of what the agent wrote to stderr."""
        return self._core.stderr

    @property
    def oddities(self) -> list[str]:
        """What the agent did against the protocol that could be overlooked, such as a second response. The last 100."""
        return list(self._core.oddities)

    @property
    def failure(self) -> TransportError | None:
        """Why the connection is over, `None` while it stands."""
        return self._core.failure

    @property
    def pid(self) -> int:
        self._check_started()
        assert self._child is not None
        return self._child.pid

    # ---- the end -----------------------------------------------------------------------------------------------

    async def close(self) -> int:
        """As `RpcClient.close`. One that is cancelled kills the agent at once."""
        self._check_started()
        return await self._end(self.options.eof_grace)

    async def _end(self, eof_grace: float) -> int:
        core, child = self._core, self._child
        assert child is not None
        async with self._closing:
            core.start_closing()
            try:
                if not await self._drive(flows.gone(core, eof_grace)):
                    child.signal_group(signal.SIGTERM)
                    if not await self._drive(flows.gone(core, self.options.term_grace)):
                        child.signal_group(signal.SIGKILL)
                        await self._drive(flows.gone(core, KILL_GRACE))
                await self._drive(flows.concluded(core))
            except asyncio.CancelledError:
                child.signal_group(signal.SIGKILL)
                core.conclude()
                raise
            finally:
                self._let_go()
        if core.status is None:
            raise AgentDied("the agent did not end after SIGKILL", core.stderr)
        return core.status

    async def __aenter__(self) -> Self:
        if self._child is None:
            await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()

    # ---- waiting -----------------------------------------------------------------------------------------------

    async def _drive(self, flow: Flow[T]) -> T:
        """Run a flow, waiting as a task does. Between its waits it has the core to itself."""
        try:
            wait = next(flow)
            while True:
                wait = flow.send(await _waited(wait))
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            flow.close()

    def _check_started(self) -> None:
        if self._child is None:
            raise ClientClosed("the client was not started")

    # ---- pipes, the process, callbacks -------------------------------------------------------------------------

    async def _connect(self, child: Child) -> None:
        loop, core = asyncio.get_running_loop(), self._core
        out = _Reading(core.receive, self._on_stdout_end)
        err = _Reading(core.receive_stderr, core.stderr_ended)
        for protocol, fd in ((out, child.stdout), (err, child.stderr)):
            transport, _ = await loop.connect_read_pipe(lambda protocol=protocol: protocol, os.fdopen(fd, "rb", 0))  # type: ignore[misc]
            self._transports.append(transport)
        writing = _Writing(self._conclude_soon)
        stdin, _ = await loop.connect_write_pipe(lambda: writing, os.fdopen(child.stdin, "wb", 0))
        self._transports.append(_Abortable(stdin, writing))
        self._spawn(self._write(stdin, writing))

    async def _write(self, stdin: asyncio.WriteTransport, writing: _Writing) -> None:
        while (record := await self._drive(flows.to_write(self._core.outbox))) is not None:
            stdin.write(record)
            await writing.may_write.wait()
        stdin.close()  # once its buffer is empty

    def _from_reaper(self, loop: asyncio.AbstractEventLoop, status: int) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody is left to be told
            loop.call_soon_threadsafe(self._on_exit, status)

    def _on_exit(self, status: int) -> None:
        self._core.exited(status)
        self._conclude_soon()

    def _on_stdout_end(self) -> None:
        self._core.stdout_ended()
        self._conclude_soon()

    def _conclude_soon(self) -> None:
        if not self._core.over:
            self._spawn(self._drive(flows.concluded(self._core)))

    def _serve_callbacks(self) -> None:
        if self._on_ui is not None:
            self._spawn(self._serve(self._core.listen_to_ui(), self._consult))
        if self._on_stderr is not None:
            self._spawn(self._serve(self._core.listen_to_stderr(), self._tell_stderr))

    async def _serve(self, feed: Feed[T], callback: Callable[[T], Awaitable[None]]) -> None:
        with suppress(TransportError):
            async for item in AsyncEvents(self._drive, self._core, feed):
                try:
                    await callback(item)
                except Exception:
                    _LOG.exception("a callback of the client failed")

    async def _consult(self, request: UiRequest) -> None:
        assert self._on_ui is not None
        reply: UiReply = None
        try:
            reply = await _settled(self._on_ui(request))
        finally:
            if request.wants_answer:
                self.answer(request, **(reply or {"cancelled": True}))

    async def _tell_stderr(self, data: bytes) -> None:
        assert self._on_stderr is not None
        await _settled(self._on_stderr(data.decode("utf-8", "replace")))

    def _spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _let_go(self) -> None:
        for transport in self._transports:
            transport.close()
        self._transports.clear()


async def _waited(wait: Wait) -> bool:
    loop = asyncio.get_running_loop()
    while not wait.ready():
        left = None if wait.until is None else wait.until - time.monotonic()
        if left is not None and left <= 0:
            return False
        changed = loop.create_future()

        def wake(changed: asyncio.Future[None] = changed) -> None:
            if not changed.done():
                changed.set_result(None)

        timer = None if left is None else loop.call_later(left, wake)
        try:
            with wait.thing.wakes(wake):
                await changed
        finally:
            if timer is not None:
                timer.cancel()
    return True


async def _settled(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


class _Reading(asyncio.Protocol):
    """One of the agent's pipes, read as it comes."""

    def __init__(self, take: Callable[[bytes], None], ended: Callable[[], object]) -> None:
        self._take, self._ended = take, ended

    def data_received(self, data: bytes) -> None:
        self._take(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended()


class _Writing(asyncio.BaseProtocol):
    """The agent's stdin: says when more may be written, and when nobody reads there any more."""

    def __init__(self, lost: Callable[[], None]) -> None:
        self.may_write = asyncio.Event()
        self.may_write.set()
        self.is_lost = False
        self._lost = lost

    def pause_writing(self) -> None:
        self.may_write.clear()

    def resume_writing(self) -> None:
        self.may_write.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True
        self.may_write.set()
        if exc is not None:
            self._lost()


class _Abortable:
    """The transport of stdin at the end: what is still in its buffer has nobody to read it."""

    def __init__(self, transport: asyncio.WriteTransport, writing: _Writing) -> None:
        self._transport, self._writing = transport, writing

    def close(self) -> None:
        if not self._writing.is_lost:
            self._transport.abort()


class AsyncWithin(Methods):
    """A client whose calls have another deadline."""

    def __init__(self, client: AsyncRpcClient, deadline: float | None) -> None:
        self._client, self._deadline = client, deadline

    async def call(self, call: Call[T]) -> T:
        return await self._client.call(call, deadline=self._deadline)


Drive = Callable[[Flow[Any]], Awaitable[Any]]


class AsyncEvents(Generic[T]):
    """An asynchronous iterator of records as they come. Dropping it ends the subscription."""

    def __init__(self, drive: Drive, core: Core, feed: Feed[T]) -> None:
        self._drive, self._core, self._feed = drive, core, feed

    def __aiter__(self) -> AsyncIterator[T]:
        return self

    async def __anext__(self) -> T:
        item = await self.next(deadline=None)
        if item is None:
            raise StopAsyncIteration
        return item

    async def next(self, *, deadline: float | None) -> T | None:
        """The next record, `None` after the last one. Raises `DeadlineExceeded`."""
        what = Deadline.set(self._core, "next event", deadline)
        item: T | None = await self._drive(flows.taken(self._core, self._feed, what))
        return item


class AsyncPromptRun:
    """See `AsyncRpcClient.prompt` and `PromptRun`. For one task."""

    def __init__(self, drive: Drive, course: Course, abort_on_leave: bool) -> None:
        self._drive, self._course, self._abort_on_leave = drive, course, abort_on_leave

    def __await__(self) -> Generator[Any, None, AsyncPromptRun]:
        return self._accepted().__await__()

    async def _accepted(self) -> AsyncPromptRun:
        await self._drive(self._course.accepted())
        return self

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        event: Event | None = await self._drive(self._course.following())
        if event is None:
            raise StopAsyncIteration
        return event

    async def wait(self) -> Outcome:
        """Read to the end; how it ended. An answer that failed is no exception: see `stop_reason`."""
        async for _ in self:
            pass
        return self._course.outcome

    @property
    def outcome(self) -> Outcome:
        """What is known so far, and after the end for good."""
        return self._course.outcome

    async def close(self, *, abort: bool = False) -> None:
        await self._drive(self._course.left(abort))

    async def __aenter__(self) -> Self:
        await self._accepted()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        try:
            await self.close(abort=self._abort_on_leave)
        except TransportError:
            if error is None:
                raise


class AsyncShellRun:
    """See `ShellRun`. `await run` is `await run.result()`."""

    def __init__(self, drive: Drive, course: ShellCourse) -> None:
        self._drive, self._course = drive, course

    def __await__(self) -> Generator[Any, None, BashResult]:
        return self.result().__await__()

    @property
    def id(self) -> str:
        return self._course.id

    def __aiter__(self) -> AsyncIterator[BashDelta]:
        return self

    async def __anext__(self) -> BashDelta:
        delta: BashDelta | None = await self._drive(self._course.following())
        if delta is None:
            raise StopAsyncIteration
        return delta

    async def result(self) -> BashResult:
        """The result, with the tail of all output; deltas that were not read are dropped."""
        result: BashResult = await self._drive(self._course.result())
        return result

    async def cancel(self) -> None:
        await self._drive(self._course.cancelled())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self._drive(self._course.left())
