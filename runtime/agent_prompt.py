"""The system prompt of a subagent: what it is, what its definition says, and what that takes over of its parent's.

Pure. Source: `tasks.md` 3.1 and 3.3.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from actors.session.expansion import skills_section
from actors.task.delegation import boundary
from runtime.system_prompt import build_system_prompt

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from actors.mail import AgentPlan
    from actors.session.expansion import Skill
    from protocol.model import Model, ThinkingLevel
    from runtime.resources import Resources


def agent_prompt(
    plan: AgentPlan, snippets: Mapping[str, str], resources: Resources, skills: Sequence[Skill]
) -> Callable[[Model, ThinkingLevel], str]:
    """`snippets` are the lines of the tools that it has; `resources` and `skills` those of its folder."""
    agent = plan.agent
    own = "\n\n".join(filter(None, (boundary(plan), agent.prompt)))
    replaces = agent.prompt_mode == "replace"
    inherited = () if replaces or not resources.append_system_prompt else (resources.append_system_prompt,)
    listed = [skill for skill in skills if agent.inherits_skills or skill.name in (agent.skills or ())]

    def prompt(model: Model, level: ThinkingLevel) -> str:
        return build_system_prompt(
            cwd=plan.cwd,
            date=time.strftime("%Y-%m-%d"),
            tools=snippets,
            context_files=resources.context_files if agent.inherits_project_context else (),
            custom_prompt=own if replaces else resources.system_prompt,
            append=() if replaces else (*inherited, own),
            skills=skills_section(listed) if listed and "read" in snippets else "",
            model_name=model.name,
            thinking_level=level,
        )

    return prompt
