"""The course of one shell request (`bash`, `user_bash`): its output by its id, then its result. Flows only.

Source: contract `rpc-protocol.md`, "bash": all deltas come before the response, requests side by side never share ids.
"""

from __future__ import annotations

from contextlib import suppress

from conformance.client.calls import abort_bash, bash
from conformance.client.core import Core, Feed, Pending
from conformance.client.errors import ClientError
from conformance.client.flows import Deadline, Flow, call, taken, until
from conformance.client.options import Options
from conformance.client.records import BashDelta
from protocol.commands import Bash, UserBash
from protocol.responses import BashResult


class ShellCourse:
    """`begin`, then `following` until it gives `None` or `result` at any time; `left` at the end, always."""

    def __init__(self, core: Core, command: Bash | UserBash, options: Options, seconds: float | None) -> None:
        self._core, self._command, self._options, self._seconds = core, command, options, seconds
        self._pending: Pending | None = None
        self._feed: Feed[BashDelta] | None = None
        self._deadline = Deadline("", None, None)

    def begin(self) -> None:
        """Send it, once. Raises when the connection is over."""
        if self._pending is None:
            self._pending = self._core.request(self._command)
            self._feed = self._core.listen_to_shell(self._pending.id)
            self._deadline = Deadline.set(self._core, f"result of {self._pending.command}", self._seconds)

    @property
    def id(self) -> str:
        """The request's id, which `abort_bash` takes."""
        self.begin()
        assert self._pending is not None
        return self._pending.id

    def following(self) -> Flow[BashDelta | None]:
        """The next piece of output, `None` when the command has ended well. Raises `CommandRefused`, `EventsLost`,
        `DeadlineExceeded`, `TransportError`."""
        self.begin()
        assert self._feed is not None and self._pending is not None
        delta = yield from taken(self._core, self._feed, self._deadline)
        if delta is None:
            self._pending.answer()
        return delta

    def result(self) -> Flow[BashResult]:
        """The result; output that has not been read is dropped. Can be asked for again, also after a deadline."""
        self.begin()
        pending = self._pending
        assert self._feed is not None and pending is not None
        self._feed.discard()
        yield from until(self._core, pending, lambda: pending.done, self._deadline)
        return bash("").read(pending.answer())

    def cancelled(self) -> Flow[None]:
        """Cancel this request and no other one. The result then tells `cancelled`."""
        yield from call(self._core, abort_bash(self.id).command, self._options.slow_deadline)

    def left(self) -> Flow[None]:
        """Let go; a command that still runs is cancelled, and its end waited for."""
        pending = self._pending
        if pending is None:
            return
        try:
            if not pending.done and not self._core.closing:
                with suppress(ClientError):
                    yield from self.cancelled()
                    patience = Deadline.set(self._core, "", self._options.quick_deadline)
                    yield from until(self._core, pending, lambda: pending.done, patience)
        finally:
            self._feed = None
            self._core.abandon(pending)
