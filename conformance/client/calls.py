"""One function for each command of the contract: what to send, and how to read what comes back.

`Call[T]` is a command with the type of its result; both faces take it (`client.call(calls.get_state())`) and have a
method of the same name for each. `pace` says how long an answer may take by default: `quick` ones are answered at once;
`slow` ones wait for other work; `open` ones last as long as what the user asked for. `bash`, `user_bash` and `prompt`
stand here for whoever wants the bare response; the faces have methods of their own for them.

Source: contract `rpc-protocol.md`, "Commands", and the commands that it leaves out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, Literal, NamedTuple, TypeVar

import msgspec

from conformance.client.errors import ProtocolError
from conformance.client.records import Response, any_value
from conformance.client.shapes import read_data
from protocol import commands as c
from protocol import responses as r
from protocol import tasks as t
from protocol.json_text import BadJson
from protocol.messages import ImageContent
from protocol.model import Model, ThinkingLevel
from protocol.state import SessionState

T = TypeVar("T")
Pace = Literal["quick", "slow", "open"]
Direction = Literal["forward", "backward"]


class Call(msgspec.Struct, Generic[T], frozen=True):
    """See the module. `read` makes the result of a response that tells success. Raises `ProtocolError`."""

    command: c.Command
    read: Callable[[Response], T]
    pace: Pace = "quick"


class TreeNode:
    """An entry of the session's tree as it came, with what follows it."""

    __slots__ = ("children", "entry", "label", "label_timestamp")

    def __init__(self, entry: dict[str, Any], label: str | None, label_timestamp: str | None) -> None:
        self.entry, self.label, self.label_timestamp = entry, label, label_timestamp
        self.children: list[TreeNode] = []

    def __repr__(self) -> str:  # never recursive: a conversation is a chain of thousands
        return f"TreeNode({self.entry.get('type')!r} {self.entry.get('id')!r}, {len(self.children)} children)"


class SessionTree(NamedTuple):
    roots: list[TreeNode]
    leaf_id: str | None


def _none(command: c.Command, pace: Pace = "quick") -> Call[None]:
    return Call(command, lambda _: None, pace)


def _data(command: c.Command, kind: type[T], pace: Pace = "quick") -> Call[T]:
    name = c.command_name(command)

    def read(response: Response) -> T:
        value: T = read_data(response.data, kind, name)
        return value

    return Call(command, read, pace)


def _data_or_none(command: c.Command, kind: type[T], pace: Pace = "quick") -> Call[T | None]:
    name = c.command_name(command)

    def read(response: Response) -> T | None:
        value: T | None = read_data(response.data, kind | None, name)
        return value

    return Call(command, read, pace)


# ---- prompting and the queue -------------------------------------------------------------------------------------


def prompt(
    message: str, *, images: Iterable[ImageContent] = (), streaming_behavior: c.StreamingBehavior | None = None
) -> Call[r.Accepted | None]:
    """The acceptance alone; the data come with `--rpc-compat pi`."""
    command = c.Prompt(message=message, images=tuple(images), streaming_behavior=streaming_behavior)
    return _data_or_none(command, r.Accepted, "slow")


def steer(message: str, *, images: Iterable[ImageContent] = ()) -> Call[r.Accepted | None]:
    return _data_or_none(c.Steer(message=message, images=tuple(images)), r.Accepted, "slow")


def follow_up(message: str, *, images: Iterable[ImageContent] = ()) -> Call[r.Accepted | None]:
    return _data_or_none(c.FollowUp(message=message, images=tuple(images)), r.Accepted, "slow")


def abort() -> Call[None]:
    """Answered once the run has ended; `clear_queue` before it, or what is queued goes on."""
    return _none(c.Abort(), "slow")


def clear_queue() -> Call[r.QueuedTexts]:
    return _data(c.ClearQueue(), r.QueuedTexts)


def pause_queued_messages() -> Call[None]:
    return _none(c.PauseQueuedMessages())


def resume_queued_messages() -> Call[r.Released]:
    return _data(c.ResumeQueuedMessages(), r.Released, "slow")


def set_steering_mode(mode: c.QueueMode) -> Call[None]:
    return _none(c.SetSteeringMode(mode=mode))


def set_follow_up_mode(mode: c.QueueMode) -> Call[None]:
    return _none(c.SetFollowUpMode(mode=mode))


# ---- state -------------------------------------------------------------------------------------------------------


def get_state() -> Call[SessionState]:
    return _data(c.GetState(), SessionState)


def get_messages() -> Call[r.MessageList]:
    """Messages are raw JSON; `read_message` makes values of them."""
    return _data(c.GetMessages(), r.MessageList)


def get_session_stats() -> Call[r.SessionStats]:
    return _data(c.GetSessionStats(), r.SessionStats)


