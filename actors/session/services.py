"""What a session is given: addresses, ports and values. It reaches nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal, Protocol

from msgspec import Struct

from actors.base import Address, Child
from actors.mail import (
    ModelCallMail,
    ModelRequest,
    PreferencesMail,
    QueueKind,
    QueueMail,
    SessionDeskMail,
    SessionMail,
    ShellDeskMail,
    ToolCallMail,
    ToolRequest,
    WriterMail,
)
from protocol.commands import QueueMode
from protocol.model import Model, ThinkingLevel

if TYPE_CHECKING:
    from actors.session.file import OpenedSession
    from actors.tool.table import Tool

Modes = Mapping[QueueKind, QueueMode]


class Choice(Protocol):
    """The model and level that a session starts with; without a model `reason` and `message` say why."""

    @property
    def model(self) -> Model | None: ...
    @property
    def thinking_level(self) -> ThinkingLevel: ...
    @property
    def message(self) -> str | None: ...
    @property
    def reason(self) -> Literal["configured-provider-unsupported", "session-restore", "no-models-available"] | None: ...


class Catalog(Protocol):
    """Models and who may use them. Asking runs no commands and touches no network."""

    def available(self) -> list[Model]:
        """Models whose provider has a credential, in catalogue order."""

    def refusal(self, model: Model | None) -> str | None:
        """Why a prompt for `model` cannot be sent, in words for the user; None if it can."""

    def choose(self, saved: tuple[str, str] | None, saved_level: ThinkingLevel | None, *, first: bool) -> Choice:
        """The model of a session whose entries name `saved`. The program's flags speak for its first session, and for
        those that name no model."""


class Services(Struct, frozen=True):
    """`now` is in milliseconds since the epoch; `complain` takes one line for stderr; `reopen` reads a session's own
    file again."""

    writer: Address[WriterMail]
    shells: Address[ShellDeskMail]
    desk: Address[SessionDeskMail]
    preferences: Address[PreferencesMail]
    start_queue: Callable[[Address[SessionMail], Modes], Child[QueueMail]]
    start_model_call: Callable[[ModelRequest, Address[SessionMail]], Child[ModelCallMail]]
    start_tool_call: Callable[[ToolRequest, Address[SessionMail]], Child[ToolCallMail]]
    now: Callable[[], int]
    uuid4: Callable[[], str]
    catalog: Catalog
    tools: Mapping[str, Tool]
    check_arguments: Callable[[Tool, dict[str, object]], str | None]
    system_prompt: Callable[[Model, ThinkingLevel, str], str]
    environment: Callable[[str, str | None, Model | None, ThinkingLevel], Mapping[str, str]]
    complain: Callable[[str], None]
    reopen: Callable[[OpenedSession], OpenedSession]
    cache_retention: Literal["none", "short", "long"] = "short"
    thinking_budgets: dict[str, int] | None = None
    auto_compaction: bool = True
    name: str | None = None
