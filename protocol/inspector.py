"""The local socket or pipe of a running program, over which an inspector looks at its tasks: what differs from stdin.

Records are JSON lines. The program greets first; then the inspector sends the commands below, and gets one response
for each and the events that it subscribed to.
"""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType

from protocol.commands import TASK_COMMANDS
from protocol.model import ThinkingLevel

VERSION = 1
INSPECTOR_COMMANDS = (*sorted(TASK_COMMANDS), "set_task_subscription")
"""The commands that an inspector may send; they are those of stdin."""


class _Session(Struct, rename="camel", kw_only=True):
    """The session that the inspector looks at. `model` is `provider/id`."""

    session_id: str
    cwd: str
    session_name: str | UnsetType = UNSET
    session_file: str | UnsetType = UNSET
    model: str | UnsetType = UNSET
    thinking_level: ThinkingLevel | UnsetType = UNSET


class InspectorHello(_Session, tag_field="type", tag="inspector_hello"):
    """The first record of a connection. `pid` is that of the program."""

    version: int
    pid: int


class InspectorRefused(Struct, tag_field="type", tag="inspector_refused"):
    """The only record of a connection that is not let in. `error` says why, for people."""

    error: str


class InspectorSession(_Session, tag_field="type", tag="inspector_session"):
    """Another session is current now, or its name, model or level has changed. Tasks of the one before are no longer
    told of."""
