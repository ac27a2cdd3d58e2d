"""What a subagent is told: that it is one, what its definition says, and of its parent's what that lets through."""

from __future__ import annotations

from typing import Any

from actors.session.expansion import Origin, Skill
from actors.task.delegation import BOUNDARY, NOBODY_ANSWERS
from runtime.agent_prompt import agent_prompt
from runtime.resources import ContextFile, Resources
from tests.actors.task.agents import agent, model, plan

ALONE = BOUNDARY.format(NOBODY_ANSWERS)
HERE = Resources((ContextFile("/project/AGENTS.md", "Use tabs."),), "I am the parent.", "And more.", ())
ORIGIN = Origin("user", "user", "auto", "/s")
SKILLS = [
    Skill(name, f"{name} it", f"/s/{name}.md", f"/s/{name}.md", "/s", "body", ORIGIN) for name in ("pack", "ship")
]


def prompt(**fields: Any) -> str:
    made = agent_prompt(plan(agent=agent(**fields)), {"read": "Read files"}, HERE, SKILLS)
    return made(model("a/own"), "high")


def test_its_own_prompt_takes_the_place_of_the_parents_and_nothing_else_comes_along() -> None:
    text = prompt()
    assert text.startswith(f"{ALONE}\n\nDo it.")
    assert not [part for part in ("I am the parent.", "And more.", "Use tabs.", "pack") if part in text]
    assert "Working directory: /project" in text


def test_it_may_be_appended_to_the_parents() -> None:
    text = prompt(prompt_mode="append")
    assert text.startswith("I am the parent.\n\nAnd more.\n\n" + ALONE)


def test_the_projects_instructions_and_skills_come_as_the_definition_says() -> None:
    assert "Use tabs." in prompt(inherits_project_context=True)
    assert "pack" in prompt(inherits_skills=True) and "ship" in prompt(inherits_skills=True)
    named = prompt(skills=("ship",))
    assert "ship" in named and "pack" not in named
