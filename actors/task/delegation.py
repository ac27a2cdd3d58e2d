"""A call of `subagent` made into plans: one for each agent that it launches, or why that one cannot be.

Pure. A call that contradicts itself or names an agent that is not there is refused as a whole, with one text; a slot
whose folder, model or history is missing is refused by itself, and the others run. Source: `tasks.md` 3.2 and 3.3.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from msgspec.structs import replace

from actors.mail import AgentPlan, AgentRefusal, ParentView
from actors.task.candidates import candidates
from actors.task.checkout import CheckoutPlan
from actors.task.definition import by_name
from actors.tool.paths import PathRefused, resolve
from actors.tool.schema import given, whole
from actors.tool.table import ToolFailure
from actors.tool.talk_schema import CONTACT

if TYPE_CHECKING:
    from actors.task.checkout import WorktreeRoot
    from actors.task.definition import AgentDefinition, KnownAgents

NOT_SAVED = "Forked subagent context requires a persisted parent session."
NO_LEAF = "Forked subagent context requires a current leaf to fork from."
BOUNDARY = (
    "You are a subagent: another agent works with the user and has given you one task. You cannot start subagents{}"
    " Do the task, then stop; your last message is all that the other agent gets of it."
)
NOBODY_ANSWERS = " and nobody answers questions."
MAY_ASK = "; with contact_supervisor you can ask that agent what you cannot decide."
WORKTREE_NOTE = (
    "You work in a git worktree of your own, a copy of the project. Just change files in it: your changes are collected"
    " when you are done, and the copy is removed."
)
FORK_NOTE = "The conversation before this message is for reference only: it is not yours to go on with. Your task:"
LOOKING = "subagent"
"""A child may not delegate: it is given this one, to look at what agents there are, only if its definition names it."""
NOT_FOR_CHILDREN = ("kill", "intercom")
"""A child owns no tasks, and has no agents to talk with."""


def plans(
    arguments: dict[str, Any],
    agents: KnownAgents,
    parent: ParentView,
    cwd: str,
    run: str,
    is_folder: Callable[[str], bool],
    root: WorktreeRoot | None = None,
) -> tuple[AgentPlan | AgentRefusal, ...]:
    """One for each agent of the call, in its order. `cwd` is the folder of the call, `run` names the launch; with
    `root` each has a worktree of it. Raises `ToolFailure`."""
    known = by_name(agents.definitions)
    wanted = _wanted(arguments, known, agents.max_tasks)
    _check_outputs(wanted, known, cwd)
    if root is not None:
        _check_shared(wanted, cwd)
    many = "tasks" in arguments
    forks = any(known[each["agent"]].context == "fork" for each in wanted)
    context: Literal["fresh", "fork"] = arguments.get("context") or ("fork" if forks else "fresh")
    return tuple(
        _plan(each, known[each["agent"]], parent, cwd, context, run, place if many else None, is_folder, root)
        for place, each in enumerate(wanted)
    )


def boundary(plan: AgentPlan) -> str:
    """What every child is told before anything else."""
    return BOUNDARY.format(MAY_ASK if CONTACT in plan.tools else NOBODY_ANSWERS)


def task_text(plan: AgentPlan) -> str:
    """What the child is asked."""
    parts = [FORK_NOTE] if plan.context == "fork" else []
    if plan.checkout is not None:
        parts.append(WORKTREE_NOTE)
    if plan.reads:
        parts.append("Read these files first: " + ", ".join(plan.reads))
    return "\n\n".join([*parts, plan.task])


# ---- the call ----------------------------------------------------------------------------------------------------


def _wanted(arguments: dict[str, Any], known: Mapping[str, AgentDefinition], max_tasks: int) -> list[dict[str, Any]]:
    """The call's tasks with what the call says for all of them, `count` carried out."""
    if ("agent" in arguments) == ("tasks" in arguments):
        available = [name for name, agent in known.items() if not agent.disabled]
        raise ToolFailure(f"Provide exactly one mode. Agents: {', '.join(available)}")
    shared: dict[str, Any] = {
        name: arguments[name] for name in ("model", "reads", "maxOutput", "artifacts") if name in arguments
    }
    if "agent" in arguments:
        single: dict[str, Any] = {
            name: arguments[name] for name in ("agent", "task", "output", "outputMode") if name in arguments
        }
        _check_agent(arguments["agent"], known, "")
        return [{**shared, **single}]
    tasks = [given(task) for task in arguments["tasks"]]
    for number, task in enumerate(tasks, 1):
        _check_agent(task["agent"], known, f" (task {number})")
    wanted = [{**shared, **task} for task in tasks for _ in range(whole(task, "count") or 1)]
    if not wanted or len(wanted) > max_tasks:
        raise ToolFailure(f"Max {max_tasks} tasks" if wanted else "tasks must have at least 1 entry")
    return wanted


