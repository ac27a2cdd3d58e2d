"""The end of a subagent: how it came, what is kept of the child, and what the desk is told of both.

Part of the subagent. What is kept is written first, so that the outcome can name it; a worktree is looked at when
nobody works in it any more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from actors.base import Address
from actors.mail import AgentPlan, ArtifactsWritten, SubagentMail, TaskDeskMail, TaskEnded, TaskReaped
from actors.task.agent_view import AgentView, agent_view
from actors.task.subagent.child import ChildPort, ChildSession
from actors.task.subagent.child_log import ChildLog
from protocol.tasks import TaskResult


class Ending:
    """`now` is in monotonic seconds. `view` is what is left of the subagent, once its outcome has been told."""

    def __init__(
        self,
        task_id: str,
        plan: AgentPlan,
        child: ChildSession,
        log: ChildLog,
        files: ChildPort,
        desk: Address[TaskDeskMail],
        now: Callable[[], float],
        me: Address[SubagentMail],
    ) -> None:
        self._task_id = task_id
        self._plan = plan
        self._child = child
        self._log = log
        self._files = files
        self._desk = desk
        self._now = now
        self._me = me
        self._began = now()
        self._result: TaskResult | None = None
        self._keeps = False
        self.has_begun = False
        self.view: AgentView | None = None

    def begin(self, result: TaskResult | None) -> None:
        """Once. Without a result it was stopped, and the desk knows why."""
        self.has_begun = True
        self._result = result

    def keep(self) -> None:
        """Writes what is to be kept, now or when the child has let go, and then tells the outcome."""
        if self._plan.artifacts or self._plan.output is not None or self._child.checkout is not None:
            self._keeps = True
            self.keep_when_free()
        else:
            self.tell_outcome(ArtifactsWritten())

    def keep_when_free(self) -> None:
        """Once."""
        if self._keeps and (self._child.checkout is None or not self._child.lives):
            self._keeps = False
            self._files.keep(self._plan, self._log.text, self._facts(), self._child.checkout, self._me)

    def tell_outcome(self, kept: ArtifactsWritten) -> None:
        self.view = self._shown(kept)
        if self._result is not None:
            self._desk.tell(TaskEnded(self._task_id, self._result, self.view))

    def tell_reaped(self) -> None:
        """Nothing of it is left. Its child may have said more since its outcome."""
        assert self.view is not None
        self._desk.tell(TaskReaped(self._task_id, replace(self.view, history=self._child.history(self._log.tail))))

    def _shown(self, kept: ArtifactsWritten) -> AgentView:
        plan, said = self._plan, self._log.text
        view = agent_view(
            said if kept.error is None else f"{said}\n\n[Not saved: {kept.error}]",
            max_lines=plan.max_lines,
            max_bytes=plan.max_bytes,
            saved_to=kept.saved_to,
            only_file=plan.only_file,
            artifacts=self._child.artifacts + kept.paths,
            skipped=plan.skipped,
            changes=kept.changes,
        )
        return replace(view, history=self._child.history(self._log.tail))

    def _facts(self) -> dict[str, Any]:
        plan, log = self._plan, self._log
        return {
            "agent": plan.agent.name,
            "task": plan.task,
            "cwd": plan.cwd,
            "context": plan.context,
            "model": log.model,
            "thinking": log.level,
            "skippedModels": list(plan.skipped),
            "sessionFile": self._child.session_file,
            "taskId": self._task_id,
            "result": {"kind": "stopped"} if self._result is None else msgspec.to_builtins(self._result),
            "toolCount": log.tools,
            "turnCount": log.turns,
            "tokenCount": log.tokens,
            "durationMs": round((self._now() - self._began) * 1000),
        }
