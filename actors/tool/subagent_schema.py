"""What the model is told of `subagent`: its description and its parameters."""

from __future__ import annotations

from typing import Any

from protocol.model import THINKING_LEVELS

CONTEXTS = ("fresh", "fork")
PROMPT_MODES = ("append", "replace")
SNIPPET = "Hand bounded tasks to subagents"
DESCRIPTION = (
    "Hand a bounded task to another agent with a context of its own, or several at once with tasks. It runs in the"
    " background unless wait says foreground: the answer then gives task ids, and a notice brings each result, so go on"
    " with other work and do not launch it again. At most 4 run at once, others wait in a queue; at most 50 in a call."
    " Action list names the agents, get shows one; status looks at what was launched, wait waits for one task id, kill"
    " stops it; create, update and delete change definitions. Built in are scout (finds things), analyst (explains"
    " code), reviewer (reviews) and worker (does a whole task, and knows this conversation)."
)
LOOKING = "See which agents there are: action list names them, get shows one. You cannot start any."
LOOKING_SNIPPET = "See which agents there are"
ACTIONS = ("list", "get", "status", "wait", "kill", "create", "update", "delete")


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


def _object(required: tuple[str, ...] = (), /, **properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


_OF_EACH: dict[str, dict[str, Any]] = {
    "model": _text("Model to run on, provider/id or id, with :level for the effort; else the agent's own, else yours"),
    "reads": {
        "type": ["array", "boolean"],
        "items": {"type": "string"},
        "description": "Files to read first; false for none",
    },
    "output": _text("File to save the answer to, relative to the agent's directory"),
    "outputMode": {
        "type": "string",
        "enum": ["inline", "file-only"],
        "description": "file-only keeps the answer out of the result; needs output",
    },
}


def _names(description: str) -> dict[str, Any]:
    return {"type": ["array", "string"], "items": {"type": "string"}, "description": description}


_SCOPE: dict[str, Any] = {
    "type": "string",
    "enum": ["user", "project", "both"],
    "description": "Whose agents; both. A new one is the user's unless this says project",
}


def _config() -> dict[str, Any]:
    """The fields of a definition's file, under the names that they have there."""
    return {
        **_object(
            name=_text("Name; only with create"),
            package=_text("The agent is called package.name then; only with create"),
            description=_text("What it is for"),
            systemPrompt=_text("Its instructions, Markdown"),
            tools=_names("Which of your tools it has; all if left out"),
            model=_text("provider/id or id, with :level for the effort"),
            fallbackModels=_names("Models that take over"),
            thinking={"type": "string", "enum": list(THINKING_LEVELS)},
            systemPromptMode={"type": "string", "enum": list(PROMPT_MODES)},
            inheritProjectContext={"type": "boolean"},
            inheritSkills={"type": "boolean"},
            skills=_names("Skills that it is told of"),
            defaultContext={"type": "string", "enum": list(CONTEXTS)},
            defaultReads=_names("Files that it reads first"),
            output=_text("File for its answer"),
            interactive={"type": "boolean", "description": "False: it cannot ask you anything"},
        ),
        "description": "With create and update: the agent's fields; null takes one away",
    }


def looking_parameters() -> dict[str, Any]:
    """For an agent that may not start others."""
    return _object(
        ("action",),
        action=_text("list, get or status"),
        agent=_text("With action get: name of the agent"),
        agentScope=_SCOPE,
        cwd=_text("Directory whose agents are looked at"),
        id=_text("With action status: a task id"),
    )


def parameters() -> dict[str, Any]:
    """A JSON schema; `actors.tool.subagent_call.fault` holds what it cannot say."""
    task = _object(
        ("agent", "task"),
        agent=_text("Name of the agent"),
        task=_text("All that it needs to know"),
        cwd=_text("Directory to work in, relative to that of the call"),
        count={"type": "integer", "minimum": 1, "maximum": 50, "description": "How many agents to give this task"},
        **_OF_EACH,
    )
    return _object(
        agent=_text("Name of the agent"),
        task=_text("What it is to do, with all that it needs to know"),
        tasks={"type": "array", "items": task, "description": "Several tasks at once, in place of agent and task"},
        concurrency={
            "type": "integer",
            "minimum": 1,
            "description": "How many of tasks may run at once; 4 if left out",
        },
        context={
            "type": "string",
            "enum": ["fresh", "fork"],
            "description": "fork lets the agent know this conversation; else as the agent has it",
        },
        agentScope=_SCOPE,
        cwd=_text("Directory to work in; the working directory if left out"),
        **_OF_EACH,
        worktree={
            "type": "boolean",
            "description": "Give each agent a git worktree of its own, whose changes come back as a patch",
        },
        maxOutput=_object(
            bytes={"type": "integer", "minimum": 1, "description": "Most bytes of an answer that are shown"},
            lines={"type": "integer", "minimum": 1, "description": "Most lines of an answer that are shown"},
        ),
        artifacts={"type": "boolean", "description": "False keeps no files of the task and its answer"},
        wait=_object(
            ("kind",),
            kind={"type": "string", "enum": ["background", "foreground"]},
            budgetMs={"type": "number", "minimum": 0, "description": "Milliseconds, foreground only"},
        ),
        action={"type": "string", "enum": list(ACTIONS), "description": "Something else than a launch"},
        config=_config(),
        id=_text("With action status, wait or kill: the task id"),
        budgetMs={"type": "number", "minimum": 0, "description": "With action wait: milliseconds to wait at most"},
    )
