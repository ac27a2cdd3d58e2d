"""Commands: everything that a client may ask for, one frozen struct each.

Owns the names, the fields and the scheduling lanes of the commands. The wire's `type` is the class name in snake
case. An absent or `null` optional field has its default here. Unknown fields are ignored. `id` is the client's own
JSON scalar as raw bytes (`Raw(b"")` when there is none); `bytes(command.id)` is what responses echo.

Source: contract `rpc-protocol.md`, "Commands", and the commands that it leaves out (`login_provider` and others).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta, Raw, Struct

from protocol.messages import ImageContent
from protocol.model import ThinkingLevel

QueueMode = Literal["all", "one-at-a-time"]
StreamingBehavior = Literal["steer", "followUp"]

NO_ID = Raw(b"")


def _wire_name(class_name: str) -> str:
    return "".join("_" + letter.lower() if letter.isupper() else letter for letter in class_name).lstrip("_")


class _Command(Struct, frozen=True, kw_only=True, rename="camel", tag_field="type", tag=_wire_name, omit_defaults=True):
    id: Raw = NO_ID


# ---- prompting and the queue -------------------------------------------------------------------------------------


class Prompt(_Command, frozen=True):
    """`streaming_behavior` says how to queue while the session is busy; without it a busy session refuses."""

    message: str
    images: tuple[ImageContent, ...] = ()
    streaming_behavior: StreamingBehavior | None = None


class Steer(_Command, frozen=True):
    message: str
    images: tuple[ImageContent, ...] = ()


class FollowUp(_Command, frozen=True):
    message: str
    images: tuple[ImageContent, ...] = ()


class Abort(_Command, frozen=True):
    pass


class ClearQueue(_Command, frozen=True):
    pass


class PauseQueuedMessages(_Command, frozen=True):
    pass


class ResumeQueuedMessages(_Command, frozen=True):
    pass


class SetSteeringMode(_Command, frozen=True):
    mode: QueueMode


class SetFollowUpMode(_Command, frozen=True):
    mode: QueueMode


# ---- state -------------------------------------------------------------------------------------------------------


class GetState(_Command, frozen=True):
    pass


class GetMessages(_Command, frozen=True):
    pass


class GetSessionStats(_Command, frozen=True):
    pass


class GetLastAssistantText(_Command, frozen=True):
    pass


class GetEntries(_Command, frozen=True):
    """Entries strictly after the one with the id `since`; all of them without it."""

    since: str | None = None


class GetTree(_Command, frozen=True):
    pass


class GetForkMessages(_Command, frozen=True):
    pass


# ---- models, credentials, thinking -------------------------------------------------------------------------------


class SetModel(_Command, frozen=True):
    provider: str
    model_id: str
    persist: bool = False


class CycleModel(_Command, frozen=True):
    direction: Literal["forward", "backward"] = "forward"
    persist: bool = False


class GetAvailableModels(_Command, frozen=True):
    pass


class RefreshModels(_Command, frozen=True):
    """`timeout_ms` in milliseconds, unbounded without it. `allow_network` is `None` when the client left it open."""

    timeout_ms: float | None = None
    force: bool = False
    allow_network: bool | None = None


class LoginProvider(_Command, frozen=True):
    provider: str
    auth_type: Literal["api_key", "oauth"] | None = None
    login_id: str | None = None


class SaveProviderCredential(_Command, frozen=True):
    provider: str
    credential: Annotated[dict[str, Any], Meta(extra={"secret": True})]

    def __repr__(self) -> str:
        return f"SaveProviderCredential(provider={self.provider!r}, credential=...)"


class CancelLoginProvider(_Command, frozen=True):
    provider: str
    login_id: str | None = None


class LogoutProvider(_Command, frozen=True):
    provider: str


class SetThinkingLevel(_Command, frozen=True):
    level: ThinkingLevel
    persist: bool = False


class CycleThinkingLevel(_Command, frozen=True):
    pass


class GetAvailableThinkingLevels(_Command, frozen=True):
    pass


# ---- compaction and retry ----------------------------------------------------------------------------------------


class Compact(_Command, frozen=True):
    pass


class AbortCompaction(_Command, frozen=True):
    pass


class SetAutoCompaction(_Command, frozen=True):
    enabled: bool


class SetAutoRetry(_Command, frozen=True):
    enabled: bool


class AbortRetry(_Command, frozen=True):
    pass


# ---- shell -------------------------------------------------------------------------------------------------------


class Bash(_Command, frozen=True):
    command: str
    exclude_from_context: bool = False


class UserBash(_Command, frozen=True):
    command: str
    exclude_from_context: bool = False


class AbortBash(_Command, frozen=True):
    """Cancels the shell requests whose `id` is `request_id`, compared as it stands; without it, all.

    They are raw bytes; `Raw(b"")` is the absent one."""

    request_id: Raw = NO_ID


# ---- sessions ----------------------------------------------------------------------------------------------------


class NewSession(_Command, frozen=True):
    parent_session: str | None = None


class SwitchSession(_Command, frozen=True):
    session_path: str


class ImportSession(_Command, frozen=True):
    input_path: str
    cwd_override: str | None = None


class Fork(_Command, frozen=True):
    entry_id: str


class Clone(_Command, frozen=True):
    pass


class SetSessionName(_Command, frozen=True):
    name: str


class NavigateOptions(Struct, frozen=True, rename="camel", omit_defaults=True):
    """How to leave a branch: whether it is summarised, with which instructions, and which label is set."""

    summarize: bool = False
    custom_instructions: str | None = None
    replace_instructions: bool = False
    label: str | None = None


class NavigateTree(_Command, frozen=True):
    target_id: str
    options: NavigateOptions = NavigateOptions()


class SetLabel(_Command, frozen=True):
    """An absent or empty `label` clears it."""

    entry_id: str
    label: str | None = None


class ExportHtml(_Command, frozen=True):
    output_path: str | None = None


class Reload(_Command, frozen=True):
    pass


# ---- slash commands, shortcuts, extensions -----------------------------------------------------------------------


class GetCommands(_Command, frozen=True):
    pass


class GetCommandCompletions(_Command, frozen=True):
    command_name: str
    argument_prefix: str


class GetShortcuts(_Command, frozen=True):
    pass


class InvokeShortcut(_Command, frozen=True):
    key: str


class ExtensionUiResponse(_Command, frozen=True):
    """The client's answer to a dialog. It is no command: nothing responds to it. Its fields are not checked, since
    an answer of the wrong shape counts as the dialog's default."""

    value: Any = None
    confirmed: Any = None
    cancelled: Any = None

    @property
    def request_id(self) -> str:
        """The dialog's id; the codec lets only strings pass."""
        return msgspec.json.decode(self.id, type=str)


