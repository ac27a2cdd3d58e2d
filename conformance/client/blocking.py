"""`RpcClient`: an agent for programs with threads, or with one.

Owns the child, one thread that moves bytes between its pipes and the core, and one for each callback. Any number of
threads may use one client: each call waits for its own answer. Leaving it as a context manager ends the agent.
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

import msgspec
from msgspec import UNSET

from conformance.client import flows
from conformance.client.calls import Call
from conformance.client.core import Core, Feed
from conformance.client.errors import AgentDied, TransportError
from conformance.client.flows import Deadline, Flow, Wait
from conformance.client.methods import Methods
from conformance.client.options import EndsOn, Options
from conformance.client.pipes import Pipes
from conformance.client.process import KILL_GRACE, Child
from conformance.client.prompt_course import Course, Outcome
from conformance.client.records import BashDelta, Event, Response, UiRequest, any_value
from conformance.client.shell_course import ShellCourse
from protocol.commands import Bash, Prompt, StreamingBehavior, UserBash
from protocol.messages import ImageContent
from protocol.responses import BashResult

T = TypeVar("T")
_LOG = logging.getLogger("conformance.client")


class RpcClient(Methods):
    """`command` starts an agent that speaks the protocol (`["atomic", "--mode", "rpc"]`). `env` is the whole
    environment, that of this process without it. `on_ui` answers what extensions ask: it is called in a thread of its
    own and gives the reply's fields (`{"value": ...}`, `{"confirmed": True}`), `None` to cancel. `on_stderr` gets what
    the agent writes there, as it comes. Further keywords are those of `Options`.

    The constructor starts the process and waits for its first answer. Raises `SpawnFailed`, `AgentDied`,
    `ProtocolError`, `CommandRefused`, `DeadlineExceeded`."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: str | Path | None = None,
        env: Mapping[str, str] | None = None,
        on_ui: Callable[[UiRequest], Mapping[str, Any] | None] | None = None,
        on_stderr: Callable[[str], object] | None = None,
        options: Options | None = None,
    ) -> None:
        self.options = options or Options()
        self._lock = threading.RLock()
        self._core = Core(buffer_bytes=self.options.buffer_bytes, now=time.monotonic)
        self._closing = threading.Lock()
        self._child = Child(command, cwd, env, self._on_exit)
        if on_ui is not None:
            self._serve(self._core.listen_to_ui(), lambda request: self._consult(on_ui, request))
        if on_stderr is not None:
            self._serve(self._core.listen_to_stderr(), lambda data: on_stderr(data.decode("utf-8", "replace")))
        self._pipes = Pipes(self._child, self._core, self._lock, self._conclude_soon)
        try:
            self._drive(flows.started(self._core, self.options.start_deadline))
        except BaseException:
            self._end(0.0)
            raise

    # ---- requests ----------------------------------------------------------------------------------------------

    def call(self, call: Call[T], *, deadline: float | msgspec.UnsetType | None = UNSET) -> T:
        """Send a command and give its result. `deadline` in seconds, `None` for no limit; without it that of the
        call's pace. Raises `CommandRefused`, `DeadlineExceeded`, `TransportError`."""
        seconds = self.options.deadline_of(call.pace) if deadline is UNSET else deadline
        return call.read(self._drive(flows.call(self._core, call.command, seconds)))

    def within(self, deadline: float | None) -> Within:
        """This client with another deadline: `client.within(5).get_state()`."""
        return Within(self, deadline)

    def request(self, command: str, *, deadline: float | msgspec.UnsetType | None = UNSET, **fields: Any) -> Any:
        """Send any command by its name on the wire, with its fields as there; gives the `data` as plain values."""
        seconds = self.options.quick_deadline if deadline is UNSET else deadline
        response = self._drive(flows.call(self._core, {"type": command, **fields}, seconds))
        return plain_data(response)

    def prompt(
        self,
        message: str,
        *,
        images: Iterable[ImageContent] = (),
        streaming_behavior: StreamingBehavior | None = None,
        ends_on: EndsOn | None = None,
        deadline: float | None = None,
        abort_on_leave: bool = False,
    ) -> PromptRun:
        """Prompt, and return once it is accepted: the events are then what the run iterates over. Raises
        `CommandRefused`. `deadline` is for the whole prompt. `abort_on_leave`: a `with` block that is left before
        the end aborts."""
        prompt = Prompt(message=message, images=tuple(images), streaming_behavior=streaming_behavior)
        course = Course(self._core, prompt, self.options, ends_on or self.options.ends_on, deadline)
        try:
            self._drive(course.accepted())
        except BaseException:
            self._drive(course.left(False))
            raise
        return PromptRun(self._drive, course, abort_on_leave)

    def bash(self, command: str, *, exclude_from_context: bool = False, deadline: float | None = None) -> ShellRun:
        """Start a shell command; it runs beside whatever else does."""
        return self._shell(Bash(command=command, exclude_from_context=exclude_from_context), deadline)

    def user_bash(self, command: str, *, exclude_from_context: bool = False, deadline: float | None = None) -> ShellRun:
        return self._shell(UserBash(command=command, exclude_from_context=exclude_from_context), deadline)

    def _shell(self, command: Bash | UserBash, deadline: float | None) -> ShellRun:
        course = ShellCourse(self._core, command, self.options, deadline)
        with self._lock:
            course.begin()
        return ShellRun(self._drive, course)

    # ---- what the agent tells ----------------------------------------------------------------------------------

    def events(self) -> Events[Event]:
        """All events from now on, until the client is closed. Raises what ended the connection otherwise."""
        with self._lock:
            return Events(self._drive, self._core, self._core.listen())

    def wait_for(self, wanted: str | Callable[[Event], bool], *, deadline: float | None) -> Event:
        """The first event from now on of this type, or of which the predicate holds."""
        return self._drive(flows.found(self._core, wanted, deadline))

    def wait_idle(self, *, deadline: float | None) -> None:
        """Until the agent has nothing to do: at once, or with the end of the prompt that runs."""
        self._drive(flows.idle(self._core, self.options.ends_on, deadline))

    def dialogs(self) -> Events[UiRequest]:
        """What extensions ask and tell, in place of `on_ui`; `answer` replies. From the first call on nothing is
        answered by itself."""
        with self._lock:
            return Events(self._drive, self._core, self._core.listen_to_ui())

    def answer(self, request: UiRequest, **reply: Any) -> None:
        """Reply to a dialog with `value=...`, `confirmed=...` or `cancelled=True`."""
        with self._lock:
            self._core.answer_ui(request.id, reply)

    @property
    def stderr(self) -> str:
        """The last 256 KiB of what the agent wrote to stderr."""
        with self._lock:
            return self._core.stderr

    @property
    def oddities(self) -> list[str]:
        """What the agent did against the protocol that could be overlooked, such as a second response. The last 100."""
        with self._lock:
            return list(self._core.oddities)

    @property
    def failure(self) -> TransportError | None:
        """Why the connection is over, `None` while it stands."""
        with self._lock:
            return self._core.failure

    @property
    def pid(self) -> int:
        return self._child.pid

    # ---- the end -----------------------------------------------------------------------------------------------

    def close(self) -> int:
        """End the agent: stdin is closed once all has been written, and everything that it still says is read; then
        TERM, then KILL, to its whole group. Gives the exit code, minus the signal's number if one ended it. May be
        called again, and from several threads."""
        return self._end(self.options.eof_grace)

    def _end(self, eof_grace: float) -> int:
        core = self._core
        with self._closing:
            with self._lock:
                core.start_closing()
            if not self._drive(flows.gone(core, eof_grace)):
                self._child.signal_group(signal.SIGTERM)
                if not self._drive(flows.gone(core, self.options.term_grace)):
                    self._child.signal_group(signal.SIGKILL)
                    self._drive(flows.gone(core, KILL_GRACE))
            self._drive(flows.concluded(core))
            self._pipes.close()
        if core.status is None:
            raise AgentDied("the agent did not end after SIGKILL", self.stderr)
        return core.status

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    # ---- waiting, threads --------------------------------------------------------------------------------------

    def _drive(self, flow: Flow[T]) -> T:
        """Run a flow, waiting in this thread. Between its waits it has the core to itself."""
        with self._lock:
            try:
                wait = next(flow)
                while True:
                    wait = flow.send(self._wait(wait))
            except StopIteration as end:
                result: T = end.value
                return result
            finally:
                flow.close()

    def _wait(self, wait: Wait) -> bool:
        changed = threading.Condition(self._lock)
        with wait.thing.wakes(changed.notify_all):
            return changed.wait_for(wait.ready, None if wait.until is None else max(0.0, wait.until - time.monotonic()))

    def _on_exit(self, status: int) -> None:
        with self._lock:
            self._core.exited(status)
        self._drive(flows.concluded(self._core))

    def _conclude_soon(self) -> None:
        """A pipe has ended: the rest is waited for elsewhere, so that the pipes are read meanwhile."""
        arguments = (flows.concluded(self._core),)
        threading.Thread(target=self._drive, args=arguments, name="client end", daemon=True).start()

    def _serve(self, feed: Feed[T], callback: Callable[[T], object]) -> None:
        def work() -> None:
            for item in Events(self._drive, self._core, feed):
                try:
                    callback(item)
                except Exception:
                    _LOG.exception("a callback of the client failed")

        def until_the_end() -> None:
            with suppress(TransportError):
                work()

        threading.Thread(target=until_the_end, name="client callback", daemon=True).start()

    def _consult(self, on_ui: Callable[[UiRequest], Mapping[str, Any] | None], request: UiRequest) -> None:
        reply: Mapping[str, Any] | None = None
        try:
            reply = on_ui(request)
        finally:
            if request.wants_answer:
                self.answer(request, **(reply or {"cancelled": True}))


