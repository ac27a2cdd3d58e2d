"""What a client does that takes more than one step, for both faces: written once, as generators that never block.

A flow yields a `Wait` whenever it cannot go on; the face that drives it waits in its own manner and sends back whether
what was waited for is there (`False`: `until` has passed). Between two waits a flow has the core to itself. A face that
gives a flow up closes the generator, whose `finally` then takes back what it had asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, NamedTuple, TypeVar

from conformance.client.core import Core, Feed, Outbox, Pending, Waitable
from conformance.client.errors import ClientError, DeadlineExceeded
from conformance.client.records import Event, Response, event_type
from conformance.client.shapes import read_data
from protocol.commands import Command, GetState
from protocol.state import SessionState

T = TypeVar("T")

DRAIN = 0.5  # seconds that a pipe may stay open and silent after the process has ended
DRAIN_LIMIT = 5.0  # seconds that somebody else who still writes there is listened to


class Wait(NamedTuple):
    """Wait until `ready()` holds, which can change when `thing` does, or until the clock shows `until`."""

    thing: Waitable
    ready: Callable[[], bool]
    until: float | None


Flow = Generator[Wait, bool, T]


class Deadline(NamedTuple):
    """The moment `at` (`None`: never), `seconds` after it was set, and what it is for."""

    what: str
    seconds: float | None
    at: float | None

    @classmethod
    def set(cls, core: Core, what: str, seconds: float | None) -> Deadline:
        return cls(what, seconds, None if seconds is None else core.now() + seconds)

    def passed(self, core: Core) -> DeadlineExceeded:
        return DeadlineExceeded(self.what, self.seconds or 0.0, core.stderr)


def until(core: Core, thing: Waitable, ready: Callable[[], bool], deadline: Deadline) -> Flow[None]:
    """Raises `DeadlineExceeded`."""
    if not ready() and not (yield Wait(thing, ready, deadline.at)):
        raise deadline.passed(core)


def answered(core: Core, pending: Pending, deadline: Deadline) -> Flow[Response]:
    """The response to a request that was made. Raises what `Pending.answer` raises, and `DeadlineExceeded`."""
    try:
        yield from until(core, pending, lambda: pending.done, deadline)
        return pending.answer()
    finally:
        core.abandon(pending)


def call(core: Core, command: Command | dict[str, Any], seconds: float | None) -> Flow[Response]:
    """Request and response."""
    pending = core.request(command)
    return (yield from answered(core, pending, Deadline.set(core, f"response to {pending.command}", seconds)))


def taken(core: Core, feed: Feed[T], deadline: Deadline) -> Flow[T | None]:
    """The next record of a feed, `None` at its end. Raises `EventsLost`, the failure, `DeadlineExceeded`."""
    yield from until(core, feed, lambda: feed.ready, deadline)
    return feed.take()


def found(core: Core, wanted: str | Callable[[Event], bool], seconds: float | None) -> Flow[Event]:
    """The first event from now on that is of the type `wanted`, or of which the predicate holds."""
    feed = core.listen()
    what = wanted if isinstance(wanted, str) else getattr(wanted, "__name__", "event")
    deadline = Deadline.set(core, f"event {what}", seconds)
    while True:
        event: Event | None = yield from taken(core, feed, deadline)
        if event is None:
            raise core.failure.again() if core.failure else AssertionError("the feed ended by itself")
        if event_type(event) == wanted if isinstance(wanted, str) else wanted(event):
            return event


def idle(core: Core, ends_on: str, seconds: float | None) -> Flow[None]:
    """Until the agent neither runs nor compacts: at once when `get_state` says so, else with the event `ends_on`."""
    feed = core.listen()
    deadline = Deadline.set(core, "idle agent", seconds)
    asked = yield from answered(core, core.request(GetState()), deadline)
    state: SessionState = read_data(asked.data, SessionState, "get_state")
    while state.is_streaming or state.is_compacting:
        event: Event | None = yield from taken(core, feed, deadline)
        if event is None:
            raise core.failure.again() if core.failure else AssertionError("the feed ended by itself")
        if event_type(event) == ends_on:
            return


def to_write(outbox: Outbox) -> Flow[bytes | None]:
    """The next record for stdin, `None` when stdin is to be closed."""
    if not outbox.ready:
        yield Wait(outbox, lambda: outbox.ready, None)
    return outbox.take()


def started(core: Core, seconds: float | None) -> Flow[Response]:
    """The handshake: the agent answers `get_state`. Raises, and then the connection is of no use."""
    try:
        return (yield from call(core, GetState(), seconds))
    except DeadlineExceeded as error:
        raise DeadlineExceeded("handshake (response to get_state)", error.seconds, core.stderr) from None
    except ClientError as error:
        error.add_note("while the agent was being started")
        raise


def concluded(core: Core) -> Flow[None]:
    """Once the process or one of its pipes has ended: wait a little for the rest, then tell everybody who waits."""
    limit = core.now() + DRAIN_LIMIT

    def all_ended() -> bool:
        return core.has_exited and core.out_ended and core.err_ended

    while not all_ended() and core.now() < limit:
        seen = core.received
        if not (yield Wait(core, all_ended, core.now() + DRAIN)) and core.received == seen:
            break
    core.conclude()


def gone(core: Core, seconds: float) -> Flow[bool]:
    """Whether the process has ended within `seconds`."""
    if core.has_exited:
        return True
    return (yield Wait(core, lambda: core.has_exited, core.now() + seconds))
