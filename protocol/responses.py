"""Responses: the data that the answer to a command may carry, one struct per shape (`envelope` puts it into a record).

Fields that the contract writes as `null` are typed `... | None`; fields that it leaves out are `UNSET`.

Source: contract `rpc-protocol.md`, "Commands" and "Error Handling".
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from protocol.compaction import CompactionParameters, CompactionStats, PlannerModel
from protocol.events import EntryJson, MessageJson
from protocol.model import Model, ThinkingLevel
from protocol.state import SessionState
from protocol.tasks import TaskQuestion, TaskRecord, Transcript

# ---- prompts -----------------------------------------------------------------------------------------------------

Disposition = Literal["started", "queued", "handled"]


class Accepted(Struct):
    """Data of `prompt`, `steer` and `follow_up` with `--rpc-compat pi`.

    Nothing handles a prompt without a run yet."""

    disposition: Disposition


# ---- queue -------------------------------------------------------------------------------------------------------


class QueuedTexts(Struct, rename="camel"):
    """What `clear_queue` removed."""

    steering: list[str]
    follow_up: list[str]


class Released(Struct):
    """Whether something was held."""

    released: bool


# ---- state -------------------------------------------------------------------------------------------------------


class MessageList(Struct):
    """Data of `get_messages`."""

    messages: list[MessageJson]


class TokenTotals(Struct, rename="camel"):
    """Tokens of the whole session; `total` is the sum of the others."""

    input: int
    output: int
    cache_read: int
    cache_write: int
    total: int


class ContextUsage(Struct, rename="camel"):
    """`tokens` and `percent` are `None` from a compaction until the next good reply."""

    tokens: int | None
    context_window: int
    percent: float | None


class SessionStats(Struct, rename="camel"):
    """Data of `get_session_stats`; `cost` in US dollars. `context_usage` is absent without a model or a window."""

    session_id: str
    user_messages: int
    assistant_messages: int
    tool_calls: int
    tool_results: int
    total_messages: int
    tokens: TokenTotals
    cost: float
    session_file: str | UnsetType = UNSET
    context_usage: ContextUsage | UnsetType = UNSET


class LastAssistantText(Struct):
    """`text` is `None` when there is no answer yet."""

    text: str | None


class EntryList(Struct, rename="camel"):
    """Data of `get_entries`; `leaf_id` is the entry that the next one will hang on."""

    entries: list[EntryJson]
    leaf_id: str | None


class ForkMessage(Struct, rename="camel"):
    """A user message, and the entry that it is."""

    entry_id: str
    text: str


class ForkMessageList(Struct):
    """Data of `get_fork_messages`."""

    messages: list[ForkMessage]


# ---- models, credentials, thinking -------------------------------------------------------------------------------


class ScopedModel(Struct, rename="camel"):
    """A model to cycle through, and the level that it is used with."""

    model: Model
    thinking_level: ThinkingLevel | UnsetType = UNSET


class CycledModel(Struct, rename="camel"):
    """Data of `cycle_model`; with fewer than two candidates the data is `null`."""

    model: Model
    thinking_level: ThinkingLevel
    is_scoped: bool


class Catalogue(Struct, rename="camel"):
    """Data of `get_available_models` and `save_provider_credential`."""

    models: list[Model]
    scoped_models: list[ScopedModel] = []
    custom_auth_providers: list[str] = []
    oauth_providers: list[Any] | UnsetType = UNSET


class RefreshError(Struct):
    """What is wrong with the models of one provider."""

    provider: str
    message: str


class RefreshedCatalogue(Catalogue, rename="camel", kw_only=True):
    """Data of `refresh_models`. `aborted`: the deadline passed, the models are those known so far."""

    aborted: bool
    errors: list[RefreshError]


class LoggedIn(Catalogue, rename="camel", kw_only=True):
    """Data of a `login_provider` that succeeded; `type` is absent after OAuth."""

    provider: str
    cancelled: Annotated[bool, Meta(extra_json_schema={"const": False})] = False
    type: Literal["api_key"] | UnsetType = UNSET


class LoginCancelled(Struct):
    """Data of a `login_provider` that was given up."""

    provider: str
    cancelled: Annotated[bool, Meta(extra_json_schema={"const": True})] = True


class AuthStatus(Struct):
    """`source` says where the credential comes from, `label` names it (an environment variable, say)."""

    configured: bool
    source: str | UnsetType = UNSET
    label: str | UnsetType = UNSET


class LoggedOut(Struct, rename="camel"):
    """Data of `logout_provider`: what is left."""

    provider: str
    auth_status: AuthStatus
    models: list[Model]
    scoped_models: list[ScopedModel] = []


class EffectiveLevel(Struct, rename="camel"):
    """Data of `set_thinking_level` (with the model it was set for) and of `cycle_thinking_level` (the level alone)."""

    level: ThinkingLevel
    provider: str | UnsetType = UNSET
    model_id: str | UnsetType = UNSET


class LevelList(Struct):
    """Data of `get_available_thinking_levels`."""

    levels: list[ThinkingLevel]


# ---- compaction, shell -------------------------------------------------------------------------------------------


class CompactionResult(Struct, rename="camel"):
    """Data of `compact`, and `result` of `compaction_end`. `first_kept_entry_id` is `None` when no message was kept."""

    compacted_text: str
    first_kept_entry_id: str | None
    tokens_before: int
    prompt_version: int
    parameters: CompactionParameters
    rung: Literal["planned", "extension", "fresh"]
    stats: CompactionStats
    planner_model: PlannerModel | UnsetType = UNSET
    backup_path: str | UnsetType = UNSET


class BashResult(Struct, rename="camel"):
    """Data of `bash` and `user_bash`. `exit_code` is absent after a signal; `full_output_path` is absent unless the
    output was truncated, and `None` when it could not be kept."""

    output: str
    cancelled: bool
    truncated: bool
    exit_code: int | UnsetType = UNSET
    full_output_path: str | UnsetType | None = UNSET


# ---- tasks -------------------------------------------------------------------------------------------------------


class TaskList(Struct):
    """Data of `get_tasks`, in the order of launch."""

    tasks: list[TaskRecord]


class TaskDetail(Struct, rename="camel"):
    """Data of `get_task`. `command` is for shells, `prompt` for agents. `tail` is the end of the output or of the
    agent's answer, at most 8 KiB, without escape sequences; it is absent when that is not kept, or not there yet.
    `questions` are those that an agent waits to have answered, `transcript` is the page that was asked for."""

    task: TaskRecord
    command: str | UnsetType = UNSET
    prompt: str | UnsetType = UNSET
    cwd: str | UnsetType = UNSET
    timeout_seconds: int | UnsetType = UNSET
    tail: str | UnsetType = UNSET
    full_output_path: str | UnsetType = UNSET
    questions: list[TaskQuestion] | UnsetType = UNSET
    transcript: Transcript | UnsetType = UNSET


class InputAccepted(Struct):
    """Data of `send_task_input`: the bytes that were typed, or that the answer has."""

    accepted: int


# ---- sessions ----------------------------------------------------------------------------------------------------


class Cancelled(Struct):
    """Data of `new_session`, `switch_session`, `import_session` and `clone`."""

    cancelled: bool


class Forked(Struct):
    """Data of `fork`; `text` is that of the message, to be changed."""

    cancelled: bool
    text: str | UnsetType = UNSET


class Navigated(Struct, rename="camel"):
    """Data of `navigate_tree`; `editor_text` is the user message there, to be changed. `aborted` tells that the summary
    of the branch was cancelled, so that nothing has moved."""

    cancelled: bool
    editor_text: str | UnsetType = UNSET
    aborted: bool | UnsetType = UNSET


class ExportedPath(Struct):
    """Data of `export_html`."""

    path: str


# ---- slash commands and shortcuts --------------------------------------------------------------------------------


class SourceInfo(Struct, rename="camel"):
    """Where a command comes from."""

    path: str
    source: str
    scope: Literal["user", "project", "temporary"]
    origin: Literal["package", "top-level"]
    base_dir: str | UnsetType = UNSET
    configuration_origin: Any = UNSET


class SlashCommand(Struct, rename="camel"):
    """What a prompt can call as `/name`. `location` is absent for extensions.

    `location` and `path` are the contract's; `source_info` is what the reference sends beside them."""

    name: str
    source: Literal["extension", "prompt", "skill"]
    description: str | UnsetType = UNSET
    location: Literal["user", "project", "path"] | UnsetType = UNSET
    path: str | UnsetType = UNSET
    has_argument_completions: bool | UnsetType = UNSET
    source_info: SourceInfo | UnsetType = UNSET


