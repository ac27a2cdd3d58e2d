"""What can go wrong between a client and its agent, one class for each thing that a caller would treat in its own way.

`CommandRefused`: the agent answered, and said no. `DeadlineExceeded`: our patience ended, the connection stands.
`EventsLost`: a reader was too slow. `TransportError`: there will be no more answers; `AgentDied`, `ProtocolError`,
`SpawnFailed` and `ClientClosed` say why. All are `ClientError`.
"""

from __future__ import annotations

import signal
from typing import Any

SHOWN_LINE = 300
SHOWN_STDERR = 2000


class ClientError(Exception):
    """The root of what this package raises."""


class CommandRefused(ClientError):
    """The response was `success:false`. `message` is its `error`; `code` and `details` are those of a structured
    error (`credential_synchronization`), else `None`."""

    def __init__(
        self, command: str, id: str, message: str, code: str | None = None, details: dict[str, Any] | None = None
    ) -> None:
        super().__init__(f"{command} was refused: {message}")
        self.command, self.id, self.message, self.code, self.details = command, id, message, code, details


class DeadlineExceeded(ClientError, TimeoutError):
    """`seconds` passed before `what` happened. A response that comes later is dropped."""

    def __init__(self, what: str, seconds: float, stderr: str = "") -> None:
        super().__init__(f"{what}: nothing within {seconds:g} s{_told(stderr)}")
        self.what, self.seconds, self.stderr = what, seconds, stderr


class EventsLost(ClientError):
    """A reader of events was so slow that its buffer ran full: `count` records after the last one that it got are
    gone."""

    def __init__(self, count: int) -> None:
        super().__init__(f"{count} records were lost because they were not read in time")
        self.count = count


class TransportError(ClientError):
    """The connection is over, for whatever is waited for and for every later request. `stderr` is the tail of what the
    agent wrote there."""

    def __init__(self, text: str, stderr: str = "") -> None:
        super().__init__(text + _told(stderr))
        self.text, self.stderr = text, stderr

    def again(self) -> TransportError:
        """The same error as a new exception: each waiter raises its own, so that no traceback is shared."""
        return type(self)(self.text, self.stderr)


class SpawnFailed(TransportError):
    """The command could not be started at all; `__cause__` is the operating system's error."""


class ClientClosed(TransportError):
    """The client was closed, or never started."""


class AgentDied(TransportError):
    """The process ended, or closed its stdin or stdout. `exit_code` is `None` after a signal (`signal` is its name,
    such as `SIGKILL`) and while the process still runs; then `signal` is `None` too."""

    def __init__(self, text: str, stderr: str = "", exit_code: int | None = None, signal: str | None = None) -> None:
        super().__init__(text, stderr)
        self.exit_code, self.signal = exit_code, signal

    @classmethod
    def of(cls, status: int | None, stderr: str) -> AgentDied:
        """`status` as `subprocess` tells it: an exit code, minus a signal's number, `None` for a process that runs."""
        if status is None:
            return cls("the agent closed its stdin or stdout, but still runs", stderr)
        if status < 0:
            name = signal_name(-status)
            return cls(f"the agent was ended by {name}", stderr, None, name)
        return cls(f"the agent ended with exit code {status}", stderr, status)

    def again(self) -> TransportError:
        return AgentDied(self.text, self.stderr, self.exit_code, self.signal)


class ProtocolError(TransportError):
    """The agent said what the protocol does not allow. `line` is the record, or the data of one, as it came."""

    def __init__(self, text: str, stderr: str = "", line: bytes = b"") -> None:
        super().__init__(f"{text}: {shown(line)}" if line else text, stderr)
        self.reason, self.line = text, line

    def again(self) -> TransportError:
        return ProtocolError(self.reason, self.stderr, self.line)


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def shown(line: bytes) -> str:
    """`line` for an error text."""
    text = line[:SHOWN_LINE].decode("utf-8", "replace")
    return repr(text) + (f" and {len(line) - SHOWN_LINE} more bytes" if len(line) > SHOWN_LINE else "")


def _told(stderr: str) -> str:
    tail = stderr[-SHOWN_STDERR:].strip()
    return f"\nstderr: {tail}" if tail else ""
