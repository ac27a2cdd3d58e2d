"""Hosts actors with pykka: mail in the order in which it was told.

Most share the thread of a `Crew`; one that says that it is `apart` has a daemon thread of its own. An exception in an
actor ends it: it says its last words, then its owner gets a `Down`. pykka's own traceback log stays silent, since
tracebacks can hold what a user typed.
"""

from __future__ import annotations

import _thread
import logging
import threading
from collections.abc import Callable
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Generic, TypeVar

import pykka

from actors.base import Actor, Address, Child, Down
from runtime.crew import Crew, CrewInbox

Mail = TypeVar("Mail")

logging.getLogger("pykka").addHandler(logging.NullHandler())
logging.getLogger("pykka").propagate = False


class ThreadAddress(Generic[Mail]):
    """The address of an actor that pykka hosts."""

    __slots__ = ("_hosted", "_ref", "name")

    def __init__(self, hosted: Hosted, name: str) -> None:
        self._hosted = hosted
        self._ref = hosted.actor_ref
        self.name = name

    def tell(self, mail: Mail) -> None:
        try:
            self._ref.tell(mail)
        except pykka.ActorDeadError:
            return  # the owner's Down covers the loss

    def stop(self) -> None:
        try:
            self._hosted.stop()
        except pykka.ActorDeadError:
            return

    def __repr__(self) -> str:
        return f"<{self.name}>"


class Hosted(pykka.ThreadingActor):
    """One actor on a thread of its own. `SimpleQueue` makes a tell 3 to 4 times faster than `queue.Queue`, and may be
    put from a signal handler."""

    use_daemon_thread = True

    def __init__(self, actor: Actor[Any], name: str, owner: Address[Down], key: Any, *, named: bool) -> None:
        super().__init__()
        self._named = named
        self._actor = actor
        self._name = name
        self._owner = owner
        self._key = key
        self._reading: Any = None

    @staticmethod
    def _create_actor_inbox() -> Any:
        return SimpleQueue()

    def _start_actor_loop(self) -> None:
        """Without waiting until the thread runs, as `Thread.start` does: that took 0.28 ms of the 2.8 of a shell
        request, twice. Only the trace needs threads with names."""
        start_thread = start_named_pump if self._named else start_pump
        start_thread(self._name, self._actor_loop)

    def on_start(self) -> None:
        try:
            self._actor.begin()
        except BaseException as error:
            # pykka skips on_failure for an exception in on_start, and the owner would never hear of it
            self._die(error)
            raise _as_exception(error) from None

    def on_receive(self, message: Any) -> None:
        self._reading = message
        try:
            self._actor.receive(message)
            if self.actor_inbox.empty():
                self._actor.idle()
        except Exception:
            raise
        except BaseException as error:
            raise _as_exception(error) from None

    def on_stop(self) -> None:
        self._actor.ended()

    def on_failure(
        self,
        exception_type: type[BaseException] | None,
        exception_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._die(exception_value)

    def _die(self, error: BaseException | None) -> None:
        unread = [] if self._reading is None else [self._reading]
        while not self.actor_inbox.empty():
            message = self.actor_inbox.get_nowait().message  # type: ignore[attr-defined]  # both kinds of ours have it
            if not type(message).__module__.startswith("pykka."):
                unread.append(message)
        what = describe(error)
        try:
            self._actor.last_words(unread)
        except Exception as failure:  # let out, it would print a traceback with what a user typed
            what = f"{what}; then its last words failed: {describe(failure)}"
        self._owner.tell(Down(self._key, what))


class CrewMember(Hosted):
    """One actor on the thread of the crew."""

    actor_inbox: CrewInbox

    def __init__(
        self, actor: Actor[Any], name: str, owner: Address[Down], key: Any, *, named: bool, crew: Crew
    ) -> None:
        self._crew = crew
        self._is_begun = False
        super().__init__(actor, name, owner, key, named=named)

    def _create_actor_inbox(self) -> CrewInbox:  # type: ignore[override]  # pykka asks the object, not the class
        return self._crew.inbox_for(self)

    def _start_actor_loop(self) -> None:
        self._crew.call(self)

    def turn(self) -> None:
        """What pykka does in the loop of a thread, up to the end of one mail."""
        if self.actor_stopped.is_set():
            return  # of mail that came while it ended
        if self._named:
            threading.current_thread().name = self._name
        if self._is_begun:
            self.actor_inbox.take_turn(self._actor_loop_running)
        else:
            self._is_begun = True
            self._actor_loop_setup()
        if self.actor_stopped.is_set():
            self._actor_loop_teardown()


def _as_exception(error: BaseException) -> Exception:
    """An exit that a library asks for ends its actor and nobody else. pykka would stop all actors and wait for them, on
    the thread that they need for it."""
    return error if isinstance(error, Exception) else RuntimeError(describe(error)).with_traceback(error.__traceback__)


def describe(error: BaseException | None) -> str:
    """The kind of an exception and the place in our code where it arose; no values."""
    if error is None:
        return "unknown error"
    trace, place = error.__traceback__, ""
    while trace is not None:
        code = trace.tb_frame.f_code
        place = f" in {code.co_filename.rsplit('/', 1)[-1]}:{trace.tb_lineno}"
        trace = trace.tb_next
    return f"{type(error).__name__}{place}"


Trace = Callable[[str, str, Any], None]
"""Takes sender, receiver and mail."""


class TracedAddress(Generic[Mail]):
    """Tells the trace before it tells the actor. The sender is the thread: each is named after its actor or pump."""

    __slots__ = ("_inner", "_trace", "name")

    def __init__(self, inner: ThreadAddress[Mail], trace: Trace) -> None:
        self._inner = inner
        self._trace = trace
        self.name = inner.name

    def tell(self, mail: Mail) -> None:
        self._trace(threading.current_thread().name, self.name, mail)
        self._inner.tell(mail)

    def stop(self) -> None:
        self._inner.stop()


class ThreadHost:
    """Starts actors; with `trace`, everything that they are told is traced."""

    def __init__(self, trace: Trace | None = None) -> None:
        self._trace = trace
        self._crew = Crew(start_pump if trace is None else start_named_pump)

    def start(self, actor: Actor[Mail], name: str, owner: Address[Down], key: Any = None) -> Child[Mail]:
        named = self._trace is not None
        hosted = (
            Hosted(actor, name, owner, key, named=named)
            if actor.apart
            else CrewMember(actor, name, owner, key, named=named, crew=self._crew)
        )
        address = ThreadAddress[Mail](hosted, name)
        actor.me = address if self._trace is None else TracedAddress(address, self._trace)
        pykka.ActorRegistry.register(hosted.actor_ref)
        hosted._start_actor_loop()
        return actor.me


def start_pump(name: str, work: Callable[[], None]) -> None:
    """Does not wait until the thread runs; see `Hosted`."""
    _thread.start_new_thread(work, ())


def start_named_pump(name: str, work: Callable[[], None]) -> None:
    """For the trace, which tells senders by the names of their threads."""
    threading.Thread(target=work, name=name, daemon=True).start()
