"""What a session is given: addresses, ports and values. It reaches nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from actors.base import Address, Child
from actors.catalog_view import CatalogView, Defaults, Inherited
from actors.mail import (
    CatalogMail,
    ClockMail,
    ModelCallMail,
    ModelRequest,
    MutationDeskMail,
    PreferencesMail,
    QueueKind,
    QueueMail,
    SessionDeskMail,
    SessionMail,
    ShellDeskMail,
    TaskDeskMail,
    Ticket,
    ToolCallMail,
    ToolRequest,
    WriterMail,
)
from actors.session.surroundings import Surroundings
from protocol.commands import QueueMode
from protocol.model import Model, ThinkingLevel

if TYPE_CHECKING:
    from actors.session.compaction.boundary import Proposal
    from actors.session.compaction.preparation import Preparation
    from actors.session.compaction_files import CompactionFiles
    from actors.session.exporting import ExportPlan
    from actors.session.fallback import Place
    from actors.session.file import OpenedSession
    from actors.tool.table import Tool
    from protocol.compaction import CompactionReason

Modes = Mapping[QueueKind, QueueMode]

LONG = 5000
"""Entries from which on answers about all of them are made in a pump: each takes 2 to 3 us, on everybody's thread."""


class Shared(Struct, frozen=True):
    """The permanent actors that sessions and what these start reach."""

    writer: Address[WriterMail]
    shells: Address[ShellDeskMail]
    preferences: Address[PreferencesMail]
    clock: Address[ClockMail]
    catalog: Address[CatalogMail]
    mutations: Address[MutationDeskMail]


class Services(Struct, frozen=True):
    """`now` is in milliseconds since the epoch; `complain` takes one line for stderr; `reread` reads a session's own
    file again in a pump and tells it `Reread`, `make_answer` makes an answer in one and tells `AnswerMade`: from `long`
    entries on. `catalog`, `defaults` and `surroundings` are those of the session's start; `load_surroundings` reads
    those of a folder in a pump and tells the session `SurroundingsLoaded`, `export` writes a page and tells `Exported`.
    `work` does a part of a compaction in a pump and tells `CompactionWorked`; `propose_compaction` asks extensions what
    they make of one, which may block, so it runs there too (None: there are none). With `pi_compat` responses and
    events say what clients of pi need beyond the contract. A subagent's session owns no tasks, starts at `place`
    whatever its file says, and of tools that it does not have by rule `absent_tools` tells why."""

    writer: Address[WriterMail]
    shells: Address[ShellDeskMail]
    desk: Address[SessionDeskMail]
    preferences: Address[PreferencesMail]
    clock: Address[ClockMail]
    catalog_owner: Address[CatalogMail]
    start_queue: Callable[[Address[SessionMail], Modes], Child[QueueMail]]
    start_model_call: Callable[[ModelRequest, Address[SessionMail]], Child[ModelCallMail]]
    start_task_desk: Callable[[str, str, Address[SessionMail]], Child[TaskDeskMail]] | None
    start_tool_call: Callable[[ToolRequest, Address[SessionMail]], Child[ToolCallMail]]
    now: Callable[[], int]
    uuid4: Callable[[], str]
    catalog: CatalogView
    tools: Mapping[str, Tool]
    check_arguments: Callable[[Tool, dict[str, object]], str | None]
    surroundings: Surroundings
    load_surroundings: Callable[[Ticket, str, Address[SessionMail]], None]
    export: Callable[[Ticket, ExportPlan, Address[SessionMail]], None]
    environment: Callable[[str, str | None, Model | None, ThinkingLevel], Mapping[str, str]]
    complain: Callable[[str], None]
    reread: Callable[[Ticket, OpenedSession, Address[SessionMail]], None]
    make_answer: Callable[[Ticket, Callable[[], Any], Address[SessionMail]], None]
    work: Callable[[int, Callable[[], Any], Address[SessionMail]], None]
    compaction_files: Callable[[], CompactionFiles]
    defaults: Defaults = Defaults()
    long: int = LONG
    name: str | None = None
    pi_compat: bool = False
    propose_compaction: Callable[[CompactionReason, Preparation], Proposal] | None = None
    place: Place | None = None
    absent_tools: Mapping[str, str] = {}


def inheriting(services: Services, inherited: Inherited) -> Services:
    """The same, with what has changed since the process started."""
    return replace(
        services,
        catalog=inherited.catalog or services.catalog,
        defaults=inherited.defaults or services.defaults,
        surroundings=inherited.surroundings or services.surroundings,
    )