class SlashCommandList(Struct):
    """Data of `get_commands`."""

    commands: list[SlashCommand]


class Completion(Struct):
    """One way to go on: `value` is to be typed, `label` to be shown."""

    value: str
    label: str
    description: str | UnsetType = UNSET


class CompletionList(Struct):
    """Data of `get_command_completions`; `None` when nobody completes the command."""

    completions: list[Completion] | None


class Shortcut(Struct):
    """A key, and what it does."""

    key: str
    description: str | UnsetType = UNSET


class ShortcutList(Struct):
    """Data of `get_shortcuts`."""

    shortcuts: list[Shortcut]


# ---- which command is answered with what -------------------------------------------------------------------------

TreeJson = Annotated[Raw, Meta(extra={"holds": "SessionTree"})]

DATA: dict[str, Any] = {
    "prompt": Accepted | UnsetType,
    "steer": Accepted | UnsetType,
    "follow_up": Accepted | UnsetType,
    "clear_queue": QueuedTexts,
    "resume_queued_messages": Released,
    "get_state": SessionState,
    "get_messages": MessageList,
    "get_session_stats": SessionStats,
    "get_last_assistant_text": LastAssistantText,
    "get_entries": EntryList,
    "get_tree": TreeJson,
    "get_fork_messages": ForkMessageList,
    "set_model": Model,
    "cycle_model": CycledModel | None,
    "get_available_models": Catalogue,
    "refresh_models": RefreshedCatalogue,
    "login_provider": LoggedIn | LoginCancelled,
    "save_provider_credential": Catalogue,
    "logout_provider": LoggedOut,
    "set_thinking_level": EffectiveLevel | UnsetType,
    "cycle_thinking_level": EffectiveLevel | None,
    "get_available_thinking_levels": LevelList,
    "compact": CompactionResult,
    "bash": BashResult,
    "user_bash": BashResult,
    "new_session": Cancelled,
    "switch_session": Cancelled,
    "import_session": Cancelled,
    "fork": Forked,
    "clone": Cancelled,
    "navigate_tree": Navigated,
    "export_html": ExportedPath,
    "get_commands": SlashCommandList,
    "get_command_completions": CompletionList,
    "get_shortcuts": ShortcutList,
}
"""What `data` of a success is. `UnsetType`: it may be absent. A command that is not here has none."""
