"""What a definition file says of a subagent, with every default and every fault."""

from __future__ import annotations

from typing import Any

import pytest

from actors.task.definition import AgentDefinition, by_name, in_scope, read_definition

NAMED = {"name": "scout", "description": "Finds."}


def read(**fields: Any) -> AgentDefinition:
    definition, faults = read_definition({**NAMED, **fields}, " Look. \n", "user", "/a.md")
    assert definition is not None and faults == []
    return definition


def test_what_is_left_open_has_a_default() -> None:
    assert read() == AgentDefinition("scout", "Finds.", "Look.", "user", "/a.md")
    delegate = read(name="delegate")
    assert (delegate.prompt_mode, delegate.inherits_project_context) == ("append", True)


@pytest.mark.parametrize(
    "fields",
    [{}, {"name": "x"}, {"description": "x"}, {"name": " ", "description": "x"}, {"name": ["x"], "description": "x"}],
)
def test_a_file_without_name_or_description_is_none_and_nothing_is_said(fields: dict[str, Any]) -> None:
    assert read_definition(fields, "", "user", "/a.md") == (None, [])


def test_every_field_is_read() -> None:
    definition = read(
        package="team",
        tools=["read", "bash", "mcp:server/tool"],
        model="a/one:high",
        fallbackModels="b/two, c/three:low,d",
        fallbackThinkingLevels="high, max",
        thinking="low",
        systemPromptMode="append",
        inheritProjectContext="true",
        inheritSkills="yes",
        defaultContext="fork",
        skill="review, test",
        output="report.md",
        defaultReads="a.md, b.md",
    )
    assert definition == AgentDefinition(
        name="team.scout",
        description="Finds.",
        prompt="Look.",
        source="user",
        path="/a.md",
        tools=("read", "bash"),
        model="a/one:high",
        fallback_models=("b/two:high", "c/three:low", "d"),
        thinking="low",
        prompt_mode="append",
        inherits_project_context=True,
        inherits_skills=True,
        context="fork",
        skills=("review", "test"),
        output="report.md",
        reads=("a.md", "b.md"),
    )


@pytest.mark.parametrize(("text", "flag"), [("true", True), ("false", False), (" True ", True), ("no", False)])
def test_flags_are_read_as_they_are_written_quoted_or_not(text: str, flag: bool) -> None:
    found = read(interactive=text, inheritProjectContext=text, inheritSkills=text)
    assert (found.interactive, found.inherits_project_context, found.inherits_skills) == (flag, flag, flag)
    assert read(name="delegate", inheritProjectContext=text).inherits_project_context is flag


@pytest.mark.parametrize("tools", [[], "", " , ", ["mcp:x"], None, {"read": "yes"}])
def test_tools_that_name_none_narrow_nothing(tools: Any) -> None:
    assert read(tools=tools).tools is None


@pytest.mark.parametrize(
    ("field", "default"), [("thinking", None), ("systemPromptMode", "replace"), ("defaultContext", "fresh")]
)
def test_a_word_that_means_nothing_is_told_with_what_is_allowed(field: str, default: str | None) -> None:
    definition, (fault,) = read_definition({**NAMED, field: "wild" * 99}, "", "user", "/a.md")
    assert definition is not None
    assert default in (definition.thinking, definition.prompt_mode, definition.context)
    assert fault.startswith(f"{field} may be ") and len(fault) < 200


def test_of_two_with_one_name_the_later_counts_and_all_are_in_order() -> None:
    files = [("b", "builtin"), ("a", "builtin"), ("b", "user"), ("b", "project")]
    found = [AgentDefinition(name, "d", "", source, "") for name, source in files]  # type: ignore[arg-type]
    assert [(name, each.source) for name, each in by_name(found).items()] == [("a", "builtin"), ("b", "project")]
    assert [each.source for each in in_scope(found, "user")] == ["builtin", "builtin", "user"]
    assert [each.source for each in in_scope(found, "project")] == ["builtin", "builtin", "project"]
    assert in_scope(found, "both") == found