def get_last_assistant_text() -> Call[r.LastAssistantText]:
    return _data(c.GetLastAssistantText(), r.LastAssistantText)


def get_entries(since: str | None = None) -> Call[r.EntryList]:
    return _data(c.GetEntries(since=since), r.EntryList)


def get_tree() -> Call[SessionTree]:
    return Call(c.GetTree(), _read_tree)


def _read_tree(response: Response) -> SessionTree:
    raw = bytes(response.data) if isinstance(response.data, msgspec.Raw) else b"null"
    try:
        value = any_value(raw)
        return SessionTree(_nodes(value["tree"]), value.get("leafId"))
    except (BadJson, KeyError, TypeError, AttributeError):
        raise ProtocolError("the data of get_tree have another shape than the contract's", line=raw) from None


def _nodes(tree: list[dict[str, Any]]) -> list[TreeNode]:
    """Not recursive: a conversation is a chain of thousands of entries."""
    roots: list[TreeNode] = []
    todo = [(roots, tree)]
    while todo:
        into, nodes = todo.pop()
        for each in nodes:
            node = TreeNode(each["entry"], each.get("label"), each.get("labelTimestamp"))
            into.append(node)
            todo.append((node.children, each.get("children") or []))
    return roots


def get_fork_messages() -> Call[r.ForkMessageList]:
    return _data(c.GetForkMessages(), r.ForkMessageList)


# ---- models, credentials, thinking -------------------------------------------------------------------------------


def set_model(provider: str, model_id: str, *, persist: bool = False) -> Call[Model]:
    return _data(c.SetModel(provider=provider, model_id=model_id, persist=persist), Model)


def cycle_model(direction: Direction = "forward", *, persist: bool = False) -> Call[r.CycledModel | None]:
    return _data_or_none(c.CycleModel(direction=direction, persist=persist), r.CycledModel)


def get_available_models() -> Call[r.Catalogue]:
    return _data(c.GetAvailableModels(), r.Catalogue)


def refresh_models(
    *, timeout_ms: float | None = None, force: bool = False, allow_network: bool | None = None
) -> Call[r.RefreshedCatalogue]:
    command = c.RefreshModels(timeout_ms=timeout_ms, force=force, allow_network=allow_network)
    return _data(command, r.RefreshedCatalogue, "slow")


def login_provider(
    provider: str, *, auth_type: Literal["api_key", "oauth"] | None = None, login_id: str | None = None
) -> Call[r.LoggedIn | r.LoginCancelled]:
    command = c.LoginProvider(provider=provider, auth_type=auth_type, login_id=login_id)
    return Call(command, _read_login, "open")


def _read_login(response: Response) -> r.LoggedIn | r.LoginCancelled:
    told: r.LoginCancelled = read_data(response.data, r.LoginCancelled, "login_provider")
    if told.cancelled:
        return told
    logged_in: r.LoggedIn = read_data(response.data, r.LoggedIn, "login_provider")
    return logged_in


def save_provider_credential(provider: str, credential: dict[str, Any]) -> Call[r.Catalogue]:
    return _data(c.SaveProviderCredential(provider=provider, credential=credential), r.Catalogue)


def cancel_login_provider(provider: str, login_id: str | None = None) -> Call[None]:
    return _none(c.CancelLoginProvider(provider=provider, login_id=login_id), "slow")


def logout_provider(provider: str) -> Call[r.LoggedOut]:
    return _data(c.LogoutProvider(provider=provider), r.LoggedOut)


def set_thinking_level(level: ThinkingLevel, *, persist: bool = False) -> Call[r.EffectiveLevel | None]:
    return _data_or_none(c.SetThinkingLevel(level=level, persist=persist), r.EffectiveLevel)


def cycle_thinking_level() -> Call[r.EffectiveLevel | None]:
    return _data_or_none(c.CycleThinkingLevel(), r.EffectiveLevel)


def get_available_thinking_levels() -> Call[r.LevelList]:
    return _data(c.GetAvailableThinkingLevels(), r.LevelList)


# ---- compaction and retry ----------------------------------------------------------------------------------------


def compact(
    *, compression_ratio: float | None = None, preserve_recent: int | None = None, query: str | None = None
) -> Call[r.CompactionResult]:
    command = c.Compact(compression_ratio=compression_ratio, preserve_recent=preserve_recent, query=query)
    return _data(command, r.CompactionResult, "open")


def abort_compaction() -> Call[None]:
    return _none(c.AbortCompaction(), "slow")


def set_auto_compaction(enabled: bool) -> Call[None]:
    return _none(c.SetAutoCompaction(enabled=enabled))


def set_auto_retry(enabled: bool) -> Call[None]:
    return _none(c.SetAutoRetry(enabled=enabled))


