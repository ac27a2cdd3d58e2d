"""Subagents in the simulated world: which kinds there are, how a call of them is read, and the files of their children.

The planning is the real one; what it reads is here. The child's session is a real one too: the house starts it.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from actors.base import Address
from actors.mail import (
    AgentPlan,
    ArtifactsWritten,
    ChildOpened,
    ChildRefused,
    SubagentMail,
    ToolCallMail,
    ToolRequest,
)
from actors.session.file import OpenedSession, SessionFileError
from actors.session.journal import JournalError
from actors.session.surroundings import Surroundings
from actors.session.tree import Entry
from actors.task.checkout import WorktreeRoot
from actors.task.definition import AgentChange, AgentChanged, AgentDefinition, KnownAgents
from actors.task.fork import fork_lines
from actors.task.planning import AgentPlanner, Planning
from actors.tool.table import ToolFailure
from protocol.entry_head import read_entry
from runtime.simulation.chances import Chances, Dice
from runtime.simulation.disk import DIRECTORY, Disk
from runtime.simulation.ports import simulated_surroundings
from runtime.simulation.pumps import Once
from runtime.simulation.scheduler import Scheduler

NO_FOLDER = "/simulated/nowhere"


def _kind(name: str, **fields: Any) -> AgentDefinition:
    return AgentDefinition(name, f"{name} does it", "Do it.", "user", f"/simulated/{name}.md", **fields)


DEFINITIONS = (
    _kind("scout", tools=("read", "bash")),
    _kind("worker", context="fork"),
    _kind("picky", model="spare/spare:low", fallback_models=("quick", "unheard/of")),
    _kind("saver", output="answer.md"),
    _kind("onlooker", tools=("read", "subagent")),
    _kind("asker", interactive=True),
)


class AgentRun(Struct):
    """A subagent that was started: `started_at` counts the mail that had been told by then."""

    task_id: str
    plan: AgentPlan
    started_at: int


def load_agents(cwd: str) -> KnownAgents:
    """The same for each folder."""
    return KnownAgents(DEFINITIONS, ("simulated warning",), max_tasks=8)


class SimulatedPlanner:
    """Reads what a call of `subagent` needs, some steps later; files of definitions may fail."""

    def __init__(self, scheduler: Scheduler, chances: Chances) -> None:
        self._scheduler = scheduler
        self._chances = chances
        self._runs = count(1)

    def start(self, request: ToolRequest, call: Address[ToolCallMail]) -> Planning:
        run = next(self._runs)
        dice = self._chances.dice(f"agents of call {run}")

        def load(cwd: str) -> KnownAgents:
            if dice.strikes("agent: definitions cannot be read", 0.05):
                raise OSError("simulated")
            return load_agents(cwd)

        def change(change: AgentChange) -> AgentChanged:
            if dice.strikes("agent: a definition cannot be written", 0.3):
                raise ToolFailure("simulated")
            return AgentChanged(change.name or "made", "user", "/simulated/made.md")

        def pump(name: str, work: Callable[[], None]) -> None:
            self._scheduler.add_pump(Once(work), "agent-pump")

        def worktree_root(cwd: str) -> WorktreeRoot:
            if dice.strikes("agent: its folder is no clean working tree", 0.3):
                raise ToolFailure("simulated")
            return WorktreeRoot("/simulated/work", "0" * 40, cwd, "", "/simulated/worktrees")

        is_folder = NO_FOLDER.__ne__
        new_run, unread = lambda: f"run{run}", lambda cwd: None
        planner = AgentPlanner(pump, load, change, worktree_root, new_run, unread, is_folder)
        return planner.start(request, call)


class SimulatedChildFiles:
    """Sessions of children on the simulated disk: made some steps later, if they can be."""

    def __init__(self, disk: Disk, scheduler: Scheduler, dice: Dice) -> None:
        self._disk = disk
        self._scheduler = scheduler
        self._dice = dice
        self._cannot_be_made = dice.strikes("agent: its session cannot be made", 0.05)
        self._cannot_be_kept = dice.strikes("agent: its answer cannot be kept", 0.1)

    def open(self, plan: AgentPlan, to: Address[SubagentMail]) -> None:
        self._scheduler.add_pump(Once(lambda: to.tell(self._opened(plan))), "child-pump")

    def abandon(self) -> None:
        """It is opened all the same: a child that is ready too late."""

    def keep(self, plan: AgentPlan, text: str, facts: dict[str, Any], checkout: Any, to: Address[SubagentMail]) -> None:
        """`checkout` is one of the simulated disk."""

        def work() -> None:
            changes = checkout.finish() if checkout is not None else None
            kept = ArtifactsWritten(("/simulated/output.md",), plan.output, changes=changes)
            if self._cannot_be_kept:
                kept = ArtifactsWritten(error="simulated: no space left", changes=changes)
            to.tell(kept)

        self._scheduler.add_pump(Once(work), "child-pump")

    def _opened(self, plan: AgentPlan) -> ChildOpened | ChildRefused:
        try:
            if self._cannot_be_made:
                raise SessionFileError("Session folder cannot be made: simulated")
            opened = self._session(plan)
            checkout: Any = None if plan.checkout is None else self._disk.check_out(plan.checkout.folder)
            return ChildOpened(opened, self._surroundings(plan), (), checkout)
        except (SessionFileError, JournalError) as error:
            return ChildRefused(f"Failed to create subagent session: {error}")

    def _session(self, plan: AgentPlan) -> OpenedSession:
        folder = None
        if plan.parent.path is not None:
            folder = f"{DIRECTORY}/subagents/{plan.parent.path.rpartition('/')[2].removesuffix('.jsonl')}"
        opened = self._disk.new_child(folder, plan.parent.path if plan.parent.is_saved else None)
        if plan.context == "fresh":
            return opened
        lines = fork_lines(plan.parent.branch)
        opened.journal.append_all(lines)
        entries = [Entry(line, head) for line in lines if (head := read_entry(line)) is not None]
        return OpenedSession(opened.header, entries, opened.journal)

    def _surroundings(self, plan: AgentPlan) -> Surroundings:
        whole = simulated_surroundings(self._dice)
        return replace(whole, fallback_models=plan.fallback_models, session_summary=False)
