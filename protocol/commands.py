"""Commands: everything that a client may ask for, one frozen struct each.

Owns the names, the fields and the scheduling lanes of the commands. The wire's `type` is the class name in snake
case. An absent or `null` optional field has its default here. Unknown fields are ignored. `id` is the client's own
JSON scalar as raw bytes (`Raw(b"")` when there is none); `bytes(command.id)` is what responses echo.

Source: contract `rpc-protocol.md`, "Commands", and the commands that it leaves out (`login_provider` and others).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta, Raw, Struct, field

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
    """Ask the agent something. `streaming_behavior` says how to queue while the session is busy; without it a busy
    session refuses."""

    message: str
    images: tuple[ImageContent, ...] = ()
    streaming_behavior: StreamingBehavior | None = None


class Steer(_Command, frozen=True):
    """Queue a message for the next request to the model."""

    message: str
    images: tuple[ImageContent, ...] = ()


class FollowUp(_Command, frozen=True):
    """Queue a message for when the run would end."""

    message: str
    images: tuple[ImageContent, ...] = ()


WithImages = Prompt | Steer | FollowUp


class Abort(_Command, frozen=True):
    """End the run, the wait for a retry included."""


class ClearQueue(_Command, frozen=True):
    """Take back what is queued."""


class PauseQueuedMessages(_Command, frozen=True):
    """Hold what is queued, so that `abort` does not begin it."""


class ResumeQueuedMessages(_Command, frozen=True):
    """Let go what is held, with the next prompt."""


class SetSteeringMode(_Command, frozen=True):
    """Whether queued steering messages are delivered together or one at a time."""

    mode: QueueMode


class SetFollowUpMode(_Command, frozen=True):
    """Whether queued follow-ups are delivered together or one at a time."""

    mode: QueueMode


# ---- state -------------------------------------------------------------------------------------------------------


class GetState(_Command, frozen=True):
    """How the session stands."""


class GetMessages(_Command, frozen=True):
    """The conversation as the model sees it."""


class GetSessionStats(_Command, frozen=True):
    """Counts, tokens and cost of the session."""


class GetLastAssistantText(_Command, frozen=True):
    """The text of the last answer."""


class GetEntries(_Command, frozen=True):
    """Entries strictly after the one with the id `since`; all of them without it."""

    since: str | None = None


class GetTree(_Command, frozen=True):
    """The entries of the session as a tree."""


class GetForkMessages(_Command, frozen=True):
    """The user messages that `fork` can start before."""


# ---- models, credentials, thinking -------------------------------------------------------------------------------


class SetModel(_Command, frozen=True):
    """Use another model; `persist` makes it the default at start."""

    provider: str
    model_id: str
    persist: bool = False


class CycleModel(_Command, frozen=True):
    """Use the next model of the scope, or of all that can be used."""

    direction: Literal["forward", "backward"] = "forward"
    persist: bool = False


class GetAvailableModels(_Command, frozen=True):
    """The models that can be used, and those to cycle through."""


class RefreshModels(_Command, frozen=True):
    """`timeout_ms` in milliseconds, unbounded without it. `allow_network` is `None` when the client left it open."""

    timeout_ms: float | None = None
    force: bool = False
    allow_network: bool | None = None


class LoginProvider(_Command, frozen=True):
    """Log in to a provider. `login_id` names this login to `cancel_login_provider`."""

    provider: str
    auth_type: Literal["api_key", "oauth"] | None = None
    login_id: str | None = None


class SaveProviderCredential(_Command, frozen=True):
    """Store a credential. It is never sent back."""

    provider: str
    credential: Annotated[dict[str, Any], Meta(extra={"secret": True})]

    def __repr__(self) -> str:
        return f"SaveProviderCredential(provider={self.provider!r}, credential=...)"


class CancelLoginProvider(_Command, frozen=True):
    """End a login, or all of the provider."""

    provider: str
    login_id: str | None = None


class LogoutProvider(_Command, frozen=True):
    """Remove the stored credential of a provider."""

    provider: str


class SetThinkingLevel(_Command, frozen=True):
    """How much the model may think; clamped to what it supports."""

    level: ThinkingLevel
    persist: bool = False


class CycleThinkingLevel(_Command, frozen=True):
    """The next level that the model supports."""


class GetAvailableThinkingLevels(_Command, frozen=True):
    """The levels that the model supports, in cycle order."""


# ---- compaction and retry ----------------------------------------------------------------------------------------


class Compact(_Command, frozen=True):
    """Shorten the context. What is not said follows from the settings. `compression_ratio` is the share of lines to
    keep, `preserve_recent` the number of newest messages that stay as they are, `query` what the rest is judged by."""

    compression_ratio: float | None = field(default=None, name="compression_ratio")
    preserve_recent: int | None = field(default=None, name="preserve_recent")
    query: str | None = None


class AbortCompaction(_Command, frozen=True):
    """End a compaction."""


class SetAutoCompaction(_Command, frozen=True):
    """Whether a context that is nearly full is shortened by itself."""

    enabled: bool


class SetAutoRetry(_Command, frozen=True):
    """Whether failures that may pass are tried again."""

    enabled: bool


class AbortRetry(_Command, frozen=True):
    """End the wait for a retry."""


# ---- shell -------------------------------------------------------------------------------------------------------


class Bash(_Command, frozen=True):
    """Run a shell command for the user. The model sees the result unless `exclude_from_context`."""

    command: str
    exclude_from_context: bool = False


class UserBash(_Command, frozen=True):
    """`bash` under another name."""

    command: str
    exclude_from_context: bool = False


class AbortBash(_Command, frozen=True):
    """Cancels the shell requests whose `id` is `request_id`, compared as it stands; without it, all.

    They are raw bytes; `Raw(b"")` is the absent one."""

    request_id: Raw = NO_ID


# ---- tasks -------------------------------------------------------------------------------------------------------


class GetTasks(_Command, frozen=True):
    pass


class TranscriptPage(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Which entries of a transcript: at most `limit` (50 if left out) before the number `before`, else the last."""

    before: Annotated[int, Meta(ge=0)] | None = None
    limit: Annotated[int, Meta(ge=1, le=200)] | None = None


