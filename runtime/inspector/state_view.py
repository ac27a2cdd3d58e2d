"""How one task is called and how it stands: the words and symbols that all views share.

Pure. Source: contract, background tasks ("States").
"""

from __future__ import annotations

from typing import NamedTuple

from protocol.tasks import TaskCancelled, TaskCompleted, TaskFailed, TaskRecord, TaskResult, TaskState
from runtime.inspector.texts import Span, count, duration, one_line


class Look(NamedTuple):
    word: str
    symbol: str
    style: str


LOOKS: dict[TaskState, Look] = {
    "queued": Look("Queued", "○", "dim"),
    "running": Look("Running", "●", "busy"),
    "inputNeeded": Look("Input needed", "?", "warn"),
    "stopping": Look("Stopping", "◌", "warn"),
    "completed": Look("Completed", "✓", "good"),
    "failed": Look("Failed", "✗", "bad"),
    "stopped": Look("Stopped", "■", "dim"),
}
SHELL_FAILURES = {
    "SpawnFailed": "It could not be started",
    "OutputLimitExceeded": "It was ended: too much output",
    "CommandKilled": "It was killed by a signal",
}
HINTS = {"needs_attention": "may need a look", "active_long_running": "at work for long"}
CAUSES = {
    "user": "It was stopped",
    "owner-close": "It was stopped: its session ended",
    "execution-timeout": "It was stopped: its time was over",
    "output-limit": "It was stopped: too much output",
    "parent-handoff": "It was stopped: its parent left",
    "shutdown": "It was stopped: the program ended",
}


def name_of(record: TaskRecord) -> str:
    """An agent's name and task, or the title of a command; one line."""
    title = one_line(record.title)
    agent = one_line(record.agent_name) if isinstance(record.agent_name, str) else ""
    if record.kind != "agent" or not agent or title == agent:
        return title or ("agent" if record.kind == "agent" else "shell")
    return f"{agent} · {title}" if title else agent


def model_of(record: TaskRecord) -> str:
    """`provider/id · thinking medium`; what is not known is left out."""
    parts = [one_line(record.model)] if isinstance(record.model, str) and record.model else []
    if isinstance(record.thinking, str) and record.thinking:
        parts.append(f"thinking {one_line(record.thinking)}")
    return " · ".join(parts)


def metrics_of(record: TaskRecord, elapsed_ms: int | None) -> list[str]:
    """What was told; a recorded zero too."""
    shown = [duration(elapsed_ms)] if elapsed_ms is not None else []
    metrics = record.metrics
    if metrics and isinstance(metrics.tool_count, int):
        shown.append(f"{metrics.tool_count} tool{'' if metrics.tool_count == 1 else 's'}")
    if metrics and isinstance(metrics.token_count, int):
        shown.append(f"{count(metrics.token_count)} token{'' if metrics.token_count == 1 else 's'}")
    if record.output and record.kind == "command":
        size = int(record.output.byte_count) if record.output.byte_count.isdigit() else 0
        shown.append(f"{count(size)} byte{'' if size == 1 else 's'} of output")
    return shown


def state_spans(record: TaskRecord) -> tuple[Span, ...]:
    look = LOOKS[record.state]
    return ((f"{look.symbol} ", look.style), (look.word, look.style))


def hint_of(record: TaskRecord) -> str:
    """That an agent may need a look; nothing if it does not, or if it has said itself what it needs."""
    if record.attention.kind == "no-recent-activity":
        return "no recent activity"
    if record.attention.kind != "none" or not isinstance(record.activity_state, str):
        return ""
    return HINTS.get(record.activity_state, "")


def outcome_of(record: TaskRecord) -> list[Span]:
    """How it ended, line by line; nothing while it runs."""
    if record.execution.__struct_config__.tag != "settled":
        return []
    result: TaskResult = record.execution.result  # type: ignore[union-attr]
    return _outcome(result)


def _outcome(result: TaskResult) -> list[Span]:
    shown: list[Span] = []
    match result:
        case TaskCompleted():
            pass
        case TaskFailed(code=code, message=message):
            told = SHELL_FAILURES.get(code) or one_line(code)
            shown.append((told if not message else f"{told}: {message}", "bad"))
        case TaskCancelled(cause=cause):
            shown.append((CAUSES.get(cause, "It was stopped"), "dim"))
    exit_code = getattr(result, "exit_code", None)
    if isinstance(exit_code, int):
        shown.append((f"Exit code {exit_code}", "bad" if exit_code else "good"))
    return shown