def _check_agent(name: str, known: Mapping[str, AgentDefinition], place: str) -> None:
    if name not in known:
        raise ToolFailure(f"Unknown agent: {name[:80]}{place}")
    if known[name].disabled:
        raise ToolFailure(f"Agent is disabled by the settings: {name}{place}")


def _check_outputs(wanted: list[dict[str, Any]], known: Mapping[str, AgentDefinition], where: str) -> None:
    """Each is to have a file of its own, and one whose answer goes to a file alone must have one."""
    taken: dict[str, int] = {}
    for number, each in enumerate(wanted, 1):
        output = each.get("output")
        if each.get("outputMode") == "file-only" and not (output or known[each["agent"]].output):
            raise ToolFailure("outputMode file-only needs output, the file to save to")
        if output:
            path = _path(output, _path(each.get("cwd"), where))
            if path in taken:
                raise ToolFailure(f"output must differ: tasks {taken[path]} and {number} would both save to {path}")
            taken[path] = number


def _check_shared(wanted: list[dict[str, Any]], where: str) -> None:
    """A worktree is one of the whole call: an agent cannot work elsewhere."""
    for number, each in enumerate(wanted, 1):
        cwd = _path(each.get("cwd"), where)
        if cwd != where:
            raise ToolFailure(f"worktree isolation requires the shared cwd {where}, and task {number} has {cwd}")


def _path(path: str | None, where: str) -> str:
    try:
        return resolve(path or ".", where)
    except PathRefused as refused:
        raise ToolFailure(f"Invalid params: {refused}") from None


# ---- one agent ---------------------------------------------------------------------------------------------------


def _plan(
    wanted: dict[str, Any],
    agent: AgentDefinition,
    parent: ParentView,
    where: str,
    context: Literal["fresh", "fork"],
    run: str,
    index: int | None,
    is_folder: Callable[[str], bool],
    root: WorktreeRoot | None,
) -> AgentPlan | AgentRefusal:
    cwd = _path(wanted.get("cwd"), where)
    if not is_folder(cwd):
        return AgentRefusal("InvalidCwd", f"Working directory does not exist: {cwd}\nCannot run subagents there.")
    if context == "fork" and not (parent.is_saved and parent.path):
        return AgentRefusal("InvalidContext", NOT_SAVED)
    if context == "fork" and not parent.branch:
        return AgentRefusal("InvalidContext", NO_LEAF)
    found = candidates(wanted.get("model"), agent, parent)
    if not found.places:
        return AgentRefusal("RunnerUnavailable", f"No model is available for {agent.name}: {'; '.join(found.skipped)}")
    first, *rest = found.places
    limits = wanted.get("maxOutput") or {}
    output = wanted.get("output") or agent.output
    checkout = CheckoutPlan(root, os.path.join(root.home, f"{run}-{index or 0}")) if root is not None else None
    return AgentPlan(
        agent=agent,
        task=wanted.get("task") or agent.description,
        cwd=cwd if checkout is None else checkout.cwd,
        context=context,
        model=first.model,
        level=first.level,
        fallback_models=tuple(place.key for place in rest),
        tools=_tools(agent, parent),
        parent=parent if context == "fork" else replace(parent, branch=()),  # plans are kept as long as their tasks
        run=run,
        index=index,
        skipped=found.skipped,
        reads=_reads(wanted, agent),
        output=_path(output, cwd) if output else None,
        only_file=wanted.get("outputMode") == "file-only",
        artifacts=wanted.get("artifacts") is not False and parent.path is not None,
        max_lines=whole(limits, "lines") or 5000,
        max_bytes=whole(limits, "bytes") or 204_800,
        checkout=checkout,
    )


def _tools(agent: AgentDefinition, parent: ParentView) -> tuple[str, ...]:
    """Those of the parent, narrowed, and the one to speak to it. A definition gives nothing else that the parent does
    not have."""
    named = agent.tools
    wanted = [name for name in parent.tools if (name != LOOKING if named is None else name in named)]
    own = tuple(name for name in wanted if name not in NOT_FOR_CHILDREN)
    return (*own, CONTACT) if agent.interactive else own


def _reads(wanted: dict[str, Any], agent: AgentDefinition) -> tuple[str, ...]:
    reads = wanted.get("reads")
    if reads is False:
        return ()
    return agent.reads if reads is None else tuple(reads)