class GetTask(_Command, frozen=True):
    """With `transcript`, which is for subagents alone, also a page of its conversation."""

    task_id: str
    transcript: TranscriptPage | None = None


class CancelTask(_Command, frozen=True):
    task_id: str


class SendTaskInput(_Command, frozen=True):
    """Types on a task's terminal, or answers a subagent's question. `operation_id` names what is typed: sent twice, it
    is typed once. `request_id` names the question; it may be left out, since a subagent has at most one open."""

    task_id: str
    input: str
    operation_id: str | None = None
    request_id: str | None = None


Cells = Annotated[int, Meta(ge=1, le=32767)]


class ResizeTask(_Command, frozen=True):
    """Gives a task's terminal another size, in characters; what runs there is told. It begins with 120 by 40."""

    task_id: str
    columns: Cells
    rows: Cells


class WaitTask(_Command, frozen=True):
    """Without `budget_ms` it waits until the task has settled."""

    task_id: str
    budget_ms: Annotated[float, Meta(ge=0)] | None = None


class SetTaskSubscription(_Command, frozen=True):
    """`transcript` is the id of a subagent whose conversation is told too, as long as this session is current; one at a
    time."""

    enabled: bool
    transcript: str | None = None


# ---- sessions ----------------------------------------------------------------------------------------------------


class NewSession(_Command, frozen=True):
    """Begin a new session. `parent_session` is the path of the one it comes from."""

    parent_session: str | None = None


class SwitchSession(_Command, frozen=True):
    """Open the session in a file."""

    session_path: str


class ImportSession(_Command, frozen=True):
    """Copy a session file into the session folder and open the copy."""

    input_path: str
    cwd_override: str | None = None


class Fork(_Command, frozen=True):
    """A new session with what came before a user message."""

    entry_id: str


class Clone(_Command, frozen=True):
    """A new session with the same history."""


class SetSessionName(_Command, frozen=True):
    """Name the session."""

    name: str


class NavigateOptions(Struct, frozen=True, rename="camel", omit_defaults=True):
    """How to leave a branch: whether it is summarised, with which instructions, and which label is set."""

    summarize: bool = False
    custom_instructions: str | None = None
    replace_instructions: bool = False
    label: str | None = None


class NavigateTree(_Command, frozen=True):
    """Move to another place in the session's tree."""

    target_id: str
    options: NavigateOptions = NavigateOptions()


class SetLabel(_Command, frozen=True):
    """An absent or empty `label` clears it."""

    entry_id: str
    label: str | None = None


class ExportHtml(_Command, frozen=True):
    """Write the session as a page."""

    output_path: str | None = None


class Reload(_Command, frozen=True):
    """Read settings, templates, skills and context files again."""


# ---- slash commands, shortcuts, extensions -----------------------------------------------------------------------


class GetCommands(_Command, frozen=True):
    """What a prompt can call as `/name`."""


class GetCommandCompletions(_Command, frozen=True):
    """What can follow after `/name`."""

    command_name: str
    argument_prefix: str


class GetShortcuts(_Command, frozen=True):
    """The shortcuts of extensions."""


class InvokeShortcut(_Command, frozen=True):
    """Press a shortcut of an extension."""

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
    | GetTasks
    | GetTask
    | CancelTask
    | SendTaskInput
    | ResizeTask
    | WaitTask
    | SetTaskSubscription
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
TASK_COMMANDS = frozenset({"get_tasks", "get_task", "cancel_task", "send_task_input", "resize_task", "wait_task"})
LONG_WORK = frozenset({"bash", "user_bash", "refresh_models"}) | TASK_COMMANDS
REPLIES = frozenset({"extension_ui_response"})
ORDERED = COMMAND_NAMES - INTERRUPTS - LONG_WORK - REPLIES
REPLACEMENTS = frozenset({"new_session", "switch_session", "import_session", "fork", "clone"})
# Ordered commands that outlive their message: the ordered lane waits for their response.
CREDENTIAL_WRITES = frozenset({"save_provider_credential", "logout_provider"})
HOLDS_LANE = REPLACEMENTS | CREDENTIAL_WRITES | {"compact", "reload", "login_provider", "navigate_tree", "export_html"}


def command_name(command: Command) -> str:
    """The wire's `type` of `command`."""
    return command.__struct_config__.tag  # type: ignore[return-value]