class Within(Methods):
    """A client whose calls have another deadline."""

    def __init__(self, client: RpcClient, deadline: float | None) -> None:
        self._client, self._deadline = client, deadline

    def call(self, call: Call[T]) -> T:
        return self._client.call(call, deadline=self._deadline)


Drive = Callable[[Flow[Any]], Any]


class Events(Generic[T]):
    """An iterator of records as they come. Dropping it ends the subscription."""

    def __init__(self, drive: Drive, core: Core, feed: Feed[T]) -> None:
        self._drive, self._core, self._feed = drive, core, feed

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        item = self.next(deadline=None)
        if item is None:
            raise StopIteration
        return item

    def next(self, *, deadline: float | None) -> T | None:
        """The next record, `None` after the last one. Raises `DeadlineExceeded`."""
        what = Deadline.set(self._core, "next event", deadline)
        item: T | None = self._drive(flows.taken(self._core, self._feed, what))
        return item


class PromptRun:
    """An accepted prompt: an iterator of its events up to and with the one that ends it. Not to be shared by threads.
    As a context manager it lets go at the end of the block, early or not."""

    def __init__(self, drive: Drive, course: Course, abort_on_leave: bool) -> None:
        self._drive, self._course, self._abort_on_leave = drive, course, abort_on_leave

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        event: Event | None = self._drive(self._course.following())
        if event is None:
            raise StopIteration
        return event

    def wait(self) -> Outcome:
        """Read to the end; how it ended. An answer that failed is no exception: see `stop_reason`."""
        for _ in self:
            pass
        return self._course.outcome

    @property
    def outcome(self) -> Outcome:
        """What is known so far, and after the end for good."""
        return self._course.outcome

    def close(self, *, abort: bool = False) -> None:
        self._drive(self._course.left(abort))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            self.close(abort=self._abort_on_leave)
        except TransportError:
            if error is None:
                raise


class ShellRun:
    """A running shell command: an iterator of its output. `result` waits for the end; `cancel` ends this one alone. As
    a context manager it is cancelled if the block is left before its end."""

    def __init__(self, drive: Drive, course: ShellCourse) -> None:
        self._drive, self._course = drive, course

    @property
    def id(self) -> str:
        return self._course.id

    def __iter__(self) -> Iterator[BashDelta]:
        return self

    def __next__(self) -> BashDelta:
        delta: BashDelta | None = self._drive(self._course.following())
        if delta is None:
            raise StopIteration
        return delta

    def result(self) -> BashResult:
        """The result, with the tail of all output; deltas that were not read are dropped."""
        result: BashResult = self._drive(self._course.result())
        return result

    def cancel(self) -> None:
        self._drive(self._course.cancelled())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._drive(self._course.left())


def plain_data(response: Response) -> Any:
    """The data of a response as plain values, `None` when there are none."""
    return None if response.data is UNSET else any_value(bytes(response.data))
