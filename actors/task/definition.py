"""What kinds of subagents there are: definitions as read from Markdown files, and which of two with one name counts.

Pure. Promises that a definition is complete: what its file leaves open has its default here. Source: `tasks.md` 3.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, cast

from msgspec import Struct

from actors.tool.subagent_schema import CONTEXTS, PROMPT_MODES
from protocol.model import THINKING_LEVELS, ThinkingLevel

AgentSource = Literal["builtin", "user", "project"]
AgentScope = Literal["user", "project", "both"]
DELEGATE = (
    "delegate"  # an agent of this name is the parent itself in a second session: it takes over what the parent has
)
_TRUE = ("true", "True", "TRUE", "yes", "on")


class AgentDefinition(Struct, frozen=True):
    """One kind of subagent. `prompt` is its system prompt, which replaces the parent's or is appended to it.

    `tools` narrows what the child is offered (None: all that the parent has). `model` and each of `fallback_models` may
    end in `:level`. An `interactive` one may speak to its parent.
    """

    name: str
    description: str
    prompt: str
    source: AgentSource
    path: str
    tools: tuple[str, ...] | None = None
    model: str | None = None
    fallback_models: tuple[str, ...] = ()
    thinking: ThinkingLevel | None = None
    prompt_mode: Literal["append", "replace"] = "replace"
    inherits_project_context: bool = False
    inherits_skills: bool = False
    context: Literal["fresh", "fork"] = "fresh"
    skills: tuple[str, ...] | None = None
    output: str | None = None
    reads: tuple[str, ...] = ()
    disabled: bool = False  # by the settings: it cannot be run
    interactive: bool = True


class KnownAgents(Struct, frozen=True):
    """What there is for a folder: definitions, weakest first, what is wrong with files, and how many agents one call
    may launch."""

    definitions: tuple[AgentDefinition, ...]
    warnings: tuple[str, ...] = ()
    max_tasks: int = 50


class AgentChange(Struct, frozen=True):
    """What is to become of a definition. `name` is the whole one, empty for a new one; `config` holds fields as in a
    file, None for one that goes, and `systemPrompt`. `cwd` is absolute."""

    action: Literal["create", "update", "delete"]
    name: str
    scope: AgentScope
    cwd: str
    config: Mapping[str, Any]


class AgentChanged(Struct, frozen=True):
    """`path` is the file that was written, or that is gone."""

    name: str
    source: AgentSource
    path: str


def read_definition(
    fields: Mapping[str, Any], body: str, source: AgentSource, path: str
) -> tuple[AgentDefinition | None, list[str]]:
    """A definition from front matter (every scalar is text), and what is wrong with it. None, without a word, for a
    file that has no `name` or no `description`: it is none."""
    name, description = _text(fields.get("name")), _text(fields.get("description"))
    if name is None or description is None:
        return None, []
    faults: list[str] = []
    package = _text(fields.get("package"))
    definition = AgentDefinition(
        name=f"{package}.{name}" if package else name,
        description=description,
        prompt=body.strip(),
        source=source,
        path=path,
        tools=_tools(fields.get("tools")),
        model=_text(fields.get("model")),
        fallback_models=_with_levels(
            _names(fields.get("fallbackModels")), _names(fields.get("fallbackThinkingLevels"))
        ),
        thinking=cast(ThinkingLevel | None, _one_of("thinking", fields, THINKING_LEVELS, None, faults)),
        prompt_mode=cast(
            Literal["append", "replace"],
            _one_of("systemPromptMode", fields, PROMPT_MODES, "append" if name == DELEGATE else "replace", faults),
        ),
        inherits_project_context=_flag(fields.get("inheritProjectContext"), name == DELEGATE),
        inherits_skills=_flag(fields.get("inheritSkills"), False),
        context=cast(Literal["fresh", "fork"], _one_of("defaultContext", fields, CONTEXTS, "fresh", faults)),
        skills=_names(fields.get("skills", fields.get("skill"))) or None,
        output=_text(fields.get("output")),
        reads=_names(fields.get("defaultReads")),
        disabled=source == "builtin" and _flag(fields.get("disabled"), False),
        interactive=_flag(fields.get("interactive"), True),
    )
    return definition, faults


def fields_of(agent: AgentDefinition) -> dict[str, Any]:
    """What a definition says, under the names of its file, and where it lies."""
    return {
        "name": agent.name,
        "description": agent.description,
        "source": agent.source,
        "path": agent.path,
        "disabled": agent.disabled,
        "tools": None if agent.tools is None else list(agent.tools),
        "model": agent.model,
        "fallbackModels": list(agent.fallback_models),
        "thinking": agent.thinking,
        "systemPromptMode": agent.prompt_mode,
        "inheritProjectContext": agent.inherits_project_context,
        "inheritSkills": agent.inherits_skills,
        "skills": None if agent.skills is None else list(agent.skills),
        "defaultContext": agent.context,
        "defaultReads": list(agent.reads),
        "output": agent.output,
        "interactive": agent.interactive,
        "systemPrompt": agent.prompt,
    }


def by_name(definitions: Iterable[AgentDefinition]) -> dict[str, AgentDefinition]:
    """The definitions that count, by name and sorted by it: of two with one name the later does."""
    found = {definition.name: definition for definition in definitions}
    return dict(sorted(found.items()))


def in_scope(definitions: Iterable[AgentDefinition], scope: AgentScope) -> list[AgentDefinition]:
    """Those of the user, of the project, or both; the ones that come with the program always belong to it."""
    return [each for each in definitions if scope == "both" or each.source in ("builtin", scope)]


def _text(value: object) -> str | None:
    return value.strip() or None if isinstance(value, str) else None


def _names(value: object) -> tuple[str, ...]:
    """A list, or names with commas between."""
    entries = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else []
    return tuple(text for entry in entries if (text := _text(entry)) is not None)


def _tools(value: object) -> tuple[str, ...] | None:
    """An empty list narrows nothing. Tools of servers (`mcp:...`) are none of ours."""
    names = tuple(name for name in _names(value) if not name.startswith("mcp:"))
    return names or None


def _with_levels(models: tuple[str, ...], levels: tuple[str, ...]) -> tuple[str, ...]:
    """The older form keeps the levels in a list beside the models."""
    paired = (*levels, *[""] * len(models))
    return tuple(
        f"{model}:{level}" if level in THINKING_LEVELS and model.rpartition(":")[2] not in THINKING_LEVELS else model
        for model, level in zip(models, paired, strict=False)
    )


def _flag(value: object, default: bool) -> bool:
    text = _text(value)
    return default if text is None else text in _TRUE


def _one_of(
    key: str, fields: Mapping[str, Any], allowed: tuple[str, ...], default: str | None, faults: list[str]
) -> str | None:
    text = _text(fields.get(key))
    if text is None or text in allowed:
        return text or default
    faults.append(f"{key} may be {', '.join(allowed)}; {text[:80]!r} counts as {default or 'not given'}")
    return default