def abort_retry() -> Call[None]:
    return _none(c.AbortRetry(), "slow")


# ---- shell -------------------------------------------------------------------------------------------------------


def bash(command: str, *, exclude_from_context: bool = False) -> Call[r.BashResult]:
    return _data(c.Bash(command=command, exclude_from_context=exclude_from_context), r.BashResult, "open")


def user_bash(command: str, *, exclude_from_context: bool = False) -> Call[r.BashResult]:
    return _data(c.UserBash(command=command, exclude_from_context=exclude_from_context), r.BashResult, "open")


def abort_bash(request_id: str | None = None) -> Call[None]:
    """Without an id all shell requests are cancelled."""
    raw = c.NO_ID if request_id is None else msgspec.Raw(msgspec.json.encode(request_id))
    return _none(c.AbortBash(request_id=raw), "slow")


# ---- tasks -------------------------------------------------------------------------------------------------------


def get_tasks() -> Call[r.TaskList]:
    return _data(c.GetTasks(), r.TaskList)


def get_task(task_id: str, transcript: c.TranscriptPage | None = None) -> Call[r.TaskDetail]:
    """With `transcript` also a page of what a subagent said."""
    return _data(c.GetTask(task_id=task_id, transcript=transcript), r.TaskDetail)


def cancel_task(task_id: str) -> Call[t.CancelReceipt]:
    """Asks for the end of a task, and does not wait for it."""
    return _data(c.CancelTask(task_id=task_id), t.CancelReceipt)


def send_task_input(task_id: str, input: str, operation_id: str | None = None) -> Call[r.InputAccepted]:
    """Types at a task on a terminal; a line needs its line feed."""
    return _data(c.SendTaskInput(task_id=task_id, input=input, operation_id=operation_id), r.InputAccepted)


def resize_task(task_id: str, columns: int, rows: int) -> Call[None]:
    """Gives a task's terminal another size."""
    return _none(c.ResizeTask(task_id=task_id, columns=columns, rows=rows))


def wait_task(task_id: str, budget_ms: float | None = None) -> Call[t.Observation]:
    """Until the task has settled, or for `budget_ms` milliseconds."""
    command = c.WaitTask(task_id=task_id, budget_ms=budget_ms)
    observation: Any = t.Observation  # a union, which no type variable takes
    return _data(command, observation, "open")


def set_task_subscription(enabled: bool, transcript: str | None = None) -> Call[None]:
    """Whether `task_update` comes, and `task_transcript` of the subagent with that id."""
    return _none(c.SetTaskSubscription(enabled=enabled, transcript=transcript))


# ---- sessions ----------------------------------------------------------------------------------------------------


def new_session(parent_session: str | None = None) -> Call[r.Cancelled]:
    return _data(c.NewSession(parent_session=parent_session), r.Cancelled, "slow")


def switch_session(session_path: str) -> Call[r.Cancelled]:
    return _data(c.SwitchSession(session_path=session_path), r.Cancelled, "slow")


def import_session(input_path: str, cwd_override: str | None = None) -> Call[r.Cancelled]:
    return _data(c.ImportSession(input_path=input_path, cwd_override=cwd_override), r.Cancelled, "slow")


def fork(entry_id: str) -> Call[r.Forked]:
    return _data(c.Fork(entry_id=entry_id), r.Forked, "slow")


def clone() -> Call[r.Cancelled]:
    return _data(c.Clone(), r.Cancelled, "slow")


def set_session_name(name: str) -> Call[None]:
    return _none(c.SetSessionName(name=name))


def navigate_tree(target_id: str, options: c.NavigateOptions | None = None) -> Call[r.Navigated]:
    return _data(c.NavigateTree(target_id=target_id, options=options or c.NavigateOptions()), r.Navigated, "open")


def set_label(entry_id: str, label: str | None = None) -> Call[None]:
    return _none(c.SetLabel(entry_id=entry_id, label=label))


def export_html(output_path: str | None = None) -> Call[r.ExportedPath]:
    return _data(c.ExportHtml(output_path=output_path), r.ExportedPath, "slow")


def reload() -> Call[None]:
    return _none(c.Reload(), "slow")


# ---- slash commands, shortcuts -----------------------------------------------------------------------------------


def get_commands() -> Call[r.SlashCommandList]:
    return _data(c.GetCommands(), r.SlashCommandList)


def get_command_completions(command_name: str, argument_prefix: str) -> Call[r.CompletionList]:
    command = c.GetCommandCompletions(command_name=command_name, argument_prefix=argument_prefix)
    return _data(command, r.CompletionList)


def get_shortcuts() -> Call[r.ShortcutList]:
    return _data(c.GetShortcuts(), r.ShortcutList)


def invoke_shortcut(key: str) -> Call[None]:
    return _none(c.InvokeShortcut(key=key), "open")