Command = (
    Prompt
    | Steer
    | FollowUp
    | Abort
    | ClearQueue
    | PauseQueuedMessages
    | ResumeQueuedMessages
    | SetSteeringMode
    | SetFollowUpMode
    | GetState
    | GetMessages
    | GetSessionStats
    | GetLastAssistantText
    | GetEntries
    | GetTree
    | GetForkMessages
    | SetModel
    | CycleModel
    | GetAvailableModels
    | RefreshModels
    | LoginProvider
    | SaveProviderCredential
    | CancelLoginProvider
    | LogoutProvider
    | SetThinkingLevel
    | CycleThinkingLevel
    | GetAvailableThinkingLevels
    | Compact
    | AbortCompaction
    | SetAutoCompaction
    | SetAutoRetry
    | AbortRetry
    | Bash
    | UserBash
    | AbortBash
    | NewSession
    | SwitchSession
    | ImportSession
    | Fork
    | Clone
    | SetSessionName
    | NavigateTree
    | SetLabel
    | ExportHtml
    | Reload
    | GetCommands
    | GetCommandCompletions
    | GetShortcuts
    | InvokeShortcut
    | ExtensionUiResponse
)

COMMANDS: dict[str, type[Command]] = {_wire_name(kind.__name__): kind for kind in get_args(Command)}
COMMAND_NAMES = frozenset(COMMANDS)

# Lanes. Interrupts and long work start at once and pass the ordered lane; a reply answers a dialog; the rest is
# ordered.
INTERRUPTS = frozenset(
    {
        "abort",
        "abort_compaction",
        "abort_retry",
        "abort_bash",
        "cancel_login_provider",
        "pause_queued_messages",
        "resume_queued_messages",
        "clear_queue",
    }
)
LONG_WORK = frozenset({"bash", "user_bash", "refresh_models"})
REPLIES = frozenset({"extension_ui_response"})
ORDERED = COMMAND_NAMES - INTERRUPTS - LONG_WORK - REPLIES
REPLACEMENTS = frozenset({"new_session", "switch_session", "import_session", "fork", "clone"})
# Ordered commands that outlive their message: the ordered lane waits for their response.
CREDENTIAL_WRITES = frozenset({"save_provider_credential", "logout_provider"})
HOLDS_LANE = REPLACEMENTS | CREDENTIAL_WRITES | {"compact", "reload", "login_provider", "navigate_tree", "export_html"}


def command_name(command: Command) -> str:
    """The wire's `type` of `command`."""
    return command.__struct_config__.tag  # type: ignore[return-value]
