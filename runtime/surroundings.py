"""Reads what settings, context files, skills and templates bring to the sessions of one folder.

Blocking: for the start, and for pumps when a session opens or `reload` asks. Warnings that were told once are not told
again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from actors.base import Address, StartPump
from actors.mail import SessionMail, SurroundingsLoaded, Ticket
from actors.model.attempts import RequestLimits
from actors.session.compaction.parameters import CompactionSettings, ModelBudget
from actors.session.expansion import Expander, Skill, Template, skills_section
from actors.session.retry import RetryPolicy
from actors.session.surroundings import Surroundings
from actors.tool.subagent_schema import LOOKING_SNIPPET
from actors.tool.table import ToolOptions
from actors.tool.talk_schema import CONTACT, CONTACT_SNIPPET
from protocol.model import Model, ThinkingLevel
from runtime.cli import Options
from runtime.resources import Resources, decided_trust, is_trusted, load_resources
from runtime.settings import Settings, load_settings
from runtime.skills import load_skills
from runtime.system_prompt import build_system_prompt
from runtime.templates import load_templates, setting_paths

if TYPE_CHECKING:
    from actors.mail import AgentPlan
    from actors.task.definition import AgentChange, AgentChanged, KnownAgents

Slash = tuple[list[Skill], list[Template], list[str]]
"""Skills, prompt templates, and warnings about both."""


class Folder(NamedTuple):
    """What was read of a folder. The warnings are not about the skills and templates."""

    trusted: bool
    settings: Settings
    resources: Resources
    warnings: list[str]
    slash: Slash


class SurroundingsReader:
    """`snippets` maps the tools that are on to their lines in the system prompt. `chosen` are the folders that the
    command line is about: `--approve` trusts these and no other, since a session file names the folder of a session."""

    def __init__(
        self,
        options: Options,
        agent_dir: str,
        env: Mapping[str, str],
        snippets: Mapping[str, str],
        chosen: Collection[str],
    ) -> None:
        self._options = options
        self._chosen = chosen
        self._agent_dir = agent_dir
        self._env = env
        self._snippets = snippets
        self._told: set[str] = set()

    def read(self, cwd: str) -> Surroundings:
        return self.made(cwd, *self._load(cwd, cwd))

    def agents(self, cwd: str) -> KnownAgents:
        """What subagents there are for a folder."""
        from runtime.agent_definitions import known_agents

        return known_agents(self._agent_dir, cwd, self._env, self._approval(cwd))

    def change_agent(self, change: AgentChange) -> AgentChanged:
        """Raises `ToolFailure`."""
        from runtime.agent_store import change_agent

        trusted, _ = decided_trust(self._agent_dir, change.cwd, self._env, self._approval(change.cwd))
        return change_agent(change, self._agent_dir, self._env, trusted=trusted)

    def for_agent(self, plan: AgentPlan) -> Surroundings:
        """What a subagent is given: its definition's prompt, and of its parent's what the definition lets through. Its
        task is taken as it is written."""
        from runtime.agent_prompt import agent_prompt

        folder: Folder | None = plan.folder
        if folder is None:
            folder = self.folder(plan.cwd, plan.checkout.root.shared if plan.checkout is not None else None)
        surroundings = self.made(plan.cwd, *folder)
        known = {**self._snippets, CONTACT: CONTACT_SNIPPET}
        snippets = {name: line for name, line in known.items() if name in plan.tools}
        if "subagent" in snippets:
            snippets["subagent"] = LOOKING_SNIPPET
        return replace(
            surroundings,
            system_prompt=agent_prompt(plan, snippets, self._with_flags(folder.resources), folder.slash[0]),
            expander=Expander(),
            fallback_models=plan.fallback_models,
            session_summary=False,
        )

    def folder(self, cwd: str, meant: str | None = None) -> Folder:
        """What agents are given of `cwd`, which is trusted as far as `meant` is, its own folder if that is another."""
        trusted, settings, resources, warnings = self._load(cwd, meant or cwd)
        return Folder(trusted, settings, resources, warnings, self._load_slash(cwd, trusted, settings))

    def _load(self, cwd: str, meant: str) -> tuple[bool, Settings, Resources, list[str]]:
        """What lies in `cwd`, which is trusted as far as `meant` is: a worktree belongs to its project."""
        options = self._options
        trusted, warnings = is_trusted(self._agent_dir, meant, self._env, self._approval(meant))
        settings, found = load_settings(self._agent_dir, cwd, self._env, trusted)
        resources = load_resources(
            self._agent_dir, cwd, self._env, trusted=trusted, context_files=not options.no_context_files
        )
        return trusted, settings, resources, [*warnings, *found, *resources.warnings]

    def _approval(self, cwd: str) -> bool | None:
        approve = self._options.approve
        return None if approve and cwd not in self._chosen else approve

    def _with_flags(self, resources: Resources) -> Resources:
        """A flag takes the place of the file of its kind."""
        options = self._options
        if options.system_prompt is not None:
            resources = replace(resources, system_prompt=options.system_prompt)
        if options.append_system_prompt:
            resources = replace(resources, append_system_prompt="\n\n".join(options.append_system_prompt))
        return resources

    def made(
        self,
        cwd: str,
        trusted: bool,
        settings: Settings,
        resources: Resources,
        warnings: list[str],
        slash: Slash | None = None,
    ) -> Surroundings:
        """From settings, resources and, if given, skills and templates that were read already."""
        options = self._options
        resources = self._with_flags(resources)
        skills, templates, faults = slash or self._load_slash(cwd, trusted, settings)
        fresh = [line for line in [*warnings, *faults] if line not in self._told]
        self._told.update(fresh)
        return Surroundings(
            system_prompt=self._prompt_of(cwd, resources, skills),
            expander=Expander(skills, templates),
            retry=RetryPolicy(True, settings.retry_max_retries, settings.retry_base_delay_ms),
            compaction=_compaction(settings),
            request_limits=RequestLimits(settings.provider_max_retries, settings.provider_max_retry_delay_ms),
            fallback_models=settings.fallback_models,
            fallback_level=settings.default_thinking_level,
            cache_retention=settings.cache_retention,
            thinking_budgets=settings.thinking_budgets or None,
            block_images=settings.block_images,
            tools=ToolOptions(
                settings.search_context_before, settings.search_context_after, settings.auto_resize_images
            ),
            branch_summary_reserve_tokens=settings.branch_summary_reserve_tokens,
            session_summary=settings.session_summary_enabled and options.mode == "rpc",
            warnings=tuple(fresh),
        )

    def _load_slash(self, cwd: str, trusted: bool, settings: Settings) -> Slash:
        options, place = self._options, (self._agent_dir, cwd, self._env)
        skill_paths, faults = setting_paths(settings.documents, "skills", cwd, self._env)
        prompt_paths, more = setting_paths(settings.documents, "prompts", cwd, self._env)
        skills, about_skills = load_skills(
            *place,
            trusted=trusted,
            settings_paths=skill_paths,
            flag_paths=options.skill,
            discover=not options.no_skills,
        )
        templates, about_templates = load_templates(
            *place,
            trusted=trusted,
            settings_paths=prompt_paths,
            flag_paths=options.prompt_template,
            discover=not options.no_prompt_templates,
        )
        return skills, templates, [*faults, *more, *about_skills, *about_templates]

    def _prompt_of(self, cwd: str, resources: Resources, skills: list[Skill]) -> Callable[[Model, ThinkingLevel], str]:
        listed = skills_section(skills) if "read" in self._snippets else ""

        def prompt(model: Model, level: ThinkingLevel) -> str:
            return build_system_prompt(
                cwd=cwd,
                date=time.strftime("%Y-%m-%d"),
                tools=self._snippets,
                context_files=resources.context_files,
                custom_prompt=resources.system_prompt,
                append=(resources.append_system_prompt,) if resources.append_system_prompt else (),
                skills=listed,
                model_name=model.name,
                thinking_level=level,
            )

        return prompt


def _compaction(settings: Settings) -> CompactionSettings:
    budgets = {
        model: ModelBudget(fields.get("reserveTokens"), fields.get("preserve_recent"))
        for model, fields in settings.model_budgets.items()
    }
    return CompactionSettings(
        settings.compaction_reserve_tokens,
        settings.compression_ratio,
        settings.preserve_recent,
        settings.compaction_query,
        budgets,
    )


class SurroundingsPump:
    """Reads them for `reload`, beside the session that waits."""

    def __init__(self, start_pump: StartPump, reader: SurroundingsReader) -> None:
        self._start_pump = start_pump
        self._reader = reader

    def load(self, ticket: Ticket, cwd: str, session: Address[SessionMail]) -> None:
        self._start_pump("reload", lambda: self._run(ticket, cwd, session))

    def _run(self, ticket: Ticket, cwd: str, session: Address[SessionMail]) -> None:
        try:
            session.tell(SurroundingsLoaded(ticket, self._reader.read(cwd)))
        except Exception as error:  # nothing of it may leave the command unanswered
            session.tell(SurroundingsLoaded(ticket, None, f"reload failed: {type(error).__name__}"))
