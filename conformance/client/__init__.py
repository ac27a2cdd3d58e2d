"""A client for any `<cmd> --mode rpc`: blocking (`RpcClient`) and on asyncio (`AsyncRpcClient`), over one core.

Needs msgspec and the standard library alone. docs/client.md tells how it is used.
"""

from conformance.client.asynchronous import AsyncEvents, AsyncPromptRun, AsyncRpcClient, AsyncShellRun
from conformance.client.blocking import Events, PromptRun, RpcClient, ShellRun
from conformance.client.calls import Call, SessionTree, TreeNode
from conformance.client.errors import (
    AgentDied,
    ClientClosed,
    ClientError,
    CommandRefused,
    DeadlineExceeded,
    EventsLost,
    ProtocolError,
    SpawnFailed,
    TransportError,
)
from conformance.client.options import EndsOn, Options
from conformance.client.prompt_course import Outcome
from conformance.client.records import BashDelta, Event, UiRequest, UnknownEvent, event_type, read_message

__all__ = [
    "AgentDied",
    "AsyncEvents",
    "AsyncPromptRun",
    "AsyncRpcClient",
    "AsyncShellRun",
    "BashDelta",
    "Call",
    "ClientClosed",
    "ClientError",
    "CommandRefused",
    "DeadlineExceeded",
    "EndsOn",
    "Event",
    "Events",
    "EventsLost",
    "Options",
    "Outcome",
    "PromptRun",
    "ProtocolError",
    "RpcClient",
    "SessionTree",
    "ShellRun",
    "SpawnFailed",
    "TransportError",
    "TreeNode",
    "UiRequest",
    "UnknownEvent",
    "event_type",
    "read_message",
]
