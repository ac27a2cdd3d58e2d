"""Tasks as the wire, tool results and session files show them: what runs, what came of it, and who waits.

Three things are told apart: *execution* (does it run, how did it end), *observation* (does the parent wait for it) and
*cleanup* (is everything that it started gone). None implies another. Sequences, offsets and byte counts are decimal
strings, since they may pass what a JSON number holds. A field without a value is left out, never null.

Source: contract, background tasks ("States", "Task state and completion delivery"); `tasks.md` 2.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

TaskKind = Literal["agent", "command"]
CancelCause = Literal["user", "owner-close", "execution-timeout", "output-limit", "parent-handoff", "shutdown"]
YieldReason = Literal["explicit", "default-background", "elapsed", "input-needed", "intercom-coordination"]
ActivityState = Literal["needs_attention", "active_long_running"]
ContactReason = Literal["need_decision", "interview_request", "progress_update"]
TaskState = Literal["queued", "running", "inputNeeded", "stopping", "completed", "failed", "stopped"]


class TaskRef(Struct, rename="camel", frozen=True):
    """Data, never authority: whoever knows these may still only reach the tasks of its own owner."""

    owner_id: str
    task_id: str
    attempt_id: str
    generation: str


class OmittedRange(Struct, rename="camel", frozen=True):
    """Bytes of the original stream that are no longer kept: from `start` up to, not including, `end`."""

    start: str
    end: str


class OutputRef(Struct, rename="camel", frozen=True):
    """What a command has put out so far; `byte_count` counts all of it, kept or not."""

    owner_id: str
    task_id: str
    artifact_id: str
    byte_count: str
    omitted_ranges: tuple[OmittedRange, ...] = ()


# ---- results -----------------------------------------------------------------------------------------------------


class TaskCompleted(Struct, rename="camel", tag_field="kind", tag="completed", frozen=True):
    """It ran to its end. A command's exit code may be any."""

    output: OutputRef | UnsetType = UNSET
    exit_code: int | UnsetType = UNSET


class TaskFailed(Struct, rename="camel", tag_field="kind", tag="failed", frozen=True):
    """`code` is SpawnFailed, OutputLimitExceeded, CommandKilled, RunnerFailed or AgentFailed."""

    code: str
    message: str
    output: OutputRef | UnsetType = UNSET
    exit_code: int | UnsetType = UNSET


class TaskCancelled(Struct, rename="camel", tag_field="kind", tag="cancelled", frozen=True):
    """It was stopped; `cause` is the first one, whatever came after it."""

    cause: CancelCause
    output: OutputRef | UnsetType = UNSET


TaskResult = TaskCompleted | TaskFailed | TaskCancelled

# ---- the axes ----------------------------------------------------------------------------------------------------


class Queued(Struct, tag_field="kind", tag="queued", frozen=True):
    """Admitted, waits for room to run."""


class Running(Struct, tag_field="kind", tag="running", frozen=True):
    pass


class Cancelling(Struct, tag_field="kind", tag="cancelling", frozen=True):
    """Told to stop, and not known to have stopped."""

    cause: CancelCause


class Settled(Struct, tag_field="kind", tag="settled", frozen=True):
    result: TaskResult


Execution = Queued | Running | Cancelling | Settled


class CleanupActive(Struct, tag_field="kind", tag="active", frozen=True):
    """What it started is in use."""


class CleanupDraining(Struct, tag_field="kind", tag="draining", frozen=True):
    """What it started is being ended."""


class CleanupReaped(Struct, tag_field="kind", tag="reaped", frozen=True):
    """Nothing that it started is left."""


class CleanupFailed(Struct, tag_field="kind", tag="failed", frozen=True):
    """What could not be ended in time; it may still become reaped."""

    resources: tuple[str, ...]


Cleanup = CleanupActive | CleanupDraining | CleanupReaped | CleanupFailed


class Foreground(Struct, rename="camel", tag_field="kind", tag="foreground", frozen=True):
    """The parent waits for it."""

    wait_id: str


class Background(Struct, tag_field="kind", tag="background", frozen=True):
    """It runs while the parent does something else."""

    reason: YieldReason | Literal["not-observed", "observer-cancelled"]


class Unobserved(Struct, tag_field="kind", tag="none", frozen=True):
    reason: Literal["task-settled", "owner-closing"]


Badge = Foreground | Background | Unobserved


