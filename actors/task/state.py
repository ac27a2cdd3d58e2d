"""One task: its execution, its cleanup and who sees it, and the table of what may follow what.

Pure. Execution and cleanup are moved by events; a pair that the table does not have is refused by name, and then
nothing has changed. An outcome never means that anything was cleaned up, and the first cause of a cancel is the one
that is kept. Source: `tasks.md` 2.4 and 2.5.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from protocol import tasks as t

Event = Literal["start", "cancel", "outcome", "reaped", "cleanup-failed"]
Execution = Literal["queued", "running", "cancelling", "settled"]

CONFLICT = "ReportConflict"
OVER_LIMIT = "Background command killed: output file exceeded 5 GiB"
EXECUTION: dict[tuple[Execution, Event], Execution] = {
    ("queued", "start"): "running",
    ("queued", "cancel"): "settled",
    ("running", "cancel"): "cancelling",
    ("running", "outcome"): "settled",
    ("cancelling", "cancel"): "cancelling",
    ("cancelling", "reaped"): "settled",
    ("cancelling", "cleanup-failed"): "cancelling",
    ("settled", "cancel"): "settled",
    ("settled", "outcome"): "settled",  # the same one again; another is refused
    ("settled", "reaped"): "settled",
    ("settled", "cleanup-failed"): "settled",
}
REFUSED: dict[tuple[Execution, Event], str] = {
    ("queued", "outcome"): "StaleAttempt",
    ("running", "start"): "RunnerUnavailable",
    ("cancelling", "start"): "RunnerUnavailable",
    ("settled", "start"): "RunnerUnavailable",
}
"""The code of a refusal where it is not `ReportConflict`."""


class Refused(Exception):
    """What was asked for cannot be; `code` says why, and `str()` that and more, or what `text` says."""

    def __init__(self, code: str, message: str = "", text: str | None = None) -> None:
        super().__init__(text or f"{code}: {message or code}")
        self.code = code


class Launch(Struct, frozen=True):
    """What a task is to be. `operation` names the launch: the same one twice gives the same task. `intent` is what is
    compared then, and what the runner is given. Of one `group` at most `group_limit` run at once. `is_prepared`
    tells that it may take long until it has begun."""

    operation: str
    kind: t.TaskKind
    title: str
    intent: Any = None
    parent_task_id: str | None = None
    group: str | None = None
    group_limit: int | None = None
    agent_name: str | None = None
    accepts_input: bool = False
    is_prepared: bool = False


class Task:
    """`spawned` tells that what runs it has begun; `over_limit` that its output passed what is kept; `last_told` is
    what its session knows of it. `now` is in seconds, for its elapsed time alone."""

    def __init__(self, ref: t.TaskRef, launch: Launch, ordinal: int, now: Callable[[], float]) -> None:
        self.ref = ref
        self.launch = launch
        self.ordinal = ordinal
        self.execution: t.Execution = t.Queued()
        self.cleanup: t.Cleanup = t.CleanupActive()
        self.badge: t.Badge = t.Background("not-observed")
        self.was_background = False
        self.attention = t.Attention()
        self.output: t.OutputRef | UnsetType = UNSET
        self.spawned = False
        self.over_limit = False
        self.is_told = False
        self.last_told: t.TaskRecord | None = None
        self.terminal_sequence = 0
        self.model: str | UnsetType = UNSET
        self.thinking: str | UnsetType = UNSET
        self.action: t.Action | UnsetType = UNSET
        self.activity: t.ActivityState | UnsetType = UNSET
        self._now = now
        self._began: float | None = None
        self._took_ms: int | None = None
        self._counts = t.Metrics()

    @property
    def id(self) -> str:
        return self.ref.task_id

    @property
    def phase(self) -> Execution:
        match self.execution:
            case t.Queued():
                return "queued"
            case t.Running():
                return "running"
            case t.Cancelling():
                return "cancelling"
            case t.Settled():
                return "settled"

    @property
    def is_reaped(self) -> bool:
        return isinstance(self.cleanup, t.CleanupReaped)

    @property
    def result(self) -> t.TaskResult | None:
        return self.execution.result if isinstance(self.execution, t.Settled) else None

    # -- events

    def start(self) -> None:
        self._step("start")
        self.execution = t.Running()

    def spawn(self) -> None:
        """What runs it has begun; its time is counted from here."""
        self.spawned = True
        self._began = self._now()

    def cancel(self, cause: t.CancelCause) -> bool:
        """Whether something that runs has to be stopped: not if it never ran, is stopping already or is over."""
        if isinstance(self.cleanup, t.CleanupFailed):
            raise Refused("CleanupFailed", ", ".join(self.cleanup.resources))
        was = self.phase
        after = self._step("cancel")
        self.attention = t.Attention()
        if was == "queued":
            self._settle(t.TaskCancelled(cause, self.output))
            self.cleanup = t.CleanupReaped()
        elif was == "running":
            self.execution = t.Cancelling(cause)
            self.cleanup = t.CleanupDraining()
        return after == "cancelling" and was == "running"

    def end(self, result: t.TaskResult) -> bool:
        """Whether the outcome is news. One that comes after a cancel is refused, but what it put out is kept."""
        if self.phase == "cancelling" and result.output is not UNSET:
            self.output = result.output
        self._step("outcome")
        if self.phase == "settled":
            if self.result != result:
                raise Refused(CONFLICT, "the task has ended otherwise")
            return False
        self._settle(result)
        self.output = result.output or self.output
        self.attention = t.Attention()
        if isinstance(self.cleanup, t.CleanupActive):
            self.cleanup = t.CleanupDraining()
        return True

    def reap(self) -> bool:
        """Whether this settles it: the end of a cancel."""
        was = self.execution
        self._step("reaped")
        self.cleanup = t.CleanupReaped()
        if isinstance(was, t.Cancelling):
            over = was.cause == "output-limit"
            code = "OutputLimitExceeded"
            stopped = t.TaskFailed(code, OVER_LIMIT, self.output) if over else t.TaskCancelled(was.cause, self.output)
            self._settle(stopped)
            return True
        return False

    def fail_cleanup(self, resources: tuple[str, ...]) -> None:
        self._step("cleanup-failed")
        if self.is_reaped:
            raise Refused(CONFLICT, "it is reaped")
        self.cleanup = t.CleanupFailed(resources)

    def _settle(self, result: t.TaskResult) -> None:
        self._took_ms = self.elapsed_ms
        self.execution = t.Settled(result)

    def _step(self, event: Event) -> Execution:
        pair = (self.phase, event)
        if pair not in EXECUTION:
            raise Refused(REFUSED.get(pair, CONFLICT), f"{event} while {self.phase}")
        return EXECUTION[pair]

    # -- questions to the user or the parent

    def inquire(self, request_id: str) -> None:
        """A question of the task is open."""
        if self.phase == "settled":
            raise Refused("TaskTerminal")
        if self.phase == "cancelling":
            raise Refused("OwnerClosing")
        if request_id not in self.attention.request_ids:
            self.attention = t.Attention("input-needed", (*self.attention.request_ids, request_id))

    def answered(self, request_id: str) -> None:
        """The question is no longer open; an unknown one is passed over."""
        left = tuple(each for each in self.attention.request_ids if each != request_id)
        self.attention = t.Attention("input-needed", left) if left else t.Attention()

    def seems(self, activity: t.ActivityState | None, *, is_quiet: bool) -> None:
        """What shows of how it gets on. A question that is open shows before its silence."""
        self.activity = activity or UNSET
        if self.attention.kind != "input-needed" and self.phase == "running":
            self.attention = t.Attention("no-recent-activity" if is_quiet else "none")

    def measure(self, tools: int | None = None, tokens: int | None = None) -> None:
        """Each number by itself: what is not told stays as it was."""
        if self.phase == "settled":
            raise Refused("TaskTerminal")
        told = {"tool_count": tools, "token_count": tokens}
        self._counts = replace(self._counts, **{name: value for name, value in told.items() if value is not None})

    # -- what it looks like

    def receipt(self) -> t.CancelReceipt:
        """How it stands after it was to be ended."""
        is_cancelled = isinstance(self.result or self.execution, t.TaskCancelled | t.Cancelling)
        decision: Literal["already-settled", "cancellation-requested"]
        decision = "cancellation-requested" if is_cancelled else "already-settled"
        return t.CancelReceipt(self.id, decision, self.execution, self.cleanup)

    @property
    def elapsed_ms(self) -> int | None:
        """How long it has run, or ran; None if what runs it never began."""
        if self._took_ms is not None or self._began is None:
            return self._took_ms
        return round((self._now() - self._began) * 1000)

    @property
    def metrics(self) -> t.Metrics | UnsetType:
        elapsed = self.elapsed_ms
        known = self._counts if elapsed is None else replace(self._counts, elapsed_ms=elapsed)
        return UNSET if known == t.Metrics() else known

    @property
    def state(self) -> t.TaskState:
        match self.execution:
            case t.Queued():
                return "queued"
            case t.Cancelling():
                return "stopping"
            case t.Running():
                return "inputNeeded" if self.attention.kind == "input-needed" else "running"
            case t.Settled(t.TaskCancelled()):
                return "stopped"
            case t.Settled(t.TaskCompleted(exit_code=code)):
                return "failed" if self.launch.kind == "command" and code else "completed"
            case _:
                return "failed"

    @property
    def accepts_input(self) -> bool:
        """A terminal takes it while it runs, an agent while it waits for an answer."""
        return self.phase == "running" and (self.launch.accepts_input or self.attention.kind == "input-needed")

    def record(self) -> t.TaskRecord:
        launch = self.launch
        return t.TaskRecord(
            ref=self.ref,
            launch_ordinal=self.ordinal,
            kind=launch.kind,
            title=launch.title,
            state=self.state,
            execution=self.execution,
            observation=self.badge,
            cleanup=self.cleanup,
            attention=self.attention,
            was_background=self.was_background,
            output=self.output,
            parent_task_id=launch.parent_task_id or UNSET,
            launch_group_id=launch.group or UNSET,
            agent_name=launch.agent_name or UNSET,
            model=self.model,
            thinking=self.thinking,
            current_action=self.action,
            metrics=self.metrics,
            accepts_input=self.accepts_input,
            activity_state=self.activity if self.phase == "running" else UNSET,
        )
