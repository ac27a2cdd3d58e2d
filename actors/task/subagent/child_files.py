"""The files of a subagent: the session of its child, and what is kept of its task and its answer.

All of it is read and written in pumps. Child sessions lie in `subagents/<session>/` beside the file of their parent, so
that no list of sessions shows them; task, answer and facts in `subagent-artifacts/`. A parent in memory has its
children in memory, and keeps nothing. Source: `tasks.md` 3.2 to 3.4.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

from actors.base import Address, StartPump
from actors.mail import AgentPlan, ArtifactsWritten, ChildOpened, ChildRefused, SubagentMail
from actors.session.file import OpenedSession, SessionFileError, Stamps, new_session
from actors.session.journal import JournalError, write_all
from actors.session.surroundings import Surroundings
from actors.session.tree import Entry
from actors.task.delegation import task_text
from actors.task.fork import fork_lines
from actors.task.git import GitFailed
from actors.task.housekeeping import clean_artifacts
from actors.task.worktree import Checkout, Worktrees
from actors.task.worktree_hook import Halt, HookFailed
from protocol.codec import encode
from protocol.entry_head import read_entry

FOLDER, ARTIFACTS = "subagents", "subagent-artifacts"
NAME_BYTES = 100
"""So much of an agent's name is in the names of its files; a file system allows 255 for the whole."""


class ChildFiles:
    """Those of one child. `surroundings` reads what it is told besides its task; `worktrees` makes the one that it
    works in, if it is to have one."""

    def __init__(
        self,
        start_pump: StartPump,
        stamps: Stamps,
        surroundings: Callable[[AgentPlan], Surroundings],
        worktrees: Worktrees,
    ) -> None:
        self._start_pump = start_pump
        self._stamps = stamps
        self._surroundings = surroundings
        self._worktrees = worktrees
        self._halt = Halt()

    def open(self, plan: AgentPlan, to: Address[SubagentMail]) -> None:
        """Ends with `ChildOpened` or `ChildRefused`; what is kept of earlier ones is looked through after that."""

        def work() -> None:
            to.tell(self._opened(plan))
            if plan.parent.path is not None:
                clean_artifacts(_artifacts(plan), self._stamps.now() / 1000)

        self._start_pump("subagent-open", work)

    def abandon(self) -> None:
        """Nobody wants it any more: opening it ends soon, as ever with `ChildOpened` or `ChildRefused`."""
        self._halt.call()

    def keep(
        self, plan: AgentPlan, text: str, facts: dict[str, Any], checkout: Checkout | None, to: Address[SubagentMail]
    ) -> None:
        """Writes the answer and what is known of the run, and puts away the worktree; ends with `ArtifactsWritten`."""
        self._start_pump("subagent-keep", lambda: to.tell(_kept(plan, text, facts, checkout)))

    def _opened(self, plan: AgentPlan) -> ChildOpened | ChildRefused:
        checkout = None
        try:
            if plan.checkout is not None:
                checkout = self._worktrees.open(plan.checkout, self._halt)
            surroundings = self._surroundings(plan)
            kept = (_write(_artifact(plan, "input.md"), task_text(plan)),) if plan.artifacts else ()
            return ChildOpened(self._session(plan), surroundings, kept, checkout)
        except (SessionFileError, JournalError, GitFailed, HookFailed, ValueError) as error:
            refused = ChildRefused(_refusal(plan, str(error)))
        except OSError as error:
            refused = ChildRefused(
                _refusal(plan, f"{error.filename}: {error.strerror}" if error.filename else str(error))
            )
        except Exception as error:  # the subagent must not wait for ever
            refused = ChildRefused(_refusal(plan, type(error).__name__))
        if checkout is not None:
            checkout.remove()
        return refused

    def _session(self, plan: AgentPlan) -> OpenedSession:
        parent = plan.parent.path
        folder = None
        if parent is not None:
            folder = os.path.join(os.path.dirname(parent), FOLDER, os.path.basename(parent).removesuffix(".jsonl"))
        saved = parent if plan.parent.is_saved else None
        opened = new_session(self._stamps, plan.cwd, folder, parent_session=saved)
        if plan.context == "fresh":
            return opened
        lines = fork_lines(plan.parent.branch)
        opened.journal.append_all(lines)
        entries = [Entry(line, head) for line in lines if (head := read_entry(line)) is not None]
        return OpenedSession(opened.header, entries, opened.journal)


def _refusal(plan: AgentPlan, why: str) -> str:
    kind = "forked subagent session" if plan.context == "fork" else "subagent session"
    return f"Failed to create {kind}: {why}"


def _kept(plan: AgentPlan, text: str, facts: dict[str, Any], checkout: Checkout | None) -> ArtifactsWritten:
    changes = checkout.finish(_patch(plan)) if checkout is not None else None
    paths: list[str] = []
    try:
        if plan.artifacts:
            paths.append(_write(_artifact(plan, "output.md"), text))
            paths.append(_write(_artifact(plan, "meta.json"), encode(facts).decode()))
        saved = _write(plan.output, text, private=False) if plan.output is not None and text else None
        return ArtifactsWritten(tuple(paths), saved, changes=changes)
    except OSError as error:
        told = f"{error.filename}: {error.strerror or error}"
    except ValueError as error:  # a name that no file can have
        told = f"output: {error}"
    return ArtifactsWritten(tuple(paths), None, told, changes)


def _patch(plan: AgentPlan) -> str:
    """What was changed is kept also of a session in memory: it is nowhere else."""
    if plan.parent.path is not None:
        return _artifact(plan, "changes.patch")
    assert plan.checkout is not None
    return f"{plan.checkout.folder}.patch"


def _artifact(plan: AgentPlan, what: str) -> str:
    """Names of agents come from files: they may be long, and nothing of them may lead elsewhere."""
    agent = re.sub(r"[^\w.-]", "_", plan.agent.name).encode()[:NAME_BYTES].decode(errors="ignore")
    place = "" if plan.index is None else f"_{plan.index}"
    return os.path.join(_artifacts(plan), f"{plan.run}_{agent}{place}_{what}")


def _artifacts(plan: AgentPlan) -> str:
    assert plan.parent.path is not None
    return os.path.join(os.path.dirname(plan.parent.path), ARTIFACTS)


def _write(path: str, text: str, *, private: bool = True) -> str:
    """The path. Raises `OSError`."""
    flags, mode = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600 if private else 0o666
    try:
        fd = os.open(path, flags, mode)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), mode=0o700 if private else 0o777, exist_ok=True)
        fd = os.open(path, flags, mode)
    try:
        write_all(fd, text.encode("utf-8", "replace"))
    finally:
        os.close(fd)
    return path