class Attention(Struct, rename="camel", frozen=True):
    """For the eye alone. `request_ids` name the questions that are open with `input-needed`; `no-recent-activity` says
    that an agent has been silent for a minute."""

    kind: Literal["none", "input-needed", "no-recent-activity"] = "none"
    request_ids: tuple[str, ...] = ()


class InterviewQuestion(Struct, frozen=True, omit_defaults=True):
    """One question of an interview. `options` are there to choose from; an `info` only tells something."""

    type: Literal["single", "multi", "text", "image", "info"]
    question: str
    id: str | UnsetType = UNSET
    options: tuple[str, ...] | UnsetType = UNSET


class TaskQuestion(Struct, rename="camel", frozen=True):
    """What a subagent waits for its parent to answer."""

    request_id: str
    reason: ContactReason
    message: str
    questions: tuple[InterviewQuestion, ...] | UnsetType = UNSET


class Action(Struct, rename="camel", frozen=True):
    """The tool that a subagent uses now, and a line about it."""

    tool: str
    text: str = ""


class Metrics(Struct, rename="camel", frozen=True):
    """What is known; a zero that was reported stays, what was never reported is left out. `elapsed_ms` is counted from
    when the task began to run, up to this record or its end."""

    elapsed_ms: int | UnsetType = UNSET
    tool_count: int | UnsetType = UNSET
    token_count: int | UnsetType = UNSET


class TaskRecord(Struct, rename="camel", frozen=True, kw_only=True):
    """One task as its owner sees it now. `state` sums up the axes for people. `activity_state` is a hint about an
    agent: it is silent or its changes fail, or it has been at work for four minutes."""

    ref: TaskRef
    launch_ordinal: int
    kind: TaskKind
    title: str
    state: TaskState
    execution: Execution
    observation: Badge
    cleanup: Cleanup
    attention: Attention
    was_background: bool = False
    output: OutputRef | UnsetType = UNSET
    parent_task_id: str | UnsetType = UNSET
    launch_group_id: str | UnsetType = UNSET
    agent_name: str | UnsetType = UNSET
    model: str | UnsetType = UNSET
    thinking: str | UnsetType = UNSET
    current_action: Action | UnsetType = UNSET
    metrics: Metrics | UnsetType = UNSET
    accepts_input: bool = False
    activity_state: ActivityState | UnsetType = UNSET


# ---- transcripts -------------------------------------------------------------------------------------------------


class TranscriptEntry(Struct, rename="camel", frozen=True):
    """One piece of a subagent's conversation. `index` counts from 0 in the order in which it was said; `text` is the
    arguments of a `toolCall` as JSON, and has `[image]` in the place of an image. A longer text is cut and says so."""

    index: int
    role: Literal["user", "assistant", "toolCall", "toolResult", "notice"]
    text: str
    tool: str | UnsetType = UNSET
    tool_call_id: str | UnsetType = UNSET
    is_error: bool | UnsetType = UNSET
    timestamp: int | UnsetType = UNSET


TranscriptEntryJson = Annotated[Raw, Meta(extra={"holds": "TranscriptEntry"})]


class Transcript(Struct, rename="camel"):
    """A page of a subagent's conversation: its entries from `first` on, of `total`. The earliest `missing` are not kept
    anywhere any more. `live` is what is being said now, and not said yet."""

    entries: list[TranscriptEntryJson]
    first: int
    total: int
    missing: int
    live: TranscriptEntry | UnsetType = UNSET


# ---- waiting and cancelling --------------------------------------------------------------------------------------


class SettledWait(Struct, rename="camel", tag_field="kind", tag="settled", frozen=True):
    """The task was over before the wait was."""

    task_id: str
    result: TaskResult


class YieldedWait(Struct, rename="camel", tag_field="kind", tag="yielded", frozen=True):
    """The wait is over, the task is not."""

    task_id: str
    wait_id: str
    reason: YieldReason


Observation = SettledWait | YieldedWait


class CancelReceipt(Struct, rename="camel", frozen=True):
    """What a cancel came upon. `cancellation-requested` does not say that anything has ended yet."""

    task_id: str
    decision: Literal["cancellation-requested", "already-settled"]
    execution: Execution
    cleanup: Cleanup


class CompletionEnvelope(Struct, rename="camel", frozen=True):
    """The identity of one notice and what it tells; `custom` entries `task-completion-intent` hold it."""

    completion_id: str
    owner_id: str
    task_id: str
    terminal_sequence: str
    result: TaskResult
    display: bool = False
